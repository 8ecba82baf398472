"""What the callback of a duplicate page asks for, where UBI_DUPLICATES says that it is not taken.

Rules of this module:

* A link that is not taken is counted, and the stores that keep links have it.
* The page itself, asked for once more, is no link.
"""

from __future__ import annotations

from scrapy import Request
from scrapy.http import Response

from scrapy_ubi.plainlinks import PlainLinks
from scrapy_ubi.requests.inflight import Flights
from scrapy_ubi.scheduling.stat_buffer import StatBuffer

STAT = "ubi/duplicates/links"


class DuplicateLinks:
    """The links of pages that are duplicates, among those that an agent has in `flights`."""

    def __init__(self, flights: Flights, stats: StatBuffer) -> None:
        self._flights = flights
        self._stats = stats

    def dropped(self, response: Response) -> bool:
        """Whether what the callback of this response asks for is not taken."""
        flight = self._flights.get(response.request)
        return flight is not None and flight.unfollowed

    def drop(self, found: object, response: Response) -> bool:
        """The callback of such a page yields this: whether it is a link, which is not taken then."""
        if not isinstance(found, Request | PlainLinks):
            return False
        if isinstance(found, Request) and found.url == response.url:
            return False
        urls = [url for url in found.urls if isinstance(url, str)] if isinstance(found, PlainLinks) else [found.url]
        self._stats.sums[STAT] += len(urls)
        flight = self._flights.get(response.request)
        if flight is not None and flight.links is not None:
            flight.links.urls.extend(urls)
        return True
