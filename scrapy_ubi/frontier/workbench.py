"""The workbench: hosts ordered by the time they may next be fetched (BUbiNG's word).

A host is in exactly one of four states:

* *idle*: nothing of it is queued; the workbench does not know it;
* *waiting*: in the heap or in a line, with the time from which it may be fetched;
* *busy*: handed out, as often as it may be at once: once, or as `host_loads` says;
* *parked*: its time had come but it may not be fetched here (another agent's host, or one held in a handoff), until
  `look_again` or `look_at`.

Most hosts have the same delay, so they come back in the order of their times: they stand in a *line*, which costs a
fifth of a place in a heap. A host that comes out of order, or much later than the last in line, is in the heap.

*Arrivals*, hosts of which nothing was fetched yet, have a line and a heap of their own. All are taken in the order of
their times. But a host that came back, and has waited for `PATIENCE` behind arrivals, is taken in turn with them. Else
a page with links to 20,000 new hosts would stop all others until each of these had its first fetch: also those with
one page after the other, which are idle in between, and all of them after a change of view, which parks hosts and puts
them off.

Everything is O(log hosts) or better, but for `unserved`, which passes parked hosts that are others' once until
`look_again`. No call looks at more than `LOOKED` hosts that may not be fetched, or are to wait again: with a million of
them a change of view would hold the loop for seconds. `stopped` says that there are more to be looked at.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from itertools import islice
from typing import Generic, TypeVar

Host = TypeVar("Host", bound=Hashable)
"""What stands for a host here: its name, or its state."""

_BUSY, _PARKED = 0, -1
_NEVER = (float("inf"), 0)
PATIENCE = 1.0  # s that a ready host that came back waits behind arrivals before it has every second fetch
LOOKED = 20_000  # hosts parked, or put back from there, at once: some twenty milliseconds
_GAP = 1.0  # s that one may stand behind the last in line: behind a slow host all others would be in the heap


class _Order(Generic[Host]):
    """Places of hosts by time and number: a line, ascending, and a heap for those that come out of order. The line is
    three queues and no tuples, which Python's garbage collector would look at."""

    __slots__ = ("counts", "heap", "hosts", "times")

    def __init__(self) -> None:
        self.times: deque[float] = deque()
        self.counts: deque[int] = deque()
        self.hosts: deque[Host] = deque()
        self.heap: list[tuple[float, int, Host]] = []

    def push(self, at: float, count: int, host: Host) -> None:
        times = self.times
        if not times or times[-1] <= at <= times[-1] + _GAP:
            times.append(at)
            self.counts.append(count)
            self.hosts.append(host)
        else:
            heapq.heappush(self.heap, (at, count, host))

    def first(self) -> tuple[float, int]:
        """Time and number of the first place, `_NEVER` where there is none."""
        at = (self.times[0], self.counts[0]) if self.times else _NEVER
        heap = self.heap
        return heap[0][:2] if heap and heap[0][:2] < at else at

    def pop(self, count: int) -> Host:
        """Take out the first place, which has this number."""
        if self.counts and self.counts[0] == count:
            self.times.popleft()
            self.counts.popleft()
            return self.hosts.popleft()
        return heapq.heappop(self.heap)[2]

    def __iter__(self) -> Iterator[tuple[float, int, Host]]:
        yield from zip(self.times, self.counts, self.hosts, strict=True)
        yield from self.heap


def _never(host: object) -> bool:
    return False


def _at_once(host: object) -> float:
    return 0.0


class Workbench(Generic[Host]):
    """Hosts by time. Times are seconds of the agent's clock; ties go to the host put in first. `was_fetched`: whether
    something of a host was handed out before, so that it is no arrival."""

    def __init__(self, was_fetched: Callable[[Host], bool] = _never) -> None:
        self._was_fetched = was_fetched
        self._line: _Order[Host] = _Order()
        self._arrivals: _Order[Host] = _Order()
        self._arrived_last = False  # whether what was taken last was an arrival
        self._places: dict[Host, int] = {}  # the number of its only valid place in an order, or a state
        self._parked: dict[Host, None] = {}
        self._again: dict[Host, None] = {}  # parked until now, and to wait from the time that `_at` gives
        self._at: Callable[[Host], float] = _at_once
        self.stopped = False  # the last `take`, before it had looked at all hosts that are ready
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
        return self._places.get(host) == _PARKED and host not in self._again

    def activate(self, host: Host, at: float) -> None:
        """Something of this host is queued, to be fetched from that time on. Nothing changes unless it was idle."""
        if host not in self._places:
            self._push(host, at)

    def _push(self, host: Host, at: float) -> None:
        self._count = self._places[host] = count = self._count + 1
        order = self._line if self._was_fetched(host) else self._arrivals
        order.push(at, count, host)

    def take(
        self, now: float, allowed: Callable[[Host], bool], parked: Callable[[Host], None] | None = None
    ) -> Host | None:
        """Make the first host that is ready and allowed busy, and return it; those not allowed are parked, and `parked`
        is told of each. None also where it has `stopped`.
        """
        if self._again:
            self._wait_again()
        self.stopped, looked = bool(self._again), 0
        line, arrivals, places = self._line, self._arrivals, self._places
        while True:
            order, at = line, line.first()
            new = arrivals.first()
            if new < at and not (self._arrived_last and now - at[0] >= PATIENCE):
                order, at = arrivals, new
            if at[0] > now:
                return None
            count = at[1]
            host = order.pop(count)
            if places.get(host) != count:
                continue  # it was removed or moved since
            if allowed(host):
                places[host] = _BUSY
                self._arrived_last = order is arrivals
                return host
            places[host] = _PARKED
            self._parked[host] = self._unasked[host] = None
            if parked is not None:
                parked(host)
            looked += 1
            if looked == LOOKED:
                self.stopped = True
                return None

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
            self._unpark(host)

    def _unpark(self, host: Host) -> None:
        for hosts in (self._parked, self._again, self._unasked):
            hosts.pop(host, None)

    def look_again(self, at: Callable[[Host], float]) -> None:
        """Every parked host waits again, from the time given for it."""
        if self._again:
            self._again.update(self._parked)
        else:
            self._again = self._parked
        self._parked, self._unasked, self._at = {}, {}, at
        self._wait_again()

    def _wait_again(self) -> None:
        """Put some of those back that are to wait again."""
        for host in [*islice(self._again, LOOKED)]:
            del self._again[host]
            self._push(host, self._at(host))

    def look_at(self, host: Host, at: float) -> None:
        """If this host is parked, it waits again, from that time on."""
        if self._places.get(host) == _PARKED:
            self._unpark(host)
            self._push(host, at)

    def next_ready(self) -> float | None:
        """The time at which the first waiting host is ready; None when none waits. 0.0 where some are to wait again: it
        is not known when the first of these is."""
        if self._again:
            self._wait_again()
        if self._again:
            return 0.0
        places, first = self._places, _NEVER[0]
        for order in (self._line, self._arrivals):
            heap = order.heap
            while heap and places.get(heap[0][2]) != heap[0][1]:
                heapq.heappop(heap)
            while order.times and places.get(order.hosts[0]) != order.counts[0]:
                order.pop(order.counts[0])
            first = min(first, order.first()[0])
        return first if first < _NEVER[0] else None

    def unserved(self, mine: Callable[[Host], bool]) -> Iterator[Host]:
        """Every host that waits, and those parked ones that are `mine`. Of which that is not is asked once until
        `look_again`: an agent keeps copies of a hundred thousand hosts of others, and looks ten times a second.
        """
        places = self._places
        for order in (self._line, self._arrivals):
            yield from (host for _, count, host in order if places.get(host) == count)
        yield from self._again
        for host in [*self._unasked]:
            if mine(host):
                yield host
            else:
                del self._unasked[host]

    def check_invariants(self) -> None:
        """Assert that every host is in one state, and that heap or line holds every waiting one."""
        parked = {host for host, place in self._places.items() if place == _PARKED}
        assert parked == self._parked.keys() | self._again.keys() and self._parked.keys().isdisjoint(self._again)
        assert self._unasked.keys() <= self._parked.keys()
        orders = (self._line, self._arrivals)
        places = {(host, count) for order in orders for _, count, host in order}
        assert all(place <= _BUSY or (host, place) in places for host, place in self._places.items())
        for order in orders:
            assert len(order.times) == len(order.counts) == len(order.hosts)
            line = [*zip(order.times, order.counts, strict=True)]
            assert line == sorted(line)
