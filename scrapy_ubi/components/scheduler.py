"""Scrapy's scheduler, in front of a node of the crawl.

Rules of this module:

* `enqueue_request`, `next_request` and `has_pending_requests` touch memory only; the node does the rest in the
  background and wakes the engine when a host becomes ready.
* What becomes of a request that comes in is the matter of `intake`, of one that goes out that of `handout`; here they
  are put together, joined to a node, and hung on Scrapy's engine.
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

from scrapy import Request, Spider, signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.settings import BaseSettings
from scrapy.utils.asyncio import is_asyncio_available
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.misc import load_object
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from scrapy_ubi import clock
from scrapy_ubi.downloads.gate import Guard
from scrapy_ubi.downloads.reach import Reach, let_reach
from scrapy_ubi.downloads.resolver import Names
from scrapy_ubi.downloads.unscheduled_results import Downloads
from scrapy_ubi.errors import UbiError
from scrapy_ubi.node import Node
from scrapy_ubi.node.disk import Keeper
from scrapy_ubi.node.group.origin import Origin
from scrapy_ubi.outputs import feed_params
from scrapy_ubi.outputs.feed_claims import FeedClaims
from scrapy_ubi.outputs.pages import KEY, PageOutputs
from scrapy_ubi.outputs.setup import Outputs
from scrapy_ubi.plainlinks import PlainLinks
from scrapy_ubi.politeness.robots.sitemaps import Sitemaps
from scrapy_ubi.process import (
    arguments,
    ignored_settings,
    last_lines,
    process_start,
)
from scrapy_ubi.process.agent_directory import AgentDirectory
from scrapy_ubi.process.error_signals import ErrorWatch
from scrapy_ubi.process.log_once import Notices
from scrapy_ubi.process.start_errors import process_ended
from scrapy_ubi.requests.codec import Codec
from scrapy_ubi.requests.fingerprints import FingerprintKeys
from scrapy_ubi.requests.identity import NO_FILTER, RequestKeys
from scrapy_ubi.requests.inflight import Flights
from scrapy_ubi.scheduling.bulk_enqueue import Ordinary
from scrapy_ubi.scheduling.dequeue import Handout
from scrapy_ubi.scheduling.drops import Losses
from scrapy_ubi.scheduling.enqueue import Intake, Tools
from scrapy_ubi.scheduling.hostless import SHARE, LocalRequests
from scrapy_ubi.scheduling.inspect_mode import Trial
from scrapy_ubi.scheduling.kept_requests import MOST_ALONE, MOST_HOLDERS_ALONE, Originals
from scrapy_ubi.scheduling.link_filter import Filtering
from scrapy_ubi.scheduling.page_links import Taking
from scrapy_ubi.scheduling.sessions import Sessions
from scrapy_ubi.scheduling.stats import StatSheet
from scrapy_ubi.scrapy_private import EngineHooks, end_badly, is_trial
from scrapy_ubi.scrapy_private.engines import scheduler_in
from scrapy_ubi.scrapy_private.steady_timers import steady_timers
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.settings_table import home
from scrapy_ubi.transport import Transport, TransportError
from scrapy_ubi.transport.in_process import MemoryHub, MemoryTransport
from scrapy_ubi.transport.redis import RedisTransport

logger = logging.getLogger("scrapy_ubi.scheduler")

SEED = "ubi_seed"  # meta key: set by the spider middleware on what start() yields, taken off here
REFUSAL = "SCRAPY_UBI_REFUSAL"  # setting in which the add-on leaves the sentence why the crawl may not start
NO_ADDON = (
    "SCHEDULER is set to scrapy_ubi's, but the add-on, which it needs, is not on: replace SCHEDULER, and the line "
    'ADDONS = {} if there is one, by ADDONS = {"scrapy_ubi.Addon": 500}.'
)


class UbiScheduler(BaseScheduler):
    """One agent's end of the crawl. Public for others: `agent_id`, `settings`, `node`, `guard`, `reach`, `sitemaps`,
    `outcome`, `mark_successor`."""

    settings: UbiSettings
    agent_id: str
    node: Node
    guard: Guard
    reach: Reach
    outputs: PageOutputs | None = None  # none where UBI_STORES names no store

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self._flights = Flights()
        self._originals = Originals()
        self._notices = Notices()
        self.sitemaps = Sitemaps(crawler, 0, self._found)
        self._trial: Trial | None = None
        self._stores: Outputs | None = None
        self._endings: list[asyncio.Future[None]] = []
        self._opened = False
        self._start_ended = False
        self._held = True  # by the user's handlers at idle; until they were asked nobody knows

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> UbiScheduler:
        return cls(crawler)

    @property
    def is_trial(self) -> bool:
        """Whether this is only a look at a page or two (`scrapy shell` and the like)."""
        return self._trial is not None

    # Opening and closing

    def open(self, spider: Spider) -> Deferred[None] | None:
        """Join the crawl. Raises SystemExit with one sentence when that cannot be."""
        if not is_asyncio_available():
            raise process_ended("this process runs a Twisted reactor without asyncio: install the asyncio one instead.")
        return deferred_from_coro(self._open(spider))

    async def _open(self, spider: Spider) -> None:
        settings = self.crawler.settings
        refusal = settings.get(REFUSAL) if REFUSAL in settings else NO_ADDON
        if refusal:
            raise process_ended(refusal)
        try:
            await self._join(spider)
        except (UbiError, TransportError) as error:
            raise process_ended(error) from error

    async def _join(self, spider: Spider) -> None:
        steady_timers()
        settings = self.crawler.settings
        given = arguments.given(self.crawler)
        wanted = UbiSettings.from_scrapy(settings, spider.name, arguments=given.short)
        if not settings.get("UBI_CRAWL"):
            given.check()
        if not wanted.dir_given and home.is_former(wanted.dir):
            logger.info("%s", home.remark(wanted.dir))
        self._origin = Origin(f"{type(spider).__module__}.{type(spider).__qualname__}", given.mark, given.shown)
        for sentence in ignored_settings.remarks(settings, wanted):
            logger.warning("%s", sentence)
        self._sheet = StatSheet(self.crawler.stats)
        self._filtering = Filtering.from_settings(wanted, self._sheet.count)
        self._originals = Originals(MOST_ALONE, MOST_HOLDERS_ALONE) if wanted.redis_url is None else Originals()
        if is_trial(self.crawler):
            self._trial = Trial()
            self._originals = self._trial.originals
            wanted = self._trial.settings(wanted)
        self._directory = AgentDirectory.open(wanted)
        self.agent_id = self._directory.agent_id
        self.settings = replace(wanted, agent_id=self.agent_id, dir=self._directory.path, dir_given=True)
        self._claim_feeds(spider)
        proxies = ("*",) if self.alone else self.settings.proxies  # alone: nobody else writes what it reads
        self._codec = Codec(spider, settings, proxies)
        self._keys = self._make_keys()
        self._hooks = EngineHooks(self.crawler.engine)
        self._errors = ErrorWatch(self.crawler, wanted, self._directory.path, self._note, self._break)
        self._stores = Outputs.of(self.crawler, self.settings) if self._trial is None else None
        writer = self._stores.writer if self._stores is not None else None
        disk = None
        if self._trial is None:
            disk = await Keeper.open(self.settings.dir, self.settings, clock.now, writer)
        self.node = self.make_node(self.make_transport(), disk)
        self.sitemaps = Sitemaps(self.crawler, self.settings.sitemaps, self._found)
        resolve = Names(settings).addresses
        self.reach = Reach(self.settings, settings, resolve, self._notices, self._sheet.count)
        let_reach(self.crawler, self.reach)
        self.guard = Guard(self.crawler, self.node, self.settings, self._flights, self._notices, self.reach)
        self._downloads = Downloads(self.crawler.stats.inc_value, self.node.note, self.guard.host_of_url)
        self._assemble()
        if self._stores is not None:
            self.outputs = self._stores.of_pages(self._flights, self._keys.normal_form, self._sheet.count)
            self._stores.writer.on_room_in(asyncio.get_running_loop(), self._hooks.wake)
        self._taking = self._make_taking()
        self._handout = self._make_handout()
        await self.node.open()
        self._opened = True
        if disk is not None and disk.saved is not None:
            self._feeds.goes_on(spider)
        self._hook_in()

    def _claim_feeds(self, spider: Spider) -> None:
        """Make the feeds this agent's own. Raises UbiRefused when one is another agent's, too."""
        self.feed_times = feed_params.times()
        self._feeds = FeedClaims(self.crawler, self.settings.shared_feeds, self.alone)
        if self._trial is None:
            self._feeds.claim(spider)

    @property
    def alone(self) -> bool:
        """Whether this crawl is one of one agent, whose requests never travel."""
        return self.settings.redis_url is None

    def make_transport(self) -> Transport:
        """Redis where there is one, else this process's memory: a crawl of one agent."""
        settings, agent_id = self.settings, self.agent_id
        if settings.redis_url is None:
            return MemoryTransport(MemoryHub(), agent_id, settings.crawl, settings.max_letter_bytes)
        return RedisTransport(settings.redis_url, settings.crawl, agent_id, settings.max_letter_bytes)

    def make_node(self, transport: Transport, disk: Keeper | None) -> Node:
        """The node of this agent; tests put another in its place."""
        return Node(
            self.settings,
            transport,
            agent_id=self.agent_id,
            spider=self._spider.name,
            origin=self._origin,
            check=self._codec.check,
            keys=self._keys,
            on_wake=self._hooks.wake,
            on_cancel=lambda: self.guard.cancel(),
            on_fatal=self._fail,
            on_drain=self._drain,
            on_given_up=lambda reason: self._sheet.count(f"ubi/failed/{reason}"),
            on_limit=lambda reason, sentence: self._stop(sentence, reason, logging.INFO),  # as the user wants it
            predecessor=self._directory.predecessor,
            started=process_start.asked_for(),
            on_incarnation=self._directory.record_incarnation,
            on_flush=self._feeds.flush,
            disk=disk,
        )

    def _assemble(self) -> None:
        """Put together what requests go through, before this agent's node."""
        settings, originals = self.settings, self._originals
        most_local = max(1, self.crawler.settings.getint("CONCURRENT_REQUESTS") // SHARE)
        self._local = LocalRequests(self.crawler.request_fingerprinter, self._tell_start, most_local)
        losses = Losses(
            self._sheet.count, self._notices, originals, settings.max_letter_bytes, self.alone, self.is_trial
        )
        self._tools = Tools(
            settings, self._codec, self._keys, self.node, self._flights, self._filtering, losses, self.reach
        )
        self._intake = Intake(self._tools, self._local, self._sheet)
        self._filtering.ask_frontier(self._intake.is_visited)

    def _make_keys(self) -> RequestKeys:
        unfiltered = self.crawler.settings.get("DUPEFILTER_CLASS") in NO_FILTER
        if not self.settings.fingerprints:
            return RequestKeys(self.settings, unfiltered)
        fingerprinter = self.crawler.request_fingerprinter
        assert fingerprinter is not None, "a scheduler is opened with a crawler that runs"
        return FingerprintKeys(self.settings, fingerprinter, self._sheet.count, unfiltered)

    def _make_taking(self) -> Taking:
        if self._keys.unfiltered:
            why = "DUPEFILTER_CLASS lets every request be fetched"
        elif self.settings.fingerprints:
            why = f"REQUEST_FINGERPRINTER_CLASS, {self.settings.fingerprinter}, is asked for each request"
        else:
            own = type(self).enqueue_request is not UbiScheduler.enqueue_request
            why = f"{type(self).__qualname__} has an enqueue_request of its own" if own else ""
        return Taking(self.crawler, self._tools, why)

    def _make_handout(self) -> Handout:
        sessions = Sessions(self.crawler, self.node, self.settings, self._notices, self._sheet.count)
        return Handout(
            self.crawler, self._spider, self.node, self._codec, self._flights, self._local, self._originals,
            self.guard, self._errors, self.sitemaps, sessions, self._sheet, self.reach, self.outputs,
        )  # fmt: skip

    def _hook_in(self) -> None:
        self._hooks.on_removed(self._handout.removed)
        self._hooks.on_closing(self._closing)
        self._hooks.outlast_signals()
        self._hooks.on_outcome(self.outcome)
        self._hooks.on_successor(self.mark_successor)
        self._hooks.around_transfers(self.guard.carry, self.reach)
        self._hooks.around_downloads(self._downloads.make)
        self._hooks.let_first_pass()
        self._hooks.at_idle(self._idle)
        self.crawler.signals.connect(self._handout.spider_error, signals.spider_error)
        self._errors.listen()
        if not self.alone:  # else there is nobody to hand over to; and Scrapy's shell never closes its spider
            atexit.register(self._cut_short)

    def _closing(self) -> None:
        """The spider is being closed; Scrapy waits for what is under way."""
        self.guard.close()
        if not self.node.over:
            loads = sum(flight.held for flight in self._flights)
            logger.info("No new request is sent; %d requests under way end first.", loads)

    def _cut_short(self) -> None:
        """The process ends, and this agent has not left: a second Ctrl-C, most likely."""
        if not self.node.over:
            logger.warning(
                "Agent %s ends immediately, without handing over. The other agents take it for crashed: they take its "
                "hosts over when no heartbeat has come for %g s (UBI_FAILURE_TIMEOUT).",
                self.agent_id,
                self.settings.failure_timeout,
            )

    def close(self, reason: str) -> Deferred[None] | None:
        """Hand over and go, or close after the end of the crawl."""
        return deferred_from_coro(self._leave(reason)) if self._opened else None

    async def _leave(self, reason: str) -> None:
        try:
            await self.node.leave(reason)
            atexit.unregister(self._cut_short)
        finally:
            if self._stores is not None:
                self._stores.close(self._sheet.count)
            self._sheet.close(self.node, self._keys.changed, self._taking.taken)
            self._say_lost()
            self._filtering.close()
            self._downloads.close()
            self._errors.close()
            self._directory.close()
            if self._trial is not None:
                self._trial.close()

    def _say_lost(self) -> None:
        """Say what the crawl has lost, in its last lines."""
        tally = last_lines.tally(self.agent_id, self.node.counters(), self.node.published)
        last_lines.say(self.crawler, last_lines.lost(tally, self.settings.crawl))
        if copies := last_lines.of_copies(self.node.lost_agents, self.settings.replication):
            end_badly(self.crawler)
            last_lines.say(self.crawler, copies, logging.ERROR)

    def _fail(self, sentence: str) -> None:
        """The agent cannot go on; whoever runs it is told by the exit status."""
        end_badly(self.crawler)
        self._stop(sentence, "ubi_stopped")

    def _stop(self, sentence: str, reason: str, level: int = logging.ERROR) -> None:
        """Close the spider, and say why."""
        logger.log(level, "%s", sentence)
        self._end(reason)

    def _end(self, reason: str) -> None:
        """Close the spider. The loop keeps no task alive that nothing else refers to."""
        task = asyncio.ensure_future(self.crawler.engine.close_spider_async(reason=reason))
        self._endings.append(task)
        task.add_done_callback(_tell_of_error)

    def _break(self, sentence: str) -> None:
        """Too many errors in close succession."""
        self._stop(sentence, "error_burst")

    def _drain(self) -> None:
        """Somebody wants this agent to leave: as by SIGTERM, but for the reason."""
        logger.info("Asked to leave (scrapy ubi drain).")
        self._end("drained")

    @property
    def _spider(self) -> Spider:
        spider = self.crawler.spider
        assert spider is not None, "a scheduler is opened with a spider"
        return spider

    # Requests in

    def enqueue_request(self, request: Request) -> bool:
        """Take a request: queue it, send it to its owner, or drop it: known, or refused by a filter. False when it was
        dropped.
        """
        if self.outputs is not None:
            request.meta.pop(KEY, None)  # copied from its page's
        return self._intake.take(request, bool(request.meta.pop(SEED, False)))

    def is_known(self, request: Request) -> bool:
        """Whether a request that a page yields (`mark_child`) is a duplicate; counted then, and it need not be
        enqueued. The same decision as that of `enqueue_request`, for the most frequent case.
        """
        return self._intake.is_known(request)

    def take_links(self, plain: PlainLinks, response: Response, ordinary: Ordinary, unheard: bool) -> Iterator[None]:
        """Take all links of a page, some between two yields; arguments and errors are those of `Taking.take`."""
        flight = self._flights.get(response.request)
        return self._taking.take(plain, response, flight.visit if flight is not None else None, ordinary, unheard)

    def seeds(self, plain: PlainLinks) -> Iterator[Request]:
        """The requests for plain links that start() has yielded."""
        return self._taking.seeds(plain)

    def mark_child(self, request: Request, parent: Request | None) -> None:
        """The page of `parent` yields `request`, which is enqueued next."""
        self._intake.mark_child(request, parent)

    def _found(self, request: Request, parent: Request) -> None:
        """A robots.txt that `parent` had fetched, or the sitemap that it is, leads to this request."""
        self.mark_child(request, parent)
        self.crawler.engine.crawl(request)

    def _note(self, what: str) -> None:
        self.node.note(what)

    # Requests out

    def has_pending_requests(self) -> bool:
        """Whether requests wait that this agent is to fetch."""
        return bool(self._local) or self.node.pending()

    def __len__(self) -> int:
        """How many requests wait that this agent is to fetch: spiders ask Scrapy's scheduler for it, to feed themselves
        bit by bit. Linear in the hosts."""
        return len(self._local) + self.node.waiting if self._opened else 0

    def next_request(self) -> Request | None:
        """The next request that may be fetched now; None when there is none, though some may be pending."""
        return self._handout.next()

    def outcome(self, result: Response | Failure, request: Request) -> bool:
        """A request has its response or error; True when the spider must not be told."""
        return self._handout.outcome(result, request)

    def mark_successor(self, request: Request, parent: Request) -> None:
        """A downloader middleware gave `request`, which is enqueued next, in place of the response of `parent`."""
        self._intake.mark_successor(request, parent)

    def truncated(self, request: Request, response: Response, most: int) -> None:
        """Only the beginning of a response was kept."""
        self.node.note("truncated", self.guard.host_of(request))
        self._notices.once(
            "truncated",
            f"{response} is larger than {most} bytes: only so many are kept. UBI_MAX_BODY = 0 keeps pages whole.",
        )

    # The beginning and the end of the crawl

    @property
    def start_waits(self) -> bool:
        """Whether `start()` should wait before it yields more (`Node.crowded`)."""
        return self._opened and (self.node.crowded or self._local.many)

    def start_ended(self) -> None:
        """The spider's `start()` has yielded its last."""
        self._start_ended = True
        self._tell_start()

    def _tell_start(self) -> None:
        """Tell the node whether more may come from outside of its queues: from start(), from a local request, or from
        who holds the spider open."""
        if self._opened:
            self.node.agent.start_exhausted = self._start_ended and self._local.over and not self._held

    def _idle(self, held: bool) -> bool:
        """The engine is idle; whether a handler of the user's holds the spider open. True when it has to stay open."""
        self._held = held
        self._tell_start()
        return not self.node.over


def scheduler_of(crawler: Crawler) -> UbiScheduler | None:
    """The scheduler of this crawler's engine, where there is an engine, and it is this package's."""
    scheduler = scheduler_in(crawler)
    # `isinstance` is true of any scheduler, by the metaclass of Scrapy's base class.
    return scheduler if UbiScheduler in type(scheduler).__mro__ else None  # type: ignore[return-value]


def _tell_of_error(task: asyncio.Future[None]) -> None:
    """Log what has kept a spider from being closed."""
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("The spider could not be closed: %r", error, exc_info=error)


def own_scheduler(settings: BaseSettings) -> type[UbiScheduler] | None:
    """The scheduler that is set, where it is this package's or a subclass of it."""
    try:
        cls = load_object(settings["SCHEDULER"])
    except (ImportError, NameError, TypeError, ValueError):
        return None
    return cls if isinstance(cls, type) and UbiScheduler in cls.__mro__ else None
