"""UBI_WEB: the same server in the process of one agent, and in its event loop.

Rules of this module:

* It is an extension of Scrapy, which the add-on names where UBI_WEB is set: elsewhere nothing of this room is imported.
* It opens when the agent has joined, and closes with the spider. A crawl is never ended by its page: where it cannot
  listen, one line of the log says so.
* With Redis it shows the whole crawl, as `scrapy ubi web` does, from threads; without, what this agent has in memory.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from typing import Any

from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured

from scrapy_ubi.adapter.components.find_scheduler import scheduler_of
from scrapy_ubi.adapter.components.scheduler import UbiScheduler
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.transport.in_process import MemoryTransport
from scrapy_ubi.web import shelf_client
from scrapy_ubi.web.reader import CrawlReader
from scrapy_ubi.web.security import Access, UbiUnsafe, check_bound, read_token
from scrapy_ubi.web.web_app import UbiNotServed, WebApp, listening

logger = logging.getLogger("scrapy_ubi.web")


class AgentServer:
    """The page of the crawl of this crawler. `url`: where it is, empty while it is not."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._open = AsyncExitStack()
        self.url = ""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> AgentServer:
        """Scrapy's hook. Raises NotConfigured where UBI_WEB is not set."""
        if not crawler.settings.get("UBI_WEB"):
            raise NotConfigured
        server = cls(crawler)
        crawler.signals.connect(server.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(server.spider_closed, signal=signals.spider_closed)
        return server

    async def spider_opened(self, spider: Spider) -> None:
        """The agent has joined: show it."""
        await self._begin()

    async def spider_closed(self, spider: Spider) -> None:
        """Show it no longer."""
        await self._end()

    async def _begin(self) -> None:
        scheduler = scheduler_of(self._crawler)
        if scheduler is None or scheduler.is_trial or scheduler.settings.web is None:
            return
        try:
            access, port = access_of(scheduler.settings)
            reader = self._reader(scheduler)
            self._open.callback(reader.close)
            self.url = await self._open.enter_async_context(listening(WebApp(reader, access), access.host, port))
        except (UbiUnsafe, UbiNotServed) as error:
            logger.warning("UBI_WEB: %s The crawl goes on without its page.", error)
            await self._end()
            return
        logger.info("The crawl can be seen at %s", self.url)

    def _reader(self, scheduler: UbiScheduler) -> CrawlReader:
        settings, own = self._crawler.settings, scheduler.settings
        transport = scheduler.node.lifecycle.transport
        if not isinstance(transport, MemoryTransport):
            return CrawlReader(settings, own.crawl, own.redis_url)
        memory: Any = shelf_client.connection(lambda: transport.shelf, own.crawl, asyncio.get_running_loop())
        return CrawlReader(settings, own.crawl, shelf_client.MEMORY_URL, memory, own.agent_id)

    async def _end(self) -> None:
        self.url = ""
        await self._open.aclose()


def access_of(settings: UbiSettings) -> tuple[Access, int]:
    """How the page is reached, and its port. Raises UbiUnsafe."""
    assert settings.web is not None
    host, _, port = settings.web.rpartition(":")
    token = read_token(str(settings.web_token_file))[0] if settings.web_token_file is not None else ""
    access = Access(host.strip("[]"), token)
    check_bound(access)
    return access, int(port)
