"""Pages that are due to be visited again, in every frontier."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from scrapy_ubi.frontier import disk_visits, restore, rows
from scrapy_ubi.frontier.disk_frontier import DiskFrontier
from scrapy_ubi.frontier.host_revisits import READY
from scrapy_ubi.frontier.restore import open_frontier
from scrapy_ubi.protocol.host import Entry, HostState
from scrapy_ubi.protocol.visit_row import VisitRow
from tests.frontier.frontiers import FRONTIERS, Checked, DictKind, Make, reopened
from tests.support.memory_store import MemoryStore
from tests.support.store_engines import needs_rocksdb

EVERY = pytest.mark.parametrize("make", FRONTIERS.values(), ids=FRONTIERS.keys())


def any_host(state: HostState) -> bool:
    return True


def no_host(state: HostState) -> bool:
    return False


def row(key: int, due: int, generation: int = 1, host: str = "h") -> VisitRow:
    entry = Entry(key, f"http://{host}/{key}", 1)
    return VisitRow(generation, due, 0, 1, 0, 5, 5, 0, 3, '"tag"', "", entry)


def done(frontier: Checked, host: str, *all_rows: VisitRow) -> HostState:
    """A host with pages that are done, and have these rows."""
    state, _ = frontier.add(host, [one.entry for one in all_rows])
    frontier.add_done(state, [one.key for one in all_rows])
    for one in all_rows:
        assert frontier.keep_row(state, one)
    return state


def handed_out(frontier: Checked, most: int = 100) -> list[str]:
    """What comes, one after the other, each visited and never due again."""
    found: list[str] = []
    while len(found) < most and (one := frontier.pop(1e6, any_host)) is not None:
        state, entry = one
        found.append(entry.url)
        if entry.key in state.visits.out:
            before = state.visits.out[entry.key]
            frontier.visited(state, entry.key, before._replace(generation=before.generation + 1, due=0))
        else:
            frontier.finish(state, entry.key)
        frontier.free(state, 0.0)
        frontier.check_invariants()
    return found


@EVERY
def test_a_page_comes_when_it_is_due_and_no_earlier(make: Make) -> None:
    frontier = make(0.0)
    done(frontier, "h", row(1, 100), row(2, 50), row(3, 0))
    assert frontier.awaits(any_host)
    assert not frontier.awaits(no_host)
    frontier.look_again()
    for wall, urls in ((49, []), (50, ["http://h/2"]), (99, []), (100, ["http://h/1"]), (10**6, [])):
        frontier.wake(wall, any_host)
        assert handed_out(frontier) == urls
    assert not frontier.awaits(any_host)


@EVERY
def test_the_most_overdue_comes_first_and_hosts_take_turns(make: Make) -> None:
    frontier = make(0.0)
    many = 2 * READY + 3
    done(frontier, "a", *[row(key, 1000 - key, host="a") for key in range(1, many)])
    done(frontier, "b", row(1, 900, host="b"), row(2, 901, host="b"))
    frontier.wake(2000, any_host)
    found = handed_out(frontier)
    assert [url for url in found if "//a" in url] == [f"http://a/{key}" for key in range(many - 1, 0, -1)]
    assert {"http://b/1", "http://b/2"} <= {*found[:6]}


@EVERY
def test_pages_never_fetched_and_pages_due_come_in_turn(make: Make) -> None:
    frontier = make(0.0)
    state = done(frontier, "h", row(1, 10), row(2, 11))
    frontier.add("h", [Entry(key, f"http://h/{key}", 0) for key in (5, 6, 7)])
    frontier.wake(20, any_host)
    found = handed_out(frontier)
    assert sorted(found) == [f"http://h/{key}" for key in (1, 2, 5, 6, 7)]
    assert state.done_count == 5


@EVERY
def test_pages_of_others_do_not_come(make: Make) -> None:
    frontier = make(0.0)
    done(frontier, "h", row(1, 10))
    frontier.wake(20, no_host)
    assert handed_out(frontier) == []
    frontier.look_again()
    frontier.wake(20, any_host)
    assert handed_out(frontier) == ["http://h/1"]


@EVERY
def test_a_page_put_back_comes_again_as_it_was_given_and_one_visited_elsewhere_does_not(make: Make) -> None:
    frontier = make(0.0)
    state = done(frontier, "h", row(1, 10))
    frontier.wake(20, any_host)
    assert frontier.pop(0.0, any_host) == (state, row(1, 10).entry)
    again = row(1, 10).entry._replace(request='{"retries":1}')
    frontier.not_visited(state, 1, again)
    frontier.free(state, 0.0)
    frontier.check_invariants()
    assert frontier.pop(0.0, any_host) == (state, again)
    assert not state.is_over(1)
    assert frontier.keep_row(state, row(1, 500, 2))  # another agent's
    assert state.is_over(1)
    frontier.not_visited(state, 1)
    frontier.free(state, 0.0)
    frontier.check_invariants()
    frontier.wake(499, any_host)
    assert handed_out(frontier) == []
    frontier.wake(500, any_host)
    assert handed_out(frontier) == ["http://h/1"]


@EVERY
def test_a_page_put_back_after_another_agent_had_the_same_visit_comes_still(make: Make) -> None:
    frontier = make(0.0)
    state = done(frontier, "h", row(1, 10), row(2, 30))
    frontier.wake(29, any_host)
    assert frontier.pop(0.0, any_host) == (state, row(1, 10).entry)
    assert frontier.keep_row(state, row(1, 20))  # of the same generation
    frontier.wake(31, any_host)
    frontier.not_visited(state, 1)
    frontier.free(state, 0.0)
    frontier.check_invariants()
    frontier.look_again()  # what was at hand is due still
    frontier.check_invariants()
    frontier.wake(32, any_host)
    assert handed_out(frontier) == ["http://h/1", "http://h/2"]


@EVERY
@pytest.mark.parametrize("put_back", [False, True])
def test_a_page_that_another_has_done_is_not_due_here_before_its_own_load_has_ended(make: Make, put_back: bool) -> None:
    frontier = make(0.0)
    one = row(1, 10)
    state, _ = frontier.add("h", [one.entry])
    assert frontier.pop(0.0, any_host) == (state, one.entry)
    state.open_work += 1  # as the protocol counts it
    frontier.add_done(state, [1])
    assert frontier.keep_row(state, one)
    frontier.free(state, 0.0)
    for wall in (20, 21):
        frontier.wake(wall, any_host)
        frontier.check_invariants()
        assert frontier.pop(1e6, any_host) is None
    if put_back:
        frontier.put_back(state, 1)
    else:
        assert not frontier.finish(state, 1)
    state.open_work -= 1
    frontier.check_invariants()
    assert frontier.awaits(any_host)
    frontier.wake(22, any_host)
    assert handed_out(frontier) == ["http://h/1"]


@EVERY
def test_a_host_put_off_for_long_comes_as_soon_as_it_may(make: Make) -> None:
    frontier = make(0.0)
    state = done(frontier, "h", row(1, 10))
    frontier.postpone(state, 5000.0)
    frontier.wake(20, any_host)
    assert frontier.pop(0.0, any_host) is None
    frontier.hasten(state, 1.0)
    frontier.wake(21, any_host)
    frontier.check_invariants()
    assert frontier.pop(1.0, any_host) == (state, row(1, 10).entry)


@EVERY
def test_an_older_row_is_no_news(make: Make) -> None:
    frontier = make(0.0)
    state = done(frontier, "h", row(1, 10, 3))
    assert not frontier.keep_row(state, row(1, 5, 2))
    assert not frontier.keep_row(state, row(1, 10, 3))
    assert state.visit_row(1) == row(1, 10, 3)
    assert state.visit_row(2) is None
    frontier.check_invariants()
    frontier.drop("h")
    frontier.wake(100, any_host)
    assert handed_out(frontier) == []
    assert not frontier.awaits(any_host)


def test_what_is_due_of_a_page_that_was_out_outlives_the_process() -> None:
    store = MemoryStore()
    first = reopened(store, DictKind())
    state, _ = first.add("h", [row(1, 50).entry])
    assert first.pop(0.0, any_host) is not None
    first.add_done(state, [1])
    first.keep_row(state, row(1, 50))
    first.wake(60, any_host)
    first.free(state, 0.0)
    assert first.pop(1e6, any_host) is None
    first.flush()
    later = reopened(store, DictKind(first.seen))
    later.wake(60, any_host)
    assert handed_out(later) == ["http://h/1"]


def test_what_is_due_outlives_the_process() -> None:
    store = MemoryStore()
    first = reopened(store, DictKind())
    done(first, "h", row(1, 100), row(2, 50))
    done(first, "gone", row(3, 5, host="gone"))
    first.flush()
    first.drop("gone")
    first.wake(60, any_host)
    assert first.pop(0.0, any_host) is not None  # out when the process ends
    first.flush()
    later = reopened(store, DictKind(first.seen))
    later.check_invariants()
    later.wake(60, any_host)
    assert handed_out(later) == ["http://h/2"]
    later.flush()
    last = reopened(store, DictKind(later.seen))
    last.check_invariants()
    last.wake(1000, any_host)
    assert handed_out(last) == ["http://h/1"]
    assert not [key for key in store.rows if key[:1] in (b"u", b"v", b"w") and b"\0\0\0\2" in key[1:5]]


def due_in_store(keys: range) -> tuple[DiskFrontier, HostState]:
    """A frontier that finds a host with these pages in its store, each due at the time of its key."""
    first = reopened(MemoryStore(), DictKind())
    done(first, "h", *[row(key, key) for key in keys])
    first.flush()
    found = restore.restore(first.store, Path("seen"), kind=DictKind(first.seen))
    state = found.find("h")
    assert state is not None
    found.wake(1000, any_host)
    return found, state


@pytest.mark.parametrize("visited", [1, READY, 2 * READY, 3 * READY])
def test_what_comes_behind_pages_that_were_visited_elsewhere_is_due(visited: int) -> None:
    frontier, state = due_in_store(range(1, 3 * READY + 2))
    for key in range(1, visited + 1):
        frontier.keep_row(state, row(key, 0, 2))
    assert frontier.load(0.0, any_host)
    frontier.check_invariants()
    found = frontier.pop(0.0, any_host)
    assert found is not None
    assert found[1].key == visited + 1


def test_nothing_is_read_again_and_again_where_all_of_it_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_visits, "MOST_STALE", 2)
    frontier, state = due_in_store(range(1, 3 * READY))
    for key in range(1, 2 * READY + 1):
        frontier.keep_row(state, row(key, 0, 2))
    assert frontier.load(0.0, any_host)
    frontier.check_invariants()
    assert not frontier.needs(0.0, any_host)
    frontier.flush()
    frontier.wake(1001, any_host)
    assert frontier.load(0.0, any_host)
    found = frontier.pop(0.0, any_host)
    assert found is not None
    assert found[1].key == 2 * READY + 1


@pytest.mark.parametrize("changed", ["before", "between"])
def test_rows_written_while_others_are_read_are_due(changed: str) -> None:
    frontier, state = due_in_store(range(500, 502))
    if changed == "before":
        frontier.keep_row(state, row(500, 600, 2))
    flush = frontier.collect() if changed == "before" else None
    scans = frontier.needs(0.0, any_host)
    if flush is None:
        frontier.keep_row(state, row(500, 600, 2))
        flush = frontier.collect()
    read = frontier.read(scans)
    flush.write(frontier.store)
    frontier.written(flush)
    frontier.take(read)
    frontier.check_invariants()
    keys = []
    while (found := frontier.pop(0.0, any_host)) is not None or frontier.load(0.0, any_host):
        if found is not None:
            keys.append(found[1].key)
            assert state.visits.out[keys[-1]].generation == (2 if keys[-1] == 500 else 1)
            frontier.visited(state, found[1].key, row(found[1].key, 0, 3))
            frontier.free(state, 0.0)
    assert sorted(keys) == [500, 501]


def test_a_store_says_that_it_has_visits_only_when_it_has() -> None:
    store = MemoryStore()
    frontier = reopened(store, DictKind())
    state, _ = frontier.add("h", [row(1, 5).entry])
    frontier.add_done(state, [1])
    frontier.flush()
    assert b'"version": 2' in store.rows[rows.FRONTIER]
    frontier.keep_row(state, row(1, 5))
    frontier.flush()
    assert b'"version": 3' in store.rows[rows.FRONTIER]


@needs_rocksdb
def test_a_visit_costs_few_bytes_of_disk(tmp_path: Path) -> None:
    draw = Random(1)

    def used(with_rows: bool) -> int:
        path = tmp_path / str(with_rows)
        path.mkdir()
        frontier = open_frontier(path, memory=64 << 20)
        for host in range(20):
            entries = [Entry(draw.getrandbits(64), f"http://h{host}.example/", 1) for _ in range(1000)]
            state, _ = frontier.add(f"h{host}.example", entries)
            frontier.add_done(state, [entry.key for entry in entries])
            for number, entry in enumerate(entries if with_rows else []):
                at = 1_800_000_000 + number * 7 % 86_400
                frontier.keep_row(
                    state, VisitRow(3, at + 86_400, 0, 3, 1, at, 86_400, 90_000, draw.getrandbits(64), "", "", entry)
                )
            frontier.flush()
        vars(frontier.store)["_db"].compact_range(None, None)
        frontier.close()
        return sum(file.stat().st_size for file in (path / "store").iterdir() if file.suffix == ".sst")

    each = (used(True) - used(False)) / 20_000
    print(f"{each:.1f} bytes a page")
    assert each <= 60


@pytest.mark.parametrize("rows_at_once", [1, 2, 1000])
def test_rows_that_a_clock_has_dated_too_late_are_written_anew(
    monkeypatch: pytest.MonkeyPatch, rows_at_once: int
) -> None:
    monkeypatch.setattr(disk_visits, "JUDGED", rows_at_once)
    frontier = reopened(MemoryStore(), DictKind())
    late, right = [row(key, 5000 + key) for key in range(1, 8)], [row(key, 20 + key) for key in range(20, 25)]
    done(frontier, "h", *late, *right)
    done(frontier, "other", row(50, 70, host="other"))
    frontier.flush()
    frontier = reopened(frontier.store, DictKind(damaged=True))
    frontier.visits.judge(lambda one: one._replace(due=min(one.due, 100), last=4), 60)
    frontier.check_invariants()
    again = reopened(frontier.store, DictKind(damaged=True))
    again.check_invariants()
    for one in (frontier, again):
        state = one.find("h")
        assert state is not None
        assert [state.visits.row(each.key) for each in late] == [each._replace(due=100, last=4) for each in late]
        assert [state.visits.row(each.key) for each in right] == right, "those due before are not looked at"
    again.look_again()
    again.wake(101, any_host)
    assert len(handed_out(again)) == len([*late, *right]) + 1
