"""Canaries: who listens to a signal."""

from __future__ import annotations

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.offsite import OffsiteMiddleware

from scrapy_ubi.adapter.scrapy_private.listeners import only_scrapy_listens


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
