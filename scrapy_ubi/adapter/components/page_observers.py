"""The observers of an agent's pages, as its settings want them, in their order (`adapter.requests.observers`).

Rules of this module:

* An observer is made where its setting is on, and nowhere else knows of it. One more feature that looks at pages is one
  more line here; those of a few lines stand here themselves.
* The order says who hears first. What writes into a request (`VisitedPages`) comes before what names it by that
  (`PageOutputs`); outputs are handed over before what they were made of is forgotten (`Judge`).
* Those of the project come last.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from scrapy.http import Response
from scrapy.spidermiddlewares.depth import DepthMiddleware

from scrapy_ubi.adapter.downloads.page_room import PageRoom
from scrapy_ubi.adapter.downloads.reach import Reach
from scrapy_ubi.adapter.requests.check import REQUISITE
from scrapy_ubi.adapter.requests.identity import RequestKeys
from scrapy_ubi.adapter.requests.inflight import Flight, FoundLinks
from scrapy_ubi.adapter.requests.observers import PageObserver
from scrapy_ubi.adapter.robots.sitemaps import Sitemaps, SitemapsOnly
from scrapy_ubi.adapter.scheduling import project_observers
from scrapy_ubi.adapter.scheduling.page_requisites import PageRequisites
from scrapy_ubi.adapter.scheduling.page_robots import PageRobots, bot_of
from scrapy_ubi.adapter.scheduling.seed_pages import SeedPages
from scrapy_ubi.adapter.scheduling.sessions import Sessions
from scrapy_ubi.adapter.scheduling.visited_pages import VisitedPages
from scrapy_ubi.adapter.scrapy_private.scraper import raise_bound
from scrapy_ubi.agent.hosts.learned_forms import CUT, content_of
from scrapy_ubi.ground.clock import unix
from scrapy_ubi.policy.ranking import Page, PageLink
from scrapy_ubi.urls import url_key

if TYPE_CHECKING:
    from scrapy_ubi.adapter.components.scheduler import UbiScheduler
    from scrapy_ubi.adapter.components.scheduler_builder import SchedulerBuilder
    from scrapy_ubi.adapter.scheduling.seeds import Seeds
    from scrapy_ubi.agent import Node


def add_all(parts: SchedulerBuilder, seeds: Seeds) -> None:
    """Add those of a scheduler, whose node is made and not open yet."""
    scheduler, crawler, stores, keys = parts.scheduler, parts.crawler, parts.stores, parts.keys
    node, settings, flights, count = scheduler.node, scheduler.settings, scheduler.flights, scheduler.count
    add = scheduler.observers.add
    add(PageRoom(settings.memory_mb << 20, flights, count, partial(raise_bound, crawler)))
    if crawler.settings.getbool("COOKIES_ENABLED"):
        add(Sessions(crawler, node, settings, scheduler.notices, count))
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


class StartHosts(PageObserver):
    """Tells `reach` of the hosts of start requests that are handed out: another agent has met them, and this one
    perhaps not, and links may lead there. For a crawl that counts depth.

    No link has depth 0, but where a redirect leads from a seed it has, and where a spider resets it, which is written
    down. The URLs of a sitemap begin at depth 0 as well.
    """

    def __init__(self, reach: Reach, sitemaps: Sitemaps) -> None:
        self._reach = reach
        self._sitemaps = sitemaps

    def begun(self, flight: Flight) -> None:
        """A request is handed out."""
        visit = flight.visit
        if visit is None or visit.entry.depth or self._sitemaps.use:
            return
        meta = flight.request.meta
        if "depth" not in meta and "redirect_urls" not in meta:
            self._reach.seed(flight.request.url)


class RankedPages(PageObserver):
    """Tells a ranker of a page, by an agent's keys (`ranking.Page`): of its links to its own host, in the order of the
    page.

    * All links count, those to known pages, too: a page's flight keeps them (`FoundLinks`), as for the stores that do.
    * A link is known by the key of a plain request for it. What was found as a request of another method counts, too.
    * Links that are no news to anybody cost their normal form and key here, a microsecond or two.
    """

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


class LearnedContent(PageObserver):
    """Notes with the flight of each page its content, by which the learned forms of URLs compare pages (UBI_NORMALISE
    with `learned`): a page that was cut has none."""

    def answered(self, flight: Flight, response: Response) -> None:
        """This is the page."""
        if not any(flag in response.flags for flag in CUT) and REQUISITE not in flight.request.meta:
            flight.content = content_of(response.status, response.body)


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


class ReceivedBytes(PageObserver):
    """Tells a node what each load has cost: pages, robots.txt, files. A page that goes back to its queue, as its host
    asks for a pause, costs nothing."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def received(self, flight: Flight, response: Response) -> None:
        """Count the body, as it is on the line."""
        node, size = self._node, len(response.body)
        node.crawl.tally.body_bytes += size
        state = node.frontier.find(flight.host) if flight.host is not None else None
        if state is not None:
            node.limits.received(state, size)
