"""Fewer collections of garbage while a crawl runs (UBI_FAST).

Python looks for garbage in cycles after every few hundred new objects, and a page makes hundreds. What was there before
the crawl (modules, settings, classes) is not looked at again while it runs, and the youngest objects are looked at less
often. Rules of this module:

* Who has chosen a threshold above ours, or switched the collector off, keeps that.
* It is the process that has a collector, not the crawl: the first crawl changes it, the last one changes it back.
"""

from __future__ import annotations

import gc

from scrapy import signals
from scrapy.crawler import Crawler

# New objects between two collections, as many as some tens of pages make; 700 by default in Python 3.11.
THRESHOLD = 10_000

_running = 0
_before: tuple[int, int, int] | None = None


class FewerCollections:
    """An extension: from the opening of the spider to its end."""

    def __init__(self) -> None:
        self._open = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> FewerCollections:
        made = cls()
        crawler.signals.connect(made.spider_opened, signals.spider_opened)
        crawler.signals.connect(made.spider_closed, signals.spider_closed)
        return made

    def spider_opened(self) -> None:
        global _running, _before
        self._open = True
        _running += 1
        if _before is None and gc.isenabled() and 0 < gc.get_threshold()[0] < THRESHOLD:
            _before = gc.get_threshold()
            gc.collect()
            gc.freeze()
            gc.set_threshold(THRESHOLD, *_before[1:])

    def spider_closed(self) -> None:
        global _running, _before
        if not self._open:
            return
        self._open = False
        _running -= 1
        if _running == 0 and _before is not None:
            gc.set_threshold(*_before)
            gc.unfreeze()
            _before = None
