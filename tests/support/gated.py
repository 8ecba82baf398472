"""A gate before a fake node, for its tests and those of what passes it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any, cast

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK
from scrapy.statscollectors import MemoryStatsCollector

from scrapy_ubi.adapter.downloads.gate import Gate
from scrapy_ubi.adapter.process.log_once import Notices
from scrapy_ubi.adapter.requests.inflight import Flight, Flights
from scrapy_ubi.settings import UbiSettings
from tests.support.fakenode import FakeNode
from tests.support.reaching import reach

URL = "http://h1.example/"
OTHER = "http://h2.example/x"


class World:
    """A gate before a fake node, and transfers that end when the test says so."""

    def __init__(self, **settings: Any) -> None:
        self.crawler = Crawler(Spider)
        self.crawler.stats = MemoryStatsCollector(self.crawler)
        self.crawler.engine = cast("Any", SimpleNamespace(downloader=None))
        self.node: Any = FakeNode()
        self.flights = Flights()
        chosen = UbiSettings(**settings)
        self.reach = reach(chosen)
        self.gate = Gate(self.crawler, self.node, chosen, self.flights, Notices(), self.reach)
        self.transferring = asyncio.Event()
        self.answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self.started: list[str] = []

    def page(self, url: str = URL, **arguments: Any) -> Flight:
        request = Request(url, **arguments)
        return self.flights.add(Flight(request, "h1.example", self.node.visit(url)))

    def robots(self, url: str = "http://h1.example/robots.txt", **meta: Any) -> Request:
        return Request(url, callback=NO_CALLBACK, meta={"dont_obey_robotstxt": True, **meta})

    async def download(self, request: Request) -> Response:
        self.started.append(request.url)
        self.transferring.set()
        return await asyncio.shield(self.answer)

    def stat(self, name: str) -> Any:
        return self.crawler.stats.get_value(f"ubi/guard/{name}", 0)


def in_loop(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Run an async test in a loop of its own, for at most half a minute."""

    def run() -> None:
        asyncio.run(asyncio.wait_for(test(), 30))

    run.__name__ = test.__name__
    return run


async def turns(count: int = 10) -> None:
    """Let everything that can go on go on."""
    for _ in range(count):
        await asyncio.sleep(0)
