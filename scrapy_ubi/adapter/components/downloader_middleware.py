"""The gate's place in Scrapy: the innermost downloader middleware, so that everything passes it
(`adapter.downloads.gate`)."""

from __future__ import annotations

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from scrapy_ubi.adapter.downloads.gate import Gate
from scrapy_ubi.adapter.robots.fetch import load_of, unpacked
from scrapy_ubi.adapter.scrapy_private.middlewares import downloader_middlewares


class OpenGate:
    """In place of a gate where the scheduler is none of ours: everything passes as it is."""

    async def admit(self, request: Request) -> Response | None:
        """Nothing waits."""
        return None

    def responded(self, request: Request, response: Response) -> None:
        """Nothing is noted."""

    def failed(self, request: Request, exception: Exception) -> None:
        """Nothing is noted."""


class UbiDownloaderMiddleware:
    """The gate's place in Scrapy: the last thing a request passes on its way out, the first a response passes. `gate`
    is given by the builder of our scheduler (`place_gate`); without it everything passes as it is."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self.gate: Gate | OpenGate = OpenGate()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> UbiDownloaderMiddleware:
        return cls(crawler)

    async def process_request(self, request: Request) -> Response | None:
        return await self.gate.admit(request)

    def process_response(self, request: Request, response: Response) -> Response:
        self.gate.responded(request, response)
        return response if load_of(request) is None else unpacked(response)

    def process_exception(self, request: Request, exception: Exception) -> None:
        self.gate.failed(request, exception)


def place_gate(crawler: Crawler, gate: Gate) -> None:
    """Have all requests of this crawler pass the gate. A user's own DOWNLOADER may have no middlewares."""
    for middleware in downloader_middlewares(crawler):
        if isinstance(middleware, UbiDownloaderMiddleware):
            middleware.gate = gate
