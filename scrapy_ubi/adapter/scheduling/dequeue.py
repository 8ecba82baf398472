"""Requests handed out to Scrapy, until it lets go of them; and what the node is told then.

Rules of this module:

* A request handed out is a visit of the node until Scrapy lets go of the request object, which is after the callback's
  whole output and its items have been taken. Then the visit has ended, or is put back where it was withdrawn.
* What became of it is noted in its flight on the way: a response or an error, then what its callback raised.
* What else looks at pages hears of them as an observer (`adapter.requests.observers`), before the node does: a page
  whose end an observer could not take is not done.
* Local requests come first, and are no visits.
* An entry that cannot be read, or lacks what could not travel, is a page that has failed; the next one is handed out.
* So is a page whose errback could not travel and would have been called.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.spidermiddlewares.httperror import HttpErrorMiddleware
from twisted.python.failure import Failure

from scrapy_ubi.adapter.downloads.gate import Gate, Withdrawn
from scrapy_ubi.adapter.process.garbage import GarbageTurns
from scrapy_ubi.adapter.requests.callbacks import errback_lost
from scrapy_ubi.adapter.requests.inflight import Flight
from scrapy_ubi.adapter.requests.observers import Observers
from scrapy_ubi.adapter.requests.page_outcome import reason_of, status_reason
from scrapy_ubi.adapter.requests.transfer_states import Transfer
from scrapy_ubi.adapter.requests.untravelled import CodecError
from scrapy_ubi.adapter.scheduling.hostless import Hostless
from scrapy_ubi.adapter.scheduling.kept_requests import KeptRequests
from scrapy_ubi.adapter.scheduling.link_decision import LinkDecision
from scrapy_ubi.adapter.scheduling.seeds import SeedTwins
from scrapy_ubi.adapter.scheduling.stat_buffer import StatBuffer
from scrapy_ubi.agent import Visit

logger = logging.getLogger("scrapy_ubi.scheduler")  # people know what is said here by that name

MOST_PASSED = 100  # requests that need no load of their own, before others have their turn
MOST_TOLD = 20  # pages that could not travel and are errors in the log


class Dequeue:
    """Hands out requests for one scheduler."""

    def __init__(
        self,
        crawler: Crawler,
        spider: Spider,
        decision: LinkDecision,
        local: Hostless,
        kept: KeptRequests,
        gate: Gate,
        observers: Observers,
        stat_buffer: StatBuffer,
    ) -> None:
        self._crawler = crawler
        self._spider = spider
        self._node = decision.node
        self._codec = decision.codec
        self._flights = decision.flights
        self._local = local
        self._kept = kept
        self._gate = gate
        self._observers = observers
        self._stat_buffer = stat_buffer
        self._garbage = GarbageTurns()
        self._twins = SeedTwins(crawler, spider, decision.node, decision.seeds, stat_buffer, self._put_back)
        self._told = 0  # pages that failed as they could not travel

    def next_request(self) -> Request | None:
        """The next request that may be fetched now; None when there is none, though some may be pending."""
        if self._node.live.paused:
            return None
        for full in self._observers.full:
            if full():
                return None
        if (local := self._local.next_request()) is not None:
            return self._begin(Flight(local, None, local=True))
        passed = 0
        while passed < MOST_PASSED and (visit := self._node.next_visit()) is not None:
            request = self._kept.take_request(visit.entry.key) or self._decode(visit)
            if request is None:
                continue
            if not self._twins.settles(visit, request):
                return self._begin(Flight(request, visit.host, visit))
            passed += 1  # of a host that is free again at once: the engine is told to ask once more
        return None

    def _begin(self, flight: Flight) -> Request:
        """Hand a request out."""
        self._flights.add(flight)
        for begun in self._observers.begun:
            begun(flight)
        return flight.request

    def outcome(self, result: Response | Failure, request: Request) -> bool | Awaitable[None]:
        """A request has its response or error; True when the spider must not be told: it was not fetched at all, or an
        observer passes it over, which may take it until what is given has been awaited."""
        flight = self._flights.get(request)
        if flight is None:
            return False
        if isinstance(result, Failure):
            return flight.visit is not None and self._has_failed(flight, result.value)
        for answered in self._observers.answered:
            answered(flight, result)
        if flight.visit is None:
            return False
        if flight.transfer is Transfer.WITHDRAWN:
            flight.move(Transfer.ENDED)
        flight.status = result.status
        flight.failed = status_reason(result.status, request, self._spider, self._crawler.settings)
        if flight.failed is not None and self._crawler.get_spider_middleware(HttpErrorMiddleware) is None:
            flight.failed = None  # the user has switched it off: callbacks get whatever comes
        is_over: bool | Awaitable[None] = False
        for passes_over in self._observers.passes_over:
            if (over := passes_over(flight, result)) and is_over in (False, True):
                is_over = over
        return is_over

    def _has_failed(self, flight: Flight, error: BaseException | None) -> bool:
        """A page has no response. True when it was not fetched at all."""
        if isinstance(error, Withdrawn) and flight.transfer is not Transfer.WITHDRAWN:
            self._gate.take_out(flight)
        flight.failed = reason_of(error) if error is not None else None
        if flight.withdrawn:
            return True
        if error is not None:
            for failed in self._observers.failed:
                failed(flight, error)
        return False

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
        self._gate.release(flight)
        visit, withdrawn = flight.visit, flight.withdrawn
        for ended in self._observers.withdrawn if withdrawn else self._observers.ended:
            ended(flight)
        if flight.local:
            self._local.done()
        if visit is None:
            return
        if withdrawn:
            self._stat_buffer.count("ubi/scheduler/put_back")
            self._put_back(visit, request)
        else:
            if flight.failed is not None:
                flight.failed = self._lacking(request, flight.failed)
                self._stat_buffer.count(f"ubi/failed/{flight.failed}")
            self._node.end_visit(
                visit, failed=flight.failed, fetched=flight.fetched, status=flight.status, content=flight.content
            )
        self._twins.ended(flight, visit)

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
            self._node.end_visit(visit, failed=f"codec/{error.reason}", fetched=False)
            return None
