"""The guard's place in Scrapy: the innermost downloader middleware, so that everything passes it (`guard`)."""

from __future__ import annotations

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from scrapy_ubi.downloads.gate import Guard
from scrapy_ubi.politeness.robots.fetch import load_of, unpacked
from scrapy_ubi.scrapy_private.engines import scheduler_in


class UbiDownloaderMiddleware:
    """The guard's place in Scrapy: the last thing a request passes on its way out, the first a response passes."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> UbiDownloaderMiddleware:
        return cls(crawler)

    async def process_request(self, request: Request) -> None:
        if (guard := self._guard()) is not None:
            await guard.admit(request)

    def process_response(self, request: Request, response: Response) -> Response:
        scheduler = scheduler_in(self._crawler)
        guard, outputs = getattr(scheduler, "guard", None), getattr(scheduler, "outputs", None)
        if isinstance(guard, Guard):
            guard.responded(request, response)
        if outputs is not None:
            outputs.received(request, response)
        return response if load_of(request) is None else unpacked(response)

    def process_exception(self, request: Request, exception: Exception) -> None:
        if (guard := self._guard()) is not None:
            guard.failed(request, exception)

    def _guard(self) -> Guard | None:
        guard = getattr(scheduler_in(self._crawler), "guard", None)
        return guard if isinstance(guard, Guard) else None
