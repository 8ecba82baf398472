"""How long loads take, and how long hosts ask to be left alone."""

from __future__ import annotations

import pytest

from scrapy_ubi.agent.hosts import host_times
from scrapy_ubi.agent.hosts.host_times import HostTimes


def test_a_host_takes_the_mean_of_its_loads_and_the_last_ones_count_more() -> None:
    times = HostTimes()
    for _ in range(5):
        times.loaded("a", 1.0)
        times.loaded("a", 3.0)
    assert times.load("a") == pytest.approx(2.0)
    for _ in range(60):
        times.loaded("a", 10.0)
    assert times.load("a") == pytest.approx(10.0, abs=0.1)


def test_a_host_that_was_not_loaded_is_taken_for_the_mean_of_all() -> None:
    times = HostTimes()
    assert times.load("new") == 0.0
    times.loaded("a", 1.0)
    times.loaded("b", 3.0)
    assert times.load("new") == pytest.approx(2.0)


def test_one_pause_says_nothing_of_the_next_one_and_two_do() -> None:
    times = HostTimes()
    for _ in range(10):
        times.loaded("a", 1.0)
    times.rested("a", 600.0)
    assert times.every("a") == 0.0
    times.rested("a", 60.0)
    assert times.every("a") == 6.0, "the longest may have been the only one of its kind"
    assert times.every("b") == 0.0


def test_it_knows_a_bounded_number_of_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_times, "MOST", 3)
    times = HostTimes()
    for number in range(10):
        times.loaded(f"h{number}", 1.0)
        times.rested(f"r{number}", 1.0)
    assert len(times._hosts) == 3
