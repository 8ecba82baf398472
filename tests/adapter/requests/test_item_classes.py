"""Which classes are items, models, dicts and named tuples."""

from __future__ import annotations

import copy
import dataclasses
import datetime as dt
import functools
import sys
from collections import OrderedDict, defaultdict
from typing import Any, ClassVar

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
    older: Any = dataclasses.make_dataclass("Older", [("name", str), ("more", int, 5)])
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


def test_a_cached_property_of_an_attrs_class_is_neither_computed_nor_told() -> None:
    @attr.define
    class Page:
        name: str

        @functools.cached_property
        def text(self) -> str:
            raise FileNotFoundError(self.name)

        @functools.cached_property
        def length(self) -> int:
            return len(self.name)

    @attr.define
    class Derived(Page):
        more: int = 0

    for value in (Page("abc"), Derived("abc")):
        assert values_of(value) == attr.asdict(value)
        assert value.length == 3
        arrived = made(type(value), values_of(value))
        assert arrived == value and arrived.length == 3


def test_slots_are_seen_whatever_they_are_called_and_whatever_the_class_makes_of_names() -> None:
    @dataclasses.dataclass
    class Mangled:
        __slots__ = ("__cache", "x")
        x: int

        def __post_init__(self) -> None:
            self.__cache = self.x

    @dataclasses.dataclass
    class Lazy:
        __slots__ = ("more", "x")
        x: int

        def __getattr__(self, name: str) -> Any:
            raise FileNotFoundError(name)

    class Base:
        __slots__ = ("x",)

    @dataclasses.dataclass
    class Shadowed(Base):
        __slots__ = ("x",)
        x: int

    class Slotted(scrapy.Item):
        __slots__ = ("_more",)

    assert values_of(Lazy(1)) == values_of(Shadowed(1)) == {"x": 1}
    assert values_of(Slotted()) == {}
    lazy, shadowed, slotted, deleted = Lazy(1), Shadowed(1), Slotted(), Lazy(1)
    lazy.more = 1
    Base.x.__set__(shadowed, 2)  # type: ignore[attr-defined]
    slotted._more = 1
    del deleted.x
    for value in (Mangled(1), lazy, shadowed, slotted, deleted):
        with pytest.raises(Untravelled):
            values_of(value)


def test_whatever_a_class_raises_its_value_does_not_travel() -> None:
    @dataclasses.dataclass
    class Odd:
        x: int

        def __getattribute__(self, name: str) -> Any:
            raise FileNotFoundError(name)

    class Keyed(scrapy.Item):
        name = scrapy.Field()

        @property
        def _values(self) -> Any:
            raise FileNotFoundError

        @_values.setter
        def _values(self, values: Any) -> None:
            pass

    assert values_of(Odd(1)) == {"x": 1}  # as it is held
    with pytest.raises(Untravelled):
        values_of(Keyed())


def test_fields_that_no_constructor_takes_are_set_after_it() -> None:
    @dataclasses.dataclass
    class Price:
        cents: int
        shown: str = dataclasses.field(init=False)
        currency: str = "EUR"

        def __post_init__(self) -> None:
            self.cents *= 100
            self.shown = f"{self.cents} {self.currency}"

    @attr.s(auto_attribs=True)
    class Seen:
        _price: float = attr.ib(converter=lambda price: price / 100)
        seen: int = attr.ib(init=False, default=7)
        more: int = 5

    arrived: Any = made(Price, {"cents": 200, "shown": "2 EUR"})
    assert (arrived.cents, arrived.shown, arrived.currency) == (200, "2 EUR", "EUR")
    arrived = made(Seen, {"_price": 2.5, "seen": 8})
    assert (arrived._price, arrived.seen, arrived.more) == (2.5, 8, 5)


def test_fields_on_a_class_that_holds_something_itself_do_not_travel() -> None:
    @dataclasses.dataclass
    class Day(dt.date):
        name: str

        def __new__(cls, name: str) -> Any:
            return dt.date.__new__(cls, 2026, 11, 30)

    @dataclasses.dataclass
    class Ordered(OrderedDict):  # type: ignore[type-arg]
        name: str

    @dataclasses.dataclass
    class Failed(Exception):
        name: str

    for value in (Day("a"), Ordered("a"), Failed("a")):
        with pytest.raises(Untravelled):
            values_of(value)
        with pytest.raises(ValueError, match="cannot be made"):
            made(type(value), {"name": "a"})


class Flyweight:
    known: ClassVar[dict[str, Any]] = {}

    def __new__(cls, name: str) -> Any:
        return cls.known.setdefault(name, object.__new__(cls))


def test_a_class_with_a_new_of_its_own_is_made_by_it_where_its_constructor_changes_nothing() -> None:
    @dataclasses.dataclass(frozen=True)
    class One(Flyweight):
        name: str

    @attr.frozen
    class Other(Flyweight):
        _name: str

    @dataclasses.dataclass
    class Changed(Flyweight):
        name: str

        def __post_init__(self) -> None:
            self.name += "!"

    @attr.define
    class Converted(Flyweight):
        name: str = attr.field(converter=str.title)

    @attr.define
    class Written(Flyweight):
        name: str

        def __init__(self, name: str) -> None:
            self.name = f"{name}!"

    for value in (One("one"), Other("other")):
        assert made(type(value), values_of(value)) is value
    for value in (Changed("c"), Converted("d"), Written("e")):
        with pytest.raises(Untravelled):
            values_of(value)


def test_validators_of_attrs_see_what_arrives() -> None:
    @attr.s(auto_attribs=True)
    class Positive:
        number: int = attr.ib(converter=int, validator=attr.validators.gt(0))
        more: int = 5

    assert made(Positive, values_of(Positive(3))) == Positive(3)
    for values in ({"number": -1, "more": 5}, {"number": -1}):
        with pytest.raises(ValueError, match="must be > 0"):
            made(Positive, values)
    changed = Positive(3)
    changed.number = -1  # which nobody checks
    with pytest.raises(Untravelled):
        values_of(changed)


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
