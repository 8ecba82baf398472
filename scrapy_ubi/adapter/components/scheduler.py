"""Scrapy's scheduler, in front of a node of the crawl.

Rules of this module:

* `enqueue_request`, `next_request` and `has_pending_requests` touch memory only; the node does the rest in the
  background and wakes the engine when a host becomes ready.
* What comes in is the matter of `enqueue`, what goes out that of `dequeue`; `scheduler_builder` puts them together with
  a node and Scrapy's engine.
* The spider stays open, idle or not, until the crawl is over everywhere; then it closes with the reason `finished`.
* The crawl is not over as long as a handler of the user's holds the spider open at idle: more may come from there.
* Errors of the user's settings, and refusals by the other agents, end the process with one sentence and exit status 1
  before anything is fetched (`SystemExit` out of `open`: the only way that does so in Scrapy 2.19).
"""

from __future__ import annotations

import atexit
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, ClassVar

from scrapy import Request, Spider
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler
from scrapy.utils.asyncio import is_asyncio_available
from scrapy.utils.defer import deferred_from_coro
from twisted.internet.defer import Deferred

from scrapy_ubi.adapter.components.ending import Ending, say_cut_short
from scrapy_ubi.adapter.components.scheduler_builder import SchedulerBuilder
from scrapy_ubi.adapter.process.log_once import Notices
from scrapy_ubi.adapter.process.start_errors import ends_in_one_sentence, lacking, process_ended
from scrapy_ubi.adapter.requests.check import NONCE
from scrapy_ubi.adapter.requests.inflight import Flights
from scrapy_ubi.adapter.requests.observers import Observers
from scrapy_ubi.adapter.scrapy_private.needed import lacking_names, say_left_out
from scrapy_ubi.adapter.scrapy_private.scraper import on_errback_output

if TYPE_CHECKING:
    from scrapy_ubi.adapter.components.sources import Sources
    from scrapy_ubi.adapter.components.start_items import StartItems
    from scrapy_ubi.adapter.downloads.gate import Gate
    from scrapy_ubi.adapter.downloads.proxy_pool import PooledProxies
    from scrapy_ubi.adapter.robots.sitemaps import Sitemaps
    from scrapy_ubi.adapter.scheduling.dequeue import Dequeue
    from scrapy_ubi.adapter.scheduling.enqueue import Enqueue
    from scrapy_ubi.adapter.scheduling.page_links import PageLinks
    from scrapy_ubi.adapter.scrapy_private.engine import EngineHooks
    from scrapy_ubi.agent import Node
    from scrapy_ubi.agent.report.loop_watch import LoopWatch
    from scrapy_ubi.settings import UbiSettings

SEED = "ubi_seed"  # meta key: set by the spider middleware on what start() yields, taken off here


class UbiScheduler(BaseScheduler):
    """One agent's end of the crawl. Public for others: its parts. A scheduler with other parts has a `builder_class` of
    its own, and may override `begin`."""

    builder_class: ClassVar[type[SchedulerBuilder]] = SchedulerBuilder

    # The builder's, from when the spider is opened.
    settings: UbiSettings
    agent_id: str
    feed_times: dict[str, str]
    hooks: EngineHooks
    node: Node
    gate: Gate
    proxies: PooledProxies | None = None  # where there is a pool of them
    asks_each: bool  # whether a function of the project is asked about each request
    sources: Sources
    sitemaps: Sitemaps
    start_items: StartItems
    enqueue: Enqueue
    dequeue: Dequeue
    page_links: PageLinks
    loop_watch: LoopWatch
    ending: Ending
    count: Callable[[str], None]  # adds one to a stat
    is_trial: bool = False  # whether this is only a look at a page or two (`scrapy shell` and the like)

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.flights = Flights()
        self.observers = Observers(self.flights)
        self.notices = Notices()
        self.closing = AsyncExitStack()  # what is closed at the end
        self._opened = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> UbiScheduler:
        return cls(crawler)

    @property
    def alone(self) -> bool:
        """Whether this crawl is one of one agent, whose requests never travel."""
        return self.settings.redis_url is None

    @classmethod
    def takes_requests_itself(cls) -> bool:
        """Whether this is a class with an `enqueue_request` of its own."""
        return cls.enqueue_request is not UbiScheduler.enqueue_request

    # Opening and closing

    def open(self, spider: Spider) -> Deferred[None] | None:
        """Join the crawl. Raises SystemExit with one sentence when that cannot be."""
        if not is_asyncio_available():
            raise process_ended("this process runs a Twisted reactor without asyncio: install the asyncio one instead.")
        return deferred_from_coro(self._open(spider))

    async def _open(self, spider: Spider) -> None:
        if names := ", ".join(lacking_names(self.crawler)):
            raise process_ended(lacking(names))
        say_left_out()
        with ends_in_one_sentence():
            await self._join(spider)

    async def _join(self, spider: Spider) -> None:
        await self.builder_class(self, spider).build()

    def begin(self) -> None:
        """The node is open: take requests."""
        self._opened = True

    def close(self, reason: str) -> Deferred[None] | None:
        """Hand over and go, or close after the end of the crawl."""
        return deferred_from_coro(self._leave(reason)) if self._opened else None

    async def _leave(self, reason: str) -> None:
        self.loop_watch.stop()
        self.ending.say_closed(reason, self.node, self.settings)
        async with self.closing:
            await self.start_items.close()
            await self.node.leave(reason)
            atexit.unregister(self.cut_short)

    def cut_short(self) -> None:
        """The process ends: say what follows, where the agent has not left."""
        if not self.node.over:
            say_cut_short(self.agent_id, self.settings)

    # Requests

    def enqueue_request(self, request: Request) -> bool:
        """Queue a request, send it to its owner, or drop it (known, or refused by a filter): False then."""
        for mark in self.observers.marks:  # copied from the `meta` of the page
            request.meta.pop(mark, None)
        return self.enqueue.take_request(request, bool(request.meta.pop(SEED, False))).is_taken

    def hear_errbacks(self) -> None:
        """Hear from now on, when the spider was opened, of what errbacks yield."""
        on_errback_output(self.crawler, self.mark_errback_child)

    def mark_errback_child(self, request: Request, parent: Request) -> None:
        """The errback of `parent` yields `request`, which has passed no spider middleware: it is marked as what
        callbacks yield. A page that bypasses the node, or has no host, has no nonces to give: what comes of it is to
        the scheduler what the engine is asked for."""
        for mark in (NONCE, SEED):  # of a copy: they are its page's
            request.meta.pop(mark, None)
        flight = self.flights.get(parent)
        if flight is not None and flight.visit is not None:
            self.enqueue.mark_child(request, parent)

    def has_pending_requests(self) -> bool:
        """Whether requests wait that this agent is to fetch."""
        return bool(self.sources.local) or self.node.status.pending()

    def __len__(self) -> int:
        """How many requests wait that this agent is to fetch: spiders that feed themselves ask. Linear in the hosts."""
        return len(self.sources.local) + self.node.status.waiting if self._opened else 0

    def next_request(self) -> Request | None:
        """The next request that may be fetched now; None when there is none, though some may be pending."""
        return self.dequeue.next_request()

    # What start() and callbacks wait for

    @property
    def start_waits(self) -> bool:
        """Whether `start()` should wait before it yields more (`Status.crowded`)."""
        return self._opened and (self.node.status.crowded or self.sources.local.many)

    @property
    def output_waits(self) -> bool:
        """Whether a page that yields very many links should wait before it yields more (`Status.congested`); not while
        the spider is being closed, which waits for its callbacks."""
        return self._opened and not self.gate.closing and self.node.status.congested

    def start_ended(self) -> None:
        """The spider's `start()` has yielded its last."""
        if self._opened:
            self.sources.end_start()
