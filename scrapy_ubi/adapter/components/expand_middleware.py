"""Innermost at the spider: makes ordinary requests of plain links where nothing takes them as one object.

* Where spider middlewares of the user's look at what pages yield, they are to see every link, as a request.
* Without our scheduler (a `UbiSpider` in a project without the add-on) plain links are requests like all others.
* What errbacks yield passes no spider middleware when a load has failed: plain links among it are found where Scrapy
  would take them for an item.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import Response
from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object
from scrapy.utils.python import global_object_name

from scrapy_ubi.adapter.extraction.plainlinks import NO_SCHEDULER, PlainLinks, expanded
from scrapy_ubi.adapter.scrapy_private.scraper import take_items_of

INNERMOST = 1_000_000  # of the spider middlewares: next to the spider
PAUSE_EVERY = 64
_SCHEDULER = "scrapy_ubi.adapter.components.scheduler.UbiScheduler"


class PlainLinksMiddleware:
    """Between the spider and all other spider middlewares. `why`: what makes requests of plain links."""

    def __init__(self, crawler: Crawler, why: str) -> None:
        self._crawler = crawler
        self._why = why

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> PlainLinksMiddleware:
        """Raises NotConfigured where plain links may pass: then this takes no time. Raises SystemExit with one sentence
        where UBI_LINKS_OF does not hold."""
        if crawler.settings.get("UBI_LINKS_OF") is not None:
            from scrapy_ubi.adapter.extraction.content_links import check

            check(crawler.settings)
        why = NO_SCHEDULER
        if _is_ours(crawler.settings):
            from scrapy_ubi.adapter.scheduling.scrapy_rules import watcher_of

            why = watcher_of(crawler.settings)

        def opened(sender: Crawler) -> None:
            cls(sender, why)._opened()

        # Nothing else keeps it. It knows of no crawler: what is connected lasts as long as its sender does.
        crawler.signals.connect(opened, signals.spider_opened, weak=False)
        if not why:
            raise NotConfigured
        return cls(crawler, why)

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        count = 0
        async for found in start:
            for each in self._requests(found) if isinstance(found, PlainLinks) else (found,):
                yield each
                count += 1
                if count % PAUSE_EVERY == 0:
                    await asyncio.sleep(0)

    def process_spider_output(self, response: Response, result: Iterable[Any]) -> Iterable[Any]:
        for found in result:
            if isinstance(found, PlainLinks):
                yield from self._requests(found)
            else:
                yield found

    async def process_spider_output_async(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for found in result:
            for each in self._requests(found) if isinstance(found, PlainLinks) else (found,):
                yield each

    def _requests(self, links: PlainLinks) -> Iterator[Request]:
        return expanded(self._crawler, links, self._why or "an errback has yielded them")

    def _opened(self) -> None:
        """Find plain links where Scrapy would take them for an item."""
        take_items_of(self._crawler, PlainLinks, self._crawl)

    async def _crawl(self, links: PlainLinks) -> None:
        for number, request in enumerate(self._requests(links), 1):
            self._crawler.engine.crawl(request)
            if number % PAUSE_EVERY == 0:
                await asyncio.sleep(0)


def _is_ours(settings: BaseSettings) -> bool:
    """Whether plain links can be taken as one object by the scheduler."""
    cls = load_object(settings["SCHEDULER"])
    # By their names: issubclass is true of any scheduler, and ours is not imported for this.
    return isinstance(cls, type) and any(global_object_name(base) == _SCHEDULER for base in cls.__mro__)
