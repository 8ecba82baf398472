"""The profiles that the limits of the whole crawl are judged by: read while one agent crawls.

Rules of this module:

* Redis is asked for nothing where no limit is set, nor before the agent has begun to fetch. The loop does not wait: one
  read at a time runs in the I/O thread. Where profiles cannot be read, the numbers last read hold.
"""

from __future__ import annotations

from concurrent.futures import Future

from scrapy_ubi.agent.crawl.crawl import Crawl
from scrapy_ubi.agent.hosts.crawl_limits import CrawlLimits
from scrapy_ubi.agent.mail.io_thread import IoThread
from scrapy_ubi.transport import Transport


class LimitWatch:
    """Looks after the limits of the crawl for one agent."""

    def __init__(self, limits: CrawlLimits, crawl: Crawl, io: IoThread, transport: Transport) -> None:
        self._limits = limits
        self._crawl = crawl
        self._io = io
        self._transport = transport
        self._reading: Future[dict[str, str]] | None = None

    def check_limits(self, now: float) -> None:
        """Stop the crawl where it has reached a limit; read what all agents publish, when it is time."""
        limits = self._limits
        if limits.idle or not limits.begun:
            return
        tally = self._crawl.tally
        limits.check(tally.pages, now - tally.begun)
        if self._reading is None and limits.is_due(now):
            self._reading = self._io.send(self._transport.profiles(), self._take)

    def _take(self) -> None:
        reading = self._reading
        if reading is None or not reading.done():
            return
        self._reading = None
        if reading.exception() is None:
            self._limits.read_profiles(reading.result(), self._crawl.agent.view.members)
