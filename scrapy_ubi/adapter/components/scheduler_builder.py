"""Puts a scheduler together: its parts, in the order of their needs, as the settings want them.

Rules of this module:

* `SchedulerBuilder` holds what is made on the way, and gives the scheduler what it works with. Who needs a part is
  given the part; nothing is looked for later.
* `make_transport` and `make_node` are methods, so that a scheduler may have others (`UbiScheduler.builder_class`).
* Errors of the user's settings are `UbiRefused`, with one sentence, before anything is opened.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
from collections.abc import Callable, Container, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object

from scrapy_ubi.adapter.components import measured, page_observers
from scrapy_ubi.adapter.components.downloader_middleware import place_gate
from scrapy_ubi.adapter.components.ending import Ending
from scrapy_ubi.adapter.components.node_events import LiveChanges, SchedulerEvents
from scrapy_ubi.adapter.components.sources import Sources
from scrapy_ubi.adapter.components.start_items import StartItems
from scrapy_ubi.adapter.downloads.gate import Gate
from scrapy_ubi.adapter.downloads.page_room import PageRoom
from scrapy_ubi.adapter.downloads.reach import Reach, let_reach
from scrapy_ubi.adapter.downloads.resolver import Resolver
from scrapy_ubi.adapter.downloads.unscheduled import UnscheduledResults
from scrapy_ubi.adapter.feeds import feed_params
from scrapy_ubi.adapter.feeds.feed_claims import FeedClaims
from scrapy_ubi.adapter.process import arguments, process_start, start_remarks
from scrapy_ubi.adapter.process.agent_directory import AgentDirectory
from scrapy_ubi.adapter.process.error_log import ErrorWatch
from scrapy_ubi.adapter.process.start_errors import process_ended
from scrapy_ubi.adapter.requests.codec import Codec
from scrapy_ubi.adapter.requests.identity import NO_FILTER, FingerprintKeys, RequestKeys
from scrapy_ubi.adapter.requests.meta_codecs import make_codecs
from scrapy_ubi.adapter.requests.observers import PageObserver
from scrapy_ubi.adapter.robots.sitemaps import Sitemaps, UnaskedSitemaps, sitemap_news
from scrapy_ubi.adapter.scheduling import project_observers
from scrapy_ubi.adapter.scheduling.dequeue import Dequeue
from scrapy_ubi.adapter.scheduling.drops import Drops
from scrapy_ubi.adapter.scheduling.enqueue import Enqueue
from scrapy_ubi.adapter.scheduling.hostless import SHARE, Hostless
from scrapy_ubi.adapter.scheduling.inspect_mode import Trial, WholeCrawl
from scrapy_ubi.adapter.scheduling.kept_requests import KeptRequests
from scrapy_ubi.adapter.scheduling.link_decision import LinkDecision
from scrapy_ubi.adapter.scheduling.link_filter import LinkFilter
from scrapy_ubi.adapter.scheduling.link_scores import LinkScores
from scrapy_ubi.adapter.scheduling.outside_seeds import OutsideSeeds, has_parse
from scrapy_ubi.adapter.scheduling.page_links import PageLinks
from scrapy_ubi.adapter.scheduling.seeds import Seeds
from scrapy_ubi.adapter.scheduling.stat_buffer import StatBuffer
from scrapy_ubi.adapter.scrapy_private.engine import EngineHooks
from scrapy_ubi.adapter.scrapy_private.runs import is_trial
from scrapy_ubi.adapter.scrapy_private.scraper import HOOK, pipelines
from scrapy_ubi.adapter.scrapy_private.steady_timers import steady_timers
from scrapy_ubi.agent import Node, build_node
from scrapy_ubi.agent.crawl.disk import AgentDisk
from scrapy_ubi.agent.crawl.disk_contract import KeptOutputs
from scrapy_ubi.agent.mail.seed_inbox import SeedOutcome
from scrapy_ubi.agent.profile.origin import Origin
from scrapy_ubi.agent.report.loop_watch import LoopWatch
from scrapy_ubi.agent.start import Start
from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.ground import clock, later
from scrapy_ubi.policy.ranking import Ranker, read_rank
from scrapy_ubi.settings import UbiSettings, home
from scrapy_ubi.transport import Transport
from scrapy_ubi.transport.in_process import MemoryHub, MemoryTransport

if TYPE_CHECKING:
    from scrapy_ubi.adapter.downloads import proxy_pool, rated_gate
else:
    proxy_pool = later.Later("scrapy_ubi.adapter.downloads.proxy_pool")
    rated_gate = later.Later("scrapy_ubi.adapter.downloads.rated_gate")

if TYPE_CHECKING:
    from scrapy_ubi.adapter.components.outputs_contract import AgentOutputs
    from scrapy_ubi.adapter.components.scheduler import UbiScheduler
    from scrapy_ubi.adapter.feeds.pipeline_flush import PipelineFlush
    from scrapy_ubi.agent.metrics.agent_metrics import AgentMetrics

MAIL_OF_A_LEASE = 0.6  # of a lease that mail waits for an answer at most, however far Redis is
REDIS = "scrapy_ubi.transport.redis"
OUTPUTS = "scrapy_ubi.outputs.setup.Outputs"  # by name: it is loaded where it is wanted

logger = logging.getLogger("scrapy_ubi.scheduler")

REFUSAL = "SCRAPY_UBI_REFUSAL"  # setting in which the add-on leaves the sentence why the crawl may not start
NO_ADDON = (
    "SCHEDULER is set to scrapy_ubi's, but the add-on, which it needs, is not on: replace SCHEDULER, and the line "
    'ADDONS = {} if there is one, by ADDONS = {"scrapy_ubi.Addon": 500}.'
)


def check_addon(settings: BaseSettings) -> None:
    """Raises SystemExit with one sentence where the add-on is missing, or has found that the crawl may not start."""
    refusal = settings.get(REFUSAL) if REFUSAL in settings else NO_ADDON
    if refusal:
        raise process_ended(refusal)


class SchedulerBuilder:
    """Puts one scheduler together, for the spider that is being opened."""

    mode: WholeCrawl = WholeCrawl()  # or only a look at a page or two
    origin: Origin
    directory: AgentDirectory
    feeds: FeedClaims
    link_filter: LinkFilter
    codec: Codec
    keys: RequestKeys
    kept: KeptRequests
    errors: ErrorWatch
    reach: Reach
    decision: LinkDecision
    scores: LinkScores | None = None
    ranker: Ranker | None = None
    stores: AgentOutputs | None = None  # where UBI_STORES or UBI_DUPLICATES asks for some
    batches: PipelineFlush | None = None  # where a pipeline writes in batches
    metrics: AgentMetrics | None = None  # where UBI_METRICS is set
    take_requisite: Callable[[Request, Request], bool]

    def __init__(self, scheduler: UbiScheduler, spider: Spider) -> None:
        self.scheduler = scheduler
        self.crawler = scheduler.crawler
        self.spider = spider
        self.stats = StatBuffer(self.crawler.stats)
        self.ending = scheduler.ending = Ending(self.crawler)
        self.projects: list[PageObserver] = []  # the observers of UBI_OBSERVERS

    async def build(self) -> None:
        """Make all parts, join the crawl, and take requests. Raises UbiError or TransportError."""
        scheduler = self.scheduler
        check_addon(self.crawler.settings)
        steady_timers()
        await self._read_settings()
        self._claim_feeds()
        self._make_parts()
        scheduler.hooks = EngineHooks(self.crawler.engine)
        scheduler.hooks.outlast_start()
        disk = None if self.mode.is_trial else await self._open_beside()
        self.put_together(disk)
        self._closes_with_scheduler()
        await scheduler.node.open()
        scheduler.loop_watch.start(asyncio.get_running_loop())
        self.hang_on_engine()
        scheduler.begin()
        if disk is not None and disk.saved is not None:
            self.feeds.goes_on(self.spider)
        self.errors.listen()
        if not scheduler.alone:  # alone, no other agent takes over; and Scrapy's shell never closes its spider
            atexit.register(scheduler.cut_short)

    # -- before there is a node

    async def _read_settings(self) -> None:
        scheduler = self.scheduler
        wanted, self.origin = read_settings(self.crawler, self.spider)
        await self.read_link_rules(wanted)
        self.projects = project_observers.make(wanted.observers, self.crawler)
        if is_trial(self.crawler):
            self.mode = Trial()
            scheduler.is_trial = True
        wanted = self.mode.settings(wanted)
        self.directory = AgentDirectory.open(wanted)
        scheduler.agent_id = self.directory.agent_id
        scheduler.settings = replace(wanted, agent_id=scheduler.agent_id, dir=self.directory.path, dir_given=True)

    async def read_link_rules(self, settings: UbiSettings) -> None:
        """Read what the settings say of links, before anything is opened. Raises UbiSettingError."""
        self.ranker = read_rank(settings.rank) if settings.rank is not None else None
        self.scores = await LinkScores.from_settings(settings, self.stats)
        self.link_filter = LinkFilter.from_settings(settings, self.stats.count)

    def _claim_feeds(self) -> None:
        """Make the feeds this agent's own. Raises UbiRefused when one is another agent's."""
        scheduler = self.scheduler
        self.feeds = FeedClaims(self.crawler, scheduler.settings.shared_feeds, scheduler.alone)
        scheduler.feed_times = feed_params.times()
        if not self.mode.is_trial:
            self.feeds.claim(self.spider)

    def _make_parts(self) -> None:
        scheduler, crawler, settings = self.scheduler, self.crawler, self.scheduler.settings
        proxies = ("*",) if scheduler.alone else settings.proxies  # alone: no other agent writes what it reads
        self.codec = Codec(self.spider, crawler.settings, proxies, make_codecs(settings.codecs or {}))
        self.keys = make_keys(crawler, settings, self.stats)
        self.kept = self.mode.kept_requests(settings.redis_url is None)

        def note(what: str) -> None:
            scheduler.node.note(what)  # the node is made of this, and not there yet

        self.errors = ErrorWatch(crawler, settings, self.directory.path, note, self.ending.burst)
        resolve = Resolver(crawler).addresses
        self.reach = Reach(settings, crawler.settings, resolve, scheduler.notices, self.stats.count)

    async def _open_beside(self) -> AgentDisk:
        """Open the disk while another thread imports what talks to Redis, where there is one. Raises UbiError."""
        if self.scheduler.alone:
            return await self._open_disk()
        loading = asyncio.to_thread(later.load, REDIS)  # an error of it comes again where the module is used
        opened, _ = await asyncio.gather(self._open_disk(), loading, return_exceptions=True)
        if isinstance(opened, BaseException):
            raise opened
        return opened

    async def _open_disk(self) -> AgentDisk:
        """Open the directory's frontier and files, with what is kept beside them. Raises UbiError."""
        settings, beside = self.scheduler.settings, list[KeptOutputs]()
        if any(hasattr(one, HOOK) for one in pipelines(self.crawler)):  # else the module is not loaded
            from scrapy_ubi.adapter.feeds.pipeline_flush import PipelineFlush

            self.batches = batches = PipelineFlush.connect(self.crawler, self.stats.count)
            beside += [batches] if batches is not None else []
        if settings.stores or settings.duplicates is not None:  # likewise
            self.stores = stores = load_object(OUTPUTS).from_settings(self.crawler, settings)
            beside.append(stores.writer)
        disk = await AgentDisk.open(settings.dir, settings, clock.now, beside)
        self.metrics = await measured.open_metrics(settings, disk, self.stores)
        return disk

    # -- the node, and what requests go through before and behind it

    def make_transport(self) -> Transport:
        """Make the way to the other agents. Raises UbiSettingError."""
        return make_transport(self.scheduler.settings, self.scheduler.agent_id)

    def make_node(self, transport: Transport, disk: AgentDisk | None) -> Node:
        """Make the node of this agent, on which the other parts hang."""
        address = self.metrics.address if self.metrics is not None else ""
        directory, asked = self.directory, process_start.asked_for()
        traffic = partial(measured.traffic, self.crawler.stats)
        start = Start(directory.agent_id, self.spider.name, self.origin, directory.predecessor, asked, traffic, address)
        events = SchedulerEvents(self.scheduler, self.ending, directory, self.feeds, self._take_seed)
        return build_node(self.scheduler.settings, transport, start, self.codec.check, self.keys, events, disk=disk)

    def _take_seed(self, number: str, fields: Mapping[str, str]) -> SeedOutcome:
        return self.outside.take_seed(number, fields)  # made of the node

    def put_together(self, disk: AgentDisk | None = None) -> None:
        """Make the node, and what hangs on it. The scheduler has its settings, agent and hooks."""
        scheduler, crawler = self.scheduler, self.crawler
        scheduler.count, scheduler.asks_each = self.stats.count, self.keys.asks
        node = scheduler.node = self.make_node(measured.transport_of(self.make_transport(), self.metrics), disk)
        if self.metrics is not None:
            self.metrics.node = node
        scheduler.loop_watch = LoopWatch(node.lifecycle.ticker.late)
        let_reach(crawler, self.reach)
        scheduler.gate = (rated_gate.RatedGate if scheduler.settings.rates.named else Gate)(
            crawler,
            node,
            scheduler.settings,
            scheduler.flights,
            scheduler.notices,
            self.reach,
            scheduler.observers.received,
        )
        if scheduler.settings.proxy_pool.proxies:
            scheduler.proxies = proxy_pool.PooledProxies(scheduler.settings.proxy_pool, node)
        place_gate(crawler, scheduler.gate)
        decision = self.decision = self._make_decision()
        enqueue = scheduler.enqueue = Enqueue(decision, scheduler.sources.local, self.stats)
        self.link_filter.ask_frontier(enqueue.is_visited)
        self.outside = OutsideSeeds(decision, enqueue.take_request, has_parse(self.spider))
        self.downloads = UnscheduledResults(self.stats.count, node.note, scheduler.gate.hosts.of_url)

        def found(request: Request, parent: Request) -> None:
            """A robots.txt that `parent` had fetched, or the sitemap that it is, leads to this request."""
            enqueue.mark_child(request, parent)
            crawler.engine.crawl(request)

        def take_requisite(request: Request, parent: Request) -> bool:
            """A page or style sheet needs this. Return whether it was not known."""
            if enqueue.is_visited(request):
                return False
            found(request, parent)
            return True

        self.take_requisite = take_requisite
        sitemaps = Sitemaps if crawler.settings.getbool("ROBOTSTXT_OBEY") else UnaskedSitemaps
        scheduler.sitemaps = sitemaps(
            crawler, scheduler.settings.sitemaps, found, sitemap_news(node, self.keys), lambda: scheduler.output_waits
        )
        own = type(scheduler) if scheduler.takes_requests_itself() else None
        why = why_one_by_one(self.keys, scheduler.settings, own)
        scheduler.page_links = PageLinks(crawler, decision, why)
        page_observers.add_all(self, decision.seeds)
        scheduler.dequeue = Dequeue(
            crawler,
            self.spider,
            decision,
            scheduler.sources.local,
            self.kept,
            scheduler.gate,
            scheduler.observers,
            self.stats,
        )
        LiveChanges(scheduler, self.link_filter, self.errors)
        scheduler.start_items = self._make_start_items()

    def _make_decision(self) -> LinkDecision:
        scheduler, settings, crawler = self.scheduler, self.scheduler.settings, self.crawler
        most_local = max(1, crawler.settings.getint("CONCURRENT_REQUESTS") // SHARE)
        seeds = Seeds(self.keys, self.codec, scheduler.alone)
        local = Hostless(crawler.request_fingerprinter, lambda: scheduler.sources.tell(), most_local)
        scheduler.sources = Sources(scheduler.node, local, seeds)
        drops = Drops(
            self.stats.count,
            scheduler.notices,
            self.kept,
            settings.max_letter_bytes,
            scheduler.alone,
            scheduler.is_trial,
        )
        return LinkDecision(
            settings, self.codec, self.keys, scheduler.node, scheduler.flights, self.link_filter, drops, self.reach,
            seeds, self.scores,
        )  # fmt: skip

    def _make_start_items(self) -> StartItems:
        """Make what takes care of the items of start()."""
        scheduler, node, stores, batches = self.scheduler, self.scheduler.node, self.stores, self.batches

        def outlasts() -> bool:
            stored = stores is None or not (stores.writer.changed or stores.writer.waiting)
            return stored and not (batches is not None and batches.changed) and not self.feeds.flush()

        def members() -> Container[str]:
            return node.agent.view.members

        claims = None if scheduler.alone or scheduler.is_trial else node.item_claims
        patience = scheduler.settings.failure_timeout
        items = StartItems(claims, scheduler.agent_id, members, patience, outlasts, scheduler.notices, self.stats.count)
        items.before_first = partial(items.listen, self.crawler)
        return items

    def hang_on_engine(self) -> None:
        """Have Scrapy's engine call the parts. The node is open."""
        scheduler, hooks = self.scheduler, self.scheduler.hooks
        hooks.on_removed(scheduler.dequeue.removed)
        hooks.on_closing(partial(self.ending.begin, scheduler))
        hooks.outlast_signals()
        hooks.on_outcome(scheduler.dequeue.outcome)
        hooks.on_successor(scheduler.enqueue.mark_successor)
        room = scheduler.observers.find_observer(PageRoom)
        assert room is not None, "large pages always wait for each other"
        carry = room.after(measured.carry_of(scheduler.gate.carry, self.metrics), hooks.wake)
        hooks.around_transfers(carry, self.reach)
        hooks.around_downloads(self.downloads.make)
        hooks.let_first_pass()
        hooks.at_idle(scheduler.sources.idle)
        connect = self.crawler.signals.connect
        connect(scheduler.dequeue.spider_error, signals.spider_error)
        # After the lean way, which is placed at the same signal: that was connected before.
        connect(scheduler.hear_errbacks, signals.spider_opened)

    def _closes_with_scheduler(self) -> None:
        """Have parts closed when the scheduler is: those named last come first."""
        scheduler = self.scheduler
        close, stores = scheduler.closing.callback, self.stores
        close(self.mode.close)
        for part in (self.directory, self.errors, self.downloads, self.link_filter):
            close(part.close)
        if not self.mode.is_trial:
            names = stores.names if stores is not None else ()
            close(lambda: self.ending.say(scheduler.node, scheduler.settings, names))
        close(lambda: self.stats.close(scheduler.node, self.keys.changed, scheduler.page_links.taken))
        for opened in (self.metrics, stores):
            if opened is not None:
                scheduler.closing.push_async_callback(opened.close)


def read_settings(crawler: Crawler, spider: Spider) -> tuple[UbiSettings, Origin]:
    """The settings of this crawler's agent, and what it is started from. Raises UbiError."""
    settings = crawler.settings
    given = arguments.given(crawler)
    wanted = UbiSettings.from_scrapy(settings, spider.name, arguments=given.short)
    if not settings.get("UBI_CRAWL"):
        given.check()
    if not wanted.dir_given and home.is_former(wanted.dir):
        logger.info("%s", home.remark(wanted.dir))
    remarks = start_remarks.settings_remarks(settings, wanted), start_remarks.plugin_remarks(settings, wanted)
    for sentence in chain(*remarks, start_remarks.spider_remarks(type(spider))):
        logger.warning("%s", sentence)
    code = process_start.code_digest(type(spider), settings.getlist("SPIDER_MODULES"))
    origin = Origin(f"{type(spider).__module__}.{type(spider).__qualname__}", given.mark, given.shown, code)
    return wanted, origin


def make_transport(settings: UbiSettings, agent_id: str) -> Transport:
    """Redis where there is one, else this process's memory: a crawl of one agent. Raises UbiSettingError."""
    if settings.serve and settings.redis_url is None:
        raise UbiSettingError("UBI_SERVE", "is set and UBI_REDIS_URL is not", "name the Redis by which URLs come")
    if settings.seed_list and not settings.serve:
        raise UbiSettingError("UBI_SEED_LIST", "is set and UBI_SERVE is not", "set UBI_SERVE = True, too")
    if settings.seed_list and settings.secret:
        raise UbiSettingError(
            "UBI_SEED_LIST",
            "cannot be used with UBI_SECRET: what a list holds is not signed",
            "give URLs by `scrapy ubi seed`",
        )
    if settings.redis_url is None:
        return MemoryTransport(MemoryHub(), agent_id, settings.crawl, settings.max_letter_bytes)
    # Only here: redis-py takes a while to import, and an agent alone needs nothing of it.
    from scrapy_ubi.transport.credentials import RedisLogin, named_credentials
    from scrapy_ubi.transport.redis import RedisTransport
    from scrapy_ubi.transport.seed_reader import SeedSource
    from scrapy_ubi.transport.signed_transport import SignedTransport
    from scrapy_ubi.transport.signer import ROOM, Signer

    # Before an agent is held dead it may come back, and answer what it has taken.
    seeds = SeedSource(settings.seed_list, 2 * settings.failure_timeout, needed=settings.serve)
    largest = settings.max_letter_bytes + (ROOM if settings.secret else 0)
    login = RedisLogin(settings.redis_url, named_credentials(settings.redis_credentials))
    longest = settings.lease_timeout * MAIL_OF_A_LEASE
    transport = RedisTransport(
        login,
        settings.crawl,
        agent_id,
        largest,
        longest_timeout=longest,
        seeds=seeds,
        mail_slots=settings.mail_slots,
    )
    if not settings.secret:
        return transport
    signer = Signer(settings.secret, settings.crawl)
    return SignedTransport(transport, signer, agent_id, settings.crawl, settings.heartbeat_interval)


def make_keys(crawler: Crawler, settings: UbiSettings, stats: StatBuffer) -> RequestKeys:
    """What makes the keys of requests: the normal form of their URLs, or the project's own fingerprinter."""
    unfiltered = crawler.settings.get("DUPEFILTER_CLASS") in NO_FILTER
    if not settings.fingerprints:
        return RequestKeys(settings, unfiltered)
    fingerprinter = crawler.request_fingerprinter
    assert fingerprinter is not None, "a scheduler is opened with a crawler that runs"
    return FingerprintKeys(settings, fingerprinter, stats.count, unfiltered)


def why_one_by_one(keys: RequestKeys, settings: UbiSettings, own: type | None) -> str:
    """Why the links of a page must be taken one by one, as Requests; empty where they may be taken at once. `own`: a
    scheduler that has an `enqueue_request` of its own, if it is one."""
    if keys.unfiltered:
        return "DUPEFILTER_CLASS lets every request be fetched"
    if settings.fingerprints:
        return f"REQUEST_FINGERPRINTER_CLASS, {settings.fingerprinter}, is asked for each request"
    if settings.named_by:
        return f"UBI_PARTITION, {settings.named_by}, is asked for each request"
    return f"{own.__qualname__} has an enqueue_request of its own" if own is not None else ""
