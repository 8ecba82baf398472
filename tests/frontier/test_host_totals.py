"""The log of hosts' sums: what counts is what came last, it does not grow, and what does not hold is named."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from scrapy_ubi.frontier import host_totals, rows
from scrapy_ubi.frontier.store import StoreDamaged
from scrapy_ubi.protocol.host import Entry, Notes
from tests.frontier.crashing import crashing
from tests.frontier.errands import errand, told
from tests.frontier.frontiers import DictKind, Reading, Tight, reopened
from tests.support.memory_store import MemoryStore


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log's rows are short, and go soon."""
    monkeypatch.setattr(host_totals, "LEAST", 0)
    monkeypatch.setattr(host_totals, "PART", 2)


def test_the_log_stays_short_and_every_flush_leaves_the_sums_of_all_hosts(small: None) -> None:
    frontier = reopened(MemoryStore(), DictKind())
    deleted = 0
    for number in range(1, 60):
        errand(frontier, number)
        frontier.flush()
        frontier.log.check_invariants(frontier.states())
        assert len(frontier.log) <= host_totals.TIMES * len(frontier)
        found = [row for row in frontier.store.rows if row[:1] == rows.LOG]
        deleted += found[:1] != [host_totals.log_key(1)]
        again = reopened(frontier.store, DictKind(frontier.seen))
        again.check_invariants()
        assert again.seen.rebuilt == 0, number  # so the sums are those of the seen table
        assert told(again) == told(frontier)
        assert len(again.log) == len(frontier.log)
        if number % 7 == 0:
            frontier = again
    assert deleted > 40


@pytest.mark.parametrize("kind", [Reading, Tight])
def test_what_a_crash_leaves_of_a_short_log_is_the_last_flush(small: None, kind: type[Reading]) -> None:
    run_state_machine_as_test(crashing(kind), settings=settings(max_examples=20, stateful_step_count=40, deadline=None))


def two_hosts() -> Reading:
    """Both have sums in their own rows, `a.example` in the log, too."""
    frontier = reopened(MemoryStore(), DictKind())
    for host in ("a.example", "b.example"):
        frontier.add(host, [Entry(5, f"http://{host}/", 0)])
    frontier.flush()
    frontier.add("a.example", [Entry(6, "http://a.example/6", 0)])
    frontier.flush()
    return frontier


def test_a_host_with_new_notes_has_its_sums_from_the_log_still() -> None:
    frontier = two_hosts()
    for host in ("a.example", "b.example"):
        state = frontier.find(host)
        assert state is not None and frontier.note(state, Notes(1, '{"x":1}'))
    frontier.flush()
    frontier.add("a.example", [Entry(7, "http://a.example/7", 0)])
    frontier.flush()
    again = reopened(frontier.store, DictKind(frontier.seen))
    assert again.seen.rebuilt == 0
    found = {state.host: (state.known, state.notes.version) for state in again.states()}
    assert found == {"a.example": (3, 1), "b.example": (1, 1)}
    again.check_invariants()


def test_a_directory_from_before_there_was_a_log_opens() -> None:
    frontier = reopened(MemoryStore(), DictKind())
    frontier.add("a.example", [Entry(5, "http://a.example/", 0)])
    frontier.flush()
    stored = frontier.store.rows
    assert not [row for row in stored if row[:1] == rows.LOG]
    stored[rows.FRONTIER] = stored[rows.FRONTIER].replace(b'"version": 2', b'"version": 1')
    again = reopened(frontier.store, DictKind(frontier.seen))
    again.add("a.example", [Entry(6, "http://a.example/6", 0)])
    again.flush()
    assert rows.read_frontier(stored[rows.FRONTIER]) and b'"version": 2' in stored[rows.FRONTIER]
    assert told(reopened(again.store, DictKind(again.seen))) == told(again)


@pytest.mark.parametrize(
    "harm",
    [
        lambda row: row[:-1],
        lambda row: b"",
        lambda row: b"\0\0\xff\xff" + row[4:],
        lambda row: row[:4] + bytes(12) + b"\1" + row[17:],
        lambda row: row * 5000,
    ],
)
def test_sums_that_cannot_be_are_named(harm: object) -> None:
    frontier = two_hosts()
    (row,) = frontier.store.rows.irange(rows.LOG, rows.LOG + b"\xff")
    frontier.store.rows[row] = harm(frontier.store.rows[row])  # type: ignore[operator]
    with pytest.raises(StoreDamaged, match=row[1:].hex()):
        reopened(frontier.store, DictKind(frontier.seen))


def test_a_row_of_the_log_under_another_key_is_named() -> None:
    frontier = two_hosts()
    (row,) = frontier.store.rows.irange(rows.LOG, rows.LOG + b"\xff")
    frontier.store.rows[row[:-1]] = frontier.store.rows.pop(row)
    with pytest.raises(StoreDamaged, match=row[1:-1].hex()):
        reopened(frontier.store, DictKind(frontier.seen))
