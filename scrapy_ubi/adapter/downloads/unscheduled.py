"""Requests that bypass the scheduler: robots.txt, media and the redirects of both, a spider's own `download_async`.

They have no visit and are in no queue. Where a page would return to its queue, this module decides what is done with
them. Rules of this module:

* Downloads whose host another agent owns are loaded under a foreign permit of this agent (`agent.work.permits`),
  refused, or let through without a permit, as UBI_FOREIGN_DOWNLOADS says; a refusal warns once, a stat counts always.
* A transfer that was aborted is made again, but for that of a robots.txt that a page waits for, or to which a redirect
  leads: what waits for it asks for it again.
* A robots.txt is loaded under a permit like everything else: for a page as its host's owner only, for media of another
  agent's host under a foreign one. One that redirects to another agent's host is followed without a permit (RFC 9309
  wants it followed; it is one load a day).
* Where the user has a robots.txt middleware derived from Scrapy's, a robots.txt that was withdrawn must not count
  as "all is allowed" there: pages that waited for it are withdrawn as well, and it is asked for again.

A page waits in its queue while its host rests. A file, or what a callback awaits, is waited for: by an item, a page,
and a place of the downloader. So such loads know no rests and no end of a host, only its delay, and end as soon as with
plain Scrapy, by what this agent's loads have shown of hosts (`UnscheduledRests`):

* A host that asks to be left alone (429 or 503 with Retry-After) is not asked before that time. A load that comes
  meanwhile waits for it once, `WAITS` seconds at most; else it has the answer that the host gave, without asking: what
  plain Scrapy gets by asking again. Retries, pipelines and callbacks take it from there.
* Loads of one host are made one after the other, each with its time-out. From UBI_HOST_FAILURES failures in a row on
  those that wait for the same server fail with the one that was made, as they would have side by side.
* At most `MOST_HOSTS` servers and answers are remembered; those used least recently are forgotten.

What becomes of files, images, and what a spider awaits by `engine.download_async` (`UnscheduledResults`): their page is
done whether they come or not, and they are not requested again, so each failure is counted.

* A download is one call of `engine.download_async`, with all its retries and redirects: what counts is its end.
* It has failed where it ended in an error, or in a status of 300 or more: media pipelines keep nothing of such a
  response. A robots.txt is none.
* Each failure has a reason, a word as those of pages (`requests.page_outcome`): in the stats, and with its host in
  the report.
* Where any failed, one line says so at the end of the log: a warning where this package has refused or ended some.
"""

from __future__ import annotations

import copy
import logging
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.httpobj import urlparse_cached

from scrapy_ubi.adapter.process.log_once import Notices
from scrapy_ubi.adapter.requests.inflight import Flight
from scrapy_ubi.adapter.requests.named_hosts import HostNames
from scrapy_ubi.adapter.requests.page_outcome import reason_of
from scrapy_ubi.adapter.robots.fetch import load_of
from scrapy_ubi.adapter.scrapy_private.engine import Download
from scrapy_ubi.adapter.scrapy_private.middlewares import forget_robots, robots_known
from scrapy_ubi.settings import UbiSettings

if TYPE_CHECKING:
    from scrapy_ubi.agent import Node

MOST_HOSTS = 1000
MOST_BODY = 65_536  # bytes of an answer that is remembered; a longer one without its body
WAITS = 5.0  # s
FLAG = "ubi: not asked"  # in `response.flags` of an answer that is given again

OURS = REFUSED, ENDED = "refused", "ended"  # why this package makes none
MOST_REASONS = 100  # counted by name here; they come from the web, and from other people's code
MOST_NAMED = 5  # in the line at the end: this package's own first

logger = logging.getLogger("scrapy_ubi")

Value = TypeVar("Value")


class NotMade(IgnoreRequest):
    """This package makes no transfer of this request; `reason` says why, where it bypasses the scheduler."""

    reason = ENDED


class ForeignHost(NotMade):
    """This download bypasses the scheduler, and another agent owns its host."""

    reason = REFUSED


class Unscheduled:
    """Requests of one agent that bypass its scheduler."""

    def __init__(self, crawler: Crawler, node: Node, settings: UbiSettings, notices: Notices) -> None:
        self._crawler = crawler
        self._node = node
        self._settings = settings
        self._notices = notices
        self._hosts = HostNames(settings)
        self._robots_unread: set[str] = set()  # network locations whose robots.txt was withdrawn

    def flight(self, request: Request) -> Flight:
        """A flight of it; it ends when the engine removes the request."""
        load = load_of(request)
        return Flight(request, self._hosts.of_request(request) if load is None or not load.host else load.host)

    # Hosts of other agents

    def is_loaded_abroad(self, flight: Flight) -> bool:
        """Whether it may be loaded under a foreign permit, where another agent owns its host. A robots.txt that a page
        waits for may not: the page goes to the host's owner, too."""
        if self._settings.foreign_downloads != "polite":
            return False
        load = load_of(flight.request)
        return load is None or not (load.of_page or load.redirected)

    # What is refused

    def passes_foreign(self, flight: Flight) -> bool | None:
        """Whether it may go without a permit, though another agent owns its host; None where no load starts, as this
        agent closes or the crawl is over. Counted where it may."""
        load = load_of(flight.request)
        if load is not None and load.redirected:
            self._crawler.stats.inc_value("ubi/guard/foreign_robots")
            return True
        if self._settings.foreign_downloads == "allow":
            self._crawler.stats.inc_value("ubi/guard/foreign_allowed")
            return True
        return None if self._node.over or self.is_loaded_abroad(flight) else False

    def refuse_foreign(self, flight: Flight) -> ForeignHost:
        """Count and log that it is refused as its host is another agent's; the exception that says so."""
        self._crawler.stats.inc_value("ubi/guard/foreign_refused")
        self._notices.once(
            "foreign",
            f"Refusing {flight.request}: it bypasses the scheduler, and another agent owns {flight.host}. "
            "UBI_FOREIGN_DOWNLOADS = 'polite' lets such downloads be made, one at a time for each host and agent.",
        )
        return ForeignHost(f"Another agent owns {flight.host}")

    def tell_ended(self, flight: Flight) -> None:
        """Count and log that this is not loaded, as this agent closes or the crawl is over."""
        why = "this agent closes, and its host was put off for long, its lease has ended, or it has left already"
        if self._node.over:
            why = "the crawl is over"
        self._crawler.stats.inc_value("ubi/guard/ended")
        self._notices.once(
            "ended",
            f"{flight.request} is not loaded: {why}. It bypasses the scheduler: what asked for it goes on without it.",
        )

    # robots.txt

    def is_of_own_page(self, flight: Flight) -> bool:
        """Whether this is a robots.txt that a page of the same host waits for."""
        load = load_of(flight.request)
        if load is not None:
            return load.of_page and not load.redirected
        return is_robots(flight.request) and self._hosts.of_url(_first_url(flight.request)) == flight.host

    def withdrawn(self, flight: Flight) -> None:
        """Note a robots.txt that is not read for now, of a middleware that would take that for "all is allowed"."""
        if load_of(flight.request) is None and is_robots(flight.request):
            self._robots_unread.add(urlsplit(_first_url(flight.request)).netloc)

    def lacks_robots(self, flight: Flight) -> bool:
        """Whether this page passed the robots.txt middleware only because its robots.txt was withdrawn."""
        if not self._robots_unread or flight.visit is None or flight.request.meta.get("dont_obey_robotstxt"):
            return False
        netloc = urlparse_cached(flight.request).netloc
        if netloc not in self._robots_unread:
            return False
        if robots_known(self._crawler, netloc):
            self._robots_unread.discard(netloc)
            return False
        forget_robots(self._crawler, netloc)
        return True


def is_done_again(flight: Flight) -> bool:
    """Whether a transfer that was aborted is made again by the gate, as nothing else asks for it again. A page asks for
    its robots.txt again; after a redirect of one there is no time left."""
    load = load_of(flight.request)
    if load is not None:
        return not (load.of_page or load.redirected)
    return flight.visit is None and not is_robots(flight.request)


def is_robots(request: Request) -> bool:
    """Whether RobotsTxtMiddleware asks for this, directly or by a redirect (which copies callback and meta). Media that
    ignore robots.txt differ from that by the path alone."""
    marked = request.callback is NO_CALLBACK and bool(request.meta.get("dont_obey_robotstxt"))
    return marked and urlsplit(_first_url(request)).path == "/robots.txt"


def _first_url(request: Request) -> str:
    urls = request.meta.get("redirect_urls") or [request.url]
    return str(urls[0])


class UnscheduledRests:
    """What one agent's loads have shown. `clock` gives seconds that only grow."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._answers: OrderedDict[str, tuple[float, Response]] = OrderedDict()  # by host; until when
        self._failures: OrderedDict[str, int] = OrderedDict()  # server -> failures in a row

    # -- who asks to be left alone

    def asked(self, host: str, seconds: float, response: Response) -> None:
        """A host has asked, with this response, to be left alone for so long."""
        if len(response.body) > MOST_BODY:
            response = response.replace(body=b"")
        _put(self._answers, host, (self._clock() + seconds, response))

    def left(self, host: str) -> float:
        """For how long (s) the host is to be left alone; 0.0 where it has not asked for it."""
        until, _ = self._answers.get(host, (0.0, None))
        return max(0.0, until - self._clock())

    def answer(self, host: str, request: Request, left: float, status: int | None = None) -> Response:
        """The answer that this request would have had: what the host has said, if it is known, else the least of it,
        with the `status` that another agent has got."""
        known = self._answers.get(host)
        headers = {"Retry-After": str(int(left) + 1)}
        if known is None:
            return Response(request.url, status=status or 503, headers=headers, flags=[FLAG], request=request)
        return known[1].replace(url=request.url, request=request, flags=[*known[1].flags, FLAG])

    # -- who does not answer

    def answered(self, request: Request) -> None:
        """Its server has answered."""
        if self._failures:
            self._failures.pop(server_of(request), None)

    def failed(self, request: Request) -> int:
        """Its server has not; how many times in a row."""
        server = server_of(request)
        times = self._failures.get(server, 0) + 1
        _put(self._failures, server, times)
        return times


def server_of(request: Request) -> str:
    """Scheme, host and port of a request: another port is another server."""
    parts = urlparse_cached(request)
    return f"{parts.scheme}://{parts.netloc}"


def same_failure(error: Exception) -> Exception:
    """An error as this one for another request."""
    try:
        same = copy.copy(error)
    except Exception:  # noqa: BLE001 - of a class of the user's that cannot be copied
        same = error
    return same.with_traceback(None)


def _put(known: OrderedDict[str, Value], key: str, value: Value) -> None:
    known[key] = value
    known.move_to_end(key)
    if len(known) > MOST_HOSTS:
        known.popitem(last=False)


class UnscheduledResults:
    """The downloads beside the scheduler of one agent. `count` adds one to the stat of a name, `note` tells the report
    of something at a host, `host_of` gives the host of a URL."""

    def __init__(
        self,
        count: Callable[[str], object],
        note: Callable[[str, str], object],
        host_of: Callable[[str], str | None],
    ) -> None:
        self._count = count
        self._note = note
        self._host_of = host_of
        self._loaded = 0
        self._failed: Counter[str] = Counter()

    async def make(self, request: Request, download: Download) -> Response:
        """Make a download, by awaiting `download(request)`. Raises what that raises."""
        if load_of(request) is not None or is_robots(request):
            return await download(request)
        try:
            response = await download(request)
        except Exception as error:
            self._has_failed(request, error.reason if isinstance(error, NotMade) else reason_of(error))
            raise
        if response.status >= 300:
            self._has_failed(request, f"http/{response.status}")
        else:
            self._loaded += 1
            self._count("ubi/downloads/loaded")
        return response

    def _has_failed(self, request: Request, reason: str) -> None:
        known = reason in self._failed or reason in OURS or len(self._failed) < MOST_REASONS
        reason = reason if known else "other"
        self._failed[reason] += 1
        self._count(f"ubi/downloads/failed/{reason}")
        self._note(f"download/{reason}", self._host_of(request.url) or "")

    def close(self) -> None:
        """Say how many have failed, where any has."""
        if not self._failed:
            return
        failed = self._failed.total()
        named = sorted(self._failed.items(), key=lambda item: (item[0] not in OURS, -item[1]))
        logger.log(
            logging.WARNING if named[0][0] in OURS else logging.INFO,
            "Of %d downloads beside the queue (files, images) %d failed, and their items lack them: %s. "
            "'scrapy ubi report' names their hosts.",
            failed + self._loaded,
            failed,
            ", ".join(f"{reason} {number}" for reason, number in named[:MOST_NAMED])
            + (", ..." if len(named) > MOST_NAMED else ""),
        )
