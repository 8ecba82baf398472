"""Python values as JSON and back, exactly or not at all.

Rules of this module:

* `unpack(pack(value)) == value`, types included, or `pack` raises `Untravelled`: never something similar.
* Values that hold no other values (a date, bytes, a path, ...) are written and read in `scalars`.
* What JSON has of its own (null, true, false, text, whole numbers, finite floats, lists, objects with text keys) stands
  for itself. Everything else is *tagged*: `{"~": tag, "v": payload}`; so is a dict that itself has the key "~".
* Nothing is ever imported or called because the data names it. Items, enumerations and named tuples are built of
  classes that the caller knows (`known_classes`), by their fields (`item_classes`).
* `unpack` reads data from outside: whatever it cannot read raises `ValueError` with a short reason.

A subclass of text that is no enumeration travels as plain text: it compares equal. Other subclasses do not travel.
"""

from __future__ import annotations

import enum
import json
import math
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any, Protocol

from scrapy_ubi.adapter.requests.item_classes import (
    Untravelled,
    class_name,
    field_names,
    is_dict_class,
    is_enumeration,
    is_item_class,
    is_model_class,
    is_named_tuple,
    made,
    made_dict,
    made_model,
    pairs_of,
    state_of,
    values_of,
)
from scrapy_ubi.adapter.requests.scalars import MAX_BITS, READERS, TAG, WRITERS, is_encodable, pack_text, tagged

MAX_DEPTH = 32  # of nesting; far more than metadata needs, far less than the interpreter's recursion limit
MAX_NODES = 100_000  # of one value: an endless or hugely shared structure is noticed before memory is gone

# What a defaultdict makes, by name. Nothing else is called for a missing key.
_FACTORIES: dict[str, Callable[[], Any] | None] = {
    "list": list, "dict": dict, "set": set, "int": int, "float": float, "str": str, "": None
}  # fmt: skip


class ItemClasses(Protocol):
    """The classes that a text may name, by their dotted paths."""

    def get(self, name: str, /) -> type | None:
        """The class of this name, None where it is unknown."""


def pack(value: object, items: ItemClasses | None = None) -> Any:
    """`value` as what `json.dumps` writes. Raises `Untravelled`."""
    return _Packer(items or {}).pack(value, 0)


def unpack(value: Any, items: ItemClasses | None = None, *, build: bool = True) -> Any:
    """The value that `pack` was given. Raises `ValueError` for what `pack` cannot have written.

    With `build` false items are checked but not made (no code of the user runs); None stands in their place.
    """
    return _Unpacker(items or {}, build).unpack(value, 0)


class _Packer:
    def __init__(self, items: ItemClasses) -> None:
        self._items = items
        self._nodes = 0

    def pack(self, value: object, depth: int) -> Any:
        kind = type(value)
        if value is None or kind is bool:
            return value
        if kind is str:
            return pack_text(str(value))
        self._nodes += 1
        if depth > MAX_DEPTH or self._nodes > MAX_NODES:
            raise Untravelled("depth" if depth > MAX_DEPTH else "size")
        try:
            writer = WRITERS.get(kind)
            if writer is not None:
                return writer(value)
            if kind in (list, tuple, set, frozenset):
                return self._pack_sequence(value, depth)
            if isinstance(value, dict) and kind is dict:
                return self._pack_dict(value, depth)
            if isinstance(value, str) and not isinstance(value, enum.Enum):
                return pack_text(str.__str__(value))
            if kind in _COLLECTIONS:
                return self._pack_collection(value, _inside(depth))
            return self._pack_named(value, depth)
        except Untravelled:
            raise
        except Exception as error:  # the user's classes may do anything where they are looked at
            raise Untravelled(kind.__name__) from error

    def _pack_sequence(self, value: Any, depth: int) -> Any:
        packed = [self.pack(element, depth + 1) for element in value]
        if type(value) is list:
            return packed
        if type(value) is tuple:
            return tagged("tuple", packed)
        packed.sort(key=json.dumps)  # equal sets are equal texts
        return tagged(type(value).__name__, packed)

    def _pack_dict(self, value: dict[Any, Any], depth: int) -> Any:
        if TAG not in value and all(type(key) is str and is_encodable(key) for key in value):
            return {key: self.pack(element, depth + 1) for key, element in value.items()}
        depth = _inside(depth) if value else depth  # its pairs are lists of their own
        return tagged(
            "dict", [[self.pack(key, depth + 1), self.pack(element, depth + 1)] for key, element in value.items()]
        )

    def _pack_collection(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind is deque:
            return tagged("deque", self.pack([value.maxlen, list(value)], depth))
        pairs = [list(pair) for pair in value.items()]
        if kind is not defaultdict:
            return tagged(kind.__name__, self.pack(pairs, depth))
        factory = next((name for name, made_by in _FACTORIES.items() if made_by is value.default_factory), None)
        if factory is None:
            raise Untravelled(kind.__name__)
        return tagged(kind.__name__, self.pack([factory, pairs], depth))

    def _pack_named(self, value: Any, depth: int) -> Any:
        """A value of a class that has a name."""
        cls = type(value)
        name = class_name(cls)
        if self._items.get(name) is not cls:
            raise Untravelled(cls.__name__)
        if is_enumeration(cls) and cls.__members__.get(value.name) is value:  # else several flags together
            return tagged("enum", [name, value.name])
        if isinstance(value, enum.Flag):
            return tagged("flags", [name, self.pack(value.value, _inside(depth))])
        if is_named_tuple(cls) and not getattr(value, "__dict__", None):
            return tagged("namedtuple", [name, self.pack(list(value), _inside(depth))])
        if is_model_class(cls):
            return tagged("model", [name, self.pack([*state_of(value)], _inside(depth))])
        if is_dict_class(cls):
            return tagged("dictclass", [name, self.pack(pairs_of(value), _inside(depth))])
        if not is_item_class(cls):
            raise Untravelled(cls.__name__)
        return tagged("item", [name, self._pack_dict(values_of(value), _inside(depth))])


class _Unpacker:
    def __init__(self, items: ItemClasses, build: bool) -> None:
        self._items = items
        self._build = build

    def unpack(self, value: Any, depth: int) -> Any:
        if value is None or isinstance(value, bool | str):
            return value
        if depth > MAX_DEPTH:
            raise ValueError("nested too deeply")
        if isinstance(value, int):
            if value.bit_length() > MAX_BITS:
                raise ValueError("number too large")
            return value
        if isinstance(value, float):
            if not math.isfinite(value):
                raise ValueError("number not finite")
            return value
        if isinstance(value, list):
            return [self.unpack(element, depth + 1) for element in value]
        if isinstance(value, dict):
            if TAG in value:
                return self._unpack_tagged(value, depth)
            return {key: self.unpack(element, depth + 1) for key, element in value.items()}
        raise ValueError(f"unexpected {type(value).__name__}")

    def _unpack_tagged(self, value: dict[str, Any], depth: int) -> Any:
        tag, payload = value[TAG], value.get("v")
        if len(value) != 2 or not isinstance(tag, str):
            raise ValueError("malformed tag")
        if tag in ("tuple", "set", "frozenset", "dict"):
            return self._unpack_container(tag, payload, depth)
        if tag in _NAMED:
            return self._unpack_named(tag, payload, depth)
        if (collection := _COLLECTION_READERS.get(tag)) is not None:
            return _read(collection, tag, self.unpack(payload, depth + 1))
        reader = READERS.get(tag)
        if reader is None:
            raise ValueError(f"unknown tag {tag[:20]!r}")
        return _read(reader, tag, payload)

    def _unpack_container(self, tag: str, payload: Any, depth: int) -> Any:
        if not isinstance(payload, list):
            raise ValueError(f"malformed {tag}")
        elements = [self.unpack(element, depth + 1) for element in payload]
        try:
            if tag == "dict":
                return dict(elements)
            return {"tuple": tuple, "set": set, "frozenset": frozenset}[tag](elements)
        except (TypeError, ValueError) as error:  # not hashable, not pairs
            raise ValueError(f"malformed {tag}") from error

    def _unpack_named(self, tag: str, payload: Any, depth: int) -> Any:
        if not isinstance(payload, list) or len(payload) != 2 or not isinstance(payload[0], str):
            raise ValueError(f"malformed {tag}")
        cls = self._items.get(payload[0])
        values = self.unpack(payload[1], depth + 1)
        if tag == "enum":
            return _member(cls, values)
        if tag == "flags":
            return _flags(cls, values)
        if tag == "namedtuple":
            return _named_tuple(cls, values)
        if tag == "model":
            return _model(cls, values, self._build)
        if tag == "dictclass":
            return _dict_class(cls, values, self._build)
        if not is_item_class(cls) or not isinstance(values, dict):
            raise ValueError("unknown item class")
        if not values.keys() <= field_names(cls):
            raise ValueError("unknown field of an item")
        return made(cls, values) if self._build else None


def _member(cls: Any, name: object) -> Any:
    if not is_enumeration(cls) or not isinstance(name, str) or name not in cls.__members__:
        raise ValueError("unknown member of an enumeration")
    return cls.__members__[name]


def _flags(cls: Any, value: object) -> Any:
    if not (isinstance(cls, type) and issubclass(cls, enum.Flag)) or type(value) is not int or value < 0:
        raise ValueError("unknown flags")
    every = 0
    for member in cls:
        every |= member.value
    if value | every != every:
        raise ValueError("unknown flags")
    return cls(value)


def _model(cls: Any, state: object, build: bool) -> Any:
    if not is_model_class(cls) or not isinstance(state, list) or len(state) != 2:
        raise ValueError("unknown model")
    values, were_set = state
    if not isinstance(values, dict) or not isinstance(were_set, list) or not all(type(one) is str for one in were_set):
        raise ValueError("malformed model")
    if not {*values, *were_set} <= {*cls.model_fields}:
        raise ValueError("unknown field of a model")
    return made_model(cls, values, were_set) if build else None


def _dict_class(cls: Any, pairs: object, build: bool) -> Any:
    if not is_dict_class(cls):
        raise ValueError("unknown dict class")
    read = _read(_read_pairs, "pairs", pairs)
    return made_dict(cls, read.items()) if build else None


def _named_tuple(cls: Any, values: object) -> Any:
    if not is_named_tuple(cls) or not isinstance(values, list) or len(values) != len(cls._fields):
        raise ValueError("unknown named tuple")
    return tuple.__new__(cls, values)


def _read(reader: Callable[[Any], Any], tag: str, payload: Any) -> Any:
    try:
        return reader(payload)
    except (TypeError, ValueError, ArithmeticError, AttributeError, LookupError, OSError) as error:
        raise ValueError(f"malformed {tag}") from error


def _inside(depth: int) -> int:
    """The depth of what is one level deeper, as `unpack` will count it."""
    if depth >= MAX_DEPTH:
        raise Untravelled("depth")
    return depth + 1


_COLLECTIONS = frozenset({OrderedDict, Counter, defaultdict, deque})
_NAMED = frozenset({"item", "enum", "flags", "namedtuple", "model", "dictclass"})


def _read_defaultdict(payload: Any) -> defaultdict[Any, Any]:
    name, pairs = payload
    return defaultdict(_FACTORIES[name], _read_pairs(pairs))


def _read_deque(payload: Any) -> deque[Any]:
    most, elements = payload
    if not isinstance(elements, list):
        raise ValueError("malformed deque")
    return deque(elements, most)


def _read_pairs(payload: Any) -> dict[Any, Any]:
    if not isinstance(payload, list):
        raise ValueError("malformed pairs")
    return dict(payload)


_COLLECTION_READERS: dict[str, Callable[[Any], Any]] = {
    "OrderedDict": lambda pairs: OrderedDict(_read_pairs(pairs)),
    "Counter": lambda pairs: Counter(_read_pairs(pairs)),
    "defaultdict": _read_defaultdict,
    "deque": _read_deque,
}
