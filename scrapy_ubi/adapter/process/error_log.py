"""Unanticipated errors: a log of their own, and a breaker for when they come in a burst.

What a crawl must expect is *anticipated*: hosts that do not answer, error statuses, requests that a middleware ignores.
Such are counted by reason and the crawl goes on. Everything else that is raised somewhere is a mistake in somebody's
code, or a part that has broken. Rules of this module:

* The crawl goes on after such an error, too, as Scrapy's does. It is counted by the place where it was raised, and
  written with its URL, its callback and its traceback to a file, of which the oldest part is dropped.
* Errors in callbacks, errbacks and pipelines are told by Scrapy's signals, those of a download by their outcome. All
  else (handlers of signals, `start()`, tasks that are not awaited) is known by what Scrapy, Twisted and asyncio log
  with a traceback. What other people's code logs is their own matter: they have caught it.
* Many in close succession (`Burst`) stop the agent: what has broken should not use up the crawl's URLs. Of what is
  logged only records that name this crawl's spider are part of it: others may be of something else in this process.
* Nothing here raises: a log that cannot be written is said once, and counted.

Where a running crawl's unanticipated errors show: the signals of Scrapy that tell the error log of them.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from OpenSSL.SSL import Error as TlsError
from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.exceptions import (
    CannotResolveHostError,
    CloseSpider,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    DropItem,
    IgnoreRequest,
    NotSupported,
    ResponseDataLossError,
    StopDownload,
    UnsupportedURLSchemeError,
)
from scrapy.http import Response
from twisted.internet.error import ConnectError, ConnectionClosed, DNSLookupError
from twisted.python.failure import Failure
from twisted.web.client import ResponseFailed

from scrapy_ubi.adapter.requests.decompress import BROKEN
from scrapy_ubi.adapter.requests.inflight import Flight
from scrapy_ubi.adapter.requests.observers import PageObserver
from scrapy_ubi.adapter.scrapy_private.versions import FileException
from scrapy_ubi.ground import clock
from scrapy_ubi.settings import UbiSettings

logger = logging.getLogger("scrapy_ubi")

NAME = "errors.log"  # in the agent's directory, unless another file is named
MOST_BYTES = 10_000_000  # of one file: some thousand errors
FILES = 3  # older ones kept beside it
LONGEST = 20_000  # characters of one traceback: its two ends

# What hosts, networks and the rules of the crawl do to a download.
ANTICIPATED: tuple[type[BaseException], ...] = (
    CannotResolveHostError,
    CloseSpider,
    ConnectError,
    ConnectionClosed,
    DNSLookupError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    DropItem,
    FileException,
    IgnoreRequest,
    NotSupported,
    OSError,
    ResponseDataLossError,
    ResponseFailed,
    StopDownload,
    TlsError,
    UnicodeError,
    UnsupportedURLSchemeError,
    *BROKEN,
)

# Whose records with a traceback tell of an error that was not caught. Scrapy's scraper is not among them: what it
# logs is told by signals; and of these two, which load beside the scheduler, only what was not anticipated counts.
_TELLING = ("scrapy", "twisted", "asyncio", "scrapy_ubi")
_SILENT = ("scrapy.core.scraper",)
_LOADING = ("scrapy.pipelines", "scrapy.downloadermiddlewares.robotstxt")

_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}
BURST_SECONDS = 60.0


def is_anticipated(error: BaseException) -> bool:
    """Whether a download may end with this error without anybody's mistake."""
    return isinstance(error, ANTICIPATED)


class Burst:
    """Whether errors come in close succession: so many within so many seconds (`number`, 0: never), and at least half
    as many as there were pages done in the meantime. A spider that fails at times in a fast crawl does not match."""

    def __init__(self, number: int, seconds: float) -> None:
        self._last: deque[tuple[float, int]] = deque()  # when, and pages done before
        self.pages = 0
        self.set(number, seconds)

    def set(self, number: int, seconds: float) -> None:
        """What makes a burst from now on."""
        self.number = number
        self.seconds = seconds
        self._last = deque(self._last, maxlen=max(1, number))

    def error(self, now: float) -> bool:
        """An error was met at this time (s); True when it makes a burst."""
        self._last.append((now, self.pages))
        if not self.number or len(self._last) < self.number:
            return False
        first, pages = self._last[0]
        return now - first <= self.seconds and 2 * self.number >= self.pages - pages


class ErrorLog:
    """The unanticipated errors of one agent. `count` adds one to a stat, `note` to what the report names; `stop` ends
    the agent, with a sentence. `spider` is the crawl's: what names another spider is another crawl's."""

    def __init__(
        self,
        path: Path,
        burst: Burst,
        clock: Callable[[], float],
        *,
        count: Callable[[str], object],
        note: Callable[[str], object],
        stop: Callable[[str], object],
        spider: object = None,
    ) -> None:
        self._path = path
        self._burst = burst
        self._clock = clock
        self._count = count
        self._note = note
        self._stop = stop
        self._file = _File(path, self._unwritten)
        self._spider = spider
        self._ear = _Ear(self._logged, spider)
        self._said: set[str] = set()

    def listen(self) -> None:
        """Hear what is logged with a traceback, until this is closed."""
        logging.getLogger().addHandler(self._ear)

    def close(self) -> None:
        """Stop listening. A second call does nothing."""
        logging.getLogger().removeHandler(self._ear)
        self._file.close()

    def page_done(self) -> None:
        """A page is done, with or without an error."""
        self._burst.pages += 1

    def met(self, where: str, error: BaseException, what: str, trace: Any = None, of_crawl: bool = True) -> None:
        """An unanticipated error was raised, in a `callback`, an `errback`, a `pipeline`, a `download`, or `elsewhere`.
        `what` tells people what was being done; `of_crawl`: it counts for a burst."""
        self._count(f"ubi/errors/{where}")
        self._note(f"error/{where}")
        self._write(f"{where}: {what}", error, trace if trace is not None else error.__traceback__)
        if "first" not in self._said:
            self._said.add("first")
            logger.warning("An unanticipated error (%s, %s); all are in %s.", where, type(error).__name__, self._path)
        if of_crawl and self._burst.error(self._clock()) and "burst" not in self._said:
            self._said.add("burst")
            self._stop(
                f"{self._burst.number} unanticipated errors within {self._burst.seconds:g} s, the last one "
                f"{type(error).__name__} in {'a ' * (where != 'elsewhere')}{where}: the agent stops (UBI_ERROR_BURST). "
                f"They are in {self._path}."
            )

    def _logged(self, record: logging.LogRecord) -> None:
        assert record.exc_info is not None
        _, error, trace = record.exc_info
        if error is None or (_is_of(record.name, _LOADING) and is_anticipated(error)):
            return
        try:
            said = record.getMessage()
        except (TypeError, ValueError):  # arguments that do not fit the text
            said = str(record.msg)
        ours = self._spider is not None and getattr(record, "spider", None) is self._spider
        self.met("elsewhere", error, f"{record.name}: {said}", trace, of_crawl=ours)

    def _write(self, headline: str, error: BaseException, trace: Any) -> None:
        when = datetime.now(UTC).isoformat(timespec="milliseconds")
        try:
            text = "".join(traceback.format_exception(type(error), error, trace))
        except Exception as broken:  # noqa: BLE001 - a __str__ of somebody's may raise anything
            text = f"{type(error).__name__} (its text raised {type(broken).__name__})\n"
        if len(text) > LONGEST:
            half = LONGEST // 2
            text = f"{text[:half]}\n... {len(text) - LONGEST} characters left out ...\n{text[-half:]}"
        headline = " ".join(headline[:4000].split())
        self._file.emit(logging.makeLogRecord({"msg": f"{when} {headline}\n{text}".translate(_CONTROL)}))

    def _unwritten(self, error: BaseException | None) -> None:
        self._count("ubi/errors/unwritten")
        if "unwritten" not in self._said:
            self._said.add("unwritten")
            logger.warning("%s cannot be written: %s. Errors are counted only.", self._path, error)


class _File(RotatingFileHandler):
    """The file, made when the first error is written."""

    def __init__(self, path: Path, unwritten: Callable[[BaseException | None], object]) -> None:
        super().__init__(path, maxBytes=MOST_BYTES, backupCount=FILES, encoding="utf-8", errors="replace", delay=True)
        self._failed = unwritten

    def handleError(self, record: logging.LogRecord) -> None:
        self._failed(sys.exc_info()[1])


class _Ear(logging.Handler):
    """Hears what is logged with a traceback, as an error."""

    def __init__(self, heard: Callable[[logging.LogRecord], None], spider: object) -> None:
        super().__init__(logging.ERROR)
        self._heard = heard
        self._spider = spider
        self._hears = True

    def emit(self, record: logging.LogRecord) -> None:
        spider = getattr(record, "spider", None)
        foreign = spider is not None and self._spider is not None and spider is not self._spider
        if not record.exc_info or foreign or not _is_of(record.name, _TELLING) or _is_of(record.name, _SILENT):
            return
        if self._hears:  # what hearing itself logs is not heard
            self._hears = False
            try:
                self._heard(record)
            finally:
                self._hears = True


def _is_of(name: str, families: tuple[str, ...]) -> bool:
    """Whether a logger's name is one of these, or below one."""
    return any(name == family or name.startswith(f"{family}.") for family in families)


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
