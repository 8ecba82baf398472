"""The Store contract, for every store there is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_ubi.frontier.store import RowBatch, Store, StoreError, every
from tests.support.memory_store import MemoryStore
from tests.support.store_engines import ENGINES, store_class

Again = Callable[[Store], Store]  # what the next process finds


def _memory_again(store: Store) -> Store:
    assert isinstance(store, MemoryStore)
    return MemoryStore(store.rows)


KINDS = {engine: store_class(engine) for engine in ENGINES}


def _opened_again(store: Store) -> Store:
    assert isinstance(store, tuple(KINDS.values()))
    store.close()
    return type(store)(store.path, reserve=0)


@pytest.fixture(params=["memory", *KINDS])
def both(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Store, Again]]:
    if request.param == "memory":
        yield MemoryStore(), _memory_again
    else:
        store = KINDS[request.param](tmp_path / "store", reserve=0)
        yield store, _opened_again
        store.close()


@pytest.fixture
def store(both: tuple[Store, Again]) -> Store:
    return both[0]


def write(store: Store, **rows: bytes | None) -> None:
    batch = store.batch()
    for key, value in rows.items():
        if value is None:
            batch.delete(key.encode())
        else:
            batch.put(key.encode(), value)
    store.write(batch)


def test_nothing_is_there_at_first(store: Store) -> None:
    assert store.get(b"a") is None
    assert store.scan(b"", b"\xff", 10) == []


def test_what_was_written_is_read(store: Store) -> None:
    write(store, a=b"1", b=b"", c=b"\x00\xff")
    assert [store.get(key) for key in (b"a", b"b", b"c", b"d")] == [b"1", b"", b"\x00\xff", None]


def test_what_was_written_stays(both: tuple[Store, Again]) -> None:
    store, again = both
    write(store, a=b"1", b=b"2")
    write(store, a=None)
    found = again(store)
    assert found.scan(b"", b"\xff", 10) == [(b"b", b"2")]
    found.close()


def test_a_scan_is_bounded_on_all_sides(store: Store) -> None:
    write(store, a=b"1", b=b"2", c=b"3", d=b"4")
    assert store.scan(b"b", b"d", 10) == [(b"b", b"2"), (b"c", b"3")]
    assert store.scan(b"aa", b"cc", 1) == [(b"b", b"2")]
    assert store.scan(b"a", b"d", 0) == []
    assert store.scan(b"d", b"a", 10) == []


def test_changes_of_a_batch_count_in_order(store: Store) -> None:
    write(store, a=b"1", b=b"1", c=b"1")
    batch = store.batch()
    batch.delete(b"a")
    batch.put(b"a", b"2")
    batch.put(b"b", b"2")
    batch.delete_range(b"b", b"c")
    batch.put(b"bb", b"2")
    assert batch.len() == 5
    store.write(batch)
    assert store.scan(b"", b"\xff", 10) == [(b"a", b"2"), (b"bb", b"2"), (b"c", b"1")]


def test_a_range_ends_before_its_end(store: Store) -> None:
    write(store, a=b"1", b=b"1", c=b"1", d=b"1")
    batch = store.batch()
    batch.delete_range(b"b", b"d")
    store.write(batch)
    assert [key for key, _ in store.scan(b"", b"\xff", 10)] == [b"a", b"d"]


def test_a_batch_serves_once(store: Store) -> None:
    batch = store.batch()
    batch.put(b"a", b"1")
    store.write(batch)
    with pytest.raises(StoreError):
        store.write(batch)


def test_every_row_in_pieces(store: Store) -> None:
    write(store, **{f"k{number:03}": b"" for number in range(25)})
    for piece in (1, 7, 24, 25, 26):
        assert len([*every(store, b"k", b"l", piece)]) == 25


def test_closing_twice_is_closing(store: Store) -> None:
    store.close()
    store.close()


KEYS = st.binary(min_size=1, max_size=3)
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("put"), KEYS, st.binary(max_size=5)),
        st.tuples(st.just("delete"), KEYS, st.just(b"")),
        st.tuples(st.just("range"), KEYS, KEYS),
    ),
    max_size=8,
)


@settings(max_examples=30, deadline=None)
@given(batches=st.lists(CHANGES, max_size=6), start=KEYS, end=KEYS, most=st.integers(0, 5))
def test_all_stores_are_one(
    tmp_path_factory: pytest.TempPathFactory,
    batches: list[list[tuple[str, bytes, bytes]]],
    start: bytes,
    end: bytes,
    most: int,
) -> None:
    made = [kind(tmp_path_factory.mktemp(name), reserve=0) for name, kind in KINDS.items()]
    stores: list[Store] = [MemoryStore(), *made]
    for changes in batches:
        for store in stores:
            batch = store.batch()
            for kind, key, value in changes:
                _change(batch, kind, key, value)
            store.write(batch)
    first, *others = [[*every(store, b"", b"\xff\xff\xff\xff", 2)] for store in stores]
    assert others == [first] * len(made)
    first, *others = [store.scan(start, end, most) for store in stores]
    assert others == [first] * len(made)
    for store in made:
        store.close()


def _change(batch: RowBatch, kind: str, key: bytes, value: bytes) -> None:
    if kind == "put":
        batch.put(key, value)
    elif kind == "delete":
        batch.delete(key)
    elif key <= value:
        batch.delete_range(key, value)
