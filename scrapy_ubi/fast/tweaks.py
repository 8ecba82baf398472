"""Small parts of UBI_LEAN, of a few lines each: stats, log records.

Rules of this module:

* Nothing of the process is changed by the parts here; a part elsewhere that stands for a function of Scrapy's is a
  `ProcessWide`: the first crawl of a process makes such a change when its spider opens, the last one undoes it when its
  spider is closed. In a program that embeds crawls (CrawlerRunner) no such change is made: the process is that
  program's. Only what gives every caller the same result may be one (docs/decisions/0085).
* A stats collector that the user has chosen stays.

| private name | used for |
| --- | --- |
| `MemoryStatsCollector.__getattribute__` | to count without a look at the name of every attribute |
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Self

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.statscollectors import MemoryStatsCollector

from scrapy_ubi.adapter.scrapy_private.runs import is_scrapys_process

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


def is_written(logger: logging.Logger, level: int) -> bool:
    """Whether anything would come of a record of this level, as handlers and filters are now.

    Scrapy takes all records of all levels, and leaves it to the handlers of the log to pass over those below LOG_LEVEL:
    for each page it makes a record of level DEBUG that ends nowhere.
    """
    least = least_written(logger)
    return bool(logger.filters) or (least is not None and least <= level)


def least_written(logger: logging.Logger) -> int | None:
    """The lowest level that any handler of this logger's records takes, None where there is no handler."""
    levels: list[int] = []
    at: logging.Logger | None = logger
    while at is not None:
        levels += [handler.level for handler in at.handlers]
        at = at.parent if at.propagate else None
    return min(levels, default=None)
