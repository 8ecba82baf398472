"""An extension that says how long the event loop was held up, and what became of requests.

`-s NET_STATE=FILE`: written twice a second, as JSON, while the spider is open. A timer of TICK seconds looks how late
it comes: by the clock (which on a busy machine counts what other processes took, too), and by the processor time that
this thread has spent meanwhile (a block in which it computed). A block that waits, as for a DNS answer, shows in the
first of them only.
"""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

from scrapy import signals
from scrapy.crawler import Crawler

TICK = 0.02  # s
EACH = 25  # ticks between two notes


class LoopBlocks:
    """Of one crawler."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._file = crawler.settings.get("NET_STATE")
        self._late: list[float] = []
        self._busy: list[float] = []
        crawler.signals.connect(self._opened, signals.spider_opened)
        crawler.signals.connect(self._closed, signals.spider_closed)
        self._timer: asyncio.TimerHandle | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> LoopBlocks:
        return cls(crawler)

    def _opened(self) -> None:
        if self._file:
            self._loop = asyncio.get_running_loop()
            self._begin()

    def _closed(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _begin(self) -> None:
        self._spent = time.thread_time()
        self._due = self._loop.time() + TICK
        self._timer = self._loop.call_at(self._due, self._tick)

    def _tick(self) -> None:
        self._late.append(self._loop.time() - self._due)
        self._busy.append(time.thread_time() - self._spent)
        if len(self._late) % EACH == 0:
            self._note()
        self._begin()

    def _note(self) -> None:
        assert self._crawler.stats is not None
        downloader = self._crawler.engine.downloader  # type: ignore[union-attr]
        stats = {
            name: value
            for name, value in self._crawler.stats.get_stats().items()
            if isinstance(value, int | float) and name.startswith(("downloader/", "retry/", "ubi/", "response_"))
        }
        found = {
            "at": time.monotonic(),
            "late": [round(1000 * max(self._late[-EACH:]), 1), round(1000 * max(self._busy[-EACH:]), 1)],
            "active": len(downloader.active),
            "limit": downloader.total_concurrency,
            "stats": stats,
        }
        with Path(self._file).open("a", encoding="utf-8") as file:
            file.write(json.dumps(found) + "\n")
