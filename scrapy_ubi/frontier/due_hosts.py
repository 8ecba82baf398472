"""Hosts in the order in which their pages are due to be visited again.

Rules of this module:

* A host stands here with the earliest time at which a page of it is due, whatever the number of its pages. The one that
  is most overdue comes first.
* Hosts of other agents are passed over once, and looked at again when the view has changed (`look_again`).
* Times are unix seconds, and come with `wake`: between two calls no time passes here.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Generic, TypeVar

from scrapy_ubi.frontier.host_revisits import HostRevisits
from scrapy_ubi.protocol.host import NO_VISITS, HostState

State = TypeVar("State", bound=HostState)
Mine = Callable[[HostState], bool]


class DueHosts(Generic[State]):
    """The hosts of one frontier with pages that are visited again. `wall` is the time (unix s)."""

    def __init__(self) -> None:
        self.wall = 0
        self._heap: list[tuple[int, int, State]] = []
        self._places: dict[State, tuple[int, int]] = {}  # the only valid place of each: due, number
        self._held: dict[State, HostRevisits] = {}
        self._unasked: dict[State, None] = {}  # of them: those not known to be others', or to wait for nothing
        self._others: dict[State, None] = {}  # whose time had come, and which are others'
        self._count = 0

    def __len__(self) -> int:
        return len(self._held)

    def held(self) -> list[tuple[State, HostRevisits]]:
        """All hosts that have visits."""
        return [*self._held.items()]

    def follow(self, state: State, visits: HostRevisits) -> None:
        """The visits of this host have changed."""
        self._held[state] = visits
        self._unasked[state] = None
        if state in self._others:
            return
        place = self._places.get(state)
        if visits.due and (place is None or visits.due < place[0]):
            self._count += 1
            self._places[state] = (visits.due, self._count)
            heapq.heappush(self._heap, (visits.due, self._count, state))

    def forget(self, state: State) -> None:
        """The host is not held any more."""
        self._held.pop(state, None)
        self._places.pop(state, None)
        self._unasked.pop(state, None)
        self._others.pop(state, None)

    def look_again(self) -> None:
        """Hosts may be this agent's that were others', and the reverse."""
        self._others.clear()
        for state, visits in self._held.items():
            visits.put_aside()
            self.follow(state, visits)

    def next(self, mine: Mine) -> State | None:
        """The host that is most overdue, of those that are `mine`: it stands here no longer, until `follow`."""
        while self._heap and self._heap[0][0] <= self.wall:
            due, count, state = heapq.heappop(self._heap)
            if self._places.get(state) != (due, count):
                continue
            del self._places[state]
            if mine(state):
                return state
            self._others[state] = None
        return None

    def put_off(self, state: State, at: int) -> None:
        """This host is looked at again at that time, or when its visits change."""
        self._count += 1
        self._places[state] = (at, self._count)
        heapq.heappush(self._heap, (at, self._count, state))

    @property
    def is_due(self) -> bool:
        """Whether the time of a host has come, which may be another agent's."""
        return bool(self._heap) and self._heap[0][0] <= self.wall

    def awaits(self, mine: Mine) -> bool:
        """Whether a page of such a host is due, now or later."""
        while self._unasked:
            state = next(iter(self._unasked))
            if self._held[state].awaited and mine(state):
                return True
            del self._unasked[state]
        return False

    def due_before(self, wall: int, mine: Mine) -> int:
        """How many hosts of these have a page that is due before that time; linear in the hosts."""
        return sum(1 for state, visits in self._held.items() if (visits.ready or 0 < visits.due < wall) and mine(state))

    def check_invariants(self) -> None:
        """Assert that every host with a page that is due has its place."""
        heap = {(due, count, state) for due, count, state in self._heap}
        for state, visits in self._held.items():
            assert state.visits is visits is not NO_VISITS
            if visits.due and state not in self._others and not visits.ready:
                if state in self._places:
                    assert (*self._places[state], state) in heap, state
                else:
                    assert getattr(visits, "late", None) is not None, state  # it is being read
