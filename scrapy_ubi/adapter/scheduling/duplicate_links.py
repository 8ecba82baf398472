"""What the callback of a duplicate page asks for, where UBI_DUPLICATES says that it is not taken.

Rules of this module:

* A link that is not taken is counted, and the stores that keep links have it.
* The page itself, asked for once more, is no link.
"""

from __future__ import annotations

from collections.abc import Container

from scrapy import Request
from scrapy.http import Response

from scrapy_ubi.adapter.extraction.plainlinks import PlainLinks
from scrapy_ubi.adapter.requests.inflight import Flight
from scrapy_ubi.adapter.requests.observers import PageObserver
from scrapy_ubi.adapter.scheduling.stat_buffer import StatBuffer

STAT = "ubi/duplicates/links"


class DuplicateLinks(PageObserver):
    """The links of pages that are duplicates: `pages`, now and later."""

    def __init__(self, pages: Container[Flight], stats: StatBuffer) -> None:
        self._pages = pages
        self._stats = stats

    def refuses(self, flight: Flight, response: Response, found: object) -> bool:
        """Whether this is a link that the callback of such a page yields: it is not taken."""
        if flight not in self._pages or not isinstance(found, Request | PlainLinks):
            return False
        if isinstance(found, Request) and found.url == response.url:
            return False
        urls = [url for url in found.urls if isinstance(url, str)] if isinstance(found, PlainLinks) else [found.url]
        self._stats.sums[STAT] += len(urls)
        if flight.links is not None:
            flight.links.urls.extend(urls)
        return True
