"""The scraper of a running crawl: its pipelines, what errbacks yield and it takes for an item, and its bound on pages.

| name | used for |
| --- | --- |
| `engine.scraper.itemproc` | what holds the pipelines; the setting `ITEM_PROCESSOR` may name another class |
| `itemproc.middlewares` | the pipelines, in their order; another class may have none |
| `itemproc.close_spider_async`, `.close_spider` | the moment after the last item, before pipelines are closed |
| `engine.scraper.slot.max_active_size` | bytes of pages under way from which on no request is handed out |
| `engine.scraper.start_itemproc_async` | where what an errback yields is taken for an item |
| `engine.scraper.handle_spider_output_async` | where what an errback yields comes by, past all spider middlewares |

`start_itemproc_async` is used where UBI_ENABLED is off, too.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from typing import Any

import scrapy
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

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


Met = Callable[[Request, Request], object]


def on_errback_output(crawler: Crawler, met: Met) -> None:
    """Call `met(request, parent)` for each request that the errback of `parent` yields, before the engine hears of it.

    To be called when the spider was opened, after the lean way was placed: that takes the place of the same method.
    What an errback yields that is called for a response (a spider middleware has refused it) passes the spider
    middlewares, and is not met here. Nothing is done without an engine, or where the name lacks (`needed`).
    """
    scraper = getattr(engine_of(crawler), "scraper", None)
    original = getattr(scraper, "handle_spider_output_async", None)
    if scraper is None or original is None:
        return

    def handle_spider_output_async(
        result: Iterable[Any] | AsyncIterator[Any], request: Request, response: Any
    ) -> Awaitable[None]:
        if isinstance(response, Failure):
            is_async = isinstance(result, AsyncIterator)
            result = _met_async(result, request, met) if is_async else _met(result, request, met)  # type: ignore[arg-type]
        return original(result, request, response)  # type: ignore[no-any-return]

    scraper.handle_spider_output_async = handle_spider_output_async


def _met(result: Iterable[Any], parent: Request, met: Met) -> Iterator[Any]:
    for found in result:
        if isinstance(found, Request):
            met(found, parent)
        yield found


async def _met_async(result: AsyncIterator[Any], parent: Request, met: Met) -> AsyncIterator[Any]:
    async for found in result:
        if isinstance(found, Request):
            met(found, parent)
        yield found
