"""Canaries: the engine, its slot, the scraper and the handlers, and the hooks on them."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Spider, signals
from scrapy.core.downloader import Downloader, Slot
from scrapy.core.downloader.handlers import DownloadHandlers
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.core.engine import ExecutionEngine, _Slot
from scrapy.core.scraper import Scraper
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider, DontCloseSpider
from scrapy.http import Response
from scrapy.pipelines.media import MediaPipeline
from scrapy.utils.reactor import CallLaterOnce
from twisted.web.client import _AgentBase, _RetryingHTTP11ClientProtocol

from scrapy_ubi.adapter.scrapy_private.engine import EngineHooks
from scrapy_ubi.adapter.scrapy_private.versions import jitter_of
from tests.support.crawls import crawl
from tests.support.site import Site

HOST = "http://h1.example"


def test_the_slots_names() -> None:
    assert list(inspect.signature(_Slot.remove_request).parameters) == ["self", "request"]
    assert inspect.iscoroutinefunction(_Slot.close)
    assert "schedule" in vars(CallLaterOnce) and list(inspect.signature(CallLaterOnce.schedule).parameters)[1:] == [
        "delay"
    ]
    assert "remove_request" not in getattr(_Slot, "__slots__", ())
    source = inspect.getsource(_Slot.__init__)
    assert all(name in source for name in ("self.closing:", "self.nextcall:", "self.inprogress:"))


def test_the_names_of_engine_scraper_and_handlers() -> None:
    assert list(inspect.signature(Scraper.enqueue_scrape).parameters) == ["self", "result", "request"]
    assert inspect.iscoroutinefunction(DownloadHandlers.download_request_async)
    assert list(inspect.signature(DownloadHandlers.download_request_async).parameters) == ["self", "request"]
    assert "handlers" in inspect.getsource(Downloader.__init__)


def test_the_names_of_the_downloaders_slots() -> None:
    """tests/adapter/feedback/test_host_feedback.py shows what they are relied on for."""
    assert list(inspect.signature(inspect.unwrap(Downloader._get_slot)).parameters)[:2] == ["self", "request"]
    slot = Slot(1, 10.0, 0.5)
    assert (slot.delay, jitter_of(slot), slot.lastseen) == (10.0, 0.5, 0)
    assert "penalty = delay - now + slot.lastseen" in inspect.getsource(Downloader._process_queue)


def test_the_names_on_the_way_to_a_connection() -> None:
    """tests/adapter/scrapy_private/test_socket_gate.py shows what they are relied on for."""
    assert list(inspect.signature(DownloadHandlers._get_handler).parameters) == ["self", "scheme"]
    assert "self._pool: HTTPConnectionPool" in inspect.getsource(HTTP11DownloadHandler.__init__)
    assert "d = self._pool.getConnection(key, endpoint)" in inspect.getsource(_AgentBase)
    assert "self._clientProtocol = clientProtocol" in inspect.getsource(_RetryingHTTP11ClientProtocol)


@pytest.mark.parametrize(
    ("function", "look_up"),
    [
        (ExecutionEngine._remove_request, "self._slot.remove_request(request)"),
        (ExecutionEngine.download_async, "self._slot.remove_request(request)"),
        (ExecutionEngine.close_spider_async, "await self._slot.close()"),
        (ExecutionEngine._start_scheduled_requests, "self._spider_idle()"),
        (ExecutionEngine._handle_downloader_output, "self.scraper.enqueue_scrape(result, request)"),
        (Downloader._download, "self.handlers.download_request_async(request)"),
        (Downloader._enqueue_request, "self._get_slot(request)"),
        (MediaPipeline._check_media_to_download, "self.crawler.engine.download_async(request)"),
    ],
)
def test_each_name_is_looked_up_where_it_is_called(function: Any, look_up: str) -> None:
    """Wrapping on the instance is enough only as long as Scrapy keeps no reference of its own."""
    assert look_up in inspect.getsource(inspect.unwrap(function))


@pytest.mark.parametrize("ours", [False, True])
@pytest.mark.parametrize("theirs", [False, True])
def test_who_holds_a_spider_open_at_idle(theirs: bool, ours: bool) -> None:
    """We are asked last, whoever was connected when, and whatever else the others raise."""
    crawler = Crawler(Spider)
    heard: list[object] = []
    engine: Any = SimpleNamespace(_slot=object(), signals=crawler.signals, spider=Spider("s"), _start_error=False)
    engine.spider_is_idle = lambda: heard.append("closes")
    engine._spider_idle = partial(ExecutionEngine._spider_idle, engine)

    def asked(held: bool) -> bool:
        heard.append(held)
        return ours

    def holds() -> None:
        assert engine.signals.send_catch_log(signals.request_dropped, request=None) == []
        if theirs:
            raise DontCloseSpider

    def closes() -> None:
        raise CloseSpider

    crawler.signals.connect(closes, signals.spider_idle)
    EngineHooks(engine).at_idle(asked)
    crawler.signals.connect(holds, signals.spider_idle)
    for _ in range(2):
        engine._spider_idle()
        assert heard == [theirs] + ["closes"] * (not theirs and not ours)
        assert engine.signals is crawler.signals
        heard.clear()


def test_what_stops_the_crawler_while_it_closes_waits_for_the_end_unless_it_is_part_of_it(site: Site) -> None:
    site.page(f"{HOST}/")
    ended: list[str] = []

    class Ends(Spider):
        name = "ends"
        start_urls = (f"{HOST}/",)

        @classmethod
        def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Ends:
            self = super().from_crawler(crawler, *args, **kwargs)
            self.told, context = asyncio.Event(), contextvars.copy_context()  # as of a signal
            self.signal = asyncio.get_running_loop().create_task(self.from_outside(), context=context)
            crawler.signals.connect(self.within, signals.spider_closed)
            return self

        async def from_outside(self) -> None:
            await self.told.wait()
            await self.crawler.engine.close_spider_async(reason="shutdown")
            ended.append("outside")

        async def within(self) -> None:
            self.told.set()
            await self.crawler.engine.close_spider_async(reason="within")
            for _ in range(9):  # turns in which the other one would end
                await asyncio.sleep(0)
            ended.append("within")

        def parse(self, response: Response) -> None:
            """Nothing."""

    (outcome,) = crawl(Ends, site.proxy)
    assert outcome.reason == "finished"
    assert ended[0] == "within"


def test_told_to_stop_while_the_spider_opens_a_crawler_stops_once_its_engine_runs(site: Site) -> None:
    """Scrapy stops nothing then, and the process ended at once: an agent that had just joined counted as crashed."""
    for number in range(60):  # more than are fetched before the engine runs and has stopped
        site.page(f"{HOST}/{number}")
    order: list[str] = []

    class Told(Spider):
        name = "told"
        start_urls = tuple(f"{HOST}/{number}" for number in range(60))
        custom_settings = {"DOWNLOAD_DELAY": 0.5}  # noqa: RUF012

        @classmethod
        def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Told:
            spider = super().from_crawler(crawler, *args, **kwargs)
            crawler.signals.connect(spider.opened, signals.spider_opened)
            crawler.signals.connect(lambda reason: order.append(reason), signals.spider_closed, weak=False)
            return spider

        async def opened(self) -> None:
            assert not self.crawler.engine.running
            self.told = asyncio.ensure_future(self.crawler.stop_async())
            self.told.add_done_callback(lambda _: order.append("stopped"))
            await asyncio.sleep(0)  # Scrapy's own answer would be there now

        def parse(self, response: Response) -> None:
            """Nothing."""

    (outcome,) = crawl(Told, site.proxy)
    assert outcome.reason == "shutdown" and order == ["shutdown", "stopped"]
