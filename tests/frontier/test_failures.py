"""Failures that a frontier keeps for people: part of the contract of every frontier."""

from __future__ import annotations

import pytest

from scrapy_ubi.frontier import memory
from scrapy_ubi.protocol.host import Entry, Failure
from tests.frontier.frontiers import FRONTIERS, Checked, Make


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
    assert sorted(frontier.failed()) == sorted(kept)
    assert sorted(frontier.failed("a")) == [kept[0], kept[2]]
    assert list(frontier.failed("c")) == []


def test_a_failure_is_kept_once_and_the_last_time_counts(frontier: Checked) -> None:
    frontier.add("a", ())
    frontier.fail(failure("a", 1))
    frontier.fail(failure("a", 1, "http/500", 6.0))
    assert list(frontier.failed()) == [failure("a", 1, "http/500", 6.0)]


def test_a_failure_forgiven_is_gone_and_another_is_not(frontier: Checked) -> None:
    frontier.add("a", ())
    frontier.fail(failure("a", 1))
    frontier.fail(failure("a", 2))
    frontier.forgive(failure("a", 1))
    frontier.forgive(failure("a", 3))
    assert list(frontier.failed()) == [failure("a", 2)]


def test_failures_may_be_forgiven_while_they_are_read(frontier: Checked) -> None:
    frontier.add("a", ())
    for key in range(10):
        frontier.fail(failure("a", key))
    for one in frontier.failed():
        frontier.forgive(one)
    assert list(frontier.failed()) == []


def test_failures_outlast_the_drop_of_their_host(frontier: Checked) -> None:
    frontier.add("a", ())
    frontier.fail(failure("a", 1))
    frontier.drop("a")
    assert list(frontier.failed()) == [failure("a", 1)]


def test_no_more_are_kept_in_memory_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "MOST_FAILED", 2)
    frontier = memory.MemoryFrontier()
    for key in range(3):
        frontier.fail(failure("a", key))
    frontier.fail(failure("a", 1, "http/500", 6.0))
    assert list(frontier.failed()) == [failure("a", 0), failure("a", 1, "http/500", 6.0)]
