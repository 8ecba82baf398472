"""Failures that a frontier keeps for people: part of the contract of every frontier."""

from __future__ import annotations

import pytest

from scrapy_ubi.frontier import disk_frontier, memory
from scrapy_ubi.protocol.host import Entry, Failure
from tests.frontier.frontiers import FRONTIERS, Checked, DictKind, Make, reopened
from tests.support.memory_store import MemoryStore


@pytest.fixture(params=FRONTIERS.values(), ids=FRONTIERS)
def frontier(request: pytest.FixtureRequest) -> Checked:
    make: Make = request.param
    return make(0.0)


def failure(host: str, key: int, reason: str = "http/404", when: float = 5.0) -> Failure:
    return Failure(host, Entry(key, f"http://{host}/{key}", 2, -1, '{"method":"POST"}'), reason, when)


def test_failures_are_kept_whole_by_host(frontier: Checked) -> None:
    kept = [failure("a", 1), failure("b", 1, "robots"), failure("a", 2)]
    for one in kept:
        frontier.add(one.host, ())
        frontier.fail(one)
    assert sorted(frontier.failures()) == sorted(kept)
    assert sorted(frontier.failures("a")) == [kept[0], kept[2]]
    assert list(frontier.failures("c")) == []


def test_a_failure_is_kept_once_and_the_last_time_counts(frontier: Checked) -> None:
    frontier.add("a", ())
    frontier.fail(failure("a", 1))
    frontier.fail(failure("a", 1, "http/500", 6.0))
    assert list(frontier.failures()) == [failure("a", 1, "http/500", 6.0)]


def test_a_failure_forgiven_is_gone_and_another_is_not(frontier: Checked) -> None:
    frontier.add("a", ())
    frontier.fail(failure("a", 1))
    frontier.fail(failure("a", 2))
    frontier.forgive(failure("a", 1))
    frontier.forgive(failure("a", 3))
    assert list(frontier.failures()) == [failure("a", 2)]


def test_failures_may_be_forgiven_while_they_are_read(frontier: Checked) -> None:
    frontier.add("a", ())
    for key in range(10):
        frontier.fail(failure("a", key))
    for one in frontier.failures():
        frontier.forgive(one)
    assert list(frontier.failures()) == []


def test_failures_outlast_the_drop_of_their_host(frontier: Checked) -> None:
    frontier.add("a", ())
    frontier.fail(failure("a", 1))
    frontier.drop("a")
    assert list(frontier.failures()) == [failure("a", 1)]


def test_no_more_are_kept_than_there_is_room_for(frontier: Checked, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (memory, disk_frontier):
        monkeypatch.setattr(module, "MOST_FAILED", 2)
    for key in range(3):
        frontier.fail(failure("a", key))
    frontier.fail(failure("a", 1, "http/500", 6.0))
    assert sorted(frontier.failures()) == [failure("a", 0), failure("a", 1, "http/500", 6.0)]
    frontier.forgive(failure("a", 2))
    frontier.fail(failure("b", 2))
    assert len(list(frontier.failures())) == 2, "what was not kept makes no room"
    for _ in range(2):
        frontier.forgive(failure("a", 0))
    for key in (3, 4):
        frontier.fail(failure("b", key))
    assert sorted(frontier.failures()) == [failure("a", 1, "http/500", 6.0), failure("b", 3)]


def test_how_many_are_kept_is_known_after_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_frontier, "MOST_FAILED", 3)
    frontier = reopened(MemoryStore(), DictKind())
    frontier.fail(failure("a", 1))
    frontier.fail(failure("a", 2))
    frontier.flush()
    frontier.forgive(failure("a", 1))
    collected = frontier.collect()
    frontier.fail(failure("a", 1))  # anew, while it is being forgotten on the disk
    collected.write(frontier.store)
    frontier.written(collected)
    frontier.flush()
    again = reopened(frontier.store, DictKind(frontier.seen))
    for key in (3, 4):
        again.fail(failure("a", key))
    assert sorted(again.failures()) == [failure("a", key) for key in (1, 2, 3)]
