"""The scraper of a running crawl: its pipelines, what errbacks yield and it takes for an item, and its bound on pages.

| name | used for |
| --- | --- |
| `engine.scraper.itemproc` | what holds the pipelines; the setting `ITEM_PROCESSOR` may name another class |
| `itemproc.middlewares` | the pipelines, in their order; another class may have none |
| `itemproc.close_spider_async`, `.close_spider` | the moment after the last item, before pipelines are closed |
| `engine.scraper.slot.max_active_size` | bytes of pages under way from which on no request is handed out |
| `engine.scraper.start_itemproc_async` | where what an errback yields is taken for an item |

The last one is used where UBI_ENABLED is off, too.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import scrapy
from scrapy.crawler import Crawler
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_ubi.adapter.scrapy_private.engines import engine_of

HOOK = "ubi_flush_items"  # the method of a pipeline that writes what it holds (`feeds.pipeline_flush`)


def pipelines(crawler: Crawler) -> tuple[Any, ...]:
    """The item pipelines, in their order; none without an engine."""
    return tuple(getattr(_processor(crawler), "middlewares", ()))


def before_pipelines_close(crawler: Crawler, call: Callable[[], Awaitable[None]]) -> None:
    """Await `call()` once all items are through the pipelines, before any of these is closed."""
    processor = _processor(crawler)
    if (close_async := getattr(processor, "close_spider_async", None)) is not None:

        async def close_spider_async() -> None:
            await call()
            await close_async()

        processor.close_spider_async = close_spider_async
    if (close := getattr(processor, "close_spider", None)) is not None:  # of classes that are older than the other one

        async def closed(spider: Any) -> None:
            await call()
            await maybe_deferred_to_future(close(spider))

        def close_spider(spider: Any) -> Deferred[None]:
            return deferred_from_coro(closed(spider))

        processor.close_spider = close_spider


def _processor(crawler: Crawler) -> Any:
    return getattr(getattr(engine_of(crawler), "scraper", None), "itemproc", None)


def raise_bound(crawler: Crawler, more: int) -> None:
    """Let there be so many bytes more, or less. Nothing is done where no page is taken any more, or the name lacks."""
    slot: Any = getattr(getattr(engine_of(crawler), "scraper", None), "slot", None)
    if hasattr(slot, "max_active_size"):
        slot.max_active_size += more


logger = logging.getLogger("scrapy_ubi")


def take_items_of(crawler: Crawler, kind: type, take: Callable[[Any], Awaitable[None]]) -> None:
    """Let `take(item)` have what Scrapy would take for an item and is of this kind. To be called when the spider was
    opened; without an engine nothing is done, nor where Scrapy lacks the name: a line of the log says so then."""
    if (scraper := getattr(engine_of(crawler), "scraper", None)) is None:
        return
    original = getattr(scraper, "start_itemproc_async", None)
    if original is None:
        logger.info(
            "Plain links that an errback yields are lost: Scrapy %s has no Scraper.start_itemproc_async.",
            scrapy.__version__,
        )
        return

    def start_itemproc_async(item: Any, *, response: Any) -> Awaitable[None]:
        return take(item) if isinstance(item, kind) else original(item, response=response)

    scraper.start_itemproc_async = start_itemproc_async
