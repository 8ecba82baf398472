"""Small parts of UBI_LEAN, of a few lines each: stats, garbage, log records, `no_proxy`.

Rules of this module:

* `LeanStats` is the crawl's own. The others are changes of the process (`ProcessWide`): the first crawl of a process
  makes such a change when its spider opens, the last one undoes it when its spider is closed. Nothing outlives the
  crawls. In a program that embeds crawls (CrawlerRunner) no such change is made: the process is that program's.
* What the user has chosen stays: a stats collector, a threshold of the garbage collector above ours, a collector that
  is off, the level of a logger.

| private name | used for |
| --- | --- |
| `scrapy.downloadermiddlewares.httpproxy.proxy_bypass` | to ask once what `no_proxy` says of a host |
| `MemoryStatsCollector.__getattribute__` | to count without a look at the name of every attribute |
"""

from __future__ import annotations

import gc
import logging
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, ClassVar, Self

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares import httpproxy
from scrapy.statscollectors import MemoryStatsCollector

from scrapy_ubi.scrapy_private.scrapys_process import is_scrapys_process

# New objects between two collections, as many as some tens of pages make; 700 by default in Python 3.11.
THRESHOLD = 10_000
LOGGERS = ("scrapy.core.engine", "scrapy.core.scraper")  # of the records "Crawled" and "Scraped from"
MOST_HOSTS = 10_000  # of which the answer of `no_proxy` is kept

Undo = Callable[[], object]


class LeanStats(MemoryStatsCollector):
    """Scrapy's default stats collector: the same numbers, by the same methods.

    Scrapy's looks at the name of every attribute it is asked for, and at the arguments of every call, to warn of an
    argument `spider`, which has lost its meaning: most of what a dozen stats a page cost.
    """

    __getattribute__ = object.__getattribute__


class ProcessWide(ABC):
    """An extension of each crawl; a subclass is one change of the process, while spiders are open."""

    _crawls: ClassVar[int] = 0  # whose spider is open
    _undo: ClassVar[Undo | None] = None

    def __init__(self) -> None:
        self._open = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        made = cls()
        crawler.signals.connect(made.spider_opened, signals.spider_opened)
        crawler.signals.connect(made.spider_closed, signals.spider_closed)
        return made

    @classmethod
    @abstractmethod
    def change(cls) -> Undo:
        """Make the change, as far as the user has not chosen otherwise; what undoes it."""

    def spider_opened(self) -> None:
        cls = type(self)
        if not is_scrapys_process():
            return
        self._open = True
        cls._crawls += 1
        if cls._undo is None:
            cls._undo = cls.change()

    def spider_closed(self) -> None:
        cls = type(self)
        if not self._open:
            return  # it never opened
        self._open = False
        cls._crawls -= 1
        if not cls._crawls and cls._undo is not None:
            undo, cls._undo = cls._undo, None
            undo()


class FewerCollections(ProcessWide):
    """Python looks for garbage in cycles after every few hundred new objects, and a page makes hundreds: the youngest
    objects are looked at less often. Nothing is frozen."""

    @classmethod
    def change(cls) -> Undo:
        """See the base class."""
        before = gc.get_threshold()
        if not gc.isenabled() or not 0 < before[0] < THRESHOLD:
            return lambda: None
        gc.set_threshold(THRESHOLD, *before[1:])
        return lambda: gc.set_threshold(*before)


class NoProxyOnce(ProcessWide):
    """`no_proxy` is read once, and asked once for a host.

    Where the environment names a proxy (`http_proxy`), Scrapy asks for every request whether `no_proxy` excepts its
    host, and Python reads the whole environment for the answer. Scrapy reads the proxies themselves only once, too.
    """

    @classmethod
    def change(cls) -> Undo:
        """See the base class."""
        module: Any = httpproxy
        original = ask = module.proxy_bypass
        by_environment: Any = getattr(urllib.request, "proxy_bypass_environment", None)
        if original is by_environment:  # as everywhere but on Windows and macOS
            ask = partial(by_environment, proxies=urllib.request.getproxies())
        module.proxy_bypass = lru_cache(maxsize=MOST_HOSTS)(ask)

        def undo() -> None:
            module.proxy_bypass = original

        return undo


class UnwrittenRecords(ProcessWide):
    """Log records that no handler would write are not made.

    Scrapy takes all records of all levels, and leaves it to the handlers of the log to pass over those below LOG_LEVEL:
    for each page it makes a record or two of level DEBUG that end nowhere. Here the loggers of these are told LOG_LEVEL
    themselves: only where no handler that such a record would reach takes that level, and where the logger has none.
    """

    @classmethod
    def change(cls) -> Undo:
        """See the base class."""
        changed = []
        for logger in map(logging.getLogger, LOGGERS):
            least = least_written(logger)
            if logger.level == logging.NOTSET and least is not None and least > logging.DEBUG:
                logger.setLevel(least)
                changed.append(logger)

        def undo() -> None:
            for logger in changed:
                logger.setLevel(logging.NOTSET)

        return undo


def least_written(logger: logging.Logger) -> int | None:
    """The lowest level that any handler of this logger's records takes, None where there is no handler."""
    levels: list[int] = []
    at: logging.Logger | None = logger
    while at is not None:
        levels += [handler.level for handler in at.handlers]
        at = at.parent if at.propagate else None
    return min(levels, default=None)
