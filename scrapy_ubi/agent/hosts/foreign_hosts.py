"""Hosts of other agents, as this agent has met them: when it may load a file of theirs again.

Files and images, and other downloads that bypass the scheduler, are loaded by the agent that wants them, also from a
host that another agent owns. That host's notes (delays, Retry-After) are with its owner; what the loads made
here have shown stays here. Rules of this module:

* Of a host it is known: when its last load here ended, the delays it wants, and until when it has asked to be left
  alone.
* Whether it answers is not known here: its pages rest, or are given up, at its owner; files fail as they are loaded.
* Nothing here is told to other agents, or outlives the process. When the host becomes this agent's own, the time
  before which politeness forbids its next load goes over into its state, and the rest is forgotten: its notes count.
* At most `MOST_HOSTS` hosts are known; beyond it the one that was used least recently is forgotten, and met as a new
  one. `forgotten` counts them.
* No lock and no load in here: one load at a time is the matter of `agent.work.permits`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from scrapy_ubi.urls.host_shards import NO_SHARDS, HostShards

MOST_HOSTS = 10_000  # some 400 bytes each
LONG_AGO = float("-inf")


class _Met:
    """What is known of one host. Times are the agent's clock (s)."""

    __slots__ = ("delays", "ended_at", "until")

    def __init__(self) -> None:
        self.ended_at = LONG_AGO  # when the last load of it ended
        self.until = LONG_AGO  # it has asked to be left alone before
        self.delays: dict[str, float] = {}  # source -> seconds between two loads


class ForeignHosts:
    """The hosts of other agents from which this agent has loaded something. `clock` is the agent's (s); `met` tells
    which they are; `shards` are the hosts that are cut."""

    def __init__(self, clock: Callable[[], float], shards: HostShards = NO_SHARDS) -> None:
        self._clock = clock
        self._shards = shards
        self.met: OrderedDict[str, _Met] = OrderedDict()
        self.forgotten = 0

    def next_at(self, host: str, delay: float) -> float:
        """The time before which politeness forbids the next load of this host, which is to have this `delay` (s) at
        least; a time long ago where nothing is known of it."""
        met = self.met.get(host)
        if met is None:
            return LONG_AGO
        return max(met.until, met.ended_at + max(delay, *met.delays.values(), 0.0))

    def slowed(self, host: str, seconds: float) -> float:
        """A delay that is wanted of this host, as it holds for one of its shards, if this is one."""
        return self._shards.slowed(host, seconds)

    def forget_host(self, host: str) -> None:
        """The host has become this agent's own: it has notes."""
        self.met.pop(host, None)

    def want(self, host: str, source: str, seconds: float) -> None:
        """This source wants so many seconds between the end of one load and the start of the next, 0 for none."""
        met = self.met.get(host)
        if seconds:
            self._at(host).delays[source] = self.slowed(host, seconds)
        elif met is not None:
            met.delays.pop(source, None)

    def load_ended(self, host: str) -> None:
        """A load of this host has ended now: its delay begins."""
        self._at(host).ended_at = self._clock()

    def put_off(self, host: str, seconds: float) -> None:
        """It is left alone for so long, unless it is already."""
        met = self._at(host)
        met.until = max(met.until, self._clock() + seconds)

    def _at(self, host: str) -> _Met:
        met = self.met.get(host)
        if met is not None:
            self.met.move_to_end(host)
            return met
        if len(self.met) >= MOST_HOSTS:
            self.met.popitem(last=False)
            self.forgotten += 1
        met = self.met[host] = _Met()
        return met
