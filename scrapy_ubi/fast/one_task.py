"""One task of the event loop for each page (UBI_LEAN): has scheduled requests go the lean way when the spider opens."""

from __future__ import annotations

import logging

from scrapy import signals
from scrapy.crawler import Crawler

from scrapy_ubi.adapter.components.find_scheduler import scheduler_of
from scrapy_ubi.adapter.components.spider_middleware import UbiSpiderMiddleware
from scrapy_ubi.fast.path import place

logger = logging.getLogger(__name__)


class OneTask:
    """An extension: made when the crawl's components are."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        crawler.signals.connect(self._opened, signals.spider_opened)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> OneTask:
        return cls(crawler)

    def _opened(self) -> None:
        scheduler = scheduler_of(self._crawler)
        if scheduler is not None and not scheduler.is_trial:
            outcome, successor = scheduler.dequeue.outcome, scheduler.enqueue.mark_successor
            why = place(self._crawler.engine, outcome, successor, UbiSpiderMiddleware)
            if why:
                logger.info(
                    "UBI_LEAN: the lean way is not taken, pages go Scrapy's own way (slower, same items), as %s.", why
                )
