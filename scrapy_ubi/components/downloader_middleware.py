"""The gate's place in Scrapy: the innermost downloader middleware, so that everything passes it (`downloads.gate`)."""

from __future__ import annotations

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from scrapy_ubi.downloads.gate import Gate
from scrapy_ubi.politeness.robots.fetch import load_of, unpacked
from scrapy_ubi.scrapy_private.engines import scheduler_in


class UbiDownloaderMiddleware:
    """The gate's place in Scrapy: the last thing a request passes on its way out, the first a response passes."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> UbiDownloaderMiddleware:
        return cls(crawler)

    async def process_request(self, request: Request) -> Response | None:
        gate = self._gate()
        return None if gate is None else await gate.admit(request)

    def process_response(self, request: Request, response: Response) -> Response:
        if (gate := self._gate()) is not None:
            gate.responded(request, response)
        return response if load_of(request) is None else unpacked(response)

    def process_exception(self, request: Request, exception: Exception) -> None:
        if (gate := self._gate()) is not None:
            gate.failed(request, exception)

    def _gate(self) -> Gate | None:
        gate = getattr(scheduler_in(self._crawler), "gate", None)
        return gate if isinstance(gate, Gate) else None
