"""The workbench: hosts ordered by the time they may next be fetched (BUbiNG's word).

A host is in exactly one of four states:

* *idle*: nothing of it is queued; the workbench does not know it;
* *waiting*: in the heap or in the line, with the time from which it may be fetched;
* *busy*: handed out; one load at a time of a host;
* *parked*: its time had come but it may not be fetched here (another agent's host, or one held in a handoff), until
  `look_again`.

Most hosts have the same delay, so they come back in the order of their times: they stand in *line*, which costs a
fifth of a place in a heap. Who comes out of order, or much later than the last in line, is in the heap.

Everything is O(log hosts) or better, but for `look_again`, which is linear in the parked hosts and rare (a change of
view), and `unserved`, which passes parked hosts that are others' once until then.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

Host = TypeVar("Host", bound=Hashable)
"""What stands for a host here: its name, or its state."""

_BUSY, _PARKED = 0, -1
_GAP = 1.0  # s that one may stand behind the last in line: behind a slow host all others would be in the heap


class Workbench(Generic[Host]):
    """Hosts by time. Times are seconds of the agent's clock; ties go to the host put in first."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Host]] = []
        # the line, ascending; three queues and no tuples, which Python's garbage collector would look at
        self._times: deque[float] = deque()
        self._counts: deque[int] = deque()
        self._hosts: deque[Host] = deque()
        self._places: dict[Host, int] = {}  # the number of its only valid place in heap or line, or a state
        self._parked: dict[Host, None] = {}
        self._unasked: dict[Host, None] = {}  # of them: those not known to be others' (`unserved`)
        self._count = 0

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, host: Host) -> bool:
        return host in self._places

    def is_busy(self, host: Host) -> bool:
        """Whether the host is handed out."""
        return self._places.get(host) == _BUSY

    def is_parked(self, host: Host) -> bool:
        """Whether the host's time had come, and it may not be fetched here."""
        return self._places.get(host) == _PARKED

    def activate(self, host: Host, at: float) -> None:
        """Something of this host is queued, to be fetched from that time on. Nothing changes unless it was idle."""
        if host not in self._places:
            self._push(host, at)

    def _push(self, host: Host, at: float) -> None:
        self._count = self._places[host] = count = self._count + 1
        times = self._times
        if not times or times[-1] <= at <= times[-1] + _GAP:
            times.append(at)
            self._counts.append(count)
            self._hosts.append(host)
        else:
            heapq.heappush(self._heap, (at, count, host))

    def take(
        self, now: float, allowed: Callable[[Host], bool], parked: Callable[[Host], None] | None = None
    ) -> Host | None:
        """Make the first host that is ready and allowed busy, and return it; those not allowed are parked, and `parked`
        is told of each.
        """
        heap, times, places = self._heap, self._times, self._places
        while True:
            if heap and (
                not times or (at := heap[0][0]) < times[0] or (at == times[0] and heap[0][1] < self._counts[0])
            ):
                if heap[0][0] > now:
                    return None
                _, count, host = heapq.heappop(heap)
            elif times and times[0] <= now:
                times.popleft()
                count, host = self._counts.popleft(), self._hosts.popleft()
            else:
                return None
            if places.get(host) != count:
                continue  # it was removed or moved since
            if allowed(host):
                places[host] = _BUSY
                return host
            places[host] = _PARKED
            self._parked[host] = self._unasked[host] = None
            if parked is not None:
                parked(host)

    def release(self, host: Host, at: float | None) -> None:
        """A busy host waits until that time, or is idle (None). Nothing happens when it is not busy."""
        if self._places.get(host) != _BUSY:
            return
        if at is None:
            del self._places[host]
        else:
            self._push(host, at)

    def move(self, host: Host, at: float) -> None:
        """A host that waits does so until another time."""
        if self._places.get(host, _BUSY) > _BUSY:
            self._push(host, at)

    def remove(self, host: Host) -> None:
        """Forget a host whatever its state."""
        if self._places.pop(host, None) == _PARKED:
            del self._parked[host]
            self._unasked.pop(host, None)

    def look_again(self, at: Callable[[Host], float]) -> None:
        """Every parked host waits again, from the time given for it."""
        parked, self._parked, self._unasked = self._parked, {}, {}
        for host in parked:
            self._push(host, at(host))

    def next_ready(self) -> float | None:
        """The time at which the first waiting host is ready; None when none waits."""
        heap, times, places = self._heap, self._times, self._places
        while heap and places.get(heap[0][2]) != heap[0][1]:
            heapq.heappop(heap)
        while times and places.get(self._hosts[0]) != self._counts[0]:
            for line in (times, self._counts, self._hosts):
                line.popleft()
        if heap and times:
            return min(heap[0][0], times[0])
        return heap[0][0] if heap else times[0] if times else None

    def unserved(self, mine: Callable[[Host], bool]) -> Iterator[Host]:
        """Every host that waits, and those parked ones that are `mine`. Of which that is not is asked once until
        `look_again`: an agent keeps copies of a hundred thousand hosts of others, and looks ten times a second.
        """
        places = self._places
        yield from (host for host, count in zip(self._hosts, self._counts, strict=True) if places.get(host) == count)
        yield from (host for _, count, host in self._heap if places.get(host) == count)
        for host in [*self._unasked]:
            if mine(host):
                yield host
            else:
                del self._unasked[host]

    def _check(self) -> None:
        """Assert that every host is in one state, and that heap or line holds every waiting one."""
        assert {host for host, place in self._places.items() if place == _PARKED} == self._parked.keys()
        assert self._unasked.keys() <= self._parked.keys()
        assert len(self._times) == len(self._counts) == len(self._hosts)
        line = [*zip(self._times, self._counts, self._hosts, strict=True)]
        places = {(host, count) for _, count, host in (*self._heap, *line)}
        assert all(place <= _BUSY or (host, place) in places for host, place in self._places.items())
        assert line == sorted(line, key=lambda place: place[:2])
