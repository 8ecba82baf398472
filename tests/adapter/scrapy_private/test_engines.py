"""Components of the add-on in a crawler without an engine, as users' tests and Scrapy's own make one by `get_crawler`:
each does what Scrapy would do without it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request, Spider, signals
from scrapy.core.scheduler import Scheduler
from scrapy.crawler import Crawler
from scrapy.extensions.feedexport import FeedExporter
from scrapy.http import HtmlResponse, Response
from scrapy.utils.conf import build_component_list
from scrapy.utils.misc import build_from_crawler, load_object
from scrapy.utils.test import get_crawler
from twisted.python.failure import Failure

from scrapy_ubi.adapter.extraction.plainlinks import PlainLinks
from scrapy_ubi.adapter.scrapy_private.engines import engine_of, scheduler_in
from tests.support.crawls import FAST

URL = "http://h1.example/"
SETTINGS = {**FAST, "ROBOTSTXT_OBEY": True, "HTTPCACHE_ENABLED": False}


class Walk(Spider):
    name = "walk"


def crawler_with(engine: Any = None, **settings: Any) -> Crawler:
    crawler = get_crawler(Walk, {**SETTINGS, **settings})
    crawler.spider = Walk.from_crawler(crawler)
    if engine is not None:
        crawler.engine = engine
    return crawler


def another() -> Any:
    """An engine whose scheduler is Scrapy's."""
    scheduler = object.__new__(Scheduler)
    return SimpleNamespace(scheduler=scheduler, _slot=SimpleNamespace(scheduler=scheduler, close_if_idle=True))


ENGINES = pytest.mark.parametrize("engine", [None, another()], ids=["none", "another scheduler"])


def made(crawler: Crawler, setting: str) -> list[Any]:
    """Our components of one kind."""
    paths = build_component_list(crawler.settings.get_component_priority_dict_with_base(setting))
    found = [load_object(path) for path in paths]
    return [build_from_crawler(cls, crawler) for cls in found if cls.__module__.startswith("scrapy_ubi.")
            and cls.__name__ != "PlainLinksMiddleware"]  # fmt: skip


def test_what_is_not_there_is_none() -> None:
    crawler = crawler_with()
    assert engine_of(crawler) is None and scheduler_in(crawler) is None
    engine = another()
    crawler.engine = engine
    assert engine_of(crawler) is engine and scheduler_in(crawler) is engine.scheduler


@ENGINES
def test_downloader_middlewares_let_everything_pass(engine: Any) -> None:
    crawler = crawler_with(engine)
    components = made(crawler, "DOWNLOADER_MIDDLEWARES")
    assert {type(each).__name__ for each in components} >= {
        "UbiDownloaderMiddleware", "UbiBodyMiddleware", "UbiRobotsMiddleware"
    }  # fmt: skip
    request = Request(URL)
    response = HtmlResponse(URL, body=b"x" * 500_000, headers={"Content-Encoding": "gzip"}, request=request)

    async def run() -> None:
        for each in components:
            for name, arguments in (
                ("process_request", (request,)),
                ("process_response", (request, response)),
                ("process_exception", (request, ValueError())),
            ):
                if (method := getattr(each, name, None)) is not None:
                    found = method(*arguments)
                    found = await found if asyncio.iscoroutine(found) else found
                    assert found is (response if name == "process_response" else None)

    asyncio.run(run())
    crawler.signals.send_catch_log(signals.headers_received, headers=response.headers, body_length=1, request=request)
    crawler.signals.send_catch_log(signals.bytes_received, data=b"x", request=request, spider=crawler.spider)


@ENGINES
def test_the_spider_middleware_passes_on_what_pages_and_start_yield(engine: Any) -> None:
    (middleware,) = made(crawler_with(engine), "SPIDER_MIDDLEWARES")
    page = Response(URL, request=Request(URL))
    request, item = Request(URL + "a", meta={"k": 1}, dont_filter=True), {"a": 1}
    yielded = [request, item, PlainLinks([URL + "b", 7])]  # type: ignore[list-item]

    async def several() -> AsyncIterator[Any]:
        for each in yielded:
            yield each

    async def gathered(found: Any) -> list[Any]:
        return [each async for each in found]

    outputs = (
        list(middleware.process_spider_output(page, iter(yielded))),
        asyncio.run(gathered(middleware.process_spider_output_async(page, several()))),
        asyncio.run(gathered(middleware.process_start(several()))),
    )
    for found in outputs:
        assert found[0] is request and found[1] is item
        assert [each.url for each in found[2:]] == [URL + "b"]
    assert request.meta == {"k": 1}


@ENGINES
def test_extensions_hear_of_a_spider_that_is_opened_and_of_requests(
    engine: Any, caplog: pytest.LogCaptureFixture
) -> None:
    crawler = crawler_with(engine, USER_AGENT="nameless", LOGSTATS_INTERVAL=0)
    for signal, arguments in (
        (signals.spider_opened, {"spider": crawler.spider}),
        (signals.request_reached_downloader, {"request": Request("http://192.0.2.1/"), "spider": crawler.spider}),
        (signals.spider_closed, {"spider": crawler.spider, "reason": "finished"}),
    ):
        for receiver, result in crawler.signals.send_catch_log(signal, **arguments):
            assert not isinstance(result, Failure), (receiver, result)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


@ENGINES
def test_a_feed_is_opened_and_written(engine: Any, tmp_path: Path) -> None:
    uri = f"{tmp_path}/%(name)s%(ubi_agent)s.jsonl"
    crawler = crawler_with(engine, FEEDS={uri: {"format": "jsonlines"}})

    async def run() -> None:
        exporter = build_from_crawler(FeedExporter, crawler)
        exporter.open_spider(crawler.spider)
        exporter.item_scraped({"a": 1}, crawler.spider)
        await exporter.close_spider(crawler.spider)

    asyncio.run(run())
    assert json.loads((tmp_path / "walkplain.jsonl").read_text()) == {"a": 1}


def test_a_spider_of_plain_links_is_one_of_requests(tmp_path: Path) -> None:
    """The innermost spider middleware, where it is there: with another that looks at what pages yield."""

    class Looking:
        def process_spider_output(self, response: Response, result: Iterator[Any]) -> Iterator[Any]:
            yield from result

    crawler = crawler_with(SPIDER_MIDDLEWARES={Looking: 10})
    path = "scrapy_ubi.adapter.components.expand_middleware.PlainLinksMiddleware"
    middleware = build_from_crawler(load_object(path), crawler)
    found = middleware.process_spider_output(Response(URL, request=Request(URL)), [PlainLinks([URL + "b"])])
    assert [each.url for each in found] == [URL + "b"]
