"""Where a running crawl's unanticipated errors show: the signals of Scrapy that tell the error log of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.http import Response
from twisted.python.failure import Failure

from scrapy_ubi.adapter.process.error_log import NAME, Burst, ErrorLog, is_anticipated
from scrapy_ubi.adapter.requests.inflight import Flight
from scrapy_ubi.adapter.requests.observers import PageObserver
from scrapy_ubi.ground import clock
from scrapy_ubi.settings import UbiSettings

BURST_SECONDS = 60.0


class ErrorWatch(PageObserver):
    """The error log of one agent's crawl. `directory` is the agent's; `note` and `stop` as for `ErrorLog`."""

    def __init__(
        self,
        crawler: Crawler,
        settings: UbiSettings,
        directory: Path,
        note: Callable[[str], object],
        stop: Callable[[str], object],
    ) -> None:
        self._crawler = crawler
        self._burst = burst = Burst(settings.error_burst, BURST_SECONDS)
        self._log = ErrorLog(
            directory / NAME,
            burst,
            clock.now,
            count=crawler.stats.inc_value,
            note=note,
            stop=stop,
            spider=crawler.spider,
        )
        self.close = self._log.close

    def follow(self, settings: UbiSettings) -> None:
        """These are the settings from now on."""
        self._burst.set(settings.error_burst, BURST_SECONDS)

    def listen(self) -> None:
        """Begin."""
        self._crawler.signals.connect(self._spider_error, signals.spider_error)
        self._crawler.signals.connect(self._item_error, signals.item_error)
        self._log.listen()

    def failed(self, flight: Flight, error: BaseException) -> None:
        """A request has ended with an error, before any callback."""
        if not is_anticipated(error):
            self._log.met("download", error, f"{flight.request} for {_name_of(flight.request.callback)}")

    def ended(self, flight: Flight) -> None:
        """A page is over, with or without an error."""
        if flight.visit is not None:
            self._log.page_done()

    def _spider_error(self, failure: Failure, response: Response | Failure | None) -> None:
        request = getattr(response, "request", None)
        callback, errback = getattr(request, "callback", None), getattr(request, "errback", None)
        # The errback of a response that a spider middleware refused (an error status) is told with that response.
        if isinstance(response, Response) and not (errback is not None and _passes(failure, errback)):
            self._met("callback", failure, f"{_name_of(callback)} of {request}")
        else:
            self._met("errback", failure, f"{_name_of(errback)} of {request}")

    def _item_error(self, item: Any, response: Response | Failure | None, failure: Failure) -> None:
        page = getattr(response, "request", None) or "no page"
        self._met("pipeline", failure, f"an item ({type(item).__name__}) of {page}")

    def _met(self, where: str, failure: Failure, what: str) -> None:
        if failure.value is not None:
            trace = failure.getTracebackObject()  # type: ignore[no-untyped-call]
            self._log.met(where, failure.value, what, trace)


def _passes(failure: Failure, called: Any) -> bool:
    """Whether the error was raised in this function, or below it."""
    code = getattr(called, "__code__", None)
    trace = failure.getTracebackObject()  # type: ignore[no-untyped-call]
    while trace is not None:
        if trace.tb_frame.f_code is code:
            return True
        trace = trace.tb_next
    return False


def _name_of(callback: Any) -> str:
    return "parse" if callback is None else str(getattr(callback, "__name__", None) or type(callback).__name__)
