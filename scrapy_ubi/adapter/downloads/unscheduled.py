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
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.httpobj import urlparse_cached

from scrapy_ubi.adapter.process.log_once import Notices
from scrapy_ubi.adapter.requests.inflight import Flight
from scrapy_ubi.adapter.requests.named_hosts import HostNames
from scrapy_ubi.adapter.robots.fetch import load_of
from scrapy_ubi.adapter.scrapy_private.middlewares import forget_robots, robots_known
from scrapy_ubi.settings import UbiSettings

if TYPE_CHECKING:
    from scrapy_ubi.agent import Node


class ForeignHost(IgnoreRequest):
    """This download bypasses the scheduler, and another agent owns its host."""


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
