"""How many requests an agent has under way, where it finds that by itself (UBI_CONCURRENCY = "auto(500)"): the rules
(`ConcurrencyRules`), and the extension that gives Scrapy's downloader so many places.

The extension is there where the agent finds that number by itself (`process.own_concurrency_limit`), and looks at the
crawler's settings once more, as an add-on that comes later may have set a number. It looks twice a second; a page costs
nothing more. What people set while the crawl runs (`scrapy ubi set CONCURRENT_REQUESTS=8`) holds as long as it is set.

Scrapy's 16 are for a few hosts. Of a thousand, each loaded from once at a time and answering after 100 ms, 16 places
give 160 pages a second at most, and a host that does not answer takes one of them for DOWNLOAD_TIMEOUT. The rules:

* More only while all places are taken, and the agent has room: its loop comes on time, its thread is not busy all the
  time, and transfers do not fail more often than before. Otherwise nothing is changed, or there are fewer.
* A load that has been under way for `SILENT` seconds holds no place: as many are given beside the others, up to as many
  again. So hosts that hang take no rate from the others.
* At most `most_bytes` of bodies are expected at once, by the size that pages had lately (larger ones count immediately,
  smaller ones slowly), and at most `most_files` connections; one load is always allowed.
* The rules are a function of what was seen (`LoadsSeen`): no clock, no timer.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass
from typing import Any

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured

from scrapy_ubi.adapter.components.find_scheduler import scheduler_of
from scrapy_ubi.adapter.components.scheduler import UbiScheduler
from scrapy_ubi.adapter.process.own_concurrency_limit import found_by_agent
from scrapy_ubi.adapter.requests.transfer_states import Transfer
from scrapy_ubi.adapter.scrapy_private.engines import engine_of
from scrapy_ubi.ground import open_files
from scrapy_ubi.ground.timer import Timer
from scrapy_ubi.settings.loads_at_once import Loads

logger = logging.getLogger("scrapy_ubi")

INTERVAL = 0.5  # s
SHARE_OF_MEMORY = 1 / 4  # of UBI_MEMORY_MB: for bodies under way
SPARE_FILES = 256  # for disks, Redis, logs; idle connections have a third of all (`fast.http.pool`)
_ANSWERED, _FAILED = "downloader/response_count", "downloader/exception_count"
_BYTES = ("downloader/response_bytes", "httpcompression/response_bytes")


SILENT = 5.0  # s
LATE, FAR_TOO_LATE = 0.1, 0.5  # s that the loop is late: it stays as it is; there are fewer
BUSY = 0.85  # share of the time in which the thread computes; with more loads they would only wait
FAILING = 0.3  # share of transfers that fail, from which it may be too many; and more than twice as many as usual
ENOUGH = 20  # transfers in which a share of failures means something
GROWS, SHRINKS = 1.25, 0.75
LEAST_STEP = 8
FORGETS = 0.1  # weight of the last look in what is usual


@dataclass(frozen=True, slots=True)
class LoadsSeen:
    """What was seen since the last look."""

    active: int  # requests under way
    silent: int = 0  # those of them that have been for SILENT seconds
    late: float = 0.0  # s that the loop came too late, at most
    busy: float = 0.0  # share of the time in which this thread computed
    answered: int = 0
    failed: int = 0
    page_bytes: float = 0.0  # of a body, on average; 0: none came


class ConcurrencyRules:
    """Decides for one agent. `limit`: how many there may be now."""

    def __init__(self, first: int, most: int, most_bytes: float = float("inf"), most_files: int = 1 << 30) -> None:
        self._first = min(first, most)
        self._most = most
        self._most_bytes = most_bytes
        self._most_files = most_files
        self._target = float(self._first)
        self._usual_failures = 0.0
        self._page_bytes = 0.0
        self.limit = self._first

    def look(self, seen: LoadsSeen) -> int:
        """The limit from now on."""
        if seen.page_bytes:
            weight = FORGETS if seen.page_bytes < self._page_bytes else 1.0  # large ones count at once
            self._page_bytes += weight * (seen.page_bytes - self._page_bytes)
        failing = self._is_failing(seen)
        if seen.late > FAR_TOO_LATE or failing:
            self._target = max(float(self._first), self._target * SHRINKS)
        elif seen.active >= self.limit and seen.late < LATE and seen.busy < BUSY:
            self._target = min(float(self._most), max(self._target * GROWS, self._target + LEAST_STEP))
        target = int(self._target)
        self.limit = max(1, min(target + min(seen.silent, target), self._most_files, self._fits()))
        return self.limit

    def _is_failing(self, seen: LoadsSeen) -> bool:
        ended = seen.answered + seen.failed
        if ended < ENOUGH:
            return False
        share = seen.failed / ended
        usual = self._usual_failures
        self._usual_failures += FORGETS * (share - usual)
        return share > FAILING and share > 2 * usual

    def _fits(self) -> int:
        """How many bodies of the present size may be under way."""
        if not self._page_bytes:
            return self._most_files
        return max(1, int(min(self._most_bytes / self._page_bytes, float(self._most_files))))


class OwnConcurrency:
    """Of one crawler."""

    def __init__(self, crawler: Crawler, loads: Loads) -> None:
        self._crawler = crawler
        self._loads = loads
        self._timer = Timer()
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
        self._decides = ConcurrencyRules(first, loads.most, memory, room)
        downloader.total_concurrency = self._decides.limit
        self._before = self._counts()
        self._begin()

    def _closed(self) -> None:
        self._timer.clear()
        if self._most_seen:
            self._crawler.stats.max_value("ubi/concurrency/max", self._most_seen)

    @property
    def _downloader(self) -> Any:
        return getattr(engine_of(self._crawler), "downloader", None)

    def _counts(self) -> tuple[float, ...]:
        get = self._crawler.stats.get_value
        return tuple(float(get(name, 0)) for name in (_ANSWERED, _FAILED, *_BYTES))

    def _begin(self) -> None:
        self._looked = asyncio.get_running_loop().time()
        self._spent = time.thread_time()
        self._timer.set(INTERVAL, self._look)

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
