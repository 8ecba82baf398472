"""The observers of an agent's pages, as its settings want them, in their order (`adapter.requests.observers`).

Rules of this module:

* An observer is made where its setting is on, and nowhere else knows of it. One more feature that looks at pages is one
  more line here; those of a few lines stand in `scheduling.small_observers`.
* The order says who hears first. What writes into a request (`VisitedPages`) comes before what names it by that
  (`PageOutputs`); outputs are handed over before what they were made of is forgotten (`Judge`).
* Those of the project come last.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from scrapy.spidermiddlewares.depth import DepthMiddleware

from scrapy_ubi.adapter.downloads.page_room import PageRoom
from scrapy_ubi.adapter.robots.sitemaps import SitemapsOnly
from scrapy_ubi.adapter.scheduling import project_observers
from scrapy_ubi.adapter.scheduling.page_requisites import PageRequisites
from scrapy_ubi.adapter.scheduling.page_robots import PageRobots, bot_of
from scrapy_ubi.adapter.scheduling.seed_pages import SeedPages
from scrapy_ubi.adapter.scheduling.sessions import Sessions
from scrapy_ubi.adapter.scheduling.small_observers import LearnedContent, RankedPages, ReceivedBytes, StartHosts
from scrapy_ubi.adapter.scheduling.visited_pages import VisitedPages
from scrapy_ubi.adapter.scrapy_private.scraper import raise_bound
from scrapy_ubi.ground.clock import unix

if TYPE_CHECKING:
    from scrapy_ubi.adapter.components.scheduler import UbiScheduler
    from scrapy_ubi.adapter.components.scheduler_builder import SchedulerBuilder
    from scrapy_ubi.adapter.scheduling.seeds import Seeds


def add_all(parts: SchedulerBuilder, seeds: Seeds) -> None:
    """Add those of a scheduler, whose node is made and not open yet."""
    scheduler, crawler, stores, keys = parts.scheduler, parts.crawler, parts.stores, parts.keys
    node, settings, flights, count = scheduler.node, scheduler.settings, scheduler.flights, scheduler.count
    add = scheduler.observers.add
    add(PageRoom(settings.memory_mb << 20, flights, count, partial(raise_bound, crawler)))
    if crawler.settings.getbool("COOKIES_ENABLED"):
        add(Sessions(crawler, node, settings, scheduler.notices, count, add))
    if settings.recrawl:
        add(VisitedPages(crawler, settings, flights, count))
    if settings.nofollow or (stores is not None and stores.keeps_pages):
        add(PageRobots(bot_of(crawler.settings), settings.nofollow, parts.stats, node.note, unix))
    if not parts.reach.allowed and crawler.get_spider_middleware(DepthMiddleware) is not None:
        add(StartHosts(parts.reach, scheduler.sitemaps))
    if stores is not None:
        for of_outputs in stores.observers(flights, keys.normal_form, seeds.name, parts.stats, node.note):
            add(of_outputs)
        stores.writer.on_room(scheduler.hooks.wake)
        if stores.keeps_requisites_of is not None:
            add(PageRequisites(crawler, parts.take_requisite, stores.keeps_requisites_of, scheduler.sitemaps.count))
    if parts.ranker is not None and node.iterations is not None:
        node.iterations.ranker = parts.ranker
        add(RankedPages(keys))
    if node.learner is not None:
        add(LearnedContent())
    add(parts.errors)
    add_sitemaps(scheduler)
    add_limits(scheduler)
    for observer in parts.projects:
        add(observer, project_observers.isolation(crawler, count))


def add_sitemaps(scheduler: UbiScheduler) -> None:
    """Add those that UBI_SITEMAPS asks for now."""
    if scheduler.sitemaps.use:
        scheduler.observers.add(scheduler.sitemaps)
    only = scheduler.observers.find_observer(SitemapsOnly)
    if scheduler.sitemaps.use.mode == "only" and only is None:
        scheduler.observers.add(SitemapsOnly(scheduler.sitemaps))


def add_limits(scheduler: UbiScheduler) -> None:
    """Add what limits want now: what counts bytes, and what follows the marks of seeds."""
    wanted = not scheduler.node.limits.idle or scheduler.settings.crawl_limits.bytes
    if wanted and scheduler.observers.find_observer(ReceivedBytes) is None:
        scheduler.observers.add(ReceivedBytes(scheduler.node))
    if not scheduler.node.limits.idle and scheduler.observers.find_observer(SeedPages) is None:
        scheduler.observers.add(SeedPages(scheduler.node, scheduler.count))
