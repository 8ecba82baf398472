"""The workbench: hosts ordered by the time they may next be fetched (BUbiNG's word).

A host is in exactly one of four states:

* *idle*: nothing of it is queued; the workbench does not know it;
* *waiting*: in the heap, with the time from which it may be fetched;
* *busy*: handed out; one load at a time of a host;
* *parked*: its time had come but it may not be fetched here (another agent's host, or one held in a handoff), until
  `look_again`.

Everything is O(log hosts) or better, but for `look_again`, which is linear in the parked hosts and rare (a change of
view).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

Host = TypeVar("Host", bound=Hashable)
"""What stands for a host here: its name, or its state."""


class Workbench(Generic[Host]):
    """A heap of hosts by time. Times are seconds of the agent's clock; ties go to the host put in first."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Host]] = []
        self._waiting: dict[Host, int] = {}  # host -> the number of its only valid place in the heap
        self._busy: set[Host] = set()
        self._parked: dict[Host, None] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._waiting) + len(self._busy) + len(self._parked)

    def __contains__(self, host: Host) -> bool:
        return host in self._waiting or host in self._busy or host in self._parked

    def is_busy(self, host: Host) -> bool:
        """Whether the host is handed out."""
        return host in self._busy

    def activate(self, host: Host, at: float) -> None:
        """Something of this host is queued, to be fetched from that time on. Nothing changes unless it was idle."""
        if host not in self:
            self._push(host, at)

    def _push(self, host: Host, at: float) -> None:
        self._count += 1
        self._waiting[host] = self._count
        heapq.heappush(self._heap, (at, self._count, host))

    def take(self, now: float, allowed: Callable[[Host], bool]) -> Host | None:
        """Make the first host that is ready and allowed busy, and return it; those not allowed are parked."""
        heap = self._heap
        while heap and heap[0][0] <= now:
            _, count, host = heapq.heappop(heap)
            if self._waiting.get(host) != count:
                continue  # it was removed or moved since
            del self._waiting[host]
            if allowed(host):
                self._busy.add(host)
                return host
            self._parked[host] = None
        return None

    def release(self, host: Host, at: float | None) -> None:
        """A busy host waits until that time, or is idle (None). Nothing happens when it is not busy."""
        if host in self._busy:
            self._busy.discard(host)
            if at is not None:
                self._push(host, at)

    def move(self, host: Host, at: float) -> None:
        """A waiting host waits until that time instead. Nothing changes where it does not wait."""
        if host in self._waiting:
            self._push(host, at)

    def park(self, host: Host) -> None:
        """An idle host may not be fetched here, though something of it is queued."""
        if host not in self:
            self._parked[host] = None

    def remove(self, host: Host) -> None:
        """Forget a host whatever its state."""
        self._waiting.pop(host, None)
        self._parked.pop(host, None)
        self._busy.discard(host)

    def look_again(self, at: Callable[[Host], float]) -> None:
        """Every parked host waits again, from the time given for it."""
        parked, self._parked = self._parked, {}
        for host in parked:
            self._push(host, at(host))

    def next_ready(self) -> float | None:
        """The time at which the first waiting host is ready; None when none waits."""
        heap = self._heap
        while heap and self._waiting.get(heap[0][2]) != heap[0][1]:
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def unserved(self) -> Iterator[Host]:
        """Every host that waits or is parked."""
        yield from self._parked
        yield from self._waiting

    def _check(self) -> None:
        """Assert that every host is in one state, and that the heap holds every waiting one."""
        waiting, parked = self._waiting.keys(), self._parked.keys()
        assert not waiting & self._busy, waiting & self._busy
        assert not waiting & parked, waiting & parked
        assert not parked & self._busy, parked & self._busy
        assert {(c, h) for h, c in self._waiting.items()} <= {(c, h) for _, c, h in self._heap}
