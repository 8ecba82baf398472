"""Iterations of hosts (DLC of the imbWBI crawler, 2017): so many requests of a host are taken, then it waits for all.

Rules of this module:

* An iteration of a host takes UBI_HOST_LOAD_TAKE requests, or what waits when its first one is taken, if that is less.
  None is taken of the host after that, until all have ended, callbacks and all: the *barrier*.
* A request that is to be fetched again belongs to its iteration. Those of a round are taken in a round of their own, in
  the order in which they were taken before, when all others have ended: however long each took, the order is the same.
* What pages of an iteration say of their own host is *held*, and so are their ends: links count in the order in which
  their pages were taken, each with the first of these, whichever page ended first. A page is not done before its links
  are known; after a crash it is fetched again.
* Requests of at most `hosts` hosts are out at once (TC); the others wait in line for the next that has none out.
* Nothing here waits by the clock or asks the disk: `barrier` is told, and calls `closed` when the host may go on.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import NamedTuple, Protocol

from scrapy_ubi.agent.work.visits import Visit, VisitEnd
from scrapy_ubi.policy.ranking import Ranker
from scrapy_ubi.protocol.host import Entry, HostState
from scrapy_ubi.settings import UbiSettings

MOST_LET_IN = 100  # hosts in line that are asked again at a look, where there are places
MOST_HELD = 100_000  # links of all hosts together; what is found beyond is queued as it is found


class HeldLink(NamedTuple):
    """A link that is queued at the barrier: the number of its page, and its own; the page, and what was found."""

    page_number: int
    number: int
    page: Visit
    entry: Entry


class Iteration:
    """One iteration of a host. `targets` of its present round are to be taken, `taken` have been, `out` of these have
    not ended. `numbers`: by key, when a page was taken first; `endings`, `held`: what waits for the barrier."""

    __slots__ = ("closing", "endings", "found", "held", "numbers", "out", "state", "taken", "targets")

    def __init__(self, state: HostState, targets: int) -> None:
        self.state = state
        self.targets = targets
        self.taken = self.out = self.found = 0
        self.numbers: dict[int, int] = {}
        self.endings: list[VisitEnd] = []
        self.held: dict[int, HeldLink] = {}
        self.closing = False

    def in_order(self, endings: list[VisitEnd]) -> list[VisitEnd]:
        """These, in the order in which their pages were taken."""
        return sorted(endings, key=lambda ending: self.numbers[ending.visit.entry.key])

    def links(self) -> list[HeldLink]:
        """What is held, in the order in which it counts."""
        return sorted(self.held.values(), key=lambda link: link[:2])


class AtBarrier(Protocol):
    """What becomes of iterations."""

    def again(self, endings: list[VisitEnd], /) -> None:
        """Put back these visits, in this order: they are taken next of their host."""

    def reached(self, iteration: Iteration, goes_on: bool, /) -> None:
        """An iteration is over. `goes_on`: another one of its host follows."""

    def wake(self, state: HostState, /) -> None:
        """This host may be asked for again."""

    def close_stalled(self) -> None:
        """Call `Iterations.close_stalled`."""


class Iterations:
    """The iterations of one agent's hosts, of `take` requests each, of `hosts` hosts at once. `barrier` is to be given
    before a request is taken, and `ranker`, that of UBI_RANK, if it is set."""

    barrier: AtBarrier
    ranker: Ranker | None = None

    def __init__(self, take: int, hosts: int) -> None:
        self._take = take
        self._most = max(1, hosts)
        self._open: dict[str, Iteration] = {}
        self._busy = 0  # hosts with requests out
        self._in_line: dict[HostState, None] = {}  # hosts that wait for one of these places
        self.held = 0

    @classmethod
    def from_settings(cls, settings: UbiSettings) -> Iterations | None:
        """None where UBI_HOST_ITERATE is off."""
        return cls(settings.host_load_take, settings.hosts_at_once) if settings.host_iterate else None

    def __len__(self) -> int:
        return len(self._open)

    # -- requests out, and back

    def may_take(self, state: HostState) -> bool:
        """Whether a request of this host may be taken now; else `barrier.wake` tells when it may be asked again."""
        iteration = self._open.get(state.host)
        if iteration is not None and iteration.closing and iteration.state is not state:
            del self._open[state.host]  # the host was forgotten while it was ranked, and has come again
            iteration = None
        if iteration is not None and (iteration.closing or iteration.taken >= iteration.targets):
            return False
        if (iteration is None or not iteration.out) and self._busy >= self._most:
            self._in_line[state] = None
            return False
        return True

    def taken(self, visit: Visit) -> None:
        """A request was taken."""
        iteration = self._open.get(visit.host)
        if iteration is None:
            iteration = Iteration(visit.state, min(self._take, visit.state.waiting + 1))
            self._open[visit.host] = iteration
        self._busy += not iteration.out
        iteration.taken += 1
        iteration.out += 1
        iteration.numbers.setdefault(visit.entry.key, len(iteration.numbers))

    def end_visit(self, ending: VisitEnd) -> None:
        """A visit has ended; its end counts at the barrier. One that was known when its turn came (a link to the page
        of a seed) was none of the requests that an iteration takes: whether it waits so long depends on start()."""
        iteration = self._open[ending.visit.host]
        iteration.endings.append(ending)
        iteration.taken -= not ending.fetched and ending.failed is None and not ending.status
        self._back(iteration)

    def put_back(self, visit: Visit) -> None:
        """A visit was not made: its request waits again, and is taken again before the barrier."""
        iteration = self._open[visit.host]
        iteration.taken -= 1
        self._back(iteration)

    def _back(self, iteration: Iteration) -> None:
        iteration.out -= 1
        if not iteration.out:
            self._busy -= 1
            self._let_in(2 * (self._most - self._busy))
        self._look(iteration)

    def _let_in(self, most: int) -> None:
        """Ask so many of the hosts in line again: more than there are places, as some may have to wait for others."""
        for state in [*islice(self._in_line, most)]:
            del self._in_line[state]
            self.barrier.wake(state)

    # -- links

    def holds(self, page: Visit) -> bool:
        """Whether what this page says of its host is held, and there is room."""
        return page.host in self._open and not page.closed and self.held < MOST_HELD

    def hold(self, page: Visit, entry: Entry) -> bool:
        """Hold a link of a page to its own host until the barrier; False where it is held already."""
        iteration = self._open[page.host]
        number = iteration.numbers[page.entry.key]
        before = iteration.held.get(entry.key)
        if before is not None and before.page_number <= number:
            return False
        iteration.found += 1
        self.held += before is None
        iteration.held[entry.key] = HeldLink(number, iteration.found, page, entry)
        return before is None or before.entry.request != entry.request  # one that differs may have to be kept here

    # -- the barrier

    def passed(self, state: HostState) -> None:
        """Hear that a request of this host was done without a visit: its iteration may end."""
        if (iteration := self._open.get(state.host)) is not None:
            self._look(iteration)

    def close_stalled(self, goes_on: Callable[[HostState], bool]) -> None:
        """Close the iterations that nothing else would close: what they wait for was done elsewhere, or the host is not
        fetched here any more."""
        for iteration in [*self._open.values()]:
            self._look(iteration, goes_on(iteration.state))
        if self._busy < self._most:
            self._let_in(MOST_LET_IN)

    def close_all(self) -> None:
        """This agent takes no further requests."""
        self.close_stalled(lambda state: False)

    def _look(self, iteration: Iteration, goes_on: bool = True) -> None:
        if iteration.out or iteration.closing:
            return
        if goes_on and iteration.taken < iteration.targets and iteration.state.waiting:
            return
        retries = [ending for ending in iteration.endings if ending.visit.again is not None]
        if retries:
            iteration.endings = [ending for ending in iteration.endings if ending.visit.again is None]
            iteration.targets, iteration.taken = len(retries), 0
            self.barrier.again(iteration.in_order(retries))
            if goes_on:
                self.barrier.wake(iteration.state)
                return
        iteration.closing = True
        self.held -= len(iteration.held)
        self.barrier.reached(iteration, goes_on)

    def closed(self, iteration: Iteration) -> None:
        """Hear that the links of an iteration are queued, and its pages done: the host goes on."""
        if self._open.get(iteration.state.host) is iteration:
            del self._open[iteration.state.host]
        self.barrier.wake(iteration.state)
