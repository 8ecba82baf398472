"""Visit rows: how two of a key become one, what of them travels, and what others may know."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.frontier import ledger, visit_rows
from scrapy_ubi.ground.untrusted.checks import Malformed
from scrapy_ubi.protocol.host import Entry
from scrapy_ubi.protocol.host_visits import HostVisits
from scrapy_ubi.protocol.journal import JournalPart
from scrapy_ubi.protocol.lane import STATE, Lane, Letter
from scrapy_ubi.protocol.memory_state import SetState
from scrapy_ubi.protocol.records import Record
from scrapy_ubi.protocol.snapshot import Changes, GroupState
from scrapy_ubi.protocol.visit_row import VisitRow, fingerprint, merged
from scrapy_ubi.protocol.wire import decode, encode
from tests.support.memory_store import MemoryStore

SHORT = st.integers(0, 255)
TIME = st.integers(0, (1 << 32) - 1)
VALIDATOR = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=200)
REQUESTS = st.sampled_from(["", '{"method":"POST"}', '{"meta":{"a":"\\u00e4"}}'])
ENTRIES = st.builds(
    Entry,
    st.just(7),
    st.sampled_from(["http://h.example/", "https://www.h.example/ü?x=1", "http://other/"]),
    st.integers(0, 10**9 - 1),
    st.integers(-(10**12), 10**12),
    REQUESTS,
)
ROWS = st.builds(
    VisitRow, st.integers(1, 1 << 20), TIME, SHORT, SHORT, SHORT, TIME, TIME, TIME,
    st.integers(0, (1 << 64) - 1), VALIDATOR, VALIDATOR, ENTRIES,
)  # fmt: skip


def row(generation: int = 1, **fields: Any) -> VisitRow:
    return VisitRow(generation, 10, 0, 1, 0, 5, 5, 0, 3, '"a"', "", Entry(7, "http://h/7", 1))._replace(**fields)


@given(ROWS, ROWS, ROWS)
def test_rows_merge_in_any_order_any_number_of_times(a: VisitRow, b: VisitRow, c: VisitRow) -> None:
    assert merged(a, b) == merged(b, a)
    assert merged(a, merged(b, c)) == merged(merged(a, b), c)
    assert merged(a, a) == a
    assert merged(a, b).generation == max(a.generation, b.generation)


@given(ROWS)
def test_a_row_comes_back_from_a_letter_a_store_and_a_ledger(one: VisitRow) -> None:
    records = [Record("h.example", 3, done=7, row=one), Record("h.example", 3, done=8)]
    fields = encode("a", Lane("s", "b", STATE, ""), "s", Letter(1, "0" * 16, records))
    (delta,) = decode(fields, "b", 10, 4096).deltas
    assert (delta.visited, delta.done) == ((one,), (8,))

    at = visit_rows.visit_key(b"\0\0\0\1", 7)
    assert visit_rows.read_visit("h.example", at, visit_rows.visit_value("h.example", one)) == one

    store = MemoryStore()
    part = JournalPart(3, 0, (), (), (), (("h.example", one),))
    batch = store.batch()
    for key, value in ledger.rows(Changes(GroupState("s", 3, False, {}), {}, {}, (part,), ())):
        assert value is not None
        batch.put(key, value)
    store.write(batch)
    saved = ledger.load(store)
    assert saved is not None
    assert saved.parts == (part,)


def test_a_ledger_without_visits_is_as_it_was() -> None:
    part = JournalPart(3, 0, (), (), (("h", Entry(1, "http://h/", 0)),))
    changes = Changes(GroupState("s", 3, False, {}), {}, {}, (part,), ())
    (_, (_, value)) = ledger.rows(changes)
    assert value is not None
    assert json.loads(value).keys() == {"discovered", "told", "done"}


@pytest.mark.parametrize(
    "values",
    [
        [1, 2],
        [0, 1, 0, 1, 0, 5, 5, 0, "0" * 16, "", ""],
        [1, -1, 0, 1, 0, 5, 5, 0, "0" * 16, "", ""],
        [1, 1, 0, 1, 0, 5, True, 0, "0" * 16, "", ""],
        [1, 1, 0, 1, 0, 5, 5, 0, "0", "", ""],
        [1, 1, 0, 1, 0, 5, 5, 0, "0" * 16, "a\r\nCookie: b", ""],
        [1, 1, 0, 1, 0, 5, 5, 0, "0" * 16, "x" * 201, ""],
        [1, 1, 0, 1, 0, 5, 5, 1 << 32, "0" * 16, "", ""],
    ],
)
def test_a_letter_with_a_row_that_does_not_hold_is_refused_whole(values: list[Any]) -> None:
    fields = encode("a", Lane("s", "b", STATE, ""), "s", Letter(1, "0" * 16, [Record("h", 3, done=8)]))
    fields["body"] = json.dumps([{"host": "h", "visited": [[["0" * 16, "http://h/", 0], *values]]}])
    with pytest.raises(Malformed):
        decode(fields, "b", 10, 4096)


def test_others_are_told_the_row_before_until_the_outlinks_of_a_visit_are_safe() -> None:
    state = SetState("h")
    state.visits = visits = HostVisits()
    state.mark_done(7)
    state.merge_row(row(1))
    visits.xor, visits.count = fingerprint(row(1)), 1
    told = state.summary()
    state.merge_row(row(2))
    visits.xor = fingerprint(row(2))
    assert state.summary() != told
    visits.close(7, row(1))
    assert state.told_row(7) == row(1)
    assert state.summary() == told
    state.merge_row(row(3))
    visits.xor = fingerprint(row(3))
    visits.close(7, row(2))
    assert state.told_row(7) == row(1)
    assert not visits.closed(7)
    assert visits.closed(7)
    assert state.told_row(7) == row(3)


def test_a_host_without_rows_has_the_summary_that_it_always_had() -> None:
    state = SetState("h")
    state.mark_done(5)
    assert state.summary() == (1, 5, 1, 5)
