"""Scrapy's own middlewares of a running crawl, and what their instances know; and who besides them hears of a signal.

| name | used for |
| --- | --- |
| `engine.scraper.spidermw.middlewares` | the spider middlewares in their order, to pass one request through them |
| `engine.downloader.middleware.middlewares` | the downloader middlewares: which of them is the gate |
| `DepthMiddleware`: `prio`, `maxdepth`, `verbose_stats` | depth and priority of all links of a page at once |
| `UrlLengthMiddleware.maxlength` | links that are too long |
| `OffsiteMiddleware`: `get_host_regex`, `domains_seen` | whether a host is one of the spider's; its stats |
| `RobotsTxtMiddleware._parsers` | a derived class of the user's: to forget a robots.txt that we did not let it fetch |
| `CookieJar._cookies` | the cookies of one domain: a jar has those of all hosts, to be gone through as a whole |
| PyDispatcher's `connections` under `crawler.signals` | the receivers of a signal |
| `OffsiteMiddleware.request_scheduled` | Scrapy's own receiver, which does not count |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http.cookiejar import Cookie
from typing import Any

from pydispatch import dispatcher
from scrapy import Spider, version_info
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.offsite import OffsiteMiddleware
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.http.cookies import CookieJar
from scrapy.spidermiddlewares.base import BaseSpiderMiddleware
from scrapy.spidermiddlewares.depth import DepthMiddleware
from scrapy.spidermiddlewares.urllength import UrlLengthMiddleware
from twisted.internet.defer import Deferred

_ANY_SENDER = id(dispatcher.Any)


@dataclass(frozen=True, slots=True)
class DepthRules:
    """What DepthMiddleware does: a page's links get `step` less priority for each level, and are followed down to
    level `most` (0: all); `verbose`: each level has a stat; `resets`: the meta key `depth_reset` has a meaning."""

    step: int
    most: int
    verbose: bool
    resets: bool


def spider_middlewares(crawler: Crawler) -> list[BaseSpiderMiddleware]:
    """Scrapy's spider middlewares that look at single requests, in the order in which they see output."""
    chain = crawler.engine.scraper.spidermw.middlewares
    return [each for each in reversed(chain) if isinstance(each, BaseSpiderMiddleware)]


def downloader_middlewares(crawler: Crawler) -> Sequence[Any]:
    """The downloader middlewares of a running crawl; none where a user's own DOWNLOADER has none."""
    manager = getattr(getattr(crawler.engine, "downloader", None), "middleware", None)
    return getattr(manager, "middlewares", ())


def depth_rules(crawler: Crawler) -> DepthRules | None:
    """The rules of this crawl's DepthMiddleware, None where it has none."""
    found = crawler.get_spider_middleware(DepthMiddleware)
    if found is None:
        return None
    return DepthRules(found.prio, found.maxdepth, found.verbose_stats, version_info >= (2, 18))


def longest_url(middleware: UrlLengthMiddleware) -> int:
    """The most characters of a URL that this middleware lets pass."""
    return int(middleware.maxlength)


def is_on_site(middleware: OffsiteMiddleware, spider: Spider, host: str) -> bool:
    """Whether a host (without port) is one of the spider's; True where that cannot be told: the middleware then drops
    the request."""
    regex: Any = getattr(middleware, "get_host_regex", None)
    return regex is None or bool(regex(spider).search(host))


def is_first_of_host(middleware: OffsiteMiddleware, host: str) -> bool:
    """Whether this is the first request to a host that is none of the spider's; the next one is not."""
    seen: set[str] | None = getattr(middleware, "domains_seen", None)
    if not host or seen is None or host in seen:
        return False
    seen.add(host)
    return True


def robots_known(crawler: Crawler, netloc: str) -> bool:
    """Whether the robots.txt of this network location has been read (an empty one counts)."""
    middleware = crawler.get_downloader_middleware(RobotsTxtMiddleware)
    if middleware is None or not hasattr(middleware, "_parsers"):
        return True  # nothing asks for it, or it cannot be told
    parser = middleware._parsers.get(netloc)
    return parser is not None and not isinstance(parser, Deferred)


def forget_robots(crawler: Crawler, netloc: str) -> None:
    """Let a robots.txt that could not be fetched be asked for again: else it counts as "all allowed" from then on."""
    middleware = crawler.get_downloader_middleware(RobotsTxtMiddleware)
    parsers: dict[str, Any] = getattr(middleware, "_parsers", {})
    if parsers.get(netloc, crawler) is None:
        del parsers[netloc]


def cookies_of_domain(jar: CookieJar, domain: str) -> Iterator[Cookie]:
    """The cookies of this domain, as the jar spells it (`.example.com` for one that the server named)."""
    for of_path in jar._cookies.get(domain, {}).values():
        yield from of_path.values()


def only_scrapy_listens(crawler: Crawler, *which: object) -> bool:
    """Whether nothing is connected to these signals but Scrapy's own offsite middleware. It is asked for every page;
    PyDispatcher's own functions take three times as long."""
    for sender in (id(crawler), _ANY_SENDER):
        of_sender = dispatcher.connections.get(sender)
        for signal in (*which, dispatcher.Any) if of_sender else ():
            for reference in of_sender.get(signal, ()):
                receiver = reference() if isinstance(reference, dispatcher.WEAKREF_TYPES) else reference
                function = getattr(receiver, "__func__", None)
                if receiver is not None and function is not OffsiteMiddleware.request_scheduled:
                    return False
    return True
