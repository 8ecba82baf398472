"""Gaps between two loads of a host, measured from outside."""

from __future__ import annotations

import pytest

from scrapy_ubi.agent.report.gap_watch import MOST, PATIENCE, Gaps, GapWatch
from scrapy_ubi.frontier.memory import MemoryFrontier
from scrapy_ubi.protocol.host import HostState

DELAY = 4.0


class Host:
    """A host that is loaded, and how it is watched."""

    def __init__(self, watch: GapWatch, name: str = "h.example") -> None:
        self.watch = watch
        self.state: HostState
        self.state, _ = MemoryFrontier().add(name, [])
        self.at = 100.0

    def load(self, after: float, delay: float = DELAY) -> None:
        """A load ends so long after the last one, and the next second looks at it."""
        self.at += after
        self.state.next_at = self.at + max(delay, self.state.pause)
        self.watch.measure_gaps(self.at + 0.5, delay, [self.state])

    def first(self) -> None:
        """It is seen with its first load in flight; then that ends."""
        self.watch.measure_gaps(self.at, DELAY, [self.state])
        self.load(0.0)


@pytest.fixture
def host() -> Host:
    host = Host(GapWatch())
    host.first()
    return host


def test_gaps_that_are_kept(host: Host) -> None:
    assert host.watch.taken() == Gaps()  # one end of a load is no gap
    host.load(4.5)
    host.load(8.0)
    gaps = host.watch.taken()
    assert (gaps.measured, gaps.short) == (2, 0)
    assert gaps.least == pytest.approx(4.5 / 4)
    assert host.watch.taken() == Gaps()


def test_a_gap_shorter_than_the_delay_is_told(host: Host) -> None:
    host.load(3.0)
    gaps = host.watch.taken()
    assert (gaps.measured, gaps.short) == (1, 1)
    assert gaps.least == pytest.approx(0.75)


def test_the_delay_of_the_host_counts_where_it_is_longer(host: Host) -> None:
    host.state.pause = 10.0
    host.load(4.2)  # the delay was 4 s when the last load ended
    host.load(5.0)  # and is 10 s since
    gaps = host.watch.taken()
    assert (gaps.measured, gaps.short) == (2, 1)
    assert gaps.least == pytest.approx(0.5)


def test_a_host_that_was_put_off_or_hastened_tells_nothing(host: Host) -> None:
    host.state.next_at = host.at + 900  # Retry-After
    host.watch.measure_gaps(host.at + 1, DELAY, [])
    host.state.next_at = host.at + 2  # a person wants it so
    host.watch.measure_gaps(host.at + 3, DELAY, [])
    assert host.watch.taken() == Gaps()


def test_hosts_with_several_loads_at_once_are_left_out() -> None:
    host = Host(GapWatch(limit=lambda name: 4))
    host.first()
    host.load(0.1)
    assert host.watch.taken() == Gaps()


def test_no_more_hosts_are_watched_than_there_is_room_for_and_idle_ones_make_room() -> None:
    watch = GapWatch()
    hosts = [Host(watch, f"h{number}.example") for number in range(MOST + 1)]
    watch.measure_gaps(100.0, DELAY, [host.state for host in hosts])
    last = hosts[-1]
    last.load(0.0)
    last.load(5.0)
    assert watch.taken() == Gaps()
    for second in range(PATIENCE + 2):
        watch.measure_gaps(110.0 + second, DELAY, [])
    last.at = 200.0
    last.first()
    last.load(5.0)
    assert watch.taken().measured == 1
