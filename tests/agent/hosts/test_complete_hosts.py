"""When a host is complete, by the state that its owner has."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from scrapy_ubi.agent.hosts import complete_hosts
from scrapy_ubi.agent.hosts.complete_hosts import QUIET, CompleteHosts
from tests.agent.hosts.test_host_limits import HOST, House


class Told(House):
    """One whose hosts are looked at when a test says so. `told`: pages and why, of each time."""

    def __init__(self, frontier: Any = None, **limits: Any) -> None:
        super().__init__(frontier, **limits)
        self.told: list[tuple[object, object]] = []
        self.owns = True
        self.seen: Any = SimpleNamespace(
            end=SimpleNamespace(finished=False),
            keeping=SimpleNamespace(owns=lambda host: self.owns),
            work=SimpleNamespace(may_fetch=lambda state, now: self.owns),
        )
        crawl: Any = SimpleNamespace(agent=self.seen, frontier=self.frontier)
        self.complete = CompleteHosts(crawl, self.hosts, self.limits, self._note, self._hear)

    def _hear(self, figures: Any) -> None:
        assert figures["host"] == HOST
        self.told.append((figures["pages"], figures["complete"]))

    def settle(self) -> None:
        """All done marks have arrived."""
        self.state.open_work = 0

    def look(self, *later: float) -> None:
        for seconds in (0.0, *later):
            self.now += seconds
            self.complete.look(self.now)
            self.complete.look(self.now)  # a round ends, and the next one begins


def test_a_host_is_complete_when_nothing_is_left_for_a_while_and_once() -> None:
    house = Told(pages=100)
    house.find(1, 2)
    house.look(QUIET)
    house.turn()
    house.look(QUIET)
    house.turn()
    house.settle()
    house.look()
    assert not house.told, "not before it was so for a while"
    house.look(QUIET, QUIET)
    assert house.told == [(2, "all")]
    assert house.noted == {"complete/all": 1}
    again = Told(house.frontier, pages=100)
    again.look(QUIET, QUIET)
    assert not again.told, "as after a restart, or a handover: it was told"


def test_who_does_not_own_it_says_nothing() -> None:
    house = Told(pages=5)
    house.find(1)
    house.turn()
    house.settle()
    house.owns = False
    house.look(QUIET, QUIET)
    house.seen.end.finished = True
    house.look()
    assert not house.told


def test_what_is_unsettled_holds_it_up() -> None:
    house = Told(pages=100)
    house.find(1)
    house.turn()
    house.state.open_work = 1
    house.look(QUIET, QUIET)
    assert not house.told


def test_a_new_page_opens_it_again() -> None:
    house = Told(pages=100)
    house.find(1)
    house.turn()
    house.settle()
    house.look(QUIET)
    house.find(2)
    house.look()
    assert house.noted["reopened"] == 1
    house.turn()
    house.settle()
    house.look(QUIET)
    assert house.told == [(1, "all"), (2, "all")]


def test_a_host_that_a_limit_has_ended_says_which_and_counts_what_was_loaded() -> None:
    house = Told(pages=2)
    house.find(*range(9))
    house.turns()
    house.settle()
    house.look(QUIET)
    assert house.told == [(2, "limit/host_pages")]


def test_a_cookie_of_that_name_is_no_note_of_it() -> None:
    house = Told(pages=100)
    house.find(1, 2)
    house.turn()
    house.hosts.put(house.state, "cookies", ["complete"])
    house.look(QUIET)
    assert not house.noted, "it was not complete, so it is not open again"
    house.turn()
    house.settle()
    house.look(QUIET)
    assert house.told == [(2, "all")]


def test_without_limits_nobody_looks() -> None:
    house = Told()
    house.find(1)
    house.turn()
    house.settle()
    house.look(QUIET)
    assert not house.told and not house.state.notes.text


def test_hosts_that_wait_to_be_told_of_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(complete_hosts, "MOST_QUIET", 0)
    house = Told(pages=5)
    house.find(1)
    house.turn()
    house.settle()
    house.look()
    assert house.told == [(1, "all")]


def test_at_the_end_of_the_crawl_all_are_told() -> None:
    house = Told(pages=5)
    house.find(1)
    house.turn()
    house.settle()
    house.seen.end.finished = True
    house.look()
    assert house.told == [(1, "all")]


def test_bytes_of_a_host_are_counted_where_they_are_limited_and_go_on_with_another_agent() -> None:
    free = House(pages=9)
    free.find(1)
    free.limits.received(free.state, 500)
    assert not free.state.notes.spent
    first = House(bytes=1000)
    first.find(*range(9))
    assert first.turn() == ""
    first.limits.received(first.state, 600)
    second = House(first.frontier, bytes=1000)
    assert second.turn() == ""
    second.limits.received(second.state, 400)
    assert second.turn() == "limit/host_bytes"
    assert second.state.notes.total_spent == 1000
