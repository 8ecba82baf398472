"""What errbacks yield, and Scrapy takes for an item.

| name | used for |
| --- | --- |
| `engine.scraper.start_itemproc_async` | where what an errback yields is taken for an item |

It is used where UBI_ENABLED is off, too.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import scrapy
from scrapy.crawler import Crawler

from scrapy_ubi.adapter.scrapy_private.engines import engine_of

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
