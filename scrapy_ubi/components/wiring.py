"""The parts behind Scrapy's scheduler, as the settings want them: keys, transport, and the node's events.

Rules of this module:

* Each function makes one part of what it is given, or checks it, and keeps nothing. The scheduler calls them in the
  order of their needs, and holds the parts.
* Errors of the user's settings are `UbiRefused`, with one sentence, before anything is opened.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.settings import BaseSettings

from scrapy_ubi import clock
from scrapy_ubi.components import measured
from scrapy_ubi.components.live_changes import LiveChanges
from scrapy_ubi.components.start_items import StartItems
from scrapy_ubi.downloads.reach import Reach
from scrapy_ubi.downloads.resolver import Resolver
from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.node.crawl.disk import AgentDisk
from scrapy_ubi.node.mail.seed_inbox import SeedOutcome
from scrapy_ubi.node.profile.idle_reason import IdleReason
from scrapy_ubi.node.profile.origin import Origin
from scrapy_ubi.node.start import NodeEvents, Start
from scrapy_ubi.outputs import feed_params
from scrapy_ubi.outputs.feed_claims import FeedClaims
from scrapy_ubi.process import arguments, ignored_settings, plugin_remarks, process_start
from scrapy_ubi.process.error_signals import ErrorWatch
from scrapy_ubi.process.spider_code import digest
from scrapy_ubi.process.start_errors import process_ended
from scrapy_ubi.ranking import Ranker, read_rank
from scrapy_ubi.requests.codec import Codec
from scrapy_ubi.requests.fingerprints import FingerprintKeys
from scrapy_ubi.requests.identity import NO_FILTER, RequestKeys
from scrapy_ubi.requests.meta_codecs import make_codecs
from scrapy_ubi.scheduling.kept_requests import MOST_ALONE, MOST_HOLDERS_ALONE, KeptRequests
from scrapy_ubi.scheduling.link_filter import LinkFilter
from scrapy_ubi.scheduling.link_scores import LinkScores
from scrapy_ubi.scheduling.stat_buffer import StatBuffer
from scrapy_ubi.scrapy_private.pipelines import HOOK, pipelines
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.settings_table import home
from scrapy_ubi.transport import Transport
from scrapy_ubi.transport.credentials import RedisLogin, named_credentials
from scrapy_ubi.transport.in_process import MemoryHub, MemoryTransport
from scrapy_ubi.transport.redis import RedisTransport
from scrapy_ubi.transport.seed_reader import SeedSource
from scrapy_ubi.transport.signed_transport import SignedTransport
from scrapy_ubi.transport.signer import ROOM, Signer

if TYPE_CHECKING:
    from scrapy_ubi.components.scheduler import UbiScheduler
    from scrapy_ubi.outputs.pipeline_flush import PipelineFlush
    from scrapy_ubi.outputs.setup import Outputs

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


def make_stores(scheduler: UbiScheduler) -> Outputs | None:
    """None where UBI_STORES and UBI_DUPLICATES ask for none: their modules are not loaded then. Raises
    UbiSettingError."""
    if not scheduler.settings.stores and scheduler.settings.duplicates is None:
        return None
    from scrapy_ubi.outputs.setup import Outputs

    return Outputs.of(scheduler.crawler, scheduler.settings)


def make_pipeline_flush(scheduler: UbiScheduler) -> PipelineFlush | None:
    """What follows pipelines that write in batches; None where there are none: the module is not loaded then. Raises
    UbiRefused."""
    if not any(hasattr(one, HOOK) for one in pipelines(scheduler.crawler)):
        return None
    from scrapy_ubi.outputs.pipeline_flush import PipelineFlush

    return PipelineFlush.of(scheduler.crawler, scheduler.count)


async def open_disk(settings: UbiSettings, stores: Outputs | None, batches: PipelineFlush | None) -> AgentDisk:
    """The directory's frontier and files. Raises UbiError."""
    beside = [*([batches] if batches is not None else ()), *([stores.writer] if stores is not None else ())]
    return await AgentDisk.open(settings.dir, settings, clock.now, beside)


def read_settings(crawler: Crawler, spider: Spider) -> tuple[UbiSettings, Origin]:
    """The settings of this crawler's agent, and what it is started from. Raises UbiError."""
    settings = crawler.settings
    given = arguments.given(crawler)
    wanted = UbiSettings.from_scrapy(settings, spider.name, arguments=given.short)
    if not settings.get("UBI_CRAWL"):
        given.check()
    if not wanted.dir_given and home.is_former(wanted.dir):
        logger.info("%s", home.remark(wanted.dir))
    for sentence in (*ignored_settings.remarks(settings, wanted), *plugin_remarks.remarks(settings, wanted)):
        logger.warning("%s", sentence)
    code = digest(type(spider), settings.getlist("SPIDER_MODULES"))
    origin = Origin(f"{type(spider).__module__}.{type(spider).__qualname__}", given.mark, given.shown, code)
    return wanted, origin


def claim_feeds(scheduler: UbiScheduler, spider: Spider) -> tuple[dict[str, str], FeedClaims]:
    """When the feeds begin, and the feeds, made this agent's own. Raises UbiRefused when one is another agent's."""
    feeds = FeedClaims(scheduler.crawler, scheduler.settings.shared_feeds, scheduler.alone)
    scheduler.feed_times = feed_params.times()
    if scheduler.trial is None:
        feeds.claim(spider)
    return scheduler.feed_times, feeds


def make_start(scheduler: UbiScheduler, spider: str, origin: Origin) -> Start:
    """Who the agent of this scheduler is, and when its process was asked for."""
    directory, address = scheduler.directory, scheduler.metrics.address if scheduler.metrics is not None else ""
    traffic, asked = partial(measured.traffic, scheduler.crawler.stats), process_start.asked_for()
    return Start(directory.agent_id, spider, origin, directory.predecessor, asked, traffic, address)


@dataclass(frozen=True)
class Parts:
    """What a scheduler is put together of, beside its node: `make_parts` makes those of a crawl."""

    stats: StatBuffer
    link_filter: LinkFilter
    codec: Codec
    keys: RequestKeys
    kept: KeptRequests
    errors: ErrorWatch
    reach: Reach
    scores: LinkScores | None = None
    ranker: Ranker | None = None


@dataclass(frozen=True)
class LinkRules:
    """What the settings say of links, read before anything is opened."""

    filter: LinkFilter
    scores: LinkScores | None
    ranker: Ranker | None

    @classmethod
    async def read(cls, settings: UbiSettings, stats: StatBuffer) -> LinkRules:
        """Raises UbiSettingError."""
        ranker = read_rank(settings.rank) if settings.rank is not None else None
        scores = await LinkScores.from_settings(settings, stats)
        return cls(LinkFilter.from_settings(settings, stats.count), scores, ranker)


def make_parts(scheduler: UbiScheduler, spider: Spider, stats: StatBuffer, links: LinkRules) -> Parts:
    """The parts of a scheduler in a crawl, as its settings and those of its crawler want them. Raises UbiError."""
    crawler, settings = scheduler.crawler, scheduler.settings
    proxies = ("*",) if scheduler.alone else settings.proxies  # alone: no other agent writes what it reads
    if scheduler.trial is not None:
        kept = scheduler.trial.kept
    else:
        kept = KeptRequests(MOST_ALONE, MOST_HOLDERS_ALONE) if settings.redis_url is None else KeptRequests()
    resolve = Resolver(crawler).addresses
    return Parts(
        stats,
        links.filter,
        Codec(spider, crawler.settings, proxies, make_codecs(settings.codecs or {})),
        make_keys(crawler, settings, stats),
        kept,
        ErrorWatch(crawler, settings, scheduler.directory.path, _note_at(scheduler), scheduler.ending.burst),
        Reach(settings, crawler.settings, resolve, scheduler.notices, stats.count),
        links.scores,
        links.ranker,
    )


def make_start_items(scheduler: UbiScheduler, stores: Outputs | None, batches: PipelineFlush | None) -> StartItems:
    """What takes care of the items of start(). The node is there, and not open yet."""
    node, settings = scheduler.node, scheduler.settings

    def outlasts() -> bool:
        stored = stores is None or not (stores.writer.changed or stores.writer.waiting)
        return stored and not (batches is not None and batches.changed) and not scheduler.feeds.flush()

    def members() -> Container[str]:
        return node.agent.view.members

    claims = None if scheduler.alone or scheduler.is_trial else node.item_claims
    notices, count, patience = scheduler.notices, scheduler.count, settings.failure_timeout
    items = StartItems(claims, scheduler.agent_id, members, patience, outlasts, notices, count)
    items.before_first = partial(items.listen, scheduler.crawler)
    return items


def follow_changes(scheduler: UbiScheduler, parts: Parts, stores: Outputs | None) -> None:
    """From now on the scheduler's parts hear of settings that people change while the crawl runs."""
    LiveChanges(scheduler, parts, stores)


def _note_at(scheduler: UbiScheduler) -> Callable[[str], None]:
    """Notes something at the scheduler's node, which is made of these parts, and not there yet."""
    return lambda what: scheduler.node.note(what)


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
    # Before an agent is held dead it may come back, and answer what it has taken.
    seeds = SeedSource(settings.seed_list, 2 * settings.failure_timeout, needed=settings.serve)
    largest = settings.max_letter_bytes + (ROOM if settings.secret else 0)
    login = RedisLogin(settings.redis_url, named_credentials(settings.redis_credentials))
    transport = RedisTransport(login, settings.crawl, agent_id, largest, seeds=seeds)
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


class SchedulerEvents(NodeEvents):
    """What follows at Scrapy's end from what the node of this scheduler tells."""

    def __init__(self, scheduler: UbiScheduler) -> None:
        self._scheduler = scheduler

    def wake(self) -> None:
        self._scheduler.hooks.wake()

    def cancel(self) -> None:
        self._scheduler.gate.cancel()

    def fatal(self, sentence: str) -> None:
        self._scheduler.ending.fail(sentence)

    def drain(self) -> None:
        self._scheduler.ending.drain()

    def given_up(self, reason: str) -> None:
        self._scheduler.count(f"ubi/failed/{reason}")

    def limit(self, reason: str, sentence: str) -> None:
        self._scheduler.ending.stop(sentence, reason, logging.INFO)  # as the user wants it

    def incarnation(self, incarnation: str) -> None:
        self._scheduler.directory.record_incarnation(incarnation)

    def seed(self, number: str, fields: Mapping[str, str]) -> SeedOutcome:
        return self._scheduler.outside.take(number, fields)

    def held_up(self) -> tuple[bool, IdleReason | None]:
        return self._scheduler.held_up()

    def flush(self) -> str:
        return self._scheduler.feeds.flush()
