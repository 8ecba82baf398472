"""Whether hosts are left alone between two loads for as long as is promised: measured at some of them, from outside.

A host that was loaded may be loaded again at `next_at`, which is the end of that load and the delay of the host. So two
values of it that follow each other tell how long it was from the end of one load to the end of the next: less than the
delay, and politeness was not kept. Where several loads have ended between two looks the gap seen is longer than the
least one, never shorter.

Rules of this module:

* Nothing is done for a page: `measure_gaps` comes once a second, and looks at `MOST` hosts at most.
* Hosts that may have several loads at once are left out, and delays shorter than the time between two looks are mostly
  not seen.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from scrapy_ubi.frontier.host_loads import Limit, one_page_at_a_time
from scrapy_ubi.protocol.host import HostState

MOST = 64  # hosts watched at one time
PATIENCE = 60  # looks without a load: another host has the place
EXACT = 0.001  # s: what rounding may take away


class _Watched:
    __slots__ = ("delay", "idle", "next_at", "state")

    def __init__(self, state: HostState) -> None:
        self.state = state
        self.next_at = self.delay = 0.0  # as the last load left it; a delay of 0: not known
        self.idle = 0


class Gaps(NamedTuple):
    """How many gaps were measured, how many were shorter than the delay, and the shortest in delays (0: none)."""

    measured: int = 0
    short: int = 0
    least: float = 0.0


class GapWatch:
    """Watches hosts of one agent. `limit` says how many loads a host may have at once (0: one)."""

    def __init__(self, limit: Limit = one_page_at_a_time) -> None:
        self._limit = limit
        self._watched: dict[str, _Watched] = {}
        self._measured = self._short = 0
        self._least = 0.0

    def measure_gaps(self, now: float, delay: float, in_flight: Iterable[HostState]) -> None:
        """Look at the hosts watched, and watch some of those that are loaded. `delay` is that of all hosts (s)."""
        for host, one in list(self._watched.items()):
            self._measure(one, now, delay)
            if one.idle > PATIENCE:
                del self._watched[host]
        for state in islice(in_flight, MOST - len(self._watched)):
            if state.host not in self._watched and not self._limit(state.host):
                self._watched[state.host] = _Watched(state)

    def _measure(self, one: _Watched, now: float, delay: float) -> None:
        state = one.state
        if state.next_at == one.next_at:
            one.idle += 1
            return
        one.idle = 0
        delay = max(delay, state.pause)
        since = state.next_at - delay  # the end of a load, unless the host was put off, or lets be loaded at once
        is_end = since <= now < state.next_at
        if is_end and one.delay and (gap := since - (one.next_at - one.delay)) > 0:
            self._count(gap / one.delay, gap < one.delay - EXACT)
        one.next_at, one.delay = state.next_at, delay if is_end else 0.0

    def _count(self, share: float, short: bool) -> None:
        self._measured += 1
        self._short += short
        self._least = min(self._least, share) or share

    def taken(self) -> Gaps:
        """What was measured since the last time."""
        gaps = Gaps(self._measured, self._short, self._least)
        self._measured = 0
        self._short = 0
        self._least = 0.0
        return gaps
