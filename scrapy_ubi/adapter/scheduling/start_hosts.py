"""Hosts of start requests that another agent has met, and this one perhaps not: links may lead there (`reach`).

No link has depth 0, but where a redirect leads from a seed it has, and where a spider resets it, which is written down.
The URLs of a sitemap begin at depth 0 as well.
"""

from __future__ import annotations

from scrapy_ubi.adapter.downloads.reach import Reach
from scrapy_ubi.adapter.requests.inflight import Flight
from scrapy_ubi.adapter.requests.observers import PageObserver
from scrapy_ubi.adapter.robots.sitemaps import Sitemaps


class StartHosts(PageObserver):
    """Tells `reach` of start requests that are handed out. For a crawl that counts depth."""

    def __init__(self, reach: Reach, sitemaps: Sitemaps) -> None:
        self._reach = reach
        self._sitemaps = sitemaps

    def begun(self, flight: Flight) -> None:
        """A request is handed out."""
        visit = flight.visit
        if visit is None or visit.entry.depth or self._sitemaps.use:
            return
        meta = flight.request.meta
        if "depth" not in meta and "redirect_urls" not in meta:
            self._reach.seed(flight.request.url)
