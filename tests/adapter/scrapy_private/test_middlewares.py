"""Canaries: Scrapy's own middlewares, and the scraper that hands items over."""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any

from scrapy import Request, Spider, signals
from scrapy.core.scraper import Scraper
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.offsite import OffsiteMiddleware
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.http import Response
from twisted.internet.defer import Deferred

from scrapy_ubi.adapter.scrapy_private.middlewares import forget_robots, only_scrapy_listens, robots_known
from tests.support.crawls import crawl
from tests.support.site import Site


def test_the_scraper_hands_over_items_by_name() -> None:
    assert "self.start_itemproc_async(output, response=response)" in inspect.getsource(
        Scraper._process_spidermw_output_async
    )


HOST = "http://h1.example"


def robots(parsers: dict[str, Any] | None) -> Crawler:
    middleware = None if parsers is None else SimpleNamespace(_parsers=parsers)
    crawler: Any = SimpleNamespace(get_downloader_middleware=lambda cls: middleware)
    return crawler  # type: ignore[no-any-return]


def test_a_robots_txt_is_known_when_it_was_read() -> None:
    parsers: dict[str, Any] = {"read": object(), "failed": None, "asked": Deferred()}
    known = [netloc for netloc in ("read", "failed", "asked", "never") if robots_known(robots(parsers), netloc)]
    assert known == ["read"]
    assert robots_known(robots(None), "never")


def test_only_a_robots_txt_that_failed_is_forgotten() -> None:
    parsers: dict[str, Any] = {"read": object(), "failed": None, "asked": Deferred()}
    for netloc in (*parsers.copy(), "never"):
        forget_robots(robots(parsers), netloc)
    forget_robots(robots(None), "failed")
    assert sorted(parsers) == ["asked", "read"]


class UsersOwn(RobotsTxtMiddleware):
    """A user's own robots.txt middleware, which stays."""


def test_the_robots_middleware_keeps_parsers_like_that(site: Site) -> None:
    class Seen(Spider):
        name = "seen"
        start_urls = (f"{HOST}/", "http://h2.example/")

        def parse(self, response: Response) -> None:
            middleware = self.crawler.get_downloader_middleware(RobotsTxtMiddleware)
            assert middleware is not None
            parsers.update(middleware._parsers)

    parsers: dict[str, Any] = {}
    for url in (f"{HOST}/", f"{HOST}/robots.txt", "http://h2.example/"):
        site.page(url)
    site.page("http://h2.example/robots.txt", "", Location="http://h2.example/robots.txt")
    site.redirect("http://h2.example/robots.txt", "http://h2.example/robots.txt")
    own = {UsersOwn: 100, RobotsTxtMiddleware: None}
    crawl(Seen, site.proxy, settings={"ROBOTSTXT_OBEY": True, "CONCURRENT_REQUESTS": 1, "DOWNLOADER_MIDDLEWARES": own})
    assert set(parsers) == {"h1.example", "h2.example"}
    assert parsers["h1.example"] is not None and parsers["h2.example"] is None


def test_scrapys_own_listener_is_told_from_others() -> None:
    """The offsite middleware is the only one of Scrapy's that hears of every request which is scheduled."""
    crawler = Crawler(Spider)
    which = (signals.request_scheduled, signals.request_dropped)
    assert only_scrapy_listens(crawler, *which)
    crawler.stats = crawler.settings  # type: ignore[assignment]  # it is given on, not used
    offsite = OffsiteMiddleware.from_crawler(crawler)
    assert only_scrapy_listens(crawler, *which)

    class Own(OffsiteMiddleware):
        def request_scheduled(self, request: Request, spider: Spider) -> None:
            """Does more."""

    own = Own.from_crawler(crawler)
    assert not only_scrapy_listens(crawler, *which) and only_scrapy_listens(crawler, signals.request_dropped)
    assert offsite is not own  # both live: signals hold them weakly
