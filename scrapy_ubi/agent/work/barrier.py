"""What is done at the end of an iteration of a host: its links are queued, its pages done, and its queue is ranked.

Rules of this module:

* In this order: links, in the order in which their pages were taken; the ends of these pages; then the ranker is told
  of each, and asked once.
* A request's score becomes its priority: `RANKED` more than the score, rounded and cut to `MOST_SCORE`. So what no
  ranking has seen, whose priority is the spider's, comes behind. Links of the iteration come before all, so that the
  ranking, which looks at the first rows of the queue, sees them.
* A ranker of the user's that fails leaves the queue in its order: that is noted, and said once.
* Without a ranker, links keep the priorities of the spider.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from math import isfinite

from scrapy_ubi.agent.crawl.crawl import Crawl
from scrapy_ubi.agent.hosts.crawl_limits import CrawlLimits
from scrapy_ubi.agent.hosts.host_limits import HostLimits
from scrapy_ubi.agent.hosts.host_times import HostTimes
from scrapy_ubi.agent.work.discover import Discoverer
from scrapy_ubi.agent.work.engine_wakeup import EngineWakeup
from scrapy_ubi.agent.work.iterations import Iteration, Iterations
from scrapy_ubi.agent.work.link_verdict import Verdict
from scrapy_ubi.agent.work.visits import Visit, VisitEnd, Visits
from scrapy_ubi.frontier.host_loads import Limit
from scrapy_ubi.protocol.host import Entry, HostState
from scrapy_ubi.urls.scores import MOST_SCORE

logger = logging.getLogger("scrapy_ubi")

RANKED = MOST_SCORE + 1  # the priority of the score 0
UNRANKED = 3 * MOST_SCORE  # that of a link until it is ranked
RETRIED = 10**11  # that of what is fetched again in its iteration: it comes next


class IteratedVisits(Visits):
    """Visits whose ends count at the barrier."""

    def __init__(
        self, iterations: Iterations, crawl: Crawl, clock: Callable[[], float], limit: Limit, times: HostTimes
    ) -> None:
        super().__init__(crawl, clock, limit, times)
        self._iterations = iterations

    def begin_visit(self, state: HostState, entry: Entry, now: float) -> Visit:
        """This request is handed out."""
        visit = super().begin_visit(state, entry, now)
        self._iterations.taken(visit)
        return visit

    def end(self, visit: Visit, failed: str | None, fetched: bool, status: int, content: int | None) -> bool:
        """The visit is over (see `Node.end_visit`); False when it was before."""
        if visit.closed:
            return False
        self._close(visit, fetched)
        self._iterations.end_visit(VisitEnd(visit, failed, fetched, status, content))
        return True

    def put_back(self, visit: Visit) -> bool:
        """The visit was not made: its request waits again; False when it was over before."""
        over = super().put_back(visit)
        if over:
            self._iterations.put_back(visit)
        return over

    def settle_end(self, ending: VisitEnd) -> None:
        """The end of a visit counts."""
        ending.visit.closed = False
        super().end(*ending)

    def settle_all(self) -> None:
        """No request is handed out from now on."""
        self._iterations.close_all()


class IteratedDiscoverer(Discoverer):
    """Holds what pages say of their own hosts."""

    def __init__(
        self,
        iterations: Iterations,
        crawl: Crawl,
        crawl_limits: CrawlLimits,
        limits: HostLimits,
        waker: EngineWakeup,
        on_news: Callable[[], None],
    ) -> None:
        super().__init__(crawl, crawl_limits, limits, waker, on_news)
        self._iterations = iterations

    def discover(self, host: str, entry: Entry, seed: bool = False, page: Visit | None = None) -> Verdict:
        """A URL was found, by `start()` (`seed`) or on a page."""
        if page is None or not self._is_held(host, entry, page):
            return super().discover(host, entry, seed, page)
        return Verdict.FOUND if self._iterations.hold(page, entry) else Verdict.KNOWN

    def discover_all(self, host: str, entries: Sequence[Entry], page: Visit) -> Sequence[tuple[Entry, Verdict]]:
        """Take in all URLs that a page says of one host, with one depth. Return what was no news, and why."""
        if not self._is_held(host, entries[0], page):
            return super().discover_all(host, entries, page)
        return [(entry, Verdict.KNOWN) for entry in entries if not self._iterations.hold(page, entry)]

    def _is_held(self, host: str, entry: Entry, page: Visit) -> bool:
        return host == page.host and self._iterations.holds(page) and not self._crawl_limits.refuses_depth(entry.depth)


MakeDiscoverer = Callable[[Crawl, CrawlLimits, HostLimits, EngineWakeup, Callable[[], None]], Discoverer]
MakeVisits = Callable[[Crawl, Callable[[], float], Limit, HostTimes], Visits]


def made_by(iterations: Iterations | None) -> tuple[MakeDiscoverer, MakeVisits]:
    """What makes a discoverer and visits, whose work counts at the barriers of these, if there are any."""
    if iterations is None:
        return Discoverer, Visits
    return partial(IteratedDiscoverer, iterations), partial(IteratedVisits, iterations)


class Barrier:
    """Ends `iterations` for one agent. `settle` lets the end of a visit count; `note` tells the report what happened,
    at which host."""

    def __init__(
        self,
        crawl: Crawl,
        crawl_limits: CrawlLimits,
        iterations: Iterations,
        waker: EngineWakeup,
        settle: Callable[[VisitEnd], None],
        note: Callable[[str, str], object],
    ) -> None:
        self._crawl = crawl
        self._iterations = iterations
        self._waker = waker
        self._crawl_limits = crawl_limits
        self._settle = settle
        self._note = note
        self._said = False

    def again(self, endings: list[VisitEnd]) -> None:
        """These are fetched again, before all else of their host."""
        for ending in endings:
            visit = ending.visit
            if visit.again is not None:
                visit.again = visit.again._replace(priority=RETRIED)
            self._settle(ending)

    def close_stalled(self) -> None:
        """Close the iterations that nothing else would close."""
        self._iterations.close_stalled(self._goes_on)

    def _goes_on(self, state: HostState) -> bool:
        """Whether requests of a host may still be taken here, now or later."""
        agent, pages = self._crawl.agent, self._crawl.tally.pages
        full = self._crawl_limits.full(pages + agent.work.out)
        return agent.keeping.owns(state.host) and not (agent.work.stopped or full)

    def wake(self, state: HostState) -> None:
        """This host may be asked for again."""
        if self._crawl.frontier.find(state.host) is state:
            self._crawl.frontier.look_at(state)
        self._waker.soon(_nothing)

    def reached(self, iteration: Iteration, goes_on: bool) -> None:
        """All requests of an iteration have ended."""
        closed, state = self._iterations.closed, iteration.state
        ranks = goes_on and self._iterations.ranker is not None and self._goes_on(state)
        self._discover(iteration, UNRANKED if ranks else None)
        endings = iteration.in_order(iteration.endings)
        for ending in endings:
            self._settle(ending)
        if not ranks or not self._tell(state.host, endings):
            closed(iteration)
            return
        if not state.waiting or self._crawl.frontier.find(state.host) is not state:
            closed(iteration)
            return
        self._crawl.frontier.reorder(
            state, lambda entries: self._priorities(state.host, entries), lambda: closed(iteration)
        )

    def _discover(self, iteration: Iteration, priority: int | None) -> None:
        """Queue the links of an iteration."""
        host, discovery = iteration.state.host, self._crawl.agent.discovery
        for _, links in groupby(iteration.links(), key=lambda link: link.page_number):
            found = [*links]
            entries = [link.entry for link in found]
            if priority is not None:
                entries = [entry._replace(priority=priority) for entry in entries]
            discovery.discover_all(host, entries, found[0].page.outlinks)

    def _tell(self, host: str, endings: Sequence[VisitEnd]) -> bool:
        """Tell the ranker of the pages. Return whether it has heard of all."""
        ranker = self._iterations.ranker
        assert ranker is not None
        try:
            for ending in endings:
                if ending.visit.page is not None:
                    ranker.page(host, ending.visit.page)
        except Exception as error:  # noqa: BLE001 - the code of users may raise anything
            self._failed(host, "raised", error)
            return False
        return True

    def _priorities(self, host: str, entries: Sequence[Entry]) -> list[int] | None:
        """What the ranker says of these, None where that does not hold."""
        ranker = self._iterations.ranker
        assert ranker is not None
        try:
            scores = [float(score) for score in ranker.scores(host, entries)]
        except Exception as error:  # noqa: BLE001 - likewise
            self._failed(host, "raised", error)
            return None
        if len(scores) != len(entries) or not all(map(isfinite, scores)):
            self._failed(host, "answer", ValueError("the answer is not one finite number for each candidate"))
            return None
        return [RANKED + round(max(-MOST_SCORE, min(score, MOST_SCORE))) for score in scores]

    def _failed(self, host: str, why: str, error: Exception) -> None:
        self._note(f"rank/{why}", host)
        if not self._said:
            self._said = True
            logger.error(
                "The ranker of UBI_RANK failed at %s: its queue stays in its order. (Shown once; the report counts "
                "rank/%s.)",
                host,
                why,
                exc_info=error,
            )


def _nothing() -> None:
    """Nothing is to be done before the waker looks."""
