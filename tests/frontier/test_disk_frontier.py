"""The frontier on disk through flushes, crashes and slow reads: what a crash leaves is the last flush, whole."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from scrapy_ubi.frontier import disk_state
from scrapy_ubi.frontier.disk_frontier import DiskFrontier
from scrapy_ubi.protocol.host import Entry, HostState
from scrapy_ubi.protocol.records import whole
from tests.frontier.crashing import crashing
from tests.frontier.frontiers import DictKind, Reading, Tight, popped, reopened, resting
from tests.support.memory_store import MemoryStore


@pytest.mark.parametrize("kind", [Reading, Tight])
def test_what_a_crash_leaves_is_the_last_flush(kind: type[Reading]) -> None:
    run_state_machine_as_test(crashing(kind), settings=settings(max_examples=60, stateful_step_count=40, deadline=None))


# -- reads that take their time


def test_what_is_found_and_flushed_while_a_head_is_read_is_not_lost() -> None:
    frontier, _ = resting()
    results = frontier.read(frontier.needs(0.0, lambda state: True))
    frontier.add("h", [Entry(9, "http://h/9", 1)])
    frontier.flush()
    frontier.take(results)
    frontier.check_invariants()
    assert popped(frontier) == [9, 1, 2, 3]


def test_what_is_done_and_flushed_while_a_head_is_read_is_not_fetched() -> None:
    frontier, state = resting()
    results = frontier.read(frontier.needs(0.0, lambda state: True))
    frontier.add_done(state, [1, 3])
    frontier.flush()
    frontier.take(results)
    assert popped(frontier) == [2]


def test_what_is_found_nearer_and_flushed_before_a_head_is_read_does_not_take_the_place_of_what_waited() -> None:
    """As many rows are read as there were when this was asked, and others come before them by then."""
    frontier, _ = resting()
    scans = frontier.needs(0.0, lambda state: True)
    frontier.add("h", [Entry(key, f"http://h/{key}", 1) for key in (7, 8, 9)])
    frontier.flush()
    frontier.take(frontier.read(scans))
    frontier.check_invariants()
    frontier.add("h", [Entry(10, "http://h/10", 6)])
    assert popped(frontier) == [7, 8, 9, 1, 2, 3, 10]


@pytest.mark.parametrize("waiting", [5, 5 * disk_state.CHEAP])
def test_links_of_a_page_that_belong_among_those_of_a_head_are_put_there(waiting: int) -> None:
    """Sorted in where the head is short, one by one where it is long."""
    frontier = reopened(MemoryStore(), DictKind())
    keys = range(1000, 1000 + waiting)
    frontier.add("h", [Entry(key, f"http://h/{key}", 3) for key in keys])
    frontier.add("h", [Entry(key, f"http://h/{key}", 5) for key in (7, 8, 9)])
    frontier.add("h", [Entry(key, f"http://h/{key}", 4) for key in (4, 5, 6)])
    frontier.add("h", [Entry(key, f"http://h/{key}", 1) for key in (3, 2, 1)])
    frontier.check_invariants()
    assert popped(frontier) == [3, 2, 1, *keys, 4, 5, 6, 7, 8, 9]


def test_what_is_written_before_the_frontier_hears_of_it_does_not_take_the_place_of_what_waited() -> None:
    frontier, _ = resting()
    scans = frontier.needs(0.0, lambda state: True)
    frontier.add("h", [Entry(key, f"http://h/{key}", 1) for key in (7, 8, 9)])
    flush = frontier.collect()
    flush.write(frontier.store)
    frontier.take(frontier.read(scans))
    frontier.written(flush)
    frontier.check_invariants()
    frontier.add("h", [Entry(10, "http://h/10", 6)])
    assert popped(frontier) == [7, 8, 9, 1, 2, 3, 10]


def test_a_host_whose_entries_are_all_done_while_its_head_is_read_takes_no_memory() -> None:
    frontier, state = resting()
    results = frontier.read(frontier.needs(0.0, lambda state: True))
    frontier.add_done(state, [1, 2, 3])
    frontier.take(results)
    frontier.check_invariants()
    assert frontier.window.held == 0
    frontier.add("h", [Entry(9, "http://h/9", 6)])
    assert popped(frontier) == [9]


def test_what_is_deleted_while_garbage_is_sought_is_garbage_no_more() -> None:
    frontier = reopened(MemoryStore(), DictKind())
    frontier.add("h", [Entry(key, f"http://h/{key}", 0) for key in range(100)])
    frontier.flush()
    found = frontier.pop(0.0, lambda state: True)
    assert found is not None
    state = found[0]
    frontier.add_done(state, range(80))
    results = frontier.read(frontier.needs(0.0, lambda state: True))
    frontier.finish(state, found[1].key)  # its row goes
    frontier.flush()
    frontier.take(results)
    frontier.flush()
    frontier.check_invariants()
    assert (state.garbage, len(list(frontier.store.rows.irange(b"q", b"r")))) == (0, 20)  # type: ignore[attr-defined]


@pytest.mark.parametrize("when", ["before", "after"])
def test_what_is_cleared_is_not_fetched_by_those_who_read_it_before_it_is_written(when: str) -> None:
    """A queue that was nothing but garbage goes with a flush, and new entries wait before that is written."""
    frontier, state = resting(keys=20)
    frontier.add_done(state, range(1, 21))
    flush = frontier.collect()
    frontier.window.most = 0  # it is to be read
    frontier.add("h", [Entry(key, f"http://h/{key}", 9) for key in (30, 31)])
    frontier.window.most = 128
    results = frontier.read(frontier.needs(0.0, lambda state: True))
    if when == "before":
        frontier.take(results)
    flush.write(frontier.store)
    frontier.written(flush)
    if when == "after":
        frontier.take(results)
    frontier.check_invariants()
    assert popped(frontier) == [30, 31]
    frontier.flush()
    frontier.check_invariants()
    assert not list(frontier.store.rows.irange(b"q", b"r"))  # type: ignore[attr-defined]


def test_what_is_cleared_is_not_garbage_a_second_time_where_garbage_is_sought_before_it_is_written() -> None:
    frontier, state = resting(keys=20)
    frontier.add_done(state, range(1, 21))
    flush = frontier.collect()
    frontier.add("h", [Entry(key, f"http://h/{key}", 9) for key in range(100, 300)])
    frontier.add_done(state, range(100, 250))
    results = frontier.read(frontier.needs(0.0, lambda state: True))
    assert any(scan.tidy and read for scan, read in results), "the rows of old are there still"
    flush.write(frontier.store)
    frontier.written(flush)
    frontier.take(results)
    frontier.check_invariants()
    frontier.flush()
    frontier.check_invariants()
    assert popped(frontier) == [*range(250, 300)]


@pytest.mark.parametrize("killed", [False, True])
def test_a_queue_that_is_nothing_but_garbage_goes_though_nothing_of_its_host_changes_again(killed: bool) -> None:
    """Its last entry was out, or its head was being read, when all was done elsewhere."""
    frontier, state = resting(keys=20)
    results = frontier.read(frontier.needs(0.0, lambda state: True))
    if killed:
        frontier.take(results)
        assert frontier.pop(0.0, lambda state: True) is not None
    frontier.add_done(state, range(1, 21))
    frontier.flush()
    if killed:
        frontier = reopened(frontier.store, DictKind(frontier.seen))  # type: ignore[arg-type]
    else:
        frontier.take(results)
    frontier.flush()
    frontier.check_invariants()
    assert not list(frontier.store.rows.irange(b"q", b"r"))  # type: ignore[attr-defined]


def test_the_row_of_what_was_retried_elsewhere_and_is_done_before_the_next_flush_goes() -> None:
    frontier = reopened(MemoryStore(), DictKind())
    entry = Entry(1, "http://h/1", 0)
    frontier.add("h", [entry])
    frontier.flush()
    frontier.add("h", [entry._replace(request='{"retries":1}')])
    assert popped(frontier) == [1]
    frontier.flush()
    frontier.check_invariants()
    assert not list(frontier.store.rows.irange(b"q", b"r"))  # type: ignore[attr-defined]


def test_a_host_dropped_while_it_is_read_stays_dropped() -> None:
    frontier, _ = resting()
    results = frontier.read(frontier.needs(0.0, lambda state: True))
    frontier.drop("h")
    frontier.add("h", [Entry(2, "http://h/2", 0)])
    frontier.take(results)
    frontier.check_invariants()
    assert popped(frontier) == [2]


@pytest.mark.parametrize("change", ["freed", "postponed", "deferred", "hastened"])
def test_when_a_host_may_be_fetched_is_written_though_nothing_else_of_it_changes(change: str) -> None:
    frontier = reopened(MemoryStore(), DictKind(), 5.0)
    state, _ = frontier.add("h", [Entry(key, f"http://h/{key}", 0) for key in (1, 2)])
    frontier.postpone(state, 50.0)
    assert frontier.pop(50.0, lambda state: True) is not None
    state.pause = 60.0  # its robots.txt wants it
    frontier.flush()
    assert not frontier.changed
    match change:
        case "freed":
            frontier.free(state, 100.0)
        case "postponed":
            frontier.postpone(state, 160.0)
        case "deferred":
            frontier.defer(state, 100.0)
        case "hastened":
            frontier.hasten(state, 20.0)
    assert frontier.changed
    frontier.flush()
    (again,) = reopened(frontier.store, DictKind(frontier.seen)).states()
    assert again.next_at == (20.0 if change == "hastened" else 160.0)


def test_what_a_host_dropped_had_on_disk_goes_with_the_next_flush() -> None:
    frontier, state = resting()
    frontier.add_done(state, [1])
    frontier.flush()
    frontier.drop("h")
    frontier.flush()
    kinds = {key[:1] for key in frontier.store.rows}
    assert kinds == {b"m", b"l"}  # its sums go when their row of the log does
    again = reopened(frontier.store, DictKind(frontier.seen))
    assert len(again) == 0
    assert again.seen.rebuilt == 0


# -- all of a host, told a bit at a time


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("kind", [Reading, Tight])
def test_a_host_that_changes_while_it_is_told_is_told_whole(
    kind: type[Reading], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_state, "PIECE", 3)
    draw, number = random.Random(seed), 100
    frontier, state = resting(kind, keys=40)
    frontier.add_done(state, range(1, 5))
    frontier.flush()
    known, told, out = set(range(1, 41)), set(), []
    state.open_work = 1000  # it is the agent's to count

    def change() -> None:
        nonlocal number
        number += 1
        what = draw.choice(["pop", "pop", "end", "end", "back", "leave", "find", "done", "flush"])
        if what == "pop" and (one := frontier.pop(1e9, lambda state: True)) is not None:
            out.append(one[1])
            frontier.free(state, 0.0)
        elif what == "end" and out:
            entry = out.pop(draw.randrange(len(out)))
            if frontier.finish(state, entry.key):
                state.close(entry)
        elif what == "back" and out:
            frontier.put_back(state, out.pop(draw.randrange(len(out))).key)
        elif what == "leave" and state.closing:
            state.closed(draw.choice([*state.closing]))
        elif what == "find":
            key, depth = draw.choice([number, draw.randrange(1, 41)]), draw.randrange(8)
            told.update(one.key for one in frontier.add("h", [Entry(key, f"http://h/{key}", depth)])[1])
        elif what == "done":
            told.update(frontier.add_done(state, [draw.randrange(1, 41)]))
        else:
            frontier.flush()

    for _ in range(draw.randrange(20)):
        change()
    told.clear()
    for record in whole(state, 0):
        assert record.done not in state.closing
        told.add(record.entry.key if record.entry is not None else record.done)
        for _ in range(draw.randrange(3)):
            change()
    assert known <= told
    frontier.check_invariants()


def test_telling_of_a_large_host_begins_at_once() -> None:
    """A host of a million URLs took three seconds of the loop, and 200 MB, when it was handed over."""
    frontier, state = resting(keys=5000)
    reads = frontier.store.reads  # type: ignore[attr-defined]
    records = whole(state, 0)
    assert next(records).entry is not None
    assert frontier.store.reads == reads + 1  # type: ignore[attr-defined]
    assert len([*records]) == 4999


# -- the window


def test_memory_is_bounded_and_every_host_has_its_turn() -> None:
    store = MemoryStore()
    frontier = reopened(store, DictKind())
    frontier.window.most = 64
    number = 0
    for host in range(40):
        frontier.add(f"h{host}", [Entry(number + key, f"http://h{host}/{key}", 0) for key in range(30)])
        number += 30
        assert frontier.window.held <= 64
    frontier.flush()
    turns: dict[str, list[int]] = {}
    count = 0
    while (one := frontier.pop(1e9, lambda state: True)) is not None:
        state, entry = one
        frontier.finish(state, entry.key)
        frontier.free(state, 0.0)
        turns.setdefault(state.host, []).append(count)
        count += 1
        assert frontier.window.held <= 64 + frontier.window.head
    assert count == 40 * 30
    assert all(len(times) == 30 for times in turns.values())
    last_start = max(times[0] for times in turns.values())
    assert last_start <= 40 * frontier.window.grown, "the last host had its first turn before any had its third"


def test_a_small_crawl_reads_nothing() -> None:
    store = MemoryStore()
    frontier = reopened(store, DictKind())
    reads = store.reads
    for host in range(20):
        frontier.add(f"h{host}", [Entry(host * 100 + key, f"http://h{host}/{key}", 0) for key in range(100)])
    frontier.flush()
    assert len(popped_unchecked(frontier)) == 2000
    assert store.reads == reads


def popped_unchecked(frontier: Reading) -> list[int]:
    found = []
    while (one := frontier.pop(1e9, lambda state: True)) is not None:
        found.append(one[1].key)
        frontier.finish(one[0], one[1].key)
        frontier.free(one[0], 0.0)
    return found


def test_what_was_done_elsewhere_while_its_host_was_busy_takes_no_memory_from_others() -> None:
    frontier = reopened(MemoryStore(), DictKind())
    frontier.window.most = 64
    for number in range(20):
        host = f"h{number}"
        frontier.add(host, [Entry(2 * number + key, f"http://{host}/{key}", 0, request="x" * 2000) for key in (0, 1)])
        found = frontier.pop(1e9, lambda state, host=host: state.host == host)  # type: ignore[misc]
        assert found is not None
        frontier.add_done(found[0], [2 * number + 1])
        frontier.finish(found[0], found[1].key)
        frontier.free(found[0], 0.0)
        frontier.flush()
    assert frontier.window.held == 0
    frontier.add("h0", [Entry(1000, "http://h0/2", 0)])
    assert popped_unchecked(frontier) == [1000]


def test_a_host_that_may_not_be_fetched_gives_its_memory_to_others() -> None:
    frontier = reopened(MemoryStore(), DictKind())
    frontier.window.most = 64
    for host in ("theirs", "mine"):
        for number in range(4):
            name = f"{host}{number}"
            frontier.add(name, [Entry(hash(name) % 2**60 + key, f"http://{name}/{key}", 0) for key in range(16)])
    found = set()
    while (one := frontier.pop(1e9, lambda state: state.host.startswith("mine"))) is not None:
        found.add(one[0].host)
        frontier.finish(one[0], one[1].key)
        frontier.free(one[0], 0.0)
    assert found == {f"mine{number}" for number in range(4)}
    frontier.check_invariants()
    frontier.look_again()
    assert len(popped_unchecked(frontier)) == 64


def fetched(frontier: DiskFrontier, mine: Callable[[HostState], bool]) -> int:
    """How many pages of such hosts are fetched until none is left."""
    pages = 0
    while (one := frontier.pop(0.0, mine)) is not None:
        frontier.finish(one[0], one[1].key)
        frontier.free(one[0], 0.0)
        pages += 1
    frontier.check_invariants()
    return pages


@pytest.mark.parametrize("why", ["theirs", "late"])
def test_hosts_that_are_not_fetched_for_long_take_no_memory_from_the_others_by_and_by(why: str) -> None:
    """Copies of others' hosts that had come while there was room grew until nothing was read, and all stood still."""
    frontier = reopened(MemoryStore(), DictKind())
    frontier.window.most = 256

    def add(host: str, key: int) -> None:
        name = f"{host}.example"
        frontier.add(name, [Entry(hash(name) % 2**60 + key, f"http://{name}/{key}", 0)])

    def mine(state: HostState) -> bool:
        return why == "late" or state.host.startswith("mine")

    for number in range(16):
        add(f"{why}{number}", 0)
        if why == "late":
            state = frontier.find(f"late{number}.example")
            assert state is not None
            frontier.postpone(state, 1e6)
    assert frontier.pop(0.0, mine) is None
    for key in range(1, 40):
        for number in range(16):
            add(f"{why}{number}", key)
    for key in range(40):
        add("mine", key)
    frontier.flush()
    assert fetched(frontier, mine) == 40


def test_a_host_that_is_loaded_from_stays_busy_though_it_has_to_give_its_memory_to_others() -> None:
    """Else it would be handed out a second time meanwhile."""
    frontier = reopened(MemoryStore(), DictKind())
    frontier.window.most = 64
    state, _ = frontier.add("h", [Entry(key, f"http://h/{key}", 0) for key in (1, 2)])
    assert frontier.pop(0.0, lambda state: True) is not None
    state.open_work += 1
    frontier.postpone(state, 1e6)  # as another agent's notes may want it
    frontier.add("h", [Entry(3, "http://h/3", 0, 5, "x" * 100_000)])
    assert frontier.pop(1e9, lambda state: True) is None
    frontier.check_invariants()
    frontier.finish(state, 1)
    state.open_work -= 1
    frontier.free(state, 0.0)
    assert frontier.pop(1e6 - 1, lambda state: True) is None
    assert popped_unchecked(frontier) == [3, 2]


def test_no_more_is_read_of_a_queue_than_was_asked_for_however_much_of_it_is_not_written_yet() -> None:
    frontier, state = resting()
    most = frontier.window.grown
    frontier.add("h", [Entry(key, f"http://h/{key}", 5) for key in range(4, 10 * most)])
    while frontier.load(0.0, lambda state: True):
        assert 0 < len(state.head) <= most  # type: ignore[attr-defined]
    assert frontier.window.held <= most
    assert popped_unchecked(frontier) == [*range(1, 10 * most)]


@pytest.mark.parametrize("size", [100, 3_000, 100_000])
def test_large_requests_count_for_what_they_take_in_memory(size: int) -> None:
    """Rows were counted only: 100,000 requests with bodies of 100 kB took 3 GB where 32 MB was asked for."""
    frontier = reopened(MemoryStore(), DictKind())
    frontier.window.most, most = 2_000, 2_000 * 256

    def kept() -> int:
        return sum(len(queued) for state in frontier.states() for queued in state.head)  # type: ignore[attr-defined]

    keys = set()
    for number in range(300):
        host = f"h{number % 10}"
        request = f'{{"body":"{"x" * size}"}}'
        frontier.add(host, [Entry(number, f"http://{host}/{number}", number % 3, request=request)])
        assert kept() <= most + size
        keys.add(number)
    frontier.flush()
    found = set()
    while (one := frontier.pop(1e9, lambda state: True)) is not None:
        assert kept() <= most + frontier.window.head * 256 + 10 * size, "what was asked for, and a row for each host"
        found.add(one[1].key)
        frontier.finish(one[0], one[1].key)
        frontier.free(one[0], 0.0)
    assert found == keys
    frontier.check_invariants()


def test_large_requests_that_are_garbage_are_found() -> None:
    frontier = reopened(MemoryStore(), DictKind())
    large = [Entry(key, f"http://h/{key}", 5, request=f'{{"body":"{"x" * 1000}"}}') for key in range(1, 2001)]
    state, _ = frontier.add("h", large)
    frontier.flush()
    frontier.add_done(state, range(1, 1500))
    while frontier.load(0.0, lambda state: True):
        frontier.flush()
    assert state.garbage == 0  # type: ignore[attr-defined]
    frontier.check_invariants()
    assert popped_unchecked(frontier) == list(range(1500, 2001))


@pytest.mark.parametrize("size", [10_000, 100_000])
def test_large_requests_that_come_before_those_in_memory_take_no_memory_from_other_hosts(size: int) -> None:
    """Copies of others' hosts kept as many rows as they had, whatever these took, and no own host was read."""
    frontier = reopened(MemoryStore(), DictKind())
    frontier.window.most = 512

    def mine(state: HostState) -> bool:
        return state.host == "mine"

    for number in range(8):
        frontier.add(f"h{number}", [Entry(100 * number + key, f"http://h{number}/{key}", 5) for key in range(20)])
    assert frontier.pop(0.0, mine) is None
    for number in range(8):
        for key in range(20, 60):
            request = f'{{"body":"{"x" * size}"}}'
            frontier.add(f"h{number}", [Entry(100 * number + key, f"http://h{number}/{key}", 1, request=request)])
    for key in range(10_000, 10_040):
        frontier.add("mine", [Entry(key, f"http://mine/{key}", 0)])
    frontier.flush()
    assert fetched(frontier, mine) == 40


@pytest.mark.parametrize("together", [1, 2, 5, 200])
def test_large_requests_that_come_behind_those_in_memory_take_no_memory_from_other_hosts(together: int) -> None:
    """A page's requests to one host were counted, not weighed: with that host none of the others was read any more."""
    frontier = reopened(MemoryStore(), DictKind())
    frontier.window.most = 512

    def mine(state: HostState) -> bool:
        return state.host == "mine"

    frontier.add("other", [Entry(key, f"http://other/{key}", 5) for key in range(3)])
    assert frontier.pop(0.0, mine) is None
    request = f'{{"body":"{"x" * 100_000}"}}'
    large = [Entry(key, f"http://other/{key}", 5, request=request) for key in range(20, 220)]
    for start in range(0, len(large), together):
        frontier.add("other", large[start : start + together])
    for key in range(10_000, 10_040):
        frontier.add("mine", [Entry(key, f"http://mine/{key}", 0)])
    frontier.flush()
    assert fetched(frontier, mine) == 40
