"""Items and requests of a page, taken the lean way and Scrapy's: what waits, and what goes wrong, is alone in it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.logformatter import LogFormatter, LogFormatterResult
from scrapy.utils.defer import deferred_from_coro

from tests.fast.test_path import both
from tests.support.builders import Panic
from tests.support.crawls import crawl, items_of
from tests.support.site import Site

HOST = "http://h1.example"
ITEMS = 6


class Plain(Spider):
    """Yields items, and then a request, by a plain callback."""

    name = "plain"
    start_urls = (f"{HOST}/",)

    def parse(self, response: Response) -> Iterator[Any]:
        for number in range(ITEMS):
            yield {"number": number}
        yield response.follow("/next", self.last)

    def last(self, response: Response) -> Iterator[Any]:
        yield {"number": "last"}


class Streaming(Plain):
    """The same by an asynchronous one."""

    async def parse(self, response: Response) -> AsyncIterator[Any]:
        for piece in super().parse(response):
            yield piece


class Failing(Plain):
    """The same by an errback."""

    async def start(self) -> AsyncIterator[Any]:
        yield Request(f"{HOST}/none", errback=self.failed)

    def failed(self, failure: Any) -> Iterator[Any]:
        yield from self.parse(failure.value.response)


class Output:
    """A spider middleware of the user's that looks at output: Scrapy's generators are taken."""

    async def process_spider_output(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for each in result:
            yield each


EVERY_WAY = pytest.mark.parametrize(
    ("spider", "settings"),
    [(Plain, {}), (Streaming, {}), (Failing, {}), (Plain, {"SPIDER_MIDDLEWARES": {Output: 100}})],
    ids=["plain", "streaming", "errback", "middleware"],
)


@pytest.fixture
def pages(site: Site) -> Site:
    site.page(f"{HOST}/", "<p>a page</p>")
    site.page(f"{HOST}/next", "<p>the next</p>")
    return site


class Together:
    """Lets nobody go before so many are there."""

    def __init__(self, wanted: int = ITEMS) -> None:
        self.left, self.there = wanted, asyncio.Event()

    async def wait(self) -> None:
        self.left -= 1
        if self.left <= 0:
            self.there.set()
        await self.there.wait()


class InCoroutine:
    """A pipeline that is no coroutine, but returns one; its items wait for each other."""

    def __init__(self) -> None:
        self.together = Together()

    def process_item(self, item: Any) -> Any:
        return self.passed(item)

    async def passed(self, item: Any) -> Any:
        await self.together.wait()
        return item


class InFuture(InCoroutine):
    def process_item(self, item: Any) -> Any:
        return asyncio.ensure_future(self.passed(item))


class InDeferred(InCoroutine):
    def process_item(self, item: Any) -> Any:
        return deferred_from_coro(self.passed(item))


class Polling(InCoroutine):
    """Looks, turn by turn of the loop, whether the others have come."""

    async def passed(self, item: Any) -> Any:
        self.together.left -= 1
        while self.together.left > 0:
            await asyncio.sleep(0)
        return item


@EVERY_WAY
@pytest.mark.parametrize("pipeline", [InCoroutine, InFuture, InDeferred, Polling])
@pytest.mark.filterwarnings("ignore:.*returned a Deferred")
def test_items_may_wait_for_each_other(
    pages: Site, spider: type[Spider], settings: dict[str, Any], pipeline: type
) -> None:
    [lean] = crawl(spider, pages.proxy, settings=settings | {"ITEM_PIPELINES": {pipeline: 1}})
    assert len(lean.items) == ITEMS + 1


class Handlers:
    """An extension: a receiver of items that ends for all at once."""

    def __init__(self) -> None:
        self.together = Together()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Handlers:
        self = cls()
        crawler.signals.connect(self.scraped, signals.item_scraped)
        return self

    async def scraped(self, item: Any) -> None:
        await self.together.wait()


@EVERY_WAY
def test_receivers_of_items_may_wait_for_each_other(
    pages: Site, spider: type[Spider], settings: dict[str, Any]
) -> None:
    [lean] = crawl(spider, pages.proxy, settings=settings | {"EXTENSIONS": {Handlers: 1}})
    assert len(lean.items) == ITEMS + 1


class Counting:
    """Counts how many items of the first page are there at once, and sees to it that all that may come do."""

    most = now = 0

    def process_item(self, item: Any) -> Any:
        return self.passed(item)

    async def passed(self, item: Any) -> Any:
        task, first = asyncio.current_task(), item["number"] != "last"
        Counting.now += first
        Counting.most = max(Counting.most, Counting.now)
        for _ in range(20):
            await asyncio.sleep(0)
        Counting.now -= first
        return {**item, "same task": asyncio.current_task() is task}


@EVERY_WAY
@pytest.mark.parametrize("most", [1, 2, 4])
def test_no_more_than_concurrent_items_wait_at_once(
    pages: Site, spider: type[Spider], settings: dict[str, Any], most: int
) -> None:
    """Each in the task in which it began: what it has there (a timeout) stays its own."""
    Counting.most = Counting.now = 0
    settings = settings | {"ITEM_PIPELINES": {Counting: 1}, "CONCURRENT_ITEMS": most}
    [lean] = crawl(spider, pages.proxy, settings=settings)
    assert Counting.most == most and Counting.now == 0
    assert len(lean.items) == ITEMS + 1 and all(item["same task"] for item in lean.items)


class Buggy(LogFormatter):
    """Fails for one item."""

    def scraped(self, item: Any, response: Any, spider: Spider) -> LogFormatterResult:
        if item["number"] == 1:
            raise KeyError("a bug")
        return super().scraped(item, response, spider)


@EVERY_WAY
@pytest.mark.parametrize("pipelines", [{}, {InCoroutine: 1}], ids=["none", "waiting"])
def test_what_escapes_the_processing_of_an_item_ends_no_other(
    pages: Site, spider: type[Spider], settings: dict[str, Any], pipelines: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings = settings | {"LOG_FORMATTER": Buggy, "ITEM_PIPELINES": pipelines}
    with caplog.at_level(logging.ERROR):
        [lean] = crawl(spider, pages.proxy, settings=settings)
    assert {item["number"] for item in lean.items} == {0, 2, 3, 4, 5, "last"} and len(lean.items) == ITEMS
    assert caplog.text.count("Scraper bug processing") == 1 and "KeyError: 'a bug'" in caplog.text


def test_what_escapes_is_the_same_loss_as_scrapys(pages: Site) -> None:
    theirs, lean = both(Plain, pages, LOG_FORMATTER=Buggy)
    assert items_of([lean]) == items_of([theirs])


@pytest.mark.parametrize("level", [logging.DEBUG, logging.INFO])
def test_items_are_said_where_somebody_hears_of_them(
    pages: Site, level: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made = list[str]()
    record = logging.getLogRecordFactory()

    def counted(*args: Any, **more: Any) -> logging.LogRecord:
        made.append(str(args[4]))
        return record(*args, **more)

    monkeypatch.setattr(logging, "_logRecordFactory", counted)
    caplog.set_level(logging.DEBUG)  # as Scrapy has it: only handlers choose
    for handler in logging.getLogger().handlers:
        monkeypatch.setattr(handler, "level", level)
    crawl(Plain, pages.proxy, settings={"LOG_LEVEL": logging.getLevelName(level)})
    said = ITEMS + 1 if level == logging.DEBUG else 0
    assert caplog.text.count("Scraped from") == said
    assert sum("Scraped from" in text for text in made) == said


class Cancelled:
    """An extension: a receiver that ends with a cancellation for one item."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Cancelled:
        self = cls()
        crawler.signals.connect(self.scraped, signals.item_scraped)
        return self

    async def scraped(self, item: Any) -> None:
        if item["number"] == 1:
            raise asyncio.CancelledError


class CancelledItem:
    """A pipeline whose answer is cancelled for one item."""

    def process_item(self, item: Any) -> Any:
        future = asyncio.get_running_loop().create_future()
        if item["number"] == 1:
            future.cancel()
        else:
            future.set_result(item)
        return future


@EVERY_WAY
@pytest.mark.parametrize(
    ("parts", "lost"), [({"EXTENSIONS": {Cancelled: 1}}, 0), ({"ITEM_PIPELINES": {CancelledItem: 1}}, 1)]
)
def test_a_cancellation_from_inside_ends_nothing_else(
    pages: Site, spider: type[Spider], settings: dict[str, Any], parts: dict[str, Any], lost: int
) -> None:
    theirs, lean = both(spider, pages, **settings, **parts)
    assert len(lean.items) == len(theirs.items) == ITEMS + 1 - lost
    assert lean.stats["item_scraped_count"] == theirs.stats["item_scraped_count"]


class PanickyItem:
    """A pipeline that ends with a panic for one item."""

    def process_item(self, item: Any) -> Any:
        if item["number"] == 1:
            raise Panic
        return item


class Panicky:
    """An extension: a receiver that ends with a panic for one item."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Panicky:
        self = cls()
        crawler.signals.connect(self.scraped, signals.item_scraped)
        return self

    def scraped(self, item: Any) -> None:
        if item["number"] == 1:
            raise Panic


@EVERY_WAY
@pytest.mark.parametrize(
    ("parts", "lost"), [({"EXTENSIONS": {Panicky: 1}}, 0), ({"ITEM_PIPELINES": {PanickyItem: 1}}, 1)]
)
def test_what_is_no_exception_ends_nothing_else(
    pages: Site, spider: type[Spider], settings: dict[str, Any], parts: dict[str, Any], lost: int
) -> None:
    theirs, lean = both(spider, pages, **settings, **parts)
    assert lean.stats["item_scraped_count"] == theirs.stats["item_scraped_count"] == ITEMS + 1 - lost


class Breaking(Plain):
    """Has an error after its items."""

    def parse(self, response: Response) -> Iterator[Any]:
        yield from super().parse(response)
        raise ValueError("at the end")


def test_an_error_of_the_callback_while_items_wait_is_told(pages: Site) -> None:
    theirs, lean = both(Breaking, pages, ITEM_PIPELINES={InCoroutine: 1})
    assert lean.stats["spider_exceptions/ValueError"] == theirs.stats["spider_exceptions/ValueError"] == 1
    assert len(lean.items) == len(theirs.items) == ITEMS + 1


class BreakingErrback(Spider):
    """Its errback, of a failed download, ends with an error that an asynchronous generator may not end with."""

    name = "breaking"

    async def start(self) -> AsyncIterator[Any]:
        yield Request("unknown://h1.example/", errback=self.failed)

    def failed(self, failure: Any) -> Iterator[Any]:
        yield {"number": 0}
        raise StopAsyncIteration


def test_an_error_of_an_errback_is_told_as_what_it_is(pages: Site) -> None:
    theirs, lean = both(BreakingErrback, pages)
    assert theirs.stats["spider_exceptions/StopAsyncIteration"] == 1
    assert lean.stats["spider_exceptions/StopAsyncIteration"] == 1
    assert len(lean.items) == len(theirs.items) == 1
