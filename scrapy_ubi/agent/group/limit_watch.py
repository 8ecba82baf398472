"""The profiles that the limits of the whole crawl are judged by: read while one agent crawls.

Rules of this module:

* Redis is asked for nothing where no limit is set, nor before the agent has begun to fetch. The loop does not wait: one
  read at a time runs in the I/O thread. Where profiles cannot be read, the numbers last read hold.
* How much of the disk is free is looked at every few seconds, in another thread, where that is limited.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Callable

from scrapy_ubi.agent.crawl.crawl import Crawl
from scrapy_ubi.agent.hosts.crawl_limits import CrawlLimits
from scrapy_ubi.agent.mail.errand import Errand
from scrapy_ubi.agent.mail.io_thread import IoThread
from scrapy_ubi.transport import Transport

logger = logging.getLogger("scrapy_ubi")

LOOK_EVERY = 2.0  # s, at the disk
LOW = (
    "The disk of %s has %.2f GB free, less than the %.2f GB of UBI_CRAWL_LIMITS: this agent fetches nothing until "
    "there is room."
)


class LimitWatch:
    """Looks after the limits of the crawl for one agent. `on_change`: it may fetch again, or may not."""

    def __init__(
        self,
        limits: CrawlLimits,
        crawl: Crawl,
        io: IoThread,
        transport: Transport,
        on_change: Callable[[], object] = lambda: None,
    ) -> None:
        self._limits = limits
        self._crawl = crawl
        self._transport = transport
        self._on_change = on_change
        self._reading = Errand(io, self._take)
        self._looking: asyncio.Future[int] | None = None
        self._look_at = 0.0
        self.free = 0  # bytes of the disk, when it was looked at last

    def check_limits(self, now: float) -> None:
        """Stop the crawl where it has reached a limit; read what all agents publish, when it is time."""
        limits = self._limits
        if limits.idle or not limits.begun:
            limits.low_disk = False
            return
        if limits.least_free or limits.low_disk:
            self._check_disk(now)
        tally = self._crawl.tally
        limits.check(tally.pages, now - tally.begun, tally.body_bytes)
        if not self._reading.is_under_way and limits.is_due(now):
            self._reading.send(self._transport.profiles())

    def _take(self, profiles: dict[str, str]) -> None:
        self._limits.read_profiles(profiles, self._crawl.agent.view.members)

    def _check_disk(self, now: float) -> None:
        place = self._crawl.disk.history
        if place is None or now < self._look_at or self._looking is not None:
            return
        self._look_at = now + LOOK_EVERY
        self._looking = asyncio.get_running_loop().run_in_executor(None, lambda: shutil.disk_usage(place).free)
        self._looking.add_done_callback(self._looked)

    def _looked(self, looking: asyncio.Future[int]) -> None:
        self._looking = None
        if looking.cancelled() or looking.exception() is not None:  # what is known last holds
            return
        limits, self.free = self._limits, looking.result()
        low = self.free < limits.least_free
        if low != limits.low_disk:
            limits.low_disk = low
            if low:
                logger.warning(LOW, self._crawl.disk.history, self.free / 1e9, limits.least_free / 1e9)
            else:
                logger.info("The disk has room again: this agent goes on.")
            self._on_change()
