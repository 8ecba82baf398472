"""Timers that were stopped are let go.

Twisted keeps a timer that was stopped until the time it was set to, and throws all of them away when it next has one to
call. Scrapy sets and stops one or two for each page, to DOWNLOAD_TIMEOUT: three minutes, of some 10,000 pages. Nothing
else is called in all that time in Scrapy 2.19, as its own tasks are asyncio's. A call every few seconds is enough.
"""

from __future__ import annotations

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.utils.reactor import is_reactor_installed
from twisted.internet.task import LoopingCall

EVERY = 5.0  # s


class StoppedTimers:
    """While the spider is open."""

    def __init__(self) -> None:
        self.calls = LoopingCall(_nothing)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> StoppedTimers:
        """Raises NotConfigured where there is no reactor: asyncio's timers do not stay."""
        if not is_reactor_installed():
            raise NotConfigured
        made = cls()
        crawler.signals.connect(made.spider_opened, signals.spider_opened)
        crawler.signals.connect(made.spider_closed, signals.spider_closed)
        return made

    def spider_opened(self) -> None:
        self.calls.start(EVERY, now=False)

    def spider_closed(self) -> None:
        if self.calls.running:
            self.calls.stop()


def _nothing() -> None:
    """Twisted looks at its timers by itself when it calls this."""
