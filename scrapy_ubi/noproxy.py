"""What `no_proxy` says of a host is asked once (UBI_FAST).

Where the environment names a proxy (`http_proxy`), Scrapy asks for every request whether `no_proxy` excepts its host,
and Python reads the whole environment for the answer. Here answers are remembered while the spider runs; Scrapy reads
the proxies themselves only once, too. Rules of this module:

* It is the process that has an environment, not the crawl: the first crawl changes it, the last one changes it back.
"""

from __future__ import annotations

from collections.abc import Callable

from scrapy import signals
from scrapy.crawler import Crawler

from scrapy_ubi import scrapy_private

_running = 0
_forget: Callable[[], None] | None = None


class NoProxyOnce:
    """An extension: from the opening of the spider to its end."""

    def __init__(self) -> None:
        self._open = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> NoProxyOnce:
        made = cls()
        crawler.signals.connect(made.spider_opened, signals.spider_opened)
        crawler.signals.connect(made.spider_closed, signals.spider_closed)
        return made

    def spider_opened(self) -> None:
        global _running, _forget
        self._open = True
        _running += 1
        if _forget is None:
            _forget = scrapy_private.remember_no_proxy()

    def spider_closed(self) -> None:
        global _running, _forget
        if not self._open:
            return
        self._open = False
        _running -= 1
        if _running == 0 and _forget is not None:
            _forget()
            _forget = None
