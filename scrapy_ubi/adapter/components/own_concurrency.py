"""An extension that gives Scrapy's downloader the places that the agent bears (`adapter.downloads.at_once`).

It is there where the agent finds that number by itself (`adapter.process.own_number`), and looks at the crawler's
settings once more, as an add-on that comes later may have set a number. It looks twice a second; a page costs nothing
more. What people set while the crawl runs (`scrapy ubi set CONCURRENT_REQUESTS=8`) holds as long as it is set.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured

from scrapy_ubi.adapter.components.find_scheduler import scheduler_of
from scrapy_ubi.adapter.components.scheduler import UbiScheduler
from scrapy_ubi.adapter.downloads.at_once import SILENT, AtOnce, LoadsSeen
from scrapy_ubi.adapter.process import open_files
from scrapy_ubi.adapter.process.own_number import found_by_agent
from scrapy_ubi.adapter.requests.transfer_states import Transfer
from scrapy_ubi.adapter.scrapy_private.engines import engine_of
from scrapy_ubi.settings.loads_at_once import Loads

logger = logging.getLogger("scrapy_ubi")

INTERVAL = 0.5  # s
SHARE_OF_MEMORY = 1 / 4  # of UBI_MEMORY_MB: for bodies under way
SPARE_FILES = 256  # for disks, Redis, logs; idle connections have a third of all (`fast.http.pool`)
_ANSWERED, _FAILED = "downloader/response_count", "downloader/exception_count"
_BYTES = ("downloader/response_bytes", "httpcompression/response_bytes")


class OwnConcurrency:
    """Of one crawler."""

    def __init__(self, crawler: Crawler, loads: Loads) -> None:
        self._crawler = crawler
        self._loads = loads
        self._timer: asyncio.TimerHandle | None = None
        self._most_seen = 0
        crawler.signals.connect(self._opened, signals.spider_opened)
        crawler.signals.connect(self._closed, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> OwnConcurrency:
        """Raises NotConfigured where a number is set."""
        loads = found_by_agent(crawler.settings)
        if loads is None:
            raise NotConfigured
        return cls(crawler, loads)

    def _opened(self) -> None:
        scheduler, downloader = scheduler_of(self._crawler), self._downloader
        if scheduler is None or scheduler.is_trial or not hasattr(downloader, "total_concurrency"):
            return
        loads = self._loads
        files = open_files.may_open()
        if scheduler.settings.concurrency is not None:
            files = open_files.ask_for(2 * loads.most + SPARE_FILES)
        room = max(1, (files - SPARE_FILES) * 2 // 3)
        memory = (scheduler.settings.memory_mb << 20) * SHARE_OF_MEMORY
        first = self._crawler.settings.getint("CONCURRENT_REQUESTS") or loads.most
        self._scheduler: UbiScheduler = scheduler
        self._decides = AtOnce(first, loads.most, memory, room)
        downloader.total_concurrency = self._decides.limit
        self._before = self._counts()
        self._begin()

    def _closed(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            if self._most_seen:
                self._crawler.stats.max_value("ubi/concurrency/max", self._most_seen)

    @property
    def _downloader(self) -> Any:
        return getattr(engine_of(self._crawler), "downloader", None)

    def _counts(self) -> tuple[float, ...]:
        get = self._crawler.stats.get_value
        return tuple(float(get(name, 0)) for name in (_ANSWERED, _FAILED, *_BYTES))

    def _begin(self) -> None:
        loop = asyncio.get_running_loop()
        self._looked, self._spent = loop.time(), time.thread_time()
        self._timer = loop.call_at(self._looked + INTERVAL, self._look)

    def _look(self) -> None:
        passed = asyncio.get_running_loop().time() - self._looked
        busy = (time.thread_time() - self._spent) / passed
        downloader = self._downloader
        counts = self._counts()
        answered, failed, *sizes = (now - before for now, before in zip(counts, self._before, strict=True))
        self._before = counts
        if "CONCURRENT_REQUESTS" not in self._scheduler.node.live.scrapys:
            limit = self._decides.look(
                LoadsSeen(
                    active=len(downloader.active),
                    silent=self._silent(),
                    late=passed - INTERVAL,
                    busy=busy,
                    answered=int(answered),
                    failed=int(failed),
                    page_bytes=max(sizes) / answered if answered else 0.0,
                )
            )
            if limit != downloader.total_concurrency:
                self._put(limit)
        self._begin()

    def _put(self, limit: int) -> None:
        more = limit > self._downloader.total_concurrency
        self._downloader.total_concurrency = limit
        if limit > self._most_seen:
            self._most_seen = limit
        logger.debug("UBI_CONCURRENCY: %d requests at once from now on.", limit)
        if more:
            self._scheduler.hooks.wake()

    def _silent(self) -> int:
        """How many transfers have been under way for SILENT seconds."""
        since, flights = time.monotonic() - SILENT, self._scheduler.flights
        return sum(flight.transfer is Transfer.TRANSFERRING and flight.began < since for flight in flights)
