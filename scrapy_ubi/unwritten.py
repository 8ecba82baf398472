"""Log records that nobody would write are not made (UBI_FAST).

Scrapy takes all records of all levels, and leaves it to the handlers of the log to pass over those below LOG_LEVEL:
for each page it makes a record or two of level DEBUG ("Crawled", "Scraped from") that end nowhere. Here the loggers of
these are told LOG_LEVEL themselves, while the spider runs. Rules of this module:

* Only where no handler that such a record would reach takes that level, and where nobody has given the logger a level.
* It is the process that has loggers, not the crawl: the first crawl changes them, the last one changes them back.
"""

from __future__ import annotations

import logging

from scrapy import signals
from scrapy.crawler import Crawler

LOGGERS = ("scrapy.core.engine", "scrapy.core.scraper")

_running = 0
_changed: list[logging.Logger] = []


class UnwrittenRecords:
    """An extension: from the opening of the spider to its end."""

    def __init__(self) -> None:
        self._open = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> UnwrittenRecords:
        made = cls()
        crawler.signals.connect(made.spider_opened, signals.spider_opened)
        crawler.signals.connect(made.spider_closed, signals.spider_closed)
        return made

    def spider_opened(self) -> None:
        global _running
        self._open = True
        _running += 1
        for logger in map(logging.getLogger, LOGGERS):
            least = least_written(logger)
            if logger.level == logging.NOTSET and least is not None and least > logging.DEBUG:
                logger.setLevel(least)
                _changed.append(logger)

    def spider_closed(self) -> None:
        global _running
        if not self._open:
            return
        self._open = False
        _running -= 1
        if _running == 0:
            for logger in _changed:
                logger.setLevel(logging.NOTSET)
            _changed.clear()


def least_written(logger: logging.Logger) -> int | None:
    """The lowest level that any handler of this logger's records takes, None where there is no handler."""
    levels: list[int] = []
    at: logging.Logger | None = logger
    while at is not None:
        levels += [handler.level for handler in at.handlers]
        at = at.parent if at.propagate else None
    return min(levels, default=None)
