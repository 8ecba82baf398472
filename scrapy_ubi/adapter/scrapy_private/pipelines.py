"""The item pipelines of a running crawl.

| name | used for |
| --- | --- |
| `engine.scraper.itemproc` | what holds the pipelines; the setting `ITEM_PROCESSOR` may name another class |
| `itemproc.middlewares` | the pipelines, in their order; another class may have none |
| `itemproc.close_spider_async`, `.close_spider` | the moment after the last item, before pipelines are closed |
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from scrapy.crawler import Crawler
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_ubi.adapter.scrapy_private.engines import engine_of

HOOK = "ubi_flush_items"  # the method of a pipeline that writes what it holds (`outputs.pipeline_flush`)


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
