"""Permits: at most n loads at once of a host, one unless UBI_HOST_CONCURRENCY says otherwise, and none without the
right to it, checked directly before a load starts.

Rules of this module:

* A permit is held from the moment a load may start until its transfer has ended, for all kinds: a request of the
  queue, a robots.txt, media, the next hop of a redirect. A request handed out by the workbench holds no permit while it
  waits, so the robots.txt it waits for can be loaded.
* A permit is given only when, at that moment, the agent owns the host, the host is not held, the lease holds, and the
  politeness delay has passed. What can still become true is waited for; what cannot (another agent's host) is denied.
* A *foreign* permit is that of a load beside the scheduler from a host that another agent owns. It asks for the lease
  and for the delay since this agent's own last load of that host (`hosts.foreign_hosts`), not for the host. There is
  one such permit a host here, and no other beside it: where the host becomes this agent's own meanwhile, its pages wait
  for that load.
* Of a host with several permits the delay counts from the start of a load, when its permit is given; else from its end.
* The waiters of a host stand in a line. Only the first one takes the permit; each that leaves the line wakes the next.
  So a release costs one check, however many wait, for this host or for others. A request of the queue checks at every
  change whether it is denied.
* A request of the queue whose host was put off for long (`PATIENCE`) does not wait here: it is denied, and waits in its
  queue, so that it occupies no place of the downloader.
* A request that was handed out may wait while the lease does not hold, and another agent fetches it: once its page is
  done, it is denied.
* A load that lost its permit and is made again comes before all others: it keeps its place in Scrapy's downloader, and
  another load with the permit could wait for that place.
* A host *rests* where its pages are left in their queue for some time (it does not answer, or answers with errors, or
  its robots.txt cannot be read), though it has not asked for that. A request of the queue is denied then. What bypasses
  the queue is waited for by a page and its items: it waits for the host's delay alone. So it does of another agent's
  host.
* While people have paused the crawl, or the host, a request of the queue is denied. What bypasses the queue belongs to
  a page under way, and is let through.
* The check and the taking are one step: nothing is awaited in between.
"""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from collections.abc import Callable

from scrapy_ubi.agent.hosts.foreign_hosts import LONG_AGO, ForeignHosts
from scrapy_ubi.agent.waits import wait_briefly
from scrapy_ubi.frontier.host_loads import Limit
from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.protocol.host import HostState
from scrapy_ubi.protocol.memory_state import SetState

PATIENCE = 60.0  # s: longer than robots.txt and its delay take, but for very long delays
MOST_FREE = 10_000  # hosts whose delays are remembered; beyond it those loaded from longest ago are forgotten
_DENIED = -1.0  # in place of the seconds to wait


class _Foreign:
    """In place of a state: the permit is one of another agent's host."""


_Holder = HostState | _Foreign | None
_OF_QUEUE: tuple[_Holder, ...] = (None,)


class _Place:
    """A place in the line of a host. `turn` is set when its waiter has to check again."""

    __slots__ = ("of_page", "turn")

    def __init__(self, of_page: bool) -> None:
        self.of_page = of_page
        self.turn = asyncio.Event()


class Permits:
    """The permits of one agent, by host. `clock` gives the agent's time; `foreign` is what it knows of other
    agents' hosts. `SeveralPermits` has more than one of a host.
    """

    def __init__(
        self,
        agent: Agent,
        clock: Callable[[], float],
        foreign: ForeignHosts | None = None,
        rests: Callable[[HostState], bool] = lambda state: False,
    ) -> None:
        self._agent = agent
        self._rests = rests
        # host -> when its delay after a load is over, or what it has asked for: of those whose pages may rest
        self._free_at: OrderedDict[str, float] = OrderedDict()
        self._clock = clock
        self.foreign = foreign if foreign is not None else ForeignHosts(clock)
        # host -> what holds its permits: of each the borrowed state, None for a request of the queue
        self._held: dict[str, tuple[_Holder, ...]] = {}
        self._lines: dict[str, OrderedDict[_Place, None]] = {}
        self.closed = False
        self._paused = False
        self._paused_hosts: frozenset[str] = frozenset()

    def try_acquire(self, host: str, state: HostState | None, key: int = 0, foreign: bool = False) -> bool | None:
        """Take the permit without waiting, as `acquire` does. None where one would have to wait."""
        if host in self._lines:
            return None
        wait = self._wait(host, state, key, foreign)
        if wait > 0:
            return None
        return wait == 0 and self._hold(host, state)

    async def acquire(
        self, host: str, state: HostState | None, key: int = 0, again: bool = False, foreign: bool = False
    ) -> bool:
        """Wait for the permit; False when this agent must not load from the host now, or need not.

        `state` and `key` are those of a request of the queue, `state` is None for what bypasses it. `again`: before all
        others; to be called in the turn in which the permit was released. `foreign`: where another agent owns the host,
        a foreign permit will do.
        """
        taken = self.try_acquire(host, state, key, foreign)
        if taken is not None:
            return taken
        line = self._lines.setdefault(host, OrderedDict())
        place = _Place(state is not None)
        line[place] = None
        if again:
            line.move_to_end(place, last=False)
        try:
            while True:
                first = next(iter(line)) is place
                wait = self._wait(host, state, key, foreign)
                if wait < 0:
                    return False
                if wait == 0 and first:
                    return self._hold(host, state)
                place.turn.clear()
                await wait_briefly(place.turn, wait if first and wait < math.inf else None)
        finally:
            del line[place]
            if line:
                next(iter(line)).turn.set()
            else:
                del self._lines[host]

    def _wait(self, host: str, state: HostState | None, key: int, foreign: bool) -> float:
        """For how long (s) to wait at least, as far as is known; 0 where the permit may be taken now, `_DENIED`."""
        agent = self._agent
        if self.closed or agent.end.finished:
            return _DENIED
        if not agent.keeping.owns(host):
            return self._wait_for_foreign(host) if foreign and state is None else _DENIED
        if state is not None and (self._paused or host in self._paused_hosts or state.is_over(key)):
            return _DENIED
        if host in self._held and not self._has_room(host):
            return math.inf
        found = state or agent.frontier.find(host)
        known = found or SetState(host)
        next_at = known.next_at if state is not None else self._own_next_at(known)
        if host in self.foreign.met:
            next_at = max(next_at, self._since_foreign(known, found is not None))
        now = self._clock()
        if not agent.work.may_fetch(known, now):
            return math.inf
        wait = next_at - now
        if wait <= 0:
            return 0.0
        return _DENIED if state is not None and (wait > PATIENCE or self._rests(state)) else wait

    def _has_room(self, host: str) -> bool:
        """Whether a host with open loads may have one more."""
        return False

    def _wait_for_foreign(self, host: str) -> float:
        now = self._clock()
        if host in self._held or not self._agent.work.may_act(now):
            return math.inf
        return max(0.0, self.next_at(host) - now)

    def next_at(self, host: str) -> float:
        """The time before which politeness forbids the next load of this host that bypasses the scheduler, as far as is
        known here. Of a host of another agent the copy that may be kept here tells its delay."""
        frontier = self._agent.frontier
        state = frontier.find(host)
        if state is None:
            return self.foreign.next_at(host, self.foreign.slowed(host, frontier.delay))
        met = self.foreign.next_at(host, max(frontier.delay, state.pause))
        if not self._agent.keeping.owns(host):
            return met
        return max(self._own_next_at(state), met)

    def _own_next_at(self, state: HostState) -> float:
        """The time before which politeness forbids the next load of an own host, as far as it is known by its state, or
        by its loads while its pages rest."""
        if state.next_at > self._clock() and self._rests(state):
            return self._free_at.get(state.host, LONG_AGO)
        return state.next_at

    def not_before(self, host: str, seconds: float) -> None:
        """No load of this host starts within so many seconds, also where its pages rest for longer."""
        until = self._clock() + seconds
        self._free_at[host] = max(until, self._free_at.pop(host, until))
        if len(self._free_at) > MOST_FREE:
            self._free_at.popitem(last=False)

    def _since_foreign(self, state: HostState, held: bool) -> float:
        """`next_at` of an own host. What was met there while it was another agent's goes into its state, where that is
        `held` by the frontier: so the queue follows it as well."""
        host = state.host
        least = self.foreign.slowed(host, self._agent.frontier.delay)
        next_at = self.next_at(host) if held else self.foreign.next_at(host, least)
        if held:
            self.foreign.forget_host(host)
            if next_at > state.next_at:
                self._agent.frontier.postpone(state, next_at)
        return next_at

    def _hold(self, host: str, state: HostState | None) -> bool:
        if state is not None:
            self._held[host] = (*self._held[host], None) if host in self._held else _OF_QUEUE
        elif self._agent.keeping.owns(host):
            state = self._agent.work.borrow(host)
            self._held[host] = (*self._held.get(host, ()), state)
        else:
            self._held[host] = (_Foreign(),)
        return True

    def is_foreign(self, host: str) -> bool:
        """Whether the permit of this host that is held now is a foreign one."""
        return host in self._held and isinstance(self._held[host][0], _Foreign)

    def count_held(self, host: str) -> int:
        """How many permits of this host are held."""
        return len(self._held.get(host, ()))

    def release(self, host: str, of_page: bool = False) -> bool:
        """A transfer has ended, that of a request of the queue (`of_page`) or another one; False when no permit was
        held."""
        if host not in self._held:
            return False
        held = self._held.pop(host)
        holder = held[0]
        if len(held) > 1:
            holder = next((one for one in held if (one is None) is of_page), holder)
            left = list(held)
            left.remove(holder)
            self._held[host] = (*left,)
        if isinstance(holder, _Foreign):
            self.foreign.load_ended(host)
        elif holder is not None:
            self._give_back(host, holder)
        found = self._agent.frontier.find(host)
        delay = max(self._agent.frontier.delay, 0.0 if found is None else found.pause)
        if delay:
            self.not_before(host, delay)
        if (line := self._lines.get(host)) is not None:
            next(iter(line)).turn.set()
        return True

    def _give_back(self, host: str, state: HostState) -> None:
        """A load beside the scheduler has ended: the delay of its host begins."""
        self._agent.work.give_back(state, self._clock())

    def look_again(self) -> None:
        """Something changed that permits depend on: let the waiters check again."""
        for line in self._lines.values():
            first = True
            for place in line:
                if first or place.of_page:
                    place.turn.set()
                first = False

    def pause(self, everything: bool, hosts: frozenset[str]) -> None:
        """Deny requests of the queue, of all hosts or of these, until it is said otherwise."""
        self._paused = everything
        self._paused_hosts = hosts
        self.look_again()

    def close(self) -> None:
        """Deny all that wait, and all that ask later."""
        self.closed = True
        self.look_again()


class SeveralPermits(Permits):
    """The permits of an agent that may have several loads of a host open at once. `limit` says how many, 0 for one
    after the other."""

    def __init__(
        self,
        agent: Agent,
        clock: Callable[[], float],
        foreign: ForeignHosts,
        rests: Callable[[HostState], bool],
        limit: Limit,
    ) -> None:
        super().__init__(agent, clock, foreign, rests)
        self._limit = limit

    def _has_room(self, host: str) -> bool:
        held = self._held[host]
        return len(held) < self._limit(host) and not isinstance(held[0], _Foreign)

    def _hold(self, host: str, state: HostState | None) -> bool:
        super()._hold(host, state)
        holder = state if state is not None else self._held[host][-1]
        if isinstance(holder, HostState) and self._limit(host):
            self._agent.frontier.defer(holder, self._clock())
        return True

    def _give_back(self, host: str, state: HostState) -> None:
        self._agent.work.give_back(state, None if self._limit(host) > 0 else self._clock())
