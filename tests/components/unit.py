"""Schedulers in front of a fake node: one without an engine, one in a whole crawl."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.statscollectors import MemoryStatsCollector
from scrapy.utils.request import RequestFingerprinter
from twisted.python.failure import Failure

from scrapy_ubi.components.scheduler import UbiScheduler
from scrapy_ubi.downloads.gate import Gate
from scrapy_ubi.process.error_signals import ErrorWatch
from scrapy_ubi.protocol.host import Entry
from scrapy_ubi.requests.codec import Codec
from scrapy_ubi.requests.identity import RequestKeys
from scrapy_ubi.scheduling.inspect_mode import Trial
from scrapy_ubi.scheduling.kept_requests import KeptRequests
from scrapy_ubi.scheduling.link_filter import LinkFilter
from scrapy_ubi.scheduling.stats import StatBuffer
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.transport import Transport
from tests.support.fakenode import FakeNode
from tests.support.reaching import reach

HOST = "http://h1.example"


URL = f"{HOST}/"


class Walk(Spider):
    name = "walk"

    def parse(self, response: Response) -> None:
        """Nothing."""

    def other(self, response: Response) -> None:
        """Another callback."""


class Unit(UbiScheduler):
    """A scheduler without an engine, before a fake node."""

    node: Any

    def __init__(self, trial: Trial | None = None, **settings: Any) -> None:
        crawler = Crawler(Walk)
        super().__init__(crawler)
        self._trial = trial
        crawler.stats = MemoryStatsCollector(crawler)
        crawler.request_fingerprinter = RequestFingerprinter()
        crawler.spider = Walk()
        crawler.get_spider_middleware = lambda cls: cls  # type: ignore[assignment, return-value]
        self.agent_id = "a1"
        self.settings = UbiSettings(**settings)
        self._stat_buffer = StatBuffer(crawler.stats)
        self._codec = Codec(crawler.spider, crawler.settings)
        self._keys = RequestKeys(self.settings)
        self._kept = trial.kept if trial is not None else KeptRequests(most=2)
        self.node = FakeNode()
        self.reach = reach(self.settings, count=self._stat_buffer.count)
        self.gate = Gate(crawler, self.node, self.settings, self._flights, self._notices, self.reach)
        self._filtering = LinkFilter.from_settings(self.settings, self._stat_buffer.count)
        self._errors = ErrorWatch(crawler, self.settings, Path("nowhere"), self._note, self.ending.burst)
        self._assemble()
        self._dequeue = self._make_dequeue()
        self._opened = True

    def found(self) -> list[tuple[str, Entry, bool]]:
        """What the node was told of."""
        return [call[1:] for call in self.node.calls if call[0] == "discover"]

    def take(self) -> Request:
        request = self.next_request()
        assert request is not None
        return request

    def let_go(self, request: Request) -> Any:
        """As the engine does; what the node was told."""
        self._dequeue.removed(request)
        return self.node.calls[-1]

    def stat(self, name: str) -> Any:
        self._stat_buffer.page_done()  # as at the end of the page
        return self.crawler.stats.get_value(f"ubi/{name}", 0)


def failure_of(error: Exception) -> Any:
    return Failure(error)


class FakeScheduler(UbiScheduler):
    """The whole of Scrapy before a fake node."""

    node: Any
    made: FakeNode

    def make_node(self, transport: Transport, disk: Any = None) -> Any:
        FakeScheduler.made = FakeNode()
        FakeScheduler.made.wake = self.hooks.wake
        return FakeScheduler.made
