"""Python values as JSON and back: exactly, types included, or not at all."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import decimal
import enum
import json
import pathlib
import typing
import uuid
from typing import Any, NamedTuple, TypeVar
from zoneinfo import ZoneInfo

import attr
import pydantic
import pytest
import scrapy
from hypothesis import assume, given
from hypothesis import strategies as st

from scrapy_ubi.adapter.requests.item_classes import Untravelled, class_name
from scrapy_ubi.adapter.requests.values import MAX_DEPTH, TAG, pack, unpack


class Book(scrapy.Item):
    title = scrapy.Field()
    price = scrapy.Field()


@dataclasses.dataclass
class Author:
    name: str
    born: int = 0

    @classmethod
    def with_more(cls, name: str) -> Author:
        """One that somebody has hung something on."""
        author = cls(name)
        author.more = 1  # type: ignore[attr-defined]
        return author


class Colour(enum.Enum):
    RED = 1


class Text(enum.StrEnum):
    A = "a"


Point = collections.namedtuple("Point", "x y")


@attr.s(auto_attribs=True)
class Shelf:
    _place: str
    books: list[Any] = attr.Factory(list)


@attr.frozen
class Label:
    text: str


class Known(enum.Flag):
    LEFT = 1
    RIGHT = 2


class Pair(NamedTuple):
    left: Any
    right: Any = None


class Model(pydantic.BaseModel):
    name: Any = pydantic.Field(None, alias="from")
    tags: list[Any] = []
    _cached: int

    @classmethod
    def with_more(cls) -> Model:
        """One with a private attribute."""
        model = cls()
        model._cached = 1
        return model


class Open(pydantic.BaseModel, extra="allow"):
    """It may hold more than its fields."""


class Row(dict[Any, Any]):
    """Made with a constructor that takes no pairs."""

    def __init__(self, /, **pairs: Any) -> None:
        super().__init__(pairs)

    @classmethod
    def with_more(cls) -> Row:
        """One that somebody has hung something on."""
        row = cls()
        row.more = 1  # type: ignore[attr-defined]
        return row


Kind = TypeVar("Kind")


@dataclasses.dataclass
class Box(typing.Generic[Kind]):
    content: Kind


BERLIN = ZoneInfo("Europe/Berlin")
ITEMS = {class_name(cls): cls for cls in (Book, Author, Shelf, Label, Known, Pair, Model, Open, Row, Box)}

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**80), 2**80)
    | st.floats(allow_nan=False)
    | st.text()
    | st.text(st.characters(categories=["Cs"]), max_size=3)
    | st.binary()
    | st.datetimes().map(lambda moment: moment.replace(fold=0))
    | st.datetimes(timezones=st.just(dt.UTC)).map(lambda moment: moment.replace(fold=0))
    | st.dates()
    | st.times().map(lambda moment: moment.replace(fold=0))
    | st.timedeltas()
    | st.decimals(allow_nan=False)
    | st.uuids()
    | st.datetimes().map(lambda moment: moment.replace(tzinfo=BERLIN))
    | st.text(max_size=5).filter(lambda text: "\0" not in text).map(pathlib.PurePosixPath)
    | st.sampled_from(
        [pathlib.Path("a/b"), pathlib.PureWindowsPath("c:\\a"), *Known, Known.LEFT | Known.RIGHT, Known(0)]
    )
    | st.fractions()
    | st.complex_numbers(allow_nan=False)
    | st.builds(range, st.integers(-9, 9), st.integers(-9, 9), st.integers(1, 9))
    | st.sampled_from([dt.UTC, dt.timezone(dt.timedelta(hours=-3, microseconds=1), "here"), BERLIN])
)
hashables: st.SearchStrategy[Any] = st.deferred(
    lambda: scalars | st.tuples(scalars, scalars) | st.frozensets(scalars, max_size=3)
)
values: st.SearchStrategy[Any] = st.deferred(
    lambda: (
        hashables
        | st.lists(values, max_size=3)
        | st.tuples(values)
        | st.dictionaries(st.text() | st.just(TAG), values, max_size=3)
        | st.dictionaries(hashables, values, max_size=3)
        | st.sets(hashables, max_size=3)
        | st.builds(Author, st.text(), st.integers(0, 9))
        | st.builds(Shelf, st.text(), st.lists(values, max_size=2))
        | st.builds(Label, st.text())
        | st.builds(lambda name: Model(**{"from": name}), values)
        | st.builds(Model, tags=st.lists(values, max_size=2))
        | st.builds(Box[int], values)
        | st.dictionaries(st.text(), values, max_size=3).map(lambda pairs: Row(**pairs))
        | st.builds(Pair, values, values)
        | st.dictionaries(hashables, values, max_size=3).map(collections.OrderedDict)
        | st.dictionaries(hashables, values, max_size=3).map(lambda pairs: collections.defaultdict(list, pairs))
        | st.dictionaries(hashables, st.integers(), max_size=3).map(collections.Counter)
        | st.lists(values, max_size=3).map(lambda some: collections.deque(some, 5))
        | st.binary(max_size=5).map(bytearray)
        | st.builds(lambda title, price: Book(title=title, price=price), values, values)
    )
)


def shape(value: Any) -> Any:
    """The value with its types, so that 1, 1.0 and True differ."""
    if isinstance(value, Model):
        return type(value), shape(value.__dict__), value.model_fields_set
    if isinstance(value, Box):
        return type(value), shape(value.content)
    if isinstance(value, dict | Book):
        return type(value), [(shape(key), shape(one)) for key, one in value.items()]
    if isinstance(value, Shelf):
        return type(value), value._place, shape(value.books)
    if isinstance(value, collections.deque):
        return type(value), value.maxlen, [shape(one) for one in value]
    if isinstance(value, collections.defaultdict):
        return type(value), value.default_factory, shape(dict(value))
    if isinstance(value, dt.datetime):
        return type(value), repr(value), value.fold
    if isinstance(value, list | tuple):
        return type(value), [shape(one) for one in value]
    if isinstance(value, set | frozenset):
        return type(value), sorted(map(repr, map(shape, value)))
    return type(value), repr(value)


def packed(value: Any) -> Any:
    """The value packed; one that is nested too deeply is no example."""
    try:
        return pack(value, ITEMS)
    except Untravelled as untravelled:
        assume(untravelled.kind != "depth")
        raise


@given(values)
def test_what_travels_arrives_exactly(value: Any) -> None:
    text = json.dumps(packed(value))
    back = unpack(json.loads(text), ITEMS)
    assert shape(back) == shape(value)


@given(values)
def test_packed_values_are_utf8_text(value: Any) -> None:
    json.dumps(packed(value), ensure_ascii=False, allow_nan=False).encode()


@given(values)
def test_checking_does_not_fail_for_what_was_packed(value: Any) -> None:
    unpack(json.loads(json.dumps(packed(value))), ITEMS, build=False)


@pytest.mark.parametrize("number", [float("inf"), float("-inf")])
def test_infinities_travel(number: float) -> None:
    assert unpack(pack(number)) == number


def test_nan_travels() -> None:
    assert repr(unpack(pack(float("nan")))) == "nan"


def test_equal_sets_are_equal_texts() -> None:
    assert json.dumps(pack({"a", "b", "c", "d"})) == json.dumps(pack({"d", "c", "b", "a"}))


def test_a_subclass_of_text_travels_as_text() -> None:
    class Smart(str):
        pass

    assert type(unpack(pack(Smart("x")))) is str


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (lambda: 0, "function"),
        (object(), "object"),
        (Point(1, 2), "Point"),
        (collections.defaultdict(lambda: 0), "defaultdict"),
        (collections.ChainMap(), "ChainMap"),
        (Model.with_more(), "Model"),
        (Open(more=1), "Open"),
        (Row.with_more(), "Row"),
        (Author.with_more("x"), "Author"),
        (Colour.RED, "Colour"),
        (Text.A, "Text"),
        (1 << 2000, "int"),
        (dt.datetime(2026, 10, 25, 2, 30, fold=1), "datetime"),
        (dt.time(2, 30, tzinfo=BERLIN), "time"),
        (scrapy.Selector(text="<a>"), "Selector"),
        ({"deep": [lambda: 0]}, "function"),
    ],
)
def test_what_cannot_be_exact_does_not_travel(value: Any, kind: str) -> None:
    with pytest.raises(Untravelled) as caught:
        pack(value, ITEMS)
    assert caught.value.kind == kind


def test_what_raises_when_it_is_looked_at_does_not_travel() -> None:
    class Wild(dict):  # type: ignore[type-arg]
        def __reduce_ex__(self, protocol: Any) -> Any:
            raise FileNotFoundError

    class Failing(pydantic.BaseModel):
        def __getattribute__(self, name: str) -> Any:
            raise FileNotFoundError(name)

    known = {class_name(cls): cls for cls in (Wild, Failing)}
    for value in (Wild(a=1), Failing.model_construct()):
        with pytest.raises(Untravelled, match=type(value).__name__):
            pack(value, known)


def test_an_item_of_an_unknown_class_does_not_travel() -> None:
    with pytest.raises(Untravelled, match="Book"):
        pack(Book(title="x"))


def test_endless_and_hugely_shared_values_do_not_travel() -> None:
    endless: list[Any] = []
    endless.append(endless)
    shared: list[Any] = []
    for _ in range(MAX_DEPTH - 1):
        shared = [shared, shared]
    with pytest.raises(Untravelled, match="depth"):
        pack(endless)
    with pytest.raises(Untravelled, match="size"):
        pack(shared)


@pytest.mark.parametrize(
    "around",
    [
        lambda value: [value],
        lambda value: (value,),
        lambda value: {"a": value},
        lambda value: {1: value},
        lambda value: {(1, value): "a"} if isinstance(value, int | tuple) else {TAG: value},
        lambda value: Author(value),
        lambda value: Book(title=value),
        lambda value: Pair(value),
        lambda value: Model(**{"from": value}),
        lambda value: Row(a=value),
        lambda value: collections.OrderedDict(a=value),
        lambda value: collections.deque([value]),
    ],
)
@pytest.mark.parametrize("innermost", [1, "a", ()])
def test_what_can_be_packed_is_not_too_deep_to_be_unpacked(around: Any, innermost: Any) -> None:
    value, deep = innermost, 0
    with pytest.raises(Untravelled, match="depth"):
        while True:
            text = json.dumps(pack(value, ITEMS))
            assert unpack(json.loads(text), ITEMS) == value
            value, deep = around(value), deep + 1
    assert deep >= MAX_DEPTH // 3


@pytest.mark.parametrize(
    "data",
    [
        {TAG: "tuple"},
        {TAG: "tuple", "v": 1},
        {TAG: "tuple", "v": [], "x": 1},
        {TAG: 1, "v": []},
        {TAG: "pickle", "v": "gASVCgAAAAAAAACMBHRlc3SULg=="},
        {TAG: "dict", "v": [[1]]},
        {TAG: "dict", "v": [[[], 1]]},
        {TAG: "set", "v": [[]]},
        {TAG: "bytes", "v": "?"},
        {TAG: "bytes", "v": 1},
        {TAG: "float", "v": "1.5"},
        {TAG: "float", "v": []},
        {TAG: "decimal", "v": 1},
        {TAG: "decimal", "v": "x"},
        {TAG: "datetime", "v": "tomorrow"},
        {TAG: "datetime", "v": None},
        {TAG: "timedelta", "v": [1, 2]},
        {TAG: "timedelta", "v": [1.5, 2, 3]},
        {TAG: "timedelta", "v": [10**10, 2, 3]},
        {TAG: "zoned", "v": ["2026-01-01", 0, "../../etc/passwd"]},
        {TAG: "zoned", "v": ["2026-01-01", 0, "Europe"]},
        {TAG: "zoned", "v": ["2026-01-01", 0, "No/Where"]},
        {TAG: "zoned", "v": ["2026-01-01", 2, "Europe/Berlin"]},
        {TAG: "path", "v": ["Popen", "x"]},
        {TAG: "path", "v": ["PurePosixPath", 1]},
        {TAG: "defaultdict", "v": ["exit", []]},
        {TAG: "OrderedDict", "v": {}},
        {TAG: "Counter", "v": [1]},
        {TAG: "deque", "v": [-1, []]},
        {TAG: "deque", "v": [None, "ab"]},
        {TAG: "enum", "v": [class_name(Known), "MIDDLE"]},
        {TAG: "enum", "v": [class_name(Known), 1]},
        {TAG: "enum", "v": [class_name(Author), "name"]},
        {TAG: "flags", "v": [class_name(Known), 4]},
        {TAG: "flags", "v": [class_name(Known), -1]},
        {TAG: "flags", "v": [class_name(Known), True]},
        {TAG: "flags", "v": [class_name(Author), 1]},
        {TAG: "model", "v": [class_name(Model), [{"other": 1}, []]]},
        {TAG: "model", "v": [class_name(Model), [{}, ["other"]]]},
        {TAG: "model", "v": [class_name(Model), [{}, [1]]]},
        {TAG: "model", "v": [class_name(Model), {}]},
        {TAG: "model", "v": [class_name(Author), [{}, []]]},
        {TAG: "item", "v": [class_name(Model), {}]},
        {TAG: "dictclass", "v": [class_name(Author), []]},
        {TAG: "dictclass", "v": [class_name(Row), {}]},
        {TAG: "dictclass", "v": [class_name(Row), [1]]},
        {TAG: "fraction", "v": [1, 0]},
        {TAG: "fraction", "v": [1, 2.5]},
        {TAG: "fraction", "v": [1, 1 << 2000]},
        {TAG: "complex", "v": [1.5]},
        {TAG: "complex", "v": [1.5, {TAG: "float", "v": "1"}]},
        {TAG: "complex", "v": ["1", 2.5]},
        {TAG: "range", "v": [1, 2, 0]},
        {TAG: "range", "v": [1, 2]},
        {TAG: "timezone", "v": [9, 0, 0]},
        {TAG: "timezone", "v": [0, 0, 0, 1]},
        {TAG: "timezone", "v": [0, 0, 0, "a", "b"]},
        {TAG: "zone", "v": "../../etc/passwd"},
        {TAG: "zone", "v": "No/Where"},
        {TAG: "namedtuple", "v": [class_name(Pair), [1]]},
        {TAG: "namedtuple", "v": [class_name(Author), ["a", 1]]},
        {TAG: "item", "v": [class_name(Pair), {}]},
        {TAG: "item", "v": [class_name(Shelf), {"place": "x"}]},
        {TAG: "uuid", "v": "x"},
        {TAG: "uuid", "v": 7},
        {TAG: "text", "v": "/w=="},
        {TAG: "item", "v": "os.system"},
        {TAG: "item", "v": ["os.system", {}]},
        {TAG: "item", "v": [class_name(Book), []]},
        {TAG: "item", "v": [class_name(Book), {"colour": 1}]},
        {TAG: "item", "v": [class_name(Author), {"__class__": 1}]},
        1 << 2000,
        float("inf"),
        (1,),
    ],
)
@pytest.mark.parametrize("build", [True, False])
def test_what_was_never_packed_is_refused(data: Any, build: bool) -> None:
    with pytest.raises(ValueError):
        unpack([data], ITEMS, build=build)


def test_deep_data_is_refused() -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        unpack(json.loads("[" * 100 + "]" * 100))


def test_checking_makes_no_items() -> None:
    packed = pack(Author("x"), ITEMS)
    assert unpack(packed, ITEMS, build=False) is None
    assert unpack(packed, ITEMS) == Author("x")
    assert uuid.UUID(int=1) == unpack(pack(uuid.UUID(int=1)))
    assert unpack(pack(decimal.Decimal("1.50"))).as_tuple() == decimal.Decimal("1.50").as_tuple()
