"""A link and a seed that are the same request: one load for both.

A bare link and a bare seed of one URL have different keys (`seeds`), and ask for the same. Rules of this module:

* A link whose seed is known is done without a load, and so is a seed whose page was fetched by such a link.
* A seed that is handed out while such a link is under way waits for it: when the link's page was fetched, the seed is
  done; else it returns to the queue.
* Listeners hear of what is done without a load as of any duplicate.
* A page that is visited again is passed over by none of this.
"""

from __future__ import annotations

from collections.abc import Callable

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler

from scrapy_ubi.adapter.requests.inflight import Flight
from scrapy_ubi.adapter.scheduling.seeds import Seeds
from scrapy_ubi.adapter.scheduling.stat_buffer import StatBuffer
from scrapy_ubi.agent import Node, Visit


class SeedTwins:
    """The links under way that may be the same request as a seed. `put_back` returns a visit to its queue."""

    def __init__(
        self,
        crawler: Crawler,
        spider: Spider,
        node: Node,
        seeds: Seeds,
        stats: StatBuffer,
        put_back: Callable[[Visit, Request], None],
    ) -> None:
        self._crawler = crawler
        self._spider = spider
        self._node = node
        self._seeds = seeds
        self._stats = stats
        self._put_back = put_back
        self._links: dict[int, Visit] = {}  # under way, by the key of the seed
        self._keys: dict[Visit, int] = {}  # the same, the other way round
        self._waiting: dict[Visit, tuple[Visit, Request]] = {}  # the seed that waits for a link

    def settles(self, visit: Visit, request: Request) -> bool:
        """Return whether this one, which was just handed out, needs no load of its own: it is done, or waits."""
        as_seed = self._seeds.key_beside(visit, request) if visit.before is None else None
        key = visit.entry.key
        if key in self._links:
            self._waiting[self._links[key]] = visit, request
            return True
        if (as_seed is not None and visit.state.is_known(as_seed)) or self._seeds.is_fetched(key):
            self._pass(visit, request)
            return True
        if as_seed is not None:
            self._links[as_seed] = visit
            self._keys[visit] = as_seed
        return False

    def ended(self, flight: Flight, visit: Visit) -> None:
        """A page is over, and the node knows. A seed that is the same request may wait, or may still come."""
        if visit not in self._keys:
            return
        as_seed = self._keys[visit]
        del self._keys[visit]
        self._links.pop(as_seed, None)
        fetched = flight.fetched and flight.failed is None and not flight.withdrawn and visit.again is None
        if visit in self._waiting:
            seed, request = self._waiting.pop(visit)
            (self._pass if fetched else self._put_back)(seed, request)
        elif fetched and (self._seeds.may_come or visit.state.is_known(as_seed)):
            self._seeds.fetched(as_seed)

    def _pass(self, visit: Visit, request: Request) -> None:
        """A request that was handed out is done without a load: a duplicate, of which listeners hear."""
        self._stats.sums["ubi/scheduler/duplicates"] += 1
        self._crawler.signals.send_catch_log(signals.request_dropped, request=request, spider=self._spider)
        if (place := self._seeds.spelled(request)) is not None:
            self._node.joins.join(request.url, place.normal, place.steps)
        self._node.limits.passed(visit.state)
        self._node.end_visit(visit, fetched=False)
