"""Whether a Scrapy has the names that no crawl of ours goes without, asked before a crawl begins.

Rules of this module:

* `NEEDED` holds what the rooms above take at any time of a crawl, also such as is first taken at its end: a crawl is
  refused, never broken off. What is only left out where it is lacking does not stand here.
* A user's own DOWNLOADER or ITEM_PROCESSOR need not have the names of Scrapy's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from inspect import unwrap
from types import CodeType
from typing import Any

from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.crawler import Crawler
from scrapy.extensions.feedexport import FeedExporter, FeedSlot

# By the place under the engine, when it has its slot.
NEEDED: Mapping[str, tuple[str, ...]] = {
    "": (
        "_slot", "scraper", "downloader", "signals", "_spider_idle", "_handle_downloader_output", "download_async",
        "close_spider_async", "needs_backout",
    ),
    "_slot": ("remove_request", "close", "closing", "nextcall", "close_if_idle", "scheduler"),
    "_slot.nextcall": ("schedule",),
    "scraper": ("slot", "spidermw", "itemproc", "enqueue_scrape", "start_itemproc_async"),
    "scraper.spidermw": ("middlewares",),
    "downloader": ("handlers", "middleware", "slots", "active", "_get_slot"),
    "downloader.handlers": ("download_request_async", "_get_handler"),
}  # fmt: skip

# What objects have from their `__init__` only: of such as a crawl makes when it first needs them.
MADE: Mapping[type, tuple[str, ...]] = {
    HTTP11DownloadHandler: ("_pool",),
    FeedExporter: ("feeds", "storages", "slots"),
    FeedSlot: ("file", "itemcount"),
}


def lacking_names(crawler: Crawler) -> Iterator[str]:
    """The names that the engine of this crawler lacks, as `Class.name`."""
    for place, names in NEEDED.items():
        part: Any = crawler.engine
        for step in filter(None, place.split(".")):
            part = getattr(part, step, None)
        kind = type(part)
        if part is None or not kind.__module__.startswith("scrapy."):
            continue  # said already, or the user's own
        for name in names:
            if not hasattr(part, name):
                yield f"{kind.__qualname__}.{name}"
    for kind, names in MADE.items():
        yield from (f"{kind.__qualname__}.{name}" for name in names if name not in _named(kind.__init__))


def _named(function: Any) -> tuple[str, ...]:
    """The attributes that are named in a function."""
    code: CodeType | None = getattr(unwrap(function), "__code__", None)
    return code.co_names if code is not None else ()


def is_scrapys(error: AttributeError) -> bool:
    """Whether this was raised because an object of Scrapy's, or of Twisted's, lacks a name."""
    of = error.obj if isinstance(error.obj, type) else type(error.obj)
    return of.__module__.partition(".")[0] in ("scrapy", "twisted")
