"""Observers of pages of a few lines each: what a part of this agent hears of every page.

Each is made where its setting is on (`components.page_observers`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from scrapy.http import Response

from scrapy_ubi.adapter.downloads.reach import Reach
from scrapy_ubi.adapter.requests.check import REQUISITE
from scrapy_ubi.adapter.requests.identity import RequestKeys
from scrapy_ubi.adapter.requests.inflight import Flight, FoundLinks
from scrapy_ubi.adapter.requests.observers import PageObserver
from scrapy_ubi.adapter.robots.sitemaps import Sitemaps
from scrapy_ubi.agent.hosts.learned_forms import CUT, content_of
from scrapy_ubi.policy.ranking import Page, PageLink
from scrapy_ubi.urls import url_key

if TYPE_CHECKING:
    from scrapy_ubi.agent import Node


class StartHosts(PageObserver):
    """Tells `reach` of the hosts of start requests that are handed out: another agent has met them, and this one
    perhaps not, and links may lead there. For a crawl that counts depth.

    No link has depth 0, but where a redirect leads from a seed it has, and where a spider resets it, which is written
    down. The URLs of a sitemap begin at depth 0 as well.
    """

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


class RankedPages(PageObserver):
    """Tells a ranker of a page, by an agent's keys (`ranking.Page`): of its links to its own host, in the order of the
    page.

    * All links count, those to known pages, too: a page's flight keeps them (`FoundLinks`), as for the stores that do.
    * A link is known by the key of a plain request for it. What was found as a request of another method counts, too.
    * Links that are no news to anybody cost their normal form and key here, a microsecond or two.
    """

    wants_links = True

    def __init__(self, keys: RequestKeys) -> None:
        self._keys = keys

    def ended(self, flight: Flight) -> None:
        """Say with the visit of the page what a ranker is to be told."""
        if (visit := flight.visit) is None:
            return
        entry, found = visit.entry, flight.links
        links = tuple(self._links(found, visit.host)) if found is not None else ()
        visit.page = Page(entry.key, entry.url, entry.depth, flight.status, links)

    def _links(self, found: FoundLinks, host: str) -> Iterator[PageLink]:
        host_of, place_of = self._keys.host_of, self._keys.place_of
        for normal in found.forms:
            if host_of(normal) == host:
                yield PageLink(url_key("GET", normal), normal)
        for url in (*found.urls, *found.moved):
            place = place_of(url)
            if place is not None and place.host == host:
                yield PageLink(url_key("GET", place.normal), place.normal)


class LearnedContent(PageObserver):
    """Notes with the flight of each page its content, by which the learned forms of URLs compare pages (UBI_NORMALISE
    with `learned`): a page that was cut has none."""

    def answered(self, flight: Flight, response: Response) -> None:
        """This is the page."""
        if not any(flag in response.flags for flag in CUT) and REQUISITE not in flight.request.meta:
            flight.content = content_of(response.status, response.body)


class ReceivedBytes(PageObserver):
    """Tells a node what each load has cost: pages, robots.txt, files. A page that goes back to its queue, as its host
    asks for a pause, costs nothing."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def received(self, flight: Flight, response: Response) -> None:
        """Count the body, as it is on the line."""
        node, size = self._node, len(response.body)
        node.crawl.tally.body_bytes += size
        state = node.frontier.find(flight.host) if flight.host is not None else None
        if state is not None:
            node.limits.received(state, size)
