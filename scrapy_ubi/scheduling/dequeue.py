"""Requests handed out to Scrapy, until it lets go of them; and what the node is told then.

Rules of this module:

* A request handed out is a visit of the node until Scrapy lets go of the request object, which is after the callback's
  whole output and its items have been taken. Then the visit has ended, or is put back where it was withdrawn.
* What became of it is noted in its flight on the way: a response or an error, then what its callback raised.
* Local requests come first, and are no visits.
* A link that is the same request as a seed of its page is done without a load (`seeds`).
* An entry that cannot be read, or lacks what could not travel, is a page that has failed; the next one is handed out.
* So is a page whose errback could not travel and would have been called.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.spidermiddlewares.depth import DepthMiddleware
from scrapy.spidermiddlewares.httperror import HttpErrorMiddleware
from twisted.python.failure import Failure

from scrapy_ubi.downloads.gate import Gate, Withdrawn
from scrapy_ubi.downloads.page_room import PageRoom
from scrapy_ubi.node import Visit
from scrapy_ubi.node.hosts.learned_forms import CUT, content_of
from scrapy_ubi.politeness.robots.sitemaps import Sitemaps
from scrapy_ubi.process.error_signals import ErrorWatch
from scrapy_ubi.process.garbage import GarbageTurns
from scrapy_ubi.requests.callbacks import errback_lost
from scrapy_ubi.requests.inflight import Flight
from scrapy_ubi.requests.page_outcome import reason_of, status_reason
from scrapy_ubi.requests.transfer_states import Transfer
from scrapy_ubi.requests.untravelled import CodecError
from scrapy_ubi.scheduling.hostless import Hostless
from scrapy_ubi.scheduling.kept_requests import KeptRequests
from scrapy_ubi.scheduling.link_decision import LinkDecision
from scrapy_ubi.scheduling.ranked_pages import RankedPages
from scrapy_ubi.scheduling.sessions import Sessions
from scrapy_ubi.scheduling.stat_buffer import StatBuffer
from scrapy_ubi.scheduling.visited_pages import VisitedPages
from scrapy_ubi.scrapy_private.scraper_bound import raise_bound

if TYPE_CHECKING:  # a crawl without stores does not load them
    from scrapy_ubi.outputs.duplicates.judge import Judge
    from scrapy_ubi.outputs.page_outputs import PageOutputs

logger = logging.getLogger("scrapy_ubi.scheduler")  # people know what is said here by that name

MOST_PASSED = 100  # links that are seeds, before others have their turn
MOST_TOLD = 20  # pages that could not travel and are errors in the log


class PageReaders(NamedTuple):
    """The parts that read something else from each page: its errors, the sitemap that it is, the cookies it sets, and
    what it leaves behind."""

    errors: ErrorWatch
    sitemaps: Sitemaps
    sessions: Sessions
    outputs: PageOutputs | None
    judge: Judge | None = None  # of duplicates
    ranked: RankedPages | None = None  # for a ranker


class Dequeue:
    """Hands out requests for one scheduler."""

    def __init__(
        self,
        crawler: Crawler,
        spider: Spider,
        tools: LinkDecision,
        local: Hostless,
        kept: KeptRequests,
        gate: Gate,
        readers: PageReaders,
        stat_buffer: StatBuffer,
    ) -> None:
        self._garbage = GarbageTurns()
        self._crawler, self._settings, self._spider = crawler, crawler.settings, spider
        self._node, self._codec, self._flights = tools.node, tools.codec, tools.flights
        self._reach, self._seeds = tools.reach, tools.seeds
        self._local, self._kept, self._gate, self._stat_buffer = local, kept, gate, stat_buffer
        self._errors, self._sitemaps, self._sessions, self._outputs, self._judge, self._ranked = readers
        self.page_room = PageRoom(
            tools.settings.memory_mb << 20, tools.flights, stat_buffer.count, partial(raise_bound, crawler)
        )
        self._visited = VisitedPages.of(crawler, tools.settings, tools.flights, stat_buffer.count)
        self._links: dict[int, Flight] = {}  # under way that may be the same as a seed, by the seed's key
        self._told = 0  # pages that failed as they could not travel
        # The URLs of a sitemap begin at depth 0 as well.
        self._depth_counted = crawler.get_spider_middleware(DepthMiddleware) is not None

    def next(self) -> Request | None:
        """The next request that may be fetched now; None when there is none, though some may be pending."""
        if self._node.live.paused or self.page_room.full or (self._outputs is not None and self._outputs.full):
            return None
        if (local := self._local.next()) is not None:
            flight = self._flights.add(Flight(local, None, local=True))
            if self._outputs is not None:
                self._outputs.begin(flight)
            return local
        passed = 0
        while passed < MOST_PASSED and (visit := self._node.next()) is not None:
            request = self._kept.take(visit.entry.key) or self._decode(visit)
            if request is None:
                continue
            as_seed = self._seeds.key_beside(visit, request) if visit.before is None else None
            if self._waits_for_link(visit, request) or self._is_done_with(as_seed, visit, request):
                passed += 1  # of a host that is free again at once: the engine is told to ask once more
            else:
                self._sessions.restore(visit)
                if self._visited is not None:
                    self._visited.begin(visit, request)
                if not visit.entry.depth and self._depth_counted and not self._sitemaps.most:
                    self._look_at_seed(request)
                flight = self._flights.add(Flight(request, visit.host, visit, as_seed=as_seed))
                if as_seed is not None:
                    self._links[as_seed] = flight
                if self._outputs is not None:
                    self._outputs.begin(flight)
                if self._ranked is not None:
                    self._ranked.begin(flight)
                return request
        return None

    def _waits_for_link(self, visit: Visit, request: Request) -> bool:
        """Whether this seed is the same request as a link that is under way: what becomes of it is seen then."""
        flight = self._links.get(visit.entry.key)
        if flight is None:
            return False
        flight.seed = visit, request
        return True

    def _is_done_with(self, as_seed: int | None, visit: Visit, request: Request) -> bool:
        """Whether this is the same request as a seed that is known, or a seed whose page was fetched by such a link: it
        is done then."""
        known = as_seed is not None and visit.state.is_known(as_seed)
        if not known and not self._seeds.is_fetched(visit.entry.key):
            return False
        self._pass(visit, request)
        return True

    def _pass(self, visit: Visit, request: Request) -> None:
        """A request that was handed out is done without a load: a duplicate, of which listeners hear."""
        self._stat_buffer.sums["ubi/scheduler/duplicates"] += 1
        self._crawler.signals.send_catch_log(signals.request_dropped, request=request, spider=self._spider)
        if (place := self._seeds.spelled(request)) is not None:
            self._node.joins.join(request.url, place.normal, place.steps)
        self._node.limits.passed(visit.state)
        self._node.ended(visit, fetched=False)

    def _look_at_seed(self, request: Request) -> None:
        """A start request that another agent has met, and this one perhaps not: no link has depth 0, but where a
        redirect leads from a seed it has, and where a spider resets it, which is written down."""
        if "depth" not in request.meta and "redirect_urls" not in request.meta:
            self._reach.seed(request.url)

    def outcome(self, result: Response | Failure, request: Request) -> bool:
        """A request has its response or error; True when the spider must not be told: it was not fetched at all."""
        flight = self._flights.get(request)
        if self._outputs is not None and flight is not None and isinstance(result, Response):
            self._outputs.answered(flight, result)
        if flight is None or flight.visit is None:
            return False
        if isinstance(result, Failure):
            if isinstance(result.value, Withdrawn) and flight.transfer is not Transfer.WITHDRAWN:
                self._gate.take_out(flight)
            flight.failed = reason_of(result.value) if result.value is not None else None
            if result.value is not None and not flight.withdrawn:
                self._errors.failed(request, result.value)
            return flight.withdrawn
        if flight.transfer is Transfer.WITHDRAWN:
            flight.move(Transfer.ENDED)
        flight.status = result.status
        self.page_room.unpacked(flight, result)
        if self._node.learner is not None and not any(flag in result.flags for flag in CUT):
            flight.content = content_of(result.status, result.body)
        flight.failed = status_reason(result.status, request, self._spider, self._settings)
        if flight.failed is not None and self._crawler.get_spider_middleware(HttpErrorMiddleware) is None:
            flight.failed = None  # the user has switched it off: callbacks get whatever comes
        skipped = self._judge is not None and flight.failed is None and self._judge.judge(flight, result)
        unchanged = self._visited is not None and self._visited.judge(flight, result)
        return unchanged or self._sitemaps.took(result, request) or skipped

    def spider_error(self, failure: Failure, response: Response | Failure | None) -> None:
        """A callback has raised."""
        flight = self._flights.get(getattr(response, "request", None))
        if flight is not None and failure.value is not None:
            flight.failed = f"callback/{type(failure.value).__name__}"

    def removed(self, request: Request) -> None:
        """Scrapy lets go of a request: everything that follows from it was taken."""
        self._stat_buffer.page_done()
        self._garbage.step_done()
        flight = self._flights.remove(request)
        if flight is None:
            return
        self.page_room.left(flight)
        self._gate.release(flight)
        if self._outputs is not None:
            self._outputs.ended(flight)
        if flight.local:
            self._local.done()
        elif flight.visit is not None and flight.withdrawn:
            self._stat_buffer.count("ubi/scheduler/put_back")
            self._put_back(flight.visit, request)
        elif flight.visit is not None:
            self._errors.page_done()
            if flight.sets_cookies or request.cookies:
                self._sessions.keep(request, flight.visit.state)
            if flight.failed is not None:
                flight.failed = self._lacking(request, flight.failed)
                self._stat_buffer.count(f"ubi/failed/{flight.failed}")
            if self._ranked is not None:
                self._ranked.ended(flight, flight.visit)
            self._node.ended(
                flight.visit,
                failed=flight.failed,
                fetched=flight.fetched,
                status=flight.status,
                content=flight.content,
            )
        if flight.as_seed is not None and flight.visit is not None:
            self._link_over(flight, flight.visit, flight.as_seed)

    def _link_over(self, flight: Flight, visit: Visit, as_seed: int) -> None:
        """A link's page is over. A seed that is the same request may be handed out, may wait, or may still come."""
        self._links.pop(as_seed, None)
        fetched = flight.fetched and flight.failed is None and not flight.withdrawn and visit.again is None
        if flight.seed is not None:
            if fetched:
                self._pass(*flight.seed)
            else:
                self._put_back(*flight.seed)
        elif fetched and (self._seeds.may_come or visit.state.is_known(as_seed)):
            self._seeds.fetched(as_seed)

    def _put_back(self, visit: Visit, request: Request) -> None:
        encoded = self._codec.encode(request)
        if encoded.losses:
            self._kept.add(visit.entry.key, request)
        elif encoded.objects:
            self._kept.add_holder(visit.entry.key, request)
        self._node.put_back(visit)

    def _lacking(self, request: Request, failed: str) -> str:
        """Why a page failed: its own reason, or that it lacks its errback, which would have been called."""
        if request.errback is not errback_lost or failed.startswith("callback/"):
            return failed
        self._say_lost("The errback of %s could not travel to this agent, and was not called: %s", request.url, failed)
        return "codec/errback"

    def _say_lost(self, sentence: str, *arguments: object) -> None:
        """Log that a page failed as it could not travel; of many the first ones, as stats and report name all."""
        self._told += 1
        logger.log(logging.ERROR if self._told <= MOST_TOLD else logging.DEBUG, f"{sentence}.", *arguments)

    def _decode(self, visit: Visit) -> Request | None:
        try:
            return self._codec.decode(visit.entry)
        except CodecError as error:
            self._say_lost("%s", error)
            self._stat_buffer.count(f"ubi/failed/codec/{error.reason}")
            self._node.ended(visit, failed=f"codec/{error.reason}", fetched=False)
            return None
