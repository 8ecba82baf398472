"""Schedulers in front of a fake node: one without an engine, one in a whole crawl."""

from __future__ import annotations

from typing import Any

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.spidermiddlewares.depth import DepthMiddleware
from scrapy.spidermiddlewares.httperror import HttpErrorMiddleware
from scrapy.statscollectors import MemoryStatsCollector
from scrapy.utils.misc import build_from_crawler
from scrapy.utils.request import RequestFingerprinter
from twisted.python.failure import Failure

from scrapy_ubi.adapter.components.scheduler import UbiScheduler
from scrapy_ubi.adapter.components.scheduler_builder import SchedulerBuilder
from scrapy_ubi.adapter.scheduling.inspect_mode import Trial
from scrapy_ubi.adapter.scheduling.kept_requests import KeptRequests
from scrapy_ubi.protocol.host import Entry
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.transport import Transport
from tests.support.builders import parts_of
from tests.support.engines import FakeHooks, fake_engine
from tests.support.fakenode import FakeNode

HOST = "http://h1.example"


URL = f"{HOST}/"


class Walk(Spider):
    name = "walk"

    def parse(self, response: Response) -> None:
        """Nothing."""

    def other(self, response: Response) -> None:
        """Another callback."""


class BeforeFakeNode(SchedulerBuilder):
    def make_node(self, transport: Transport, disk: Any = None) -> Any:
        return FakeNode()


class Unit(UbiScheduler):
    """A scheduler without an engine, before a fake node."""

    builder_class = BeforeFakeNode
    node: Any

    def __init__(self, trial: Trial | None = None, **settings: Any) -> None:
        crawler = Crawler(Walk)
        super().__init__(crawler)
        crawler.stats = MemoryStatsCollector(crawler)
        crawler.request_fingerprinter = RequestFingerprinter()
        crawler.spider = Walk()
        usual = [build_from_crawler(cls, crawler) for cls in (DepthMiddleware, HttpErrorMiddleware)]
        crawler.engine = fake_engine(usual)
        self.is_trial, self.agent_id, self.settings = trial is not None, "a1", UbiSettings(**settings)
        self.hooks: Any = FakeHooks()
        self.parts = parts_of(self, trial.kept if trial is not None else KeptRequests(most=2))
        self.parts.put_together()
        self.parts.hang_on_engine()
        self.begin()

    def found(self) -> list[tuple[str, Entry, bool]]:
        """What the node was told of."""
        return [call[1:] for call in self.node.calls if call[0] == "discover"]

    def take(self) -> Request:
        request = self.next_request()
        assert request is not None
        return request

    def let_go(self, request: Request) -> Any:
        """As the engine does; what the node was told."""
        self.hooks.removed(request)
        return self.node.calls[-1]

    def spider_error(self, failure: Failure, response: Response) -> None:
        """As Scrapy does when a callback or an errback has failed."""
        self.crawler.signals.send_catch_log(signals.spider_error, failure=failure, response=response, spider=None)

    def stat(self, name: str) -> Any:
        self.parts.stats.page_done()  # as at the end of the page
        return self.crawler.stats.get_value(f"ubi/{name}", 0)


def failure_of(error: Exception) -> Any:
    return Failure(error)


class BeforeKnownNode(SchedulerBuilder):
    def make_node(self, transport: Transport, disk: Any = None) -> Any:
        FakeScheduler.made = FakeNode()
        FakeScheduler.made.wake = self.scheduler.hooks.wake
        return FakeScheduler.made


class FakeScheduler(UbiScheduler):
    """The whole of Scrapy before a fake node."""

    builder_class = BeforeKnownNode
    node: Any
    made: FakeNode
