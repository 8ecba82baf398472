"""Pages that are visited again: what their requests say of the visit before, and whether they are as they were then.

Rules of this module:

* A request carries the validators of the last visit (If-None-Match, If-Modified-Since), unless it has one of its own.
* A page is *unchanged* when the server says so (304), or when its body has the digest that it had. Its callback is not
  called, it leaves no outputs, and the links that it had are known still.
* With `call=always` in UBI_RECRAWL each callback wants a page, so no validators are sent; one that is unchanged has the
  flag `unchanged`.
* `meta["ubi_visit"]` says which visit of its page it is.
* It is asked before any middleware of the spider: for HttpErrorMiddleware a 304 would be an error.
"""

from __future__ import annotations

from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import Any

import mmh3
from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.http import Response

from scrapy_ubi.adapter.requests.inflight import Flight, Flights
from scrapy_ubi.adapter.requests.observers import PageObserver
from scrapy_ubi.agent.crawl.revisits import PageSeen
from scrapy_ubi.protocol.visit_wire import is_validator
from scrapy_ubi.settings import UbiSettings

VISIT = "ubi_visit"  # meta key
UNCHANGED = "unchanged"  # flag of a response
_CONDITIONS = ("If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "If-Range", "Range")


class VisitedPages(PageObserver):
    """The visits of one agent, where pages are visited again. `count` counts in the stats."""

    def __init__(self, crawler: Crawler, settings: UbiSettings, flights: Flights, count: Callable[[str], None]) -> None:
        self._always = settings.recrawl.always
        self._flights = flights
        self._count = count
        crawler.signals.connect(self.scraped, signals.item_scraped)

    def begun(self, flight: Flight) -> None:
        """Say in the request what is known of the visit before."""
        if flight.visit is None:
            return
        before, request = flight.visit.before, flight.request
        request.meta[VISIT] = before.generation + 1 if before is not None else 1
        if before is None:
            return
        self._count("ubi/recrawl/visits")
        if self._always or any(name in request.headers for name in _CONDITIONS):
            return
        if before.etag:
            request.headers["If-None-Match"] = before.etag
        if before.modified:
            request.headers["If-Modified-Since"] = before.modified

    def passes_over(self, flight: Flight, response: Response) -> bool:
        """A page has come. True where its callback is not to be called, as it is unchanged."""
        visit = flight.visit
        if visit is None or flight.failed is not None:
            return False
        before = visit.before
        if response.status == 304:
            if before is None:
                return False  # the request's own validators
            seen = PageSeen(before.etag, before.modified, before.digest, unchanged=True)
            self._count("ubi/recrawl/not_modified")
        else:
            etag, modified = _text(response, "ETag"), _text(response, "Last-Modified")
            digest = mmh3.hash64(response.body, signed=False)[0] or 1
            unchanged = before is not None and before.digest == digest
            seen = PageSeen(etag, modified, digest, _time(modified), unchanged)
        visit.seen = seen
        if not seen.unchanged:
            self._count("ubi/recrawl/changed" if before is not None else "ubi/recrawl/first")
            return False
        self._count("ubi/recrawl/unchanged")
        if self._always:
            response.flags.append(UNCHANGED)
            return False
        flight.unchanged = True
        return True

    def scraped(self, item: Any, response: Any) -> None:
        """A page has given an item."""
        flight = self._flights.get(getattr(response, "request", None))
        if flight is not None and flight.visit is not None:
            flight.visit.gave_items = True


def _text(response: Response, name: str) -> str:
    """A header that may be sent back as it is; empty where there is none."""
    value = response.headers.get(name)
    text = value.decode("latin-1").strip() if value is not None else ""
    return text if is_validator(text) else ""


def _time(text: str) -> float:
    try:
        return max(parsedate_to_datetime(text).timestamp(), 0.0) if text else 0.0
    except (ValueError, OverflowError):
        return 0.0
