"""Scrapy's scheduler, in front of a node of the crawl.

Rules of this module:

* `enqueue_request`, `next_request` and `has_pending_requests` touch memory only; the node does the rest in the
  background and wakes the engine when a host becomes ready.
* What comes in is the matter of `enqueue`, what goes out that of `dequeue`; here they meet a node and Scrapy's engine.
* The spider stays open, idle or not, until the crawl is over everywhere; then it closes with the reason `finished`.
* The crawl is not over as long as a handler of the user's holds the spider open at idle: more may come from there.
* Errors of the user's settings, and refusals by the other agents, end the process with one sentence and exit status 1
  before anything is fetched (`SystemExit` out of `open`: the only way that does so in Scrapy 2.19).
"""

from __future__ import annotations

import asyncio
import atexit
import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from scrapy import Request, Spider, signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.utils.asyncio import is_asyncio_available
from scrapy.utils.defer import deferred_from_coro
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from scrapy_ubi.components import measured, wiring
from scrapy_ubi.components.ending import Ending, say_cut_short
from scrapy_ubi.downloads.gate import Gate
from scrapy_ubi.downloads.reach import Reach, let_reach
from scrapy_ubi.downloads.unscheduled_results import UnscheduledResults
from scrapy_ubi.errors import UbiError
from scrapy_ubi.node import Node, build_node
from scrapy_ubi.node.crawl.disk import AgentDisk
from scrapy_ubi.node.profile import idle_reason as kinds
from scrapy_ubi.node.profile.idle_reason import IdleReason, reason
from scrapy_ubi.node.report.loop_watch import LoopWatch
from scrapy_ubi.plainlinks import PlainLinks
from scrapy_ubi.politeness.robots.sitemaps import Sitemaps
from scrapy_ubi.process.agent_directory import AgentDirectory
from scrapy_ubi.process.log_once import Notices
from scrapy_ubi.process.start_errors import process_ended
from scrapy_ubi.requests.inflight import Flights
from scrapy_ubi.scheduling import held_up
from scrapy_ubi.scheduling.bulk_enqueue import Ordinary
from scrapy_ubi.scheduling.decide import Tools
from scrapy_ubi.scheduling.dequeue import Dequeue, PageReaders
from scrapy_ubi.scheduling.drops import Drops
from scrapy_ubi.scheduling.duplicate_links import DuplicateLinks
from scrapy_ubi.scheduling.enqueue import Enqueue
from scrapy_ubi.scheduling.hostless import SHARE, Hostless
from scrapy_ubi.scheduling.inspect_mode import Trial
from scrapy_ubi.scheduling.outside_seeds import OutsideSeeds, has_parse
from scrapy_ubi.scheduling.page_links import PageLinks
from scrapy_ubi.scheduling.ranked_pages import RankedPages
from scrapy_ubi.scheduling.seeds import Seeds
from scrapy_ubi.scheduling.sessions import Sessions
from scrapy_ubi.scheduling.sitemap_news import sitemap_news
from scrapy_ubi.scheduling.stat_buffer import StatBuffer
from scrapy_ubi.scrapy_private.engine import EngineHooks
from scrapy_ubi.scrapy_private.runs import is_trial
from scrapy_ubi.scrapy_private.steady_timers import steady_timers
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.transport import Transport, TransportError

if TYPE_CHECKING:
    from scrapy_ubi.components.start_items import StartItems
    from scrapy_ubi.metrics.agent_metrics import AgentMetrics
    from scrapy_ubi.outputs.page_outputs import PageOutputs
    from scrapy_ubi.outputs.pipeline_flush import PipelineFlush
    from scrapy_ubi.outputs.setup import Outputs

logger = logging.getLogger("scrapy_ubi.scheduler")

SEED = "ubi_seed"  # meta key: set by the spider middleware on what start() yields, taken off here


class UbiScheduler(BaseScheduler):
    """One agent's end of the crawl. Public for others: `agent_id`, `settings`, `node`, `gate`, `reach`, `sitemaps`,
    `flights`, `outcome`, `mark_successor`; for a scheduler with other parts, too: `hooks`, `make_transport`,
    `make_node`, `put_together`, `begin`."""

    settings: UbiSettings
    agent_id: str
    node: Node
    gate: Gate
    reach: Reach
    hooks: EngineHooks
    duplicates: DuplicateLinks
    start_items: StartItems
    outside: OutsideSeeds
    outputs: PageOutputs | None = None  # none where UBI_STORES names no store
    metrics: AgentMetrics | None = None  # none without UBI_METRICS

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.flights = Flights()
        self.notices = Notices()
        self.sitemaps = Sitemaps(crawler, 0, self._found)
        self.trial: Trial | None = None
        self._stores: Outputs | None = None
        self._batches: PipelineFlush | None = None  # none where no pipeline has the hook
        self.ending = Ending(crawler)
        self._loop_watch: LoopWatch | None = None
        self._opened = self._start_ended = self._closes = False
        self._held = True  # open by the user's handlers at idle, until they say otherwise

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> UbiScheduler:
        return cls(crawler)

    @property
    def is_trial(self) -> bool:
        """Whether this is only a look at a page or two (`scrapy shell` and the like)."""
        return self.trial is not None

    # Opening and closing

    def open(self, spider: Spider) -> Deferred[None] | None:
        """Join the crawl. Raises SystemExit with one sentence when that cannot be."""
        if not is_asyncio_available():
            raise process_ended("this process runs a Twisted reactor without asyncio: install the asyncio one instead.")
        return deferred_from_coro(self._open(spider))

    async def _open(self, spider: Spider) -> None:
        wiring.check_addon(self.crawler.settings)
        try:
            await self._join(spider)
        except (UbiError, TransportError) as error:
            raise process_ended(error) from error

    async def _join(self, spider: Spider) -> None:
        steady_timers()
        wanted, self._origin = wiring.read_settings(self.crawler, spider)
        stats = StatBuffer(self.crawler.stats)
        links = await wiring.LinkRules.read(wanted, stats)
        if is_trial(self.crawler):
            self.trial = Trial()
            wanted = self.trial.settings(wanted)
        self.directory = AgentDirectory.open(wanted)
        self.agent_id = self.directory.agent_id
        self.settings = replace(wanted, agent_id=self.agent_id, dir=self.directory.path, dir_given=True)
        self.feed_times, self.feeds = wiring.claim_feeds(self, spider)
        parts = wiring.make_parts(self, spider, stats, links)
        self.hooks = EngineHooks(self.crawler.engine)
        self.hooks.outlast_start()
        self._stores = wiring.make_stores(self) if self.trial is None else None
        self._batches = wiring.make_pipeline_flush(self) if self.trial is None else None
        disk = await wiring.open_disk(self.settings, self._stores, self._batches) if self.trial is None else None
        self.metrics = await measured.open_metrics(self.settings, disk, self._stores) if disk is not None else None
        self.put_together(parts, disk)
        await self.node.open()
        self._loop_watch = LoopWatch(self.node.lifecycle.ticker.late)
        self._loop_watch.start(asyncio.get_running_loop())
        self.begin()
        if disk is not None and disk.saved is not None:
            self.feeds.goes_on(spider)
        self._errors.listen()
        if not self.alone:  # alone, no other agent takes over; and Scrapy's shell never closes its spider
            atexit.register(self._cut_short)

    @property
    def alone(self) -> bool:
        """Whether this crawl is one of one agent, whose requests never travel."""
        return self.settings.redis_url is None

    def make_transport(self) -> Transport:
        """The way to the other agents; tests put another in its place."""
        return wiring.make_transport(self.settings, self.agent_id)

    def make_node(self, transport: Transport, disk: AgentDisk | None) -> Node:
        """The node of this agent; tests put another in its place."""
        start = wiring.make_start(self, self._spider.name, self._origin)
        check, events = self._codec.check, wiring.SchedulerEvents(self)
        return build_node(self.settings, transport, start, check, self._keys, events, disk=disk)

    def put_together(self, parts: wiring.Parts, disk: AgentDisk | None = None) -> None:
        """Put together, of these and a node, what requests go through. `settings` and `agent_id` are set before."""
        self._stat_buffer, self._link_filter, self._codec = parts.stats, parts.link_filter, parts.codec
        self._keys, self._kept, self._errors, self.reach = parts.keys, parts.kept, parts.errors, parts.reach
        self._scores, self._ranker = parts.scores, parts.ranker
        self.node = self.make_node(measured.transport_of(self.make_transport(), self.metrics), disk)
        if self.metrics is not None:
            self.metrics.node = self.node
        self.sitemaps = Sitemaps(self.crawler, self.settings.sitemaps, self._found, sitemap_news(self.node, self._keys))
        let_reach(self.crawler, self.reach)
        self.gate = Gate(self.crawler, self.node, self.settings, self.flights, self.notices, self.reach)
        self._downloads = UnscheduledResults(self.crawler.stats.inc_value, self.node.note, self.gate.hosts.of_url)
        self._assemble()
        if self._stores is not None:
            self.outputs = self._stores.of_pages(
                self.flights, self._keys.normal_form, self._tools.seeds.name, self.count
            )
            self._stores.writer.on_room(self.hooks.wake)
        self.duplicates = DuplicateLinks(self.flights, self._stat_buffer)
        own = type(self) if type(self).enqueue_request is not UbiScheduler.enqueue_request else None
        self._page_links = PageLinks(self.crawler, self._tools, wiring.why_one_by_one(self._keys, self.settings, own))
        self._dequeue = self._make_dequeue()
        wiring.follow_changes(self, parts, self._stores)
        self.start_items = wiring.make_start_items(self, self._stores, self._batches)

    def _assemble(self) -> None:
        """Put together what requests go through, before this agent's node."""
        settings, count = self.settings, self._stat_buffer.count
        most_local = max(1, self.crawler.settings.getint("CONCURRENT_REQUESTS") // SHARE)
        self._local = Hostless(self.crawler.request_fingerprinter, self._tell_start, most_local)
        drops = Drops(count, self.notices, self._kept, settings.max_letter_bytes, self.alone, self.is_trial)
        self._tools = Tools(
            settings, self._codec, self._keys, self.node, self.flights, self._link_filter, drops, self.reach,
            Seeds(self._keys, self._codec, self.alone), self._scores,
        )  # fmt: skip
        self._enqueue = Enqueue(self._tools, self._local, self._stat_buffer)
        self.outside = OutsideSeeds(self._tools, self._enqueue.take, has_parse(self._spider))
        self._link_filter.ask_frontier(self._enqueue.is_visited)

    def _make_dequeue(self) -> Dequeue:
        count, stores = self._stat_buffer.count, self._stores
        pages = RankedPages.of(self._ranker, self._keys, self.flights, self.node)
        sessions = Sessions(self.crawler, self.node, self.settings, self.notices, count)
        judge = stores.judge_of(count, self.node.note) if stores is not None else None
        return Dequeue(
            self.crawler, self._spider, self._tools, self._local, self._kept, self.gate,
            PageReaders(self._errors, self.sitemaps, sessions, self.outputs, judge, pages), self._stat_buffer,
        )  # fmt: skip

    def begin(self) -> None:
        """The node is open: take requests, and hang on Scrapy's engine, by `hooks`."""
        self._opened = True
        self.hooks.on_removed(self._dequeue.removed)
        self.hooks.on_closing(self._closing)
        self.hooks.outlast_signals()
        self.hooks.on_outcome(self.outcome)
        self.hooks.on_successor(self.mark_successor)
        carry = self._dequeue.page_room.after(measured.carry_of(self.gate.carry, self.metrics), self.hooks.wake)
        self.hooks.around_transfers(carry, self.reach)
        self.hooks.around_downloads(self._downloads.make)
        self.hooks.let_first_pass()
        self.hooks.at_idle(self._idle)
        self.crawler.signals.connect(self._dequeue.spider_error, signals.spider_error)

    def _closing(self) -> None:
        self._closes = True
        self.gate.close()
        if not self.node.over:  # Scrapy waits for what is under way
            logger.info("%s", self.ending.waits_for(self.flights, self.node, self.settings))

    def held_up(self) -> tuple[bool, IdleReason | None]:
        """Whether no further request is asked for, and what those under way wait for."""
        if self._dequeue.page_room.full:
            return True, held_up.in_callbacks(self.flights, kinds.MEMORY)
        if self.outputs is not None and self.outputs.full:
            return True, reason(kinds.OUTPUTS)
        return self.hooks.needs_backout(), held_up.under_way(self.flights)

    def _cut_short(self) -> None:
        if not self.node.over:
            say_cut_short(self.agent_id, self.settings)

    def close(self, reason: str) -> Deferred[None] | None:
        """Hand over and go, or close after the end of the crawl."""
        return deferred_from_coro(self._leave(reason)) if self._opened else None

    async def _leave(self, reason: str) -> None:
        if self._loop_watch is not None:
            self._loop_watch.stop()
        try:
            await self.start_items.close()
            await self.node.leave(reason)
            atexit.unregister(self._cut_short)
        finally:
            for part in (self._stores, self.metrics):
                if part is not None:
                    await part.close()
            self._stat_buffer.close(self.node, self._keys.changed, self._page_links.taken)
            if self.trial is None:
                self.ending.say(self.node, self.settings, self._stores.names if self._stores is not None else ())
            self._link_filter.close()
            self._downloads.close()
            self._errors.close()
            self.directory.close()
            if self.trial is not None:
                self.trial.close()

    @property
    def _spider(self) -> Spider:
        spider = self.crawler.spider
        assert spider is not None, "a scheduler is opened with a spider"
        return spider

    def enqueue_request(self, request: Request) -> bool:
        """Queue a request, send it to its owner, or drop it (known, or refused by a filter): False then."""
        if self.outputs is not None:
            self.outputs.unmark(request)
        return self._enqueue.take(request, bool(request.meta.pop(SEED, False))).is_taken

    def is_known(self, request: Request) -> bool:
        """Whether a request of a page is a duplicate, counted then: what `enqueue_request` decides in most cases."""
        return not self._keys.asks and self._enqueue.is_known(request)

    def take_links(self, plain: PlainLinks, response: Response, ordinary: Ordinary, unheard: bool) -> Iterator[None]:
        """Take all links of a page, some between two yields; arguments and errors are those of `PageLinks.take`."""
        flight = self.flights.get(response.request)
        return self._page_links.take(plain, response, flight.visit if flight is not None else None, ordinary, unheard)

    def seeds(self, plain: PlainLinks) -> Iterator[Request]:
        """The requests for plain links that start() has yielded."""
        return self._page_links.seeds(plain)

    def mark_child(self, request: Request, parent: Request | None) -> None:
        """The page of `parent` yields `request`, which is enqueued next."""
        self._enqueue.mark_child(request, parent)

    def _found(self, request: Request, parent: Request) -> None:
        """A robots.txt that `parent` had fetched, or the sitemap that it is, leads to this request."""
        self.mark_child(request, parent)
        self.crawler.engine.crawl(request)

    def count(self, stat: str) -> None:
        """One more of this, in Scrapy's stats."""
        self._stat_buffer.count(stat)

    def has_pending_requests(self) -> bool:
        """Whether requests wait that this agent is to fetch."""
        return bool(self._local) or self.node.status.pending()

    def __len__(self) -> int:
        """How many requests wait that this agent is to fetch: spiders that feed themselves ask. Linear in the hosts."""
        return len(self._local) + self.node.status.waiting if self._opened else 0

    def next_request(self) -> Request | None:
        """The next request that may be fetched now; None when there is none, though some may be pending."""
        return self._dequeue.next()

    def outcome(self, result: Response | Failure, request: Request) -> bool:
        """A request has its response or error; True when the spider must not be told."""
        return self._dequeue.outcome(result, request)

    def mark_successor(self, request: Request, parent: Request) -> None:
        """A downloader middleware gave `request`, which is enqueued next, in place of the response of `parent`."""
        self._enqueue.mark_successor(request, parent)

    # The beginning and the end of the crawl

    @property
    def start_waits(self) -> bool:
        """Whether `start()` should wait before it yields more (`Node.crowded`)."""
        return self._opened and (self.node.status.crowded or self._local.many)

    @property
    def output_waits(self) -> bool:
        """Whether a page that yields very many links should wait before it yields more (`Node.congested`); not while
        the spider is being closed, which waits for its callbacks."""
        return self._opened and not self._closes and self.node.status.congested

    def start_ended(self) -> None:
        """The spider's `start()` has yielded its last."""
        self._start_ended = True
        if self._opened:
            self._tools.seeds.running = False
        self._tell_start()

    def _tell_start(self) -> None:
        """Tell the node whether more may come from outside of its queues: start(), local requests, handlers, seeds."""
        if self._opened:
            serves = self.node.seeds.serves
            self.node.agent.start_exhausted = self._start_ended and self._local.over and not (self._held or serves)

    def _idle(self, held: bool) -> bool:
        """The engine is idle; whether a handler of the user's holds the spider open. True when it has to stay open."""
        self._held = held
        self._tell_start()
        return not self.node.over
