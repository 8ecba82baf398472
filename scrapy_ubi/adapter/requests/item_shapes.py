"""What instances of a dataclass, or attrs class, are made of: looked up once for each class.

Rules of this module:

* A slot is asked by its own descriptor: the class may do anything where it is asked for an attribute (`__getattr__`),
  and a slot's name need not be the attribute's (`__cache`).
* What attrs keeps of a `cached_property` of a slotted class is a cache, and no part of the value.
* An instance is made without its constructor where its class is made like any object. One with a `__new__` of its own
  is made by its constructor, if that runs no code of the user's besides; one that holds more than attributes
  (a date, an OrderedDict, an exception) cannot be made of its fields.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import attr

_OF_GENERICS = "__orig_class__"  # typing's mark on what `Name[type](...)` has made; nothing compares it
CACHED_HASH = "_attrs_cached_hash"  # of a class of attrs' with `cache_hash`; each process has its own
_HOOKS = ("__post_init__", "__attrs_pre_init__", "__attrs_post_init__")
_GENERATED = ("<string>", "<attrs generated")  # where the code of a constructor stands that dataclasses or attrs wrote
_MOST_CLASSES = 1024

Slot = Callable[[Any], Any]  # raises AttributeError where it is empty


class Shape(NamedTuple):
    """That of one class. `arguments`: field -> how the constructor calls it; `more_slots`: those of no field."""

    names: tuple[str, ...]
    fields: frozenset[str]
    held: frozenset[str]  # what may stand in its `__dict__`
    has_dict: bool
    more_slots: tuple[Slot, ...]
    arguments: dict[str, str]
    is_bare: bool  # made without its constructor
    is_made: bool  # at all, of its fields
    caches_hash: bool
    has_validators: bool


@functools.lru_cache(_MOST_CLASSES)
def shape_of(cls: Any) -> Shape:
    """The shape of a dataclass, or attrs class."""
    is_attrs = not dataclasses.is_dataclass(cls)
    fields: Any = attr.fields(cls) if is_attrs else dataclasses.fields(cls)
    names = tuple(field.name for field in fields)
    is_plain = _is_plain(cls)
    is_bare = is_plain and cls.__new__ is object.__new__
    return Shape(
        names=names,
        fields=frozenset(names),
        held=frozenset({*names, _OF_GENERICS}),
        has_dict=cls.__dictoffset__ != 0,
        more_slots=more_slots(cls, names),
        arguments={field.name: field.alias if is_attrs else field.name for field in fields if field.init},
        is_bare=is_bare,
        is_made=is_bare or (is_plain and _keeps_values(cls, fields)),
        caches_hash=hasattr(cls, CACHED_HASH),  # a slot
        has_validators=is_attrs and any(field.validator is not None for field in fields),
    )


@functools.lru_cache(_MOST_CLASSES)
def more_slots(cls: Any, names: tuple[str, ...] = ()) -> tuple[Slot, ...]:
    """The slots of a class which hold none of the attributes of these names, nor what attrs keeps for itself."""
    known = [inspect.getattr_static(cls, name, None) for name in (*names, CACHED_HASH, *_cached_properties(cls))]
    slots = {
        id(slot): slot.__get__
        for one in cls.__mro__
        for slot in vars(one).values()
        if isinstance(slot, types.MemberDescriptorType) and not any(slot is other for other in known)
    }
    return tuple(slots.values())


def _cached_properties(cls: type) -> Iterator[str]:
    """The names of those that attrs has made slots of: its `__getattr__` has them as the default of an argument."""
    for one in cls.__mro__:
        function = vars(one).get("__getattr__") if "__attrs_attrs__" in vars(one) else None
        if isinstance(function, types.FunctionType):
            found = inspect.signature(function).parameters.get("cached_properties")
            if found is not None and isinstance(found.default, dict):
                yield from found.default


def _is_plain(cls: type) -> bool:
    """Whether its instances hold nothing but attributes, so that `object.__new__` makes them."""
    base: type | None = cls  # the first that is not written in Python says how they lie in memory
    while base is not None and not isinstance(vars(base).get("__new__"), types.BuiltinFunctionType):
        base = base.__base__
    return base is object


def _keeps_values(cls: Any, fields: Any) -> bool:
    """Whether its constructor takes all fields, and leaves them as they are."""
    code = getattr(cls.__init__, "__code__", None)
    return (
        code is not None
        and code.co_filename.startswith(_GENERATED)
        and all(field.init and getattr(field, "converter", None) is None for field in fields)
        and not any(hasattr(cls, hook) for hook in _HOOKS)
    )
