"""Which names Scrapy and Twisted lack: those that no crawl of ours goes without, asked for before a crawl begins, and
those whose lack leaves something out of it, which is said in one line of the log.

Rules of this module:

* `NEEDED` holds what the rooms above take at any time of a crawl, also such as is first taken at its end: a crawl is
  refused, never broken off.
* A user's own DOWNLOADER or ITEM_PROCESSOR need not have the names of Scrapy's.
* `NAMES` holds what the rooms above do without where it is lacking. Each of them finds that out by
  itself, when it needs the name.
* Names of which an older version that was tried has none, and for which something stands in, are no loss
  (`versions`, `feed_slots`).
* The line is a warning where a crawl does less than was asked of it, not where it only takes more time or memory.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dis import get_instructions
from importlib import import_module
from inspect import unwrap
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import scrapy
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.crawler import Crawler
from scrapy.extensions.feedexport import FeedExporter, FeedSlot

logger = logging.getLogger("scrapy_ubi")

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


class Part(NamedTuple):
    """A part that needs these names of a class, or module (`holder`, as `module:Class`): what is left out without them;
    whether a crawl does less then."""

    what: str
    holder: str
    names: tuple[str, ...]
    does_less: bool = False


LIVE = "changes of {} while the crawl runs"
RULES = "links of a rule as one object (UbiCrawlSpider)"
NAMES = (
    Part(LIVE.format("CONCURRENT_REQUESTS"), "scrapy.core.downloader:Downloader", ("total_concurrency",), True),
    Part(LIVE.format("DOWNLOAD_DELAY"), "scrapy.core.downloader:Downloader", ("per_slot_settings",), True),
    Part(LIVE.format("DOWNLOAD_TIMEOUT"), "scrapy.downloadermiddlewares.downloadtimeout:DownloadTimeoutMiddleware",
         ("_timeout",), True),
    Part(LIVE.format("LOG_LEVEL"), "scrapy.utils.log", ("get_scrapy_root_handler",), True),
    Part("robots.txt asked again by the project's own middleware",
         "scrapy.downloadermiddlewares.robotstxt:RobotsTxtMiddleware", ("_parsers",), True),
    Part("kept connections cut off at once", "twisted.web.client:_RetryingHTTP11ClientProtocol", ("_clientProtocol",),
         True),
    Part("a bound on idle connections", "twisted.web.client:HTTPConnectionPool",
         ("_putConnection", "_removeConnection", "_connections", "_timeouts")),
    Part("plain links to other sites dropped before they are requests",
         "scrapy.downloadermiddlewares.offsite:OffsiteMiddleware", ("get_host_regex",)),
    Part("the stat offsite/domains of plain links", "scrapy.downloadermiddlewares.offsite:OffsiteMiddleware",
         ("domains_seen",)),
    Part("links read off the tree of a parsed page", "scrapy.http:TextResponse", ("_cached_selector",)),
    Part("the default callback left out of mail", "scrapy:Spider", ("_parse",)),
    Part("nonces that are the same after a crash for what errbacks yield", "scrapy.core.scraper:Scraper",
         ("handle_spider_output_async",), True),
    Part("room for large pages beyond Scrapy's own bound", "scrapy.core.scraper:Slot", ("max_active_size",)),
    Part("the first page of a host without a delay", "scrapy.core.downloader:Slot", ("lastseen",)),
    Part(RULES, "scrapy.spiders:CrawlSpider",
         ("_requests_to_follow", "_build_request", "_callback", "_errback", "_rules")),
    Part(RULES, "scrapy.spiders.crawl", ("_identity_process_request",)),
)  # fmt: skip


def say_left_out() -> None:
    """Say in one line what is left out, and which names are lacking; nothing where none is."""
    found = list(_left_out())
    if not found:
        return
    level = logging.WARNING if any(part.does_less for part, _ in found) else logging.INFO
    parts = "; ".join(f"{part.what} ({', '.join(names)})" for part, names in found)
    logger.log(level, "Left out, as Scrapy %s or its Twisted lacks what is named here: %s.", scrapy.__version__, parts)


def _left_out() -> Iterator[tuple[Part, list[str]]]:
    for part in NAMES:
        holder = _holder(part.holder)
        place = part.holder.replace(":", ".").rpartition(".")[2]
        if names := [f"{place}.{name}" for name in part.names if not _has(holder, name)]:
            yield part, names


def _holder(path: str) -> Any:
    """The class, or module; None where it is lacking itself."""
    module, _, name = path.partition(":")
    try:
        found = import_module(module)
    except ImportError:
        return None
    return getattr(found, name, None) if name else found


def _has(holder: Any, name: str) -> bool:
    """Whether it has that name, or one of its methods sets such an attribute: objects have it then."""
    if hasattr(holder, name):
        return True
    methods = [one for each in getattr(holder, "__mro__", ()) for one in vars(each).values()]
    return any(_sets(one.__code__, name) for one in methods if isinstance(one, FunctionType))


def _sets(code: CodeType, name: str) -> bool:
    """Whether a function sets an attribute of that name."""
    if name not in code.co_names:
        return False
    return any(step.opname == "STORE_ATTR" and step.argval == name for step in get_instructions(code))


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
