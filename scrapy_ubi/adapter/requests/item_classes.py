"""Values of classes that are not Python's own, read and written by their fields: items, enumerations, named tuples.

Rules of this module:

* A value is written as the fields by which its class makes it again: `scrapy.Item`, dataclasses, attrs classes. One
  that holds more than its fields does not travel.
* A member of an enumeration is its name, a named tuple its values.
* Which classes may be named at all is the matter of `known_classes`. Nothing here looks a class up.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from typing import Any

import attr
from scrapy import Item


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
    if dataclasses.is_dataclass(cls):
        return {field.name for field in dataclasses.fields(cls)}
    return {field.name for field in attr.fields(cls)}


def values_of(value: Any) -> dict[str, Any]:
    """The fields of an item, with their values. Raises `Untravelled` where they are not all that it is made of."""
    cls = type(value)
    if isinstance(value, Item):
        return dict(value.items())
    fields: Any = dataclasses.fields(value) if dataclasses.is_dataclass(value) else attr.fields(cls)
    names = tuple(field.name for field in fields)
    if not all(field.init for field in fields):
        raise Untravelled(cls.__name__)  # its constructor cannot set all its fields
    if not {*names}.issuperset(getattr(value, "__dict__", ())):
        raise Untravelled(cls.__name__)
    try:
        return {name: getattr(value, name) for name in names}
    except AttributeError:  # deleted, or never set
        raise Untravelled(cls.__name__) from None


def made(cls: Any, values: Mapping[str, Any]) -> Any:
    """The item with these fields. Raises whatever the class raises."""
    if attr.has(cls) and not dataclasses.is_dataclass(cls):
        aliases = {field.name: field.alias for field in attr.fields(cls)}
        values = {aliases[name]: value for name, value in values.items()}
    return cls(**values)
