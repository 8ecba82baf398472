"""How long loads of hosts take, and how long hosts have asked to be left alone: what an estimate of the end needs.

Rules of this module:

* In memory only, for at most `MOST` hosts: beyond that the oldest are forgotten, and count for the mean of all.
* A load counts from when its request was handed out until its host is free: all that keeps the host from the next one.
* A single pause says nothing of the next one. From the second on a host is expected to go on asking.
"""

from __future__ import annotations

MOST = 10_000
NEW = 0.1  # the share of a new load in the mean
FIRST = 10  # loads of which the mean is the plain one


class _Times:
    __slots__ = ("load", "loads", "longest", "rests", "total")

    def __init__(self, load: float) -> None:
        self.load = load
        self.loads = 0
        self.rests = 0
        self.total = 0.0
        self.longest = 0.0


class HostTimes:
    """The times of one agent's hosts (s)."""

    def __init__(self) -> None:
        self._hosts: dict[str, _Times] = {}
        self._mean = 0.0
        self._loads = 0

    def loaded(self, host: str, seconds: float) -> None:
        """A load of this host has taken so long."""
        self._loads = loads = self._loads + 1
        self._mean += (seconds - self._mean) * (NEW if loads > FIRST else 1 / loads)
        times = self._hosts.get(host)
        if times is None:
            times = self._add(host, seconds)
        times.loads = loads = times.loads + 1
        times.load += (seconds - times.load) * (NEW if loads > FIRST else 1 / loads)

    def rested(self, host: str, seconds: float) -> None:
        """The host is left alone for so long."""
        times = self._hosts.get(host) or self._add(host, self._mean)
        times.rests += 1
        times.total += seconds
        times.longest = max(times.longest, seconds)

    def _add(self, host: str, load: float) -> _Times:
        if len(self._hosts) >= MOST:
            del self._hosts[next(iter(self._hosts))]
        times = self._hosts[host] = _Times(load)
        return times

    def load(self, host: str) -> float:
        """How long a load of this host takes."""
        times = self._hosts.get(host)
        return times.load if times is not None else self._mean

    def every(self, host: str) -> float:
        """Seconds of pauses that the host asks for with each page; 0 where it has asked once at most."""
        times = self._hosts.get(host)
        if times is None or times.rests < 2:
            return 0.0
        return (times.total - times.longest) / max(1, times.loads)
