"""Entries on disk: out and done elsewhere, garbage that goes, keys that were unknown, and the status of a page."""

from __future__ import annotations

import pytest

from scrapy_ubi.frontier import disk_state
from scrapy_ubi.protocol.host import Entry, HostState
from tests.frontier.frontiers import DictKind, Reading, Tight, popped, reopened, resting
from tests.support.memory_store import MemoryStore


def test_what_is_out_is_not_handed_out_again_by_a_late_read() -> None:
    frontier, state = resting()
    one = frontier.pop(0.0, lambda state: True)
    assert one is not None
    state.open_work += 1
    frontier.window._evict(state)  # as where memory is scarce
    state.low = b""
    frontier.free(state, 0.0)
    assert popped(frontier) == [2, 3]
    frontier.put_back(state, 1)
    assert popped(frontier) == [1]


def marks(frontier: Reading, state: HostState, keys: range) -> None:
    """Another agent has done these."""
    for key in keys:
        frontier.add_done(state, [key])
        if key % 50 == 0:
            frontier.flush()
            frontier.load(0.0, lambda state: False)
            frontier.check_invariants()
    frontier.flush()
    frontier.look_again()


def queue_rows(frontier: Reading) -> int:
    return sum(key[:1] == b"q" for key in frontier.store.rows)


@pytest.mark.parametrize("kind", [Reading, Tight])
def test_garbage_goes_when_it_is_most_of_a_queue(kind: type[Reading]) -> None:
    frontier, state = resting(kind, 1000)
    frontier.load(0.0, lambda state: True)
    marks(frontier, state, range(1, 900))
    assert 101 <= queue_rows(frontier) <= 300
    assert popped(frontier) == [*range(900, 1001)]


@pytest.mark.parametrize("kind", [Reading, Tight])
def test_a_queue_that_is_nothing_but_garbage_goes_at_once(kind: type[Reading]) -> None:
    frontier, state = resting(kind, 1000)
    marks(frontier, state, range(1, 1001))
    assert queue_rows(frontier) == 0
    frontier.add("h", [Entry(2000, "http://h/2000", 0)])
    frontier.flush()
    assert popped(frontier) == [2000]


def test_what_is_out_and_done_elsewhere_is_garbage_after_a_crash() -> None:
    frontier, state = resting()
    one = frontier.pop(0.0, lambda state: True)
    assert one is not None
    frontier.add_done(state, [1])
    frontier.flush()
    again = reopened(frontier.store, DictKind(frontier.seen))
    again.check_invariants()
    assert popped(again) == [2, 3]


@pytest.mark.parametrize("kind", [Reading, Tight])
def test_what_is_out_and_done_elsewhere_is_no_garbage_before_it_comes_back(kind: type[Reading]) -> None:
    frontier, state = resting(kind, 400)
    assert frontier.pop(0.0, lambda state: True) is not None
    state.open_work += 1
    marks(frontier, state, range(1, 301))
    assert 101 <= queue_rows(frontier) <= 300, "garbage was sought"
    frontier.check_invariants()
    frontier.put_back(state, 1)
    state.open_work -= 1
    frontier.free(state, 0.0)
    frontier.flush()
    frontier.check_invariants()
    assert popped(frontier) == [*range(301, 401)]


def test_nothing_stays_of_what_was_out_and_done_elsewhere_when_its_host_is_dropped() -> None:
    frontier, state = resting()
    assert frontier.pop(0.0, lambda state: True) is not None
    frontier.add_done(state, [1])
    frontier.drop("h")
    frontier.check_invariants()
    frontier.add("h", [Entry(1, "http://h/1", 0)])
    assert popped(frontier) == [1]


def test_with_which_status_a_page_was_done_is_known_before_and_after_a_restart() -> None:
    frontier, state = resting()
    for status in (200, 404, 0):
        one = frontier.pop(0.0, lambda state: True)
        assert one is not None
        frontier.finish(*one[:1], one[1].key)
        frontier.note_status(state, one[1].key, status)
        frontier.free(state, 0.0)
    assert [frontier.status_of(state, key) for key in (1, 2, 3)] == [200, 404, None]
    frontier.flush()
    frontier.note_status(state, 1, 500)  # too late: it is written
    assert frontier.status_of(state, 1) == 200
    again = reopened(frontier.store, DictKind(frontier.seen))
    assert [again.status_of(again.states()[0], key) for key in (1, 2, 3, 99)] == [200, 404, None, None]


def test_a_key_that_was_unknown_when_last_asked_for_is_not_taken_for_unknown_later() -> None:
    frontier = reopened(MemoryStore(), DictKind())
    entry = Entry(1, "http://h/1", 0)
    state, _ = frontier.add("h", [Entry(2, "http://h/2", 0)])
    assert not state.holds(1, 0, 0)
    assert frontier.add("h", [entry])[1]
    assert not frontier.add("h", [entry])[1]
    frontier.flush()
    assert not frontier.add("h", [entry])[1], "written"
    assert not state.holds(3, 0, 0)
    frontier.add_done(state, [3])
    frontier.flush()
    assert not frontier.add("h", [Entry(3, "http://h/3", 0)])[1], "done"
    frontier.check_invariants()


def test_of_so_many_keys_it_is_remembered_that_they_were_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_state, "MOST_UNKNOWN", 2)
    frontier = reopened(MemoryStore(), DictKind())
    state, _ = frontier.add("h", [Entry(9, "http://h/9", 0)])
    for key in range(5):
        assert not state.holds(key, 0, 0)
        assert 0 < len(frontier.keys.unknown) <= 2
    assert len(frontier.add("h", [Entry(key, f"http://h/{key}", 0) for key in range(5)])[1]) == 5
    frontier.check_invariants()
