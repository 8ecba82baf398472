"""Values of classes that are not Python's own, read and written by their fields: items, enumerations, named tuples.

Rules of this module:

* A value is written as its fields: `scrapy.Item`, dataclasses, attrs classes. One that holds more does not travel.
* A pydantic model is its fields, with those that were set; an instance of a dict class its pairs. Pydantic is asked
  only where the project has imported it.
* All are made as `copy.copy` makes them, without their constructor: it has run, and may change what it is given
  (`__post_init__`, converters). It runs again where the class has got more fields since, which are left as it makes
  them, and where a class has a `__new__` of its own (`item_shapes`). Validators of attrs run: they change nothing.
* Whatever code of the user's raises while a value is read, the value does not travel.
* A member of an enumeration is its name, several flags together their value, a named tuple its values.
* Which classes may be named at all is the matter of `known_classes`. Nothing here looks a class up.
"""

from __future__ import annotations

import contextlib
import copyreg
import dataclasses
import enum
import sys
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Mapping, Set
from typing import Any

import attr
from scrapy import Item

from scrapy_ubi.adapter.requests.item_shapes import CACHED_HASH, Slot, more_slots, shape_of

_ITEM_HOLDS = frozenset(vars(Item()))


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


def field_names(cls: Any) -> Set[str]:
    """The names of the fields of an item class."""
    return cls.fields.keys() if issubclass(cls, Item) else shape_of(cls).fields


def values_of(value: Any) -> dict[str, Any]:
    """The fields of an item, with their values. Raises `Untravelled` where they are not all that it is made of."""
    cls = type(value)
    try:
        values = _item_values(cls, value) if issubclass(cls, Item) else _field_values(cls, value)
    except Exception as error:  # the user's own code; AttributeError: a field was deleted, or never set
        raise Untravelled(cls.__name__) from error
    if values is None:
        raise Untravelled(cls.__name__)
    return values


def _item_values(cls: Any, item: Item) -> dict[str, Any] | None:
    """The fields of an item of Scrapy's; None where it holds more."""
    if not vars(item).keys() <= _ITEM_HOLDS or _holds_any(more_slots(cls), item):
        return None
    return {name: Item.__getitem__(item, name) for name in Item.keys(item)}


def _field_values(cls: Any, value: Any) -> dict[str, Any] | None:
    """The fields of a dataclass, or attrs class; None where it holds more, or would not be made again of them."""
    shape, look = shape_of(cls), object.__getattribute__
    if not shape.is_made or (shape.has_dict and not shape.held.issuperset(look(value, "__dict__"))):
        return None
    if shape.more_slots and _holds_any(shape.more_slots, value):
        return None
    if shape.has_validators:
        attr.validate(value)  # as its receivers will
    return {name: look(value, name) for name in shape.names}


def _holds_any(slots: Iterable[Slot], value: Any) -> bool:
    """Whether it holds something in one of these slots."""
    for slot in slots:
        with contextlib.suppress(AttributeError):  # empty
            slot(value)
            return True
    return False


def made(cls: Any, values: Mapping[str, Any]) -> Any:
    """The item with these fields. Raises whatever the class raises."""
    if issubclass(cls, Item):
        item = cls.__new__(cls)
        Item.__init__(item)
        for name, value in values.items():
            Item.__setitem__(item, name, value)
        return item
    shape = shape_of(cls)
    if not shape.is_made:
        raise ValueError(f"a {cls.__name__} cannot be made of its fields")
    if shape.is_bare and values.keys() == shape.fields:
        found = object.__new__(cls)
    else:
        found = cls(**{shape.arguments[name]: value for name, value in values.items() if name in shape.arguments})
        if not shape.is_bare:
            return found
    put = object.__setattr__
    for name, value in values.items():
        put(found, name, value)
    if shape.caches_hash:
        put(found, CACHED_HASH, None)
    if shape.has_validators:
        attr.validate(found)
    return found


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
