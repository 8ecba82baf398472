"""What a ranker is told of a page (`ranking.Page`): its links to its own host, in the order of the page.

Rules of this module:

* All links count, those to known pages, too: a page's flight keeps them (`FoundLinks`), as for the stores that do.
* A link is known by the key of a plain request for it. What was found as a request of another method counts, too.
* Links that are no news to anybody cost their normal form and key here, a microsecond or two.
"""

from __future__ import annotations

from collections.abc import Iterator

from scrapy_ubi.adapter.requests.identity import RequestKeys
from scrapy_ubi.adapter.requests.inflight import Flight, FoundLinks
from scrapy_ubi.adapter.requests.observers import PageObserver
from scrapy_ubi.policy.ranking import Page, PageLink
from scrapy_ubi.urls import url_key


class RankedPages(PageObserver):
    """Makes pages for a ranker, by an agent's keys."""

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
