"""Which classes are items, models, dicts and named tuples."""

from __future__ import annotations

import copy
import dataclasses
import sys
from collections import OrderedDict, defaultdict
from typing import Any

import attr
import pydantic
import pytest
import scrapy

from scrapy_ubi.adapter.requests.item_classes import (
    Untravelled,
    is_dict_class,
    is_item_class,
    is_model_class,
    is_named_tuple,
    made,
    values_of,
)


@dataclasses.dataclass
class Doubled:
    number: int
    length: int = dataclasses.field(init=False)
    scale: dataclasses.InitVar[int] = 2

    def __post_init__(self, scale: int) -> None:
        self.number *= scale
        self.length = len(str(self.number))


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    name: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", f"{self.name}!")


@attr.s(auto_attribs=True)
class Converted:
    _price: float = attr.ib(converter=lambda price: price / 100)
    seen: int = attr.ib(init=False, default=7)


@attr.define(frozen=True, cache_hash=True)
class Cached:
    name: str = attr.field(converter=lambda name: f"<{name}>")


class Stamped(scrapy.Item):
    name = scrapy.Field()

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self["name"] = f"{self.get('name')}+"


@pytest.mark.parametrize(
    "value",
    [Doubled(4), Frozen("a"), Converted(250), Cached("a"), Stamped(name="a")],
    ids=lambda value: type(value).__name__,
)
def test_what_its_constructor_has_made_of_a_value_is_not_made_of_it_again(value: Any) -> None:
    arrived = made(type(value), values_of(value))
    assert arrived == value and type(arrived) is type(value)
    if isinstance(value, Cached | Frozen):
        assert hash(arrived) == hash(value) == hash(copy.copy(arrived))


def test_a_field_that_a_class_has_got_since_has_its_default() -> None:
    older = dataclasses.make_dataclass("Older", [("name", str), ("more", int, 5)])
    assert made(older, {"name": "a"}) == older("a", 5)


def test_what_holds_more_than_its_fields_does_not_travel() -> None:
    @dataclasses.dataclass
    class Words(list):  # type: ignore[type-arg]
        name: str

    class Base:
        __slots__ = ("more",)

    @dataclasses.dataclass(slots=True)
    class Derived(Base):
        name: str

    class Private(scrapy.Item):
        def __init__(self) -> None:
            super().__init__()
            self._more = 1

    more = Derived("a")
    more.more = 1
    for value in (Words("a"), more, Private()):
        with pytest.raises(Untravelled):
            values_of(value)
    assert values_of(Derived("a")) == {"name": "a"}


def test_what_is_no_class_of_these_is_none() -> None:
    class Odd(tuple):  # type: ignore[type-arg]
        _fields = "ab"

    assert not any(is_item_class(value) for value in (int, "Book", None, object()))
    assert not any(is_named_tuple(value) for value in (tuple, Odd, "Pair"))


def test_no_class_is_a_model_where_nobody_has_imported_pydantic(monkeypatch: pytest.MonkeyPatch) -> None:
    class Model(pydantic.BaseModel):
        name: str

    assert is_model_class(Model) and not any(map(is_model_class, (pydantic.BaseModel, int, "Model", Model(name=""))))
    monkeypatch.delitem(sys.modules, "pydantic")
    assert not is_model_class(Model)


def test_classes_of_dicts_are_those_that_hold_only_pairs() -> None:
    class Row(dict):  # type: ignore[type-arg]
        pass

    class Ordered(OrderedDict):  # type: ignore[type-arg]
        pass

    assert is_dict_class(Row)
    assert not any(map(is_dict_class, (dict, Ordered, OrderedDict, defaultdict, int, Row(), "Row")))
