"""Values of classes that are not Python's own, read and written by their fields: items, enumerations, named tuples.

Rules of this module:

* A value is written as its fields: `scrapy.Item`, dataclasses, attrs classes. One that holds more does not travel.
* A pydantic model is its fields, with those that were set; an instance of a dict class its pairs. Pydantic is asked
  only where the project has imported it.
* All are made as `copy.copy` makes them, without their constructor: it has run, and may change what it is given
  (`__post_init__`, converters). It runs again only where the class has got more fields since.
* A member of an enumeration is its name, several flags together their value, a named tuple its values.
* Which classes may be named at all is the matter of `known_classes`. Nothing here looks a class up.
"""

from __future__ import annotations

import copyreg
import dataclasses
import enum
import sys
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attr
from scrapy import Item

_OF_GENERICS = "__orig_class__"  # typing's mark on what `Name[type](...)` has made; nothing compares it
_CACHED_HASH = "_attrs_cached_hash"  # of a class of attrs' with `cache_hash`; each process has its own
_NO_FIELDS = ("__dict__", "__weakref__", _CACHED_HASH)
_HOLD_MORE = (list, tuple, set, frozenset, str, bytes, bytearray, int, float, complex, BaseException)  # than fields


class Untravelled(Exception):
    """This value cannot travel exactly. `kind` is the name of the type that cannot (or `depth`, `size`)."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        super().__init__(kind)


def class_name(cls: type) -> str:
    """The dotted path under which a class is known."""
    return f"{cls.__module__}.{cls.__qualname__}"


def is_item_class(value: object) -> bool:
    """Whether `value` is a class whose instances travel by their fields."""
    if not isinstance(value, type):
        return False
    return issubclass(value, Item) or dataclasses.is_dataclass(value) or attr.has(value)


def is_model_class(value: object) -> bool:
    """Whether `value` is a class of pydantic models."""
    base = getattr(sys.modules.get("pydantic"), "BaseModel", None)
    return base is not None and isinstance(value, type) and issubclass(value, base) and value is not base


def is_dict_class(value: object) -> bool:
    """Whether `value` is a class of dicts, besides Python's own, that holds nothing but its pairs."""
    if not isinstance(value, type) or value is dict or not issubclass(value, dict):
        return False
    return not issubclass(value, (OrderedDict, defaultdict))


def is_enumeration(value: object) -> bool:
    """Whether `value` is a class of which a member travels by its name."""
    return isinstance(value, type) and issubclass(value, enum.Enum)


def is_named_tuple(value: object) -> bool:
    """Whether `value` is a class made by `namedtuple`, or `NamedTuple`."""
    if not (isinstance(value, type) and issubclass(value, tuple)):
        return False
    fields = getattr(value, "_fields", None)
    return isinstance(fields, tuple) and all(isinstance(name, str) for name in fields)


def field_names(cls: Any) -> set[str]:
    """The names of the fields of an item class."""
    if issubclass(cls, Item):
        return set(cls.fields)
    return {*_names(cls)}


def values_of(value: Any) -> dict[str, Any]:
    """The fields of an item, with their values. Raises `Untravelled` where they are not all that it is made of."""
    cls = type(value)
    if isinstance(value, Item):
        if not vars(value).keys() <= vars(Item()).keys():
            raise Untravelled(cls.__name__)
        return {name: Item.__getitem__(value, name) for name in Item.keys(value)}
    if isinstance(value, _HOLD_MORE):
        raise Untravelled(cls.__name__)
    names = _names(cls)
    if not {*names, _OF_GENERICS}.issuperset((*getattr(value, "__dict__", ()), *_slots_of(value))):
        raise Untravelled(cls.__name__)
    try:
        return {name: getattr(value, name) for name in names}
    except AttributeError:  # deleted, or never set
        raise Untravelled(cls.__name__) from None


def _names(cls: Any) -> list[str]:
    """The names of the fields of a dataclass, or attrs class, in their order."""
    fields: Any = dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else attr.fields(cls)
    return [field.name for field in fields]


def _slots_of(value: Any) -> Iterator[str]:
    """The slots in which it holds something; not those that attrs keeps for itself."""
    for cls in type(value).__mro__:
        slots = vars(cls).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in _NO_FIELDS and hasattr(value, name):
                yield name


def made(cls: Any, values: Mapping[str, Any]) -> Any:
    """The item with these fields. Raises whatever the class raises."""
    if issubclass(cls, Item):
        item = cls.__new__(cls)
        Item.__init__(item)
        for name, value in values.items():
            Item.__setitem__(item, name, value)
        return item
    if values.keys() == set(_names(cls)):
        found = object.__new__(cls)
        for name, value in values.items():
            object.__setattr__(found, name, value)
        if hasattr(cls, _CACHED_HASH):  # a slot
            object.__setattr__(found, _CACHED_HASH, None)
        return found
    if attr.has(cls) and not dataclasses.is_dataclass(cls):
        aliases = {field.name: field.alias for field in attr.fields(cls)}
        values = {aliases[name]: value for name, value in values.items()}
    return cls(**values)


def state_of(model: Any) -> tuple[dict[str, Any], list[str]]:
    """The fields of a pydantic model, and the names of those that were set. Raises `Untravelled` where it has more."""
    cls = type(model)
    values = dict(model.__dict__)
    more = any(getattr(model, f"__pydantic_{name}__", None) for name in ("extra", "private"))
    if more or not {*cls.model_fields}.issuperset(values):
        raise Untravelled(cls.__name__)
    return values, sorted(model.__pydantic_fields_set__)


def made_model(cls: Any, values: Mapping[str, Any], were_set: Iterable[str]) -> Any:
    """The pydantic model with these fields, which are not validated: they were."""
    model = cls.__new__(cls)
    model.__setstate__(
        {
            "__dict__": dict(values),
            "__pydantic_extra__": {} if cls.model_config.get("extra") == "allow" else None,
            "__pydantic_fields_set__": set(were_set),
            "__pydantic_private__": {} if cls.__private_attributes__ else None,
        }
    )
    return model


def pairs_of(value: Any) -> list[list[Any]]:
    """The pairs of an instance of a dict class. Raises `Untravelled` where it holds more than these."""
    cls = type(value)
    made_by, arguments, state, *_ = value.__reduce_ex__(2)
    if made_by is not copyreg.__newobj__ or arguments != (cls,) or state is not None:  # type: ignore[attr-defined]
        raise Untravelled(cls.__name__)
    return [list(pair) for pair in dict.items(value)]


def made_dict(cls: Any, pairs: Iterable[tuple[Any, Any]]) -> Any:
    """The instance of a dict class with these pairs."""
    value = cls.__new__(cls)
    dict.update(value, pairs)
    return value
