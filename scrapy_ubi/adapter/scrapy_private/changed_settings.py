"""Settings of Scrapy that are changed while a crawl runs: what has copied their values at the start.

| name | used for |
| --- | --- |
| `downloader.total_concurrency` | CONCURRENT_REQUESTS |
| `downloader.slots`, `._delay`, `.per_slot_settings`, `spider.download_delay` (Scrapy 2.17) | DOWNLOAD_DELAY |
| `DownloadTimeoutMiddleware._timeout` | DOWNLOAD_TIMEOUT |
| `get_scrapy_root_handler` | LOG_LEVEL |

A user's own DOWNLOADER or middleware that lacks these keeps what it has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.downloadtimeout import DownloadTimeoutMiddleware
from scrapy.utils import log


class ChangedSettings:
    """The changed settings of one crawler."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._before: dict[str, Any] = {}  # what stood there at the start, of what was changed

    @property
    def _downloader(self) -> Any:
        return getattr(self._crawler.engine, "downloader", None)

    def apply(self, values: Mapping[str, Any]) -> None:
        """These are the values that people have given; others are as they were at the start."""
        timeouts = self._crawler.get_downloader_middleware(DownloadTimeoutMiddleware)
        self._put("CONCURRENT_REQUESTS", self._downloader, "total_concurrency", values)
        self._put("DOWNLOAD_TIMEOUT", timeouts, "_timeout", values)
        root_handler: Any = getattr(log, "get_scrapy_root_handler", lambda: None)
        if (handler := root_handler()) is not None:
            level = self._value("LOG_LEVEL", handler.level, values)
            if level != handler.level:
                handler.setLevel(level)

    def _put(self, name: str, holder: Any, attribute: str, values: Mapping[str, Any]) -> None:
        if hasattr(holder, attribute):
            setattr(holder, attribute, self._value(name, getattr(holder, attribute), values))

    def _value(self, name: str, present: Any, values: Mapping[str, Any]) -> Any:
        if name in values:
            self._before.setdefault(name, present)
            return values[name]
        return self._before.get(name, present)

    def delay(self, seconds: float) -> None:
        """The delay of hosts is so long (s): the slots of the downloader, which have DOWNLOAD_DELAY, are to add nothing
        to it. Those that AutoThrottle, or DOWNLOAD_SLOTS, has given one keep it."""
        downloader, settings = self._downloader, self._crawler.settings
        most = settings.getfloat("DOWNLOAD_DELAY")
        if not most or settings.getbool("AUTOTHROTTLE_ENABLED") or not hasattr(downloader, "slots"):
            return
        if not hasattr(downloader, "per_slot_settings"):  # which slots have a delay of their own cannot be told
            return
        delay = min(most, seconds)
        for name, slot in downloader.slots.items():
            if name not in downloader.per_slot_settings:
                slot.delay = delay
        if hasattr(downloader, "_delay"):
            downloader._delay = delay
        elif delay != most or hasattr(self._crawler.spider, "download_delay"):
            self._crawler.spider.download_delay = delay  # type: ignore[union-attr]
