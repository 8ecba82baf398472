"""Changes of what belongs to the process, not to a crawl, while crawls run (UBI_LEAN): the garbage collector, loggers.

The first crawl of a process makes such a change when its spider opens, the last one undoes it when its spider is
closed; of those between nobody notices.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Self

from scrapy import signals
from scrapy.crawler import Crawler

Undo = Callable[[], object]


class ProcessWide(ABC):
    """An extension of each crawl; a subclass is one change."""

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
        """Make the change, as far as nobody has chosen otherwise; what undoes that."""

    def spider_opened(self) -> None:
        cls = type(self)
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
