"""What Scrapy's own middlewares do with each request that a page yields, done for all links of the page at once.

Rules of this module:

* Their settings and instances are Scrapy's, and one that the user has switched off does nothing here either. Their
  stats are the same sums; what they log of single requests (at level DEBUG) is left out, but for the first.
* Depth: DEPTH_LIMIT, DEPTH_PRIORITY, DEPTH_STATS_VERBOSE, meta `depth_reset`. Length: URLLENGTH_LIMIT. Offsite: the
  spider's `allowed_domains`, asked once for each host; meta `allow_offsite`. Copied meta is warned of. The Referer is
  set only for links that ask for it.
* A class of the user's in their place, or anybody who wants to hear of each request, makes ordinary requests of plain
  links: `watcher_of`, `sites.watcher` say who.
* What is switched off is an object that does nothing, so that no link asks whether it is there.
"""

from __future__ import annotations

import logging

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.offsite import OffsiteMiddleware
from scrapy.http import Response
from scrapy.settings import BaseSettings
from scrapy.spidermiddlewares.referer import RefererMiddleware
from scrapy.spidermiddlewares.urllength import UrlLengthMiddleware
from scrapy.statscollectors import StatsCollector
from scrapy.utils.misc import load_object

from scrapy_ubi.adapter.extraction.plainlinks import spider_of
from scrapy_ubi.adapter.scrapy_private.middlewares import (
    DepthRules,
    depth_rules,
    is_first_of_host,
    is_on_site,
    longest_url,
    spider_middlewares,
)
from scrapy_ubi.adapter.scrapy_private.versions import MetaCopy

logger = logging.getLogger("scrapy_ubi")

LOOKING = ("process_spider_output", "process_spider_output_async", "process_start")
MOST_HOSTS = 100_000  # whose answer is kept
_HOST = 1_000  # characters, more than scheme and host have


def watcher_of(settings: BaseSettings) -> str:
    """The spider middleware, neither Scrapy's nor ours, that looks at what spiders yield; "" when there is none."""
    for path, order in settings.get_component_priority_dict_with_base("SPIDER_MIDDLEWARES").items():
        cls = load_object(path)
        module = getattr(cls, "__module__", "")
        looks = any(hasattr(cls, name) for name in LOOKING)
        if order is not None and looks and not module.startswith(("scrapy.spidermiddlewares.", "scrapy_ubi.")):
            return f"the spider middleware {module}.{getattr(cls, '__qualname__', cls)}"
    return ""


class _Absent:
    """In place of a middleware that is switched off: every request passes as it is."""

    def get_processed_request(self, request: Request, response: Response | None) -> Request:
        return request


class _NoDepth:
    """DepthMiddleware is switched off: links have no depth."""

    def begin(self, response: Response) -> None:
        """Links of this page are next. What a middleware yields in place of an error may have passed its depth by."""

    def place(self, priority: int, response: Response) -> tuple[int, int]:
        """Depth and priority of links of this page without meta."""
        return 0, priority

    def prepare(self, template: Request, response: Response) -> None:
        """Set depth and priority of what all links of this page have in common."""

    def too_deep(self, depth: int, links: int) -> bool:
        """Whether links of such a depth are not followed; so many are counted if so."""
        return False

    def count(self, depth: int, links: int) -> None:
        """Count links of such a depth that are followed."""


class _Depth(_NoDepth):
    """DepthMiddleware, for all links of a page at once."""

    def __init__(self, rules: DepthRules, stats: StatsCollector) -> None:
        self._rules = rules
        self._stats = stats
        self._deepest = -1

    def begin(self, response: Response) -> None:
        response.meta.setdefault("depth", 0)

    def place(self, priority: int, response: Response) -> tuple[int, int]:
        depth: int = response.meta["depth"] + 1
        return max(depth, 0), priority - depth * self._rules.step  # as `codec.depth_of` has it

    def prepare(self, template: Request, response: Response) -> None:
        reset = self._rules.resets and template.meta.pop("depth_reset", False)
        depth = 0 if reset else response.meta["depth"] + 1
        template.meta["depth"] = depth
        template.priority -= depth * self._rules.step

    def too_deep(self, depth: int, links: int) -> bool:
        if not 0 < self._rules.most < depth:
            return False
        self._stats.inc_value("depth/request_ignored_count", links)
        return True

    def count(self, depth: int, links: int) -> None:
        if not links:
            return
        if self._rules.verbose:
            self._stats.inc_value(f"request_depth_count/{depth}", links)
        if depth > self._deepest:  # a look at the stats takes as long as one at a link
            self._deepest = depth
            self._stats.max_value("request_depth_max", depth)


class _AnySite:
    """OffsiteMiddleware is switched off: a link may lead to any host."""

    watcher = ""  # the user's middleware in the place of Scrapy's that wants to see each request

    @property
    def has_offsite(self) -> bool:
        """Whether any host may be off site; looked at again for every page, as the spider may change its mind."""
        return False

    def off_site(self, host: str) -> bool:
        """Whether a host (without port) is none of the spider's. `has_offsite` is asked first."""
        return False

    def refuse_off_site(self, host: str, url: str) -> None:
        """Count a link that is dropped since its host is none of the spider's."""


class _Sites(_AnySite):
    """OffsiteMiddleware, asked once for each host."""

    def __init__(self, middleware: OffsiteMiddleware, crawler: Crawler) -> None:
        self._middleware = middleware
        self._crawler = crawler
        self._domains: list[str] = []
        self._known: dict[str, bool] = {}  # host -> whether it is one of the spider's domains
        if type(middleware) is not OffsiteMiddleware:
            self.watcher = f"the downloader middleware {type(middleware).__qualname__}"

    @property
    def has_offsite(self) -> bool:
        domains = list(getattr(spider_of(self._crawler), "allowed_domains", None) or [])
        if domains != self._domains or len(self._known) > MOST_HOSTS:
            self._domains = domains
            self._known = {}
        return bool(domains)

    def off_site(self, host: str) -> bool:
        on = self._known.get(host)
        if on is None:
            on = self._known[host] = is_on_site(self._middleware, spider_of(self._crawler), host)
        return not on

    def refuse_off_site(self, host: str, url: str) -> None:
        stats = self._crawler.stats
        if is_first_of_host(self._middleware, host):
            logger.debug("Filtered offsite link to %r: %.500s", host, url)
            stats.inc_value("offsite/domains")
        stats.inc_value("offsite/filtered")


class ScrapyRules:
    """Scrapy's middlewares of one crawl. Made when the engine has them. `depth` and `sites` are what its
    DepthMiddleware and OffsiteMiddleware do."""

    def __init__(self, crawler: Crawler) -> None:
        find = crawler.get_spider_middleware
        depth, length = depth_rules(crawler), find(UrlLengthMiddleware)
        offsite = crawler.get_downloader_middleware(OffsiteMiddleware)
        self.depth = _Depth(depth, crawler.stats) if depth is not None else _NoDepth()
        self.sites = _Sites(offsite, crawler) if offsite is not None else _AnySite()
        self.longest = longest_url(length) if length is not None else 1 << 60
        self._length = length or _Absent()
        self._metacopy = (find(MetaCopy) if MetaCopy is not None else None) or _Absent()
        self._referer = find(RefererMiddleware) or _Absent()
        self._chain = spider_middlewares(crawler)

    def one(self, request: Request, response: Response | None) -> Request | None:
        """An ordinary request as Scrapy's spider middlewares leave it; None when they drop it."""
        passed: Request | None = request
        for middleware in self._chain:
            if passed is None:
                return None
            passed = middleware.get_processed_request(passed, response)
        return passed

    def prepare(self, template: Request, response: Response) -> None:
        """Do once what is done with every request that is made of this template, which links of this page have in
        common."""
        self.depth.prepare(template, response)
        if len(template.meta) > 1:
            self._metacopy.get_processed_request(template, response)

    def too_long(self, url: str) -> bool:
        """Whether URLLENGTH_LIMIT drops this URL; counted and logged if so."""
        if len(url) <= self.longest:
            return False
        try:  # as much of it as is needed for that; the host is in it
            request = Request(url[: max(self.longest, _HOST) + 1])
        except ValueError:  # not behind so long a user and password
            request = Request(url)
        return self._length.get_processed_request(request, None) is None

    def referer(self, request: Request, response: Response) -> None:
        """Say where this link was found, by Scrapy's rules."""
        self._referer.get_processed_request(request, response)
