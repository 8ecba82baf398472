"""The pages that `scrapy ubi web` has for programs: /metrics and /sd for Prometheus, /live and /ready for probes.

Rules of this module:

* GET only, and nothing is changed: no token is needed. They name agents and crawl, never a host or a URL.
* A status is read at most once in `FRESH` seconds for them, however many ask.
* While the crawl cannot be read /metrics says that (`ubi_redis_up` 0): a scrape that fails would look like a server
  that is down.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import redis
from aiohttp import web

from scrapy_ubi.agent.metrics.endpoint import probe
from scrapy_ubi.agent.metrics.exposition import CONTENT_TYPE
from scrapy_ubi.cli.monitor.crawl_metrics import away_text, metrics_text, targets, why_not_settled
from scrapy_ubi.cli.monitor.status import CrawlStatus
from scrapy_ubi.errors import UbiError

FRESH = 1.0  # s for which a status is used again
AWAY = (redis.RedisError, OSError, UbiError)

Read = Callable[[], Awaitable[CrawlStatus]]


def add_routes(
    app: web.Application, read: Read, crawl: Callable[[], str], away: tuple[type[Exception], ...] = ()
) -> None:
    """Let `app` answer these four. `read` gives the crawl's status, and may raise one of `AWAY` or `away` while it
    cannot; `crawl` says its name, as far as it is known."""
    pages = _Pages(read, crawl, (*AWAY, *away))
    app.router.add_get("/metrics", pages.metrics)
    app.router.add_get("/sd", pages.sd)
    app.router.add_get("/live", pages.live)
    app.router.add_get("/ready", pages.ready)


class _Pages:
    """The four pages of one crawl."""

    def __init__(self, read: Read, crawl: Callable[[], str], away: tuple[type[Exception], ...]) -> None:
        self._read = read
        self._crawl = crawl
        self._away = away
        self._lock = asyncio.Lock()
        self._status: CrawlStatus | None = None
        self._read_at = 0.0

    async def _newest(self) -> CrawlStatus | None:
        """The crawl's status, None while it cannot be read."""
        async with self._lock:
            if self._status is None or time.monotonic() - self._read_at >= FRESH:
                self._status = None
                try:
                    self._status = await self._read()
                except self._away:
                    return None
                self._read_at = time.monotonic()
            return self._status

    async def metrics(self, request: web.Request) -> web.Response:
        status = await self._newest()
        text = metrics_text(status, self._crawl()) if status is not None else away_text(self._crawl())
        return web.Response(body=text.encode(), headers={"Content-Type": CONTENT_TYPE})

    async def sd(self, request: web.Request) -> web.Response:
        status = await self._newest()
        if status is None:  # Prometheus keeps what it knew
            return probe("Redis does not answer")
        return web.json_response(targets(status))

    async def live(self, request: web.Request) -> web.Response:
        return probe("")

    async def ready(self, request: web.Request) -> web.Response:
        status = await self._newest()
        name = request.query.get("agent", "")
        return probe(why_not_settled(status, name) if status is not None else "Redis does not answer")
