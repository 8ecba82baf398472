"""The requests of one agent as Scrapy's side takes them: the next one, and how each ends.

Rules of this module:

* All of it touches memory only.
* Nothing is handed out while people have paused the crawl, its mail is choked, a limit of the crawl is reached, or the
  disk has less room than people want.
* What may have made a host ready arms the waker.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from scrapy_ubi.agent.crawl.crawl import Crawl
from scrapy_ubi.agent.hosts.crawl_limits import CrawlLimits
from scrapy_ubi.agent.steering.runtime import RuntimeSettings
from scrapy_ubi.agent.work.engine_wakeup import EngineWakeup
from scrapy_ubi.agent.work.next_request import NextRequest
from scrapy_ubi.agent.work.visits import Visit, Visits


class Mail(Protocol):
    """The mail of the agent (`mail.exchange_loop.ExchangeLoop`)."""

    @property
    def choked(self) -> bool:
        """Whether so much waits to leave that nothing should be added."""

    def turn(self, now: float, /) -> None:
        """Give and take mail, when there is some."""


class Handout:
    """Hands out the requests of one agent. `check_limits` looks, at a time (s), whether the crawl has reached a
    limit."""

    def __init__(
        self,
        crawl: Crawl,
        choice: NextRequest,
        visits: Visits,
        crawl_limits: CrawlLimits,
        live: RuntimeSettings,
        mail: Mail,
        check_limits: Callable[[float], object],
        waker: EngineWakeup,
        clock: Callable[[], float],
    ) -> None:
        self._crawl = crawl
        self._choice = choice
        self._visits = visits
        self._crawl_limits = crawl_limits
        self._live = live
        self._mail = mail
        self._check_limits = check_limits
        self._waker = waker
        self._clock = clock

    def next_visit(self) -> Visit | None:
        """Return the next request to fetch; None when none may be fetched now, even though some may be pending."""
        now = self._clock()
        self._mail.turn(now)
        self._crawl_limits.begun = True
        self._check_limits(now)
        waits = self._live.paused or self._mail.choked or self._crawl_limits.low_disk
        waits = waits or self._crawl_limits.full(self._crawl.tally.pages + self._crawl.agent.work.out)
        found = None if waits else self._choice.find_next(now)
        self._choice.read_ahead(now)
        if found is None:
            self._waker.arm(wake=False)
            return None
        return self._visits.begin_visit(*found, now)

    def end_visit(self, visit: Visit, failed: str | None, fetched: bool, status: int, content: int | None) -> None:
        """Hear that the visit is over (see `Node.end_visit`)."""
        if self._visits.end(visit, failed, fetched, status, content):
            self._mail.turn(self._clock())
            self._waker.arm()

    def put_back(self, visit: Visit) -> None:
        """Let the request of a visit wait again that was not made (fence, lost host, shutdown)."""
        if self._visits.put_back(visit):
            self._waker.arm()

    def under_way(self) -> list[Visit]:
        """Return the visits that have not ended."""
        return self._visits.under_way()

    def close(self) -> None:
        """Put back all that is under way: nothing is handed out from now on."""
        for visit in self._visits.under_way():
            self.put_back(visit)
        self._visits.settle_all()
