"""Requests that were handed out: from the moment one is until its page is done, or waits again.

Rules of this module:

* A request is handed out as a `Visit`, an identity object, and ends exactly once: `end` or `put_back`; whatever is said
  of it later counts for nothing.
* Its host is free once, when its transfer has ended; that comes before the end of the visit, or with it. A transfer
  that is made once more has its end, too: from then on the delay counts again, unless it counts from starts (`limit`).
* What else follows visits (turns of addresses, learned forms) is in the lists `on_begun`, `on_freed`, `on_ended` and
  `on_put_back`, where its feature is on: it is asked nothing, and a list that is empty costs nothing.
* What a page has taught is told with its done mark only when no request came from nowhere meanwhile: else any page that
  was out may have caused that one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from scrapy_ubi.agent.crawl.crawl import Crawl
from scrapy_ubi.agent.crawl.revisits import PageSeen
from scrapy_ubi.agent.hosts.host_times import HostTimes
from scrapy_ubi.frontier.host_loads import Limit
from scrapy_ubi.policy.ranking import Page
from scrapy_ubi.protocol.done_mark_delivery import Outlinks
from scrapy_ubi.protocol.host import Entry, HostState, VisitRow


class Visit:
    """One request handed out. `entry` is what to fetch; `host` its partition key."""

    __slots__ = (
        "again", "before", "begun", "closed", "entry", "freed", "gave_items", "host", "outlinks", "page", "seen",
        "state", "strays",
    )  # fmt: skip

    def __init__(self, state: HostState, entry: Entry, strays: int, begun: float = 0.0) -> None:
        self.state = state
        self.begun = begun  # when it was handed out (s, the agent's clock)
        self.before: VisitRow | None = state.visits.out.get(entry.key)  # of the visit before, where there was one
        self.seen: PageSeen | None = None  # what of the page is compared, where it may be visited again
        self.gave_items = False
        self.outlinks: Outlinks = []  # what its page has taught
        self.strays = strays  # how many requests had come from nowhere when it began
        self.host = state.host
        self.entry = entry
        self.freed = False
        self.closed = False
        self.again: Entry | None = None
        self.page: Page | None = None  # as a ranker is told of it, where there is one

    def __repr__(self) -> str:
        return f"<Visit {self.entry.url}>"


class VisitEnd(NamedTuple):
    """How a visit ended: the arguments of `Visits.end`."""

    visit: Visit
    failed: str | None
    fetched: bool
    status: int
    content: int | None


class Visits:
    """The visits of one agent. The lists say who hears of them: `on_begun` (host, now), `on_freed` (host, now, the
    delay of the host in s); of first visits alone `on_ended` (with the content of the page, None where there is none to
    be compared), `on_put_back`."""

    def __init__(
        self,
        crawl: Crawl,
        clock: Callable[[], float],
        limit: Limit,
        times: HostTimes,
    ) -> None:
        self._crawl = crawl
        self._clock = clock
        self._limit = limit
        self._times = times
        self._under_way: set[Visit] = set()
        self.on_begun: list[Callable[[str, float], object]] = []
        self.on_freed: list[Callable[[str, float, float], object]] = []
        self.on_ended: list[Callable[[HostState, Entry, int | None], object]] = []
        self.on_put_back: list[Callable[[Entry], object]] = []

    def _has_several(self, host: str) -> bool:
        """Whether several loads of this host may be open at once."""
        return self._limit(host) > 0

    def under_way(self) -> list[Visit]:
        """Those that have not ended."""
        return list(self._under_way)

    def begin_visit(self, state: HostState, entry: Entry, now: float) -> Visit:
        """This request is handed out."""
        visit = Visit(state, entry, self._crawl.tally.strays, now)
        self._under_way.add(visit)
        for begun in self.on_begun:
            begun(visit.host, now)
        return visit

    def end(self, visit: Visit, failed: str | None, fetched: bool, status: int, content: int | None) -> bool:
        """The visit is over (see `Node.end_visit`); False when it was before."""
        if visit.closed:
            return False
        self._close(visit, fetched)
        crawl, state, entry = self._crawl, visit.state, visit.entry
        if fetched:
            crawl.tally.pages += 1
        if visit.again is not None:
            self._wait_again(visit)
            return True
        row = crawl.recrawl.row(visit, failed, fetched)
        if failed is not None and visit.before is None:
            crawl.fail(visit.host, entry, failed)
        crawl.agent.work.ended(state, entry.key, visit.outlinks if visit.strays == crawl.tally.strays else None, row)
        crawl.frontier.note_status(state, entry.key, status)
        if visit.before is None:
            for ended in self.on_ended:
                ended(state, entry, content)
        return True

    def put_back(self, visit: Visit) -> bool:
        """The visit was not made: its request waits again; False when it was over before."""
        if visit.closed:
            return False
        self._close(visit, loaded=True)
        self._wait_again(visit)
        return True

    def settle_end(self, ending: VisitEnd) -> None:
        """The end of a visit counts that was held until now; here none is."""

    def settle_all(self) -> None:
        """No request is handed out from now on: what an end waits for does not come."""

    def _wait_again(self, visit: Visit) -> None:
        self._crawl.agent.work.put_back(visit.state, visit.entry.key, visit.again)
        if visit.before is None:
            for put_back in self.on_put_back:
                put_back(visit.entry)

    def _close(self, visit: Visit, loaded: bool) -> None:
        visit.closed = True
        self._under_way.discard(visit)
        if not visit.freed:
            self.free(visit, loaded)

    def defer(self, visit: Visit) -> None:
        """A transfer has ended and is made again: the host stays with the visit, and the delay counts from now on."""
        if self._crawl.frontier.find(visit.host) is visit.state and not self._has_several(visit.host):
            self._crawl.frontier.defer(visit.state, self._clock())

    def free(self, visit: Visit, loaded: bool = True) -> None:
        """The host is free, after its delay; at once where nothing of it was loaded (robots.txt forbids it, say)."""
        agent, frontier, state = self._crawl.agent, self._crawl.frontier, visit.state
        before, now = state.next_at, self._clock()
        if visit.freed:
            self.defer(visit)
            return
        visit.freed = True
        agent.work.freed(state, now)
        if loaded:
            self._times.loaded(visit.host, now - visit.begun)
        for freed in self.on_freed:
            freed(visit.host, now, max(frontier.delay, state.pause) if loaded else 0.0)
        if not loaded and frontier.find(visit.host) is state:
            frontier.hasten(state, before)
