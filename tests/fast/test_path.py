"""The lean way of a request beside Scrapy's own: the same calls, the same outcome, one task."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import scrapy
from scrapy import Request, Spider, signals
from scrapy.core.downloader import Downloader
from scrapy.core.engine import ExecutionEngine
from scrapy.crawler import Crawler
from scrapy.exceptions import DontCloseSpider
from scrapy.http import HtmlResponse, Response

from scrapy_ubi.fast import path as leanpath
from tests.support.builders import Panic
from tests.support.crawls import Outcome, crawl, items_of
from tests.support.site import Page, Site, links

HOST = "http://h1.example"
LEFT_AS_THEY_ARE = "the lean way is not taken, pages go Scrapy's own way (slower, same items)"


class Walk(Spider):
    name = "walk"
    start_urls = (f"{HOST}/",)

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url, "status": response.status, "flags": response.flags}
        if isinstance(response, HtmlResponse):
            yield from response.follow_all(css="a", errback=self.failed)

    def failed(self, failure: Any) -> Iterator[Any]:
        yield {"failed": failure.request.url, "by": failure.type.__name__, "says": str(failure.value)}


def both(spider: type[Spider], site: Site, **settings: Any) -> tuple[Outcome, Outcome]:
    """The same crawl Scrapy's way and the lean way."""
    settings = {"RETRY_ENABLED": False, "UBI_HOST_FAILURES": 0, **settings}
    found = []
    for lean in (False, True):
        asked, site.visits = site.urls(), []
        found += crawl(spider, site.proxy, settings=settings | {"UBI_LEAN": lean})
    assert sorted(site.urls()) == sorted(asked)
    return found[0], found[1]


def tasks_of_pages(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The URLs of requests that go the lean way, from now on."""
    gone: list[str] = []
    original = leanpath.LeanPath._visit

    async def visit(self: leanpath.LeanPath, request: Request) -> None:
        gone.append(request.url)
        await original(self, request)

    monkeypatch.setattr(leanpath.LeanPath, "_visit", visit)
    return gone


def test_a_page_is_one_task(site: Site) -> None:
    """But for what is there for all: the engine's own, and the next permit of a host."""
    urls = [f"{HOST}/{number}" for number in range(30)]
    for url in (f"{HOST}/", *urls):
        site.page(url, links(*urls))
    counts = []
    for lean in (False, True):
        tasks: list[str] = []

        class Counting(Walk):
            made = tasks

            @classmethod
            def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Counting:
                self = super().from_crawler(crawler, *args, **kwargs)
                crawler.signals.connect(self.opened, signals.spider_opened)
                return self

            def opened(self) -> None:
                loop = asyncio.get_running_loop()

                def factory(loop: Any, coroutine: Any, **named: Any) -> asyncio.Task[Any]:
                    self.made.append(coroutine.__qualname__)
                    return asyncio.Task(coroutine, loop=loop, **named)

                loop.set_task_factory(factory)

        crawl(Counting, site.proxy, settings={"UBI_LEAN": lean})
        counts.append(len([name for name in tasks if "ubi" not in name and name.startswith(SCRAPYS)]) / len(urls))
    assert counts[0] > 5 and counts[1] == 0
    assert tasks.count("LeanPath._visit") == len(urls) + 1


SCRAPYS = ("Downloader", "DownloaderMiddlewareManager", "Scraper", "_parallel_asyncio", "Gate", "Permits")


class Odd:
    """A downloader middleware that does all that one may do, by the path of the request."""

    def process_request(self, request: Request) -> Any:
        return self.of("request", request.url, request)

    async def process_response(self, request: Request, response: Response) -> Any:
        await asyncio.sleep(0)
        return self.of("response", request.url, request) or response

    def process_exception(self, request: Request, exception: Exception) -> Any:
        if request.url.endswith("/mended"):
            return HtmlResponse(request.url, body=b"mended", request=request)
        return self.of("exception", request.url, request)

    @staticmethod
    def of(where: str, url: str, request: Request) -> Any:
        match url.removeprefix(f"{HOST}/{where}-"):
            case "answers":
                return HtmlResponse(url, body=b"from the middleware")
            case "redirects":
                return Request(f"{HOST}/there-from-{where}", request.callback, errback=request.errback)
            case "raises":
                raise OSError(f"raised in {where}")
            case "lies":
                return "neither request nor response"
        return None


class Later:
    """A pipeline of a coroutine, and its items at once."""

    most = now = 0

    async def process_item(self, item: Any) -> Any:
        Later.now += 1
        Later.most = max(Later.most, Later.now)
        await asyncio.sleep(0)
        Later.now -= 1
        return item


def odd(site: Site) -> None:
    where = [f"{HOST}/{one}-{what}" for one in ("request", "response", "exception")
             for what in ("answers", "redirects", "raises", "lies")]  # fmt: skip
    others = [f"{HOST}/{path}" for path in ("plain", "none", "mended", "hangs-up")]
    site.page(f"{HOST}/", links(*where, *others))
    for url in (*where, *others):
        site.page(url, "a page")
    for one in ("request", "response", "exception"):
        site.page(f"{HOST}/there-from-{one}", "there")
        for what in ("answers", "redirects", "raises", "lies"):
            if one == "exception":
                site.page(f"{HOST}/{one}-{what}", Page("", 0))
    site.page(f"{HOST}/none", Page("none", 404))
    site.page(f"{HOST}/mended", Page("", 0))
    site.page(f"{HOST}/hangs-up", Page("", 0))


def test_downloader_middlewares_may_do_what_they_may(
    site: Site, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd(site)
    gone = tasks_of_pages(monkeypatch)
    with caplog.at_level(logging.INFO):
        theirs, lean = both(Walk, site, DOWNLOADER_MIDDLEWARES={Odd: 10})
    assert {f"{HOST}/", f"{HOST}/request-redirects", f"{HOST}/there-from-request"} <= set(gone)
    without_words = [{name: value for name, value in item.items() if name != "says"} for item in items_of([theirs])]
    assert [{n: v for n, v in item.items() if n != "says"} for item in items_of([lean])] == without_words
    said = [{item["failed"]: item["says"] for item in one.items if "lies" in str(item)} for one in (theirs, lean)]
    assert said[0] == said[1] and len(said[0]) == 3
    assert LEFT_AS_THEY_ARE not in caplog.text


def test_stats_and_log_are_the_same(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    odd(site)
    with caplog.at_level(logging.DEBUG):
        theirs, lean = both(Walk, site)
    names = [name for name in theirs.stats if name.startswith(("downloader/", "response", "item", "spider", "ubi/f"))]
    by_time = ("bytes", "elapsed", "_per_minute")
    names = [name for name in names if not any(word in name for word in by_time)]
    assert len(names) > 8 and "downloader/response_count" in names
    assert {name: lean.stats.get(name) for name in names} == {name: theirs.stats.get(name) for name in names}
    crawled = [record.getMessage() for record in caplog.records if record.msg.startswith("Crawled (")]
    assert len(crawled) == 2 * lean.stats["response_received_count"]
    assert sorted(crawled[::1]) == sorted(crawled[: len(crawled) // 2] * 2)


class Slots(Spider):
    """Pages of two slots, one of which has a delay."""

    name = "slots"
    custom_settings = {"DOWNLOAD_SLOTS": {"slow": {"delay": 0.01, "concurrency": 1}}}  # noqa: RUF012 - as Scrapy's are

    async def start(self) -> AsyncIterator[Any]:
        for number in range(6):
            slot = "slow" if number % 2 else "quick"
            yield Request(f"http://h{number}.example/", meta={"download_slot": slot})

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url, "slot": response.meta["download_slot"]}


def test_what_has_to_wait_in_scrapys_downloader_waits_there(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(6):
        site.page(f"http://h{number}.example/", "a page")
    waited: list[str] = []
    original = Downloader._enqueue_request

    async def enqueue_request(self: Downloader, request: Request) -> Response:
        waited.append(request.meta["download_slot"])
        return await original(self, request)

    monkeypatch.setattr(Downloader, "_enqueue_request", enqueue_request)
    monkeypatch.setattr(leanpath, "changed", lambda part: "")
    lean = crawl(Slots, site.proxy)
    assert len(items_of(lean)) == 6 and waited == ["slow"] * 3


class Own(Downloader):
    """A downloader of the user's."""


def test_with_a_downloader_of_the_users_requests_go_scrapys_way(
    site: Site, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.page(f"{HOST}/", links(f"{HOST}/a"))
    site.page(f"{HOST}/a", "a")
    gone = tasks_of_pages(monkeypatch)
    with caplog.at_level(logging.INFO):
        outcomes = crawl(Walk, site.proxy, settings={"DOWNLOADER": Own})
    assert len(items_of(outcomes)) == 2 and gone == []
    assert f"{LEFT_AS_THEY_ARE}, as {__name__}.Own is not" in caplog.text


def test_with_a_scrapy_that_it_was_not_compared_with_requests_go_its_way(
    site: Site, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.page(f"{HOST}/", "a page")
    monkeypatch.setattr(scrapy, "version_info", (2, 99, 0))
    with caplog.at_level(logging.INFO):
        outcomes = crawl(Walk, site.proxy)
    assert len(items_of(outcomes)) == 1
    assert f"{LEFT_AS_THEY_ARE}, as it is for Scrapy 2.19" in caplog.text


def test_with_a_function_that_reads_otherwise_requests_go_scrapys_way(
    site: Site, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later Scrapy, or somebody's patch."""
    site.page(f"{HOST}/", "a page")
    original = ExecutionEngine._download

    def _download(self: ExecutionEngine, request: Request) -> Any:
        return original(self, request)

    monkeypatch.setattr(ExecutionEngine, "_download", _download)
    with caplog.at_level(logging.INFO):
        outcomes = crawl(Walk, site.proxy)
    assert len(items_of(outcomes)) == 1
    assert f"{LEFT_AS_THEY_ARE}, as ExecutionEngine._download is not the one" in caplog.text


class Lasting(Walk):
    """Keeps the crawl open after the first idle moment, to see that the engine still looks for requests."""

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Lasting:
        self = super().from_crawler(crawler, *args, **kwargs)
        self.asked = False
        crawler.signals.connect(self.idle, signals.spider_idle)
        return self

    def idle(self) -> None:
        if not self.asked:
            self.asked = True
            self.crawler.engine.crawl(Request(f"{HOST}/late", self.parse))
            raise DontCloseSpider


def test_requests_that_come_when_all_was_quiet_are_fetched(site: Site) -> None:
    site.page(f"{HOST}/", "first")
    site.page(f"{HOST}/late", "late")
    theirs, lean = both(Lasting, site)
    assert items_of([lean]) == items_of([theirs]) and len(items_of([lean])) == 2


def test_a_cancellation_from_inside_is_an_error_of_the_request(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler whose own task somebody has cancelled must not take the page along without a word."""
    site.page(f"{HOST}/", "first")

    class Cancelled:
        async def process_request(self, request: Request) -> None:
            raise asyncio.CancelledError

    class Told(Walk):
        async def start(self) -> AsyncIterator[Any]:
            yield Request(f"{HOST}/", errback=self.failed)

    [lean] = crawl(Told, site.proxy, settings={"DOWNLOADER_MIDDLEWARES": {Cancelled: 10}})
    assert items_of([lean]) == [{"failed": f"{HOST}/", "by": "CancelledError", "says": ""}]
    assert lean.reason == "finished"


class PanicsOnRequest:
    def process_request(self, request: Request) -> None:
        raise Panic("request")


class PanicsOnResponse:
    def process_response(self, request: Request, response: Response) -> Response:
        raise Panic("response")


@pytest.mark.parametrize("middleware", [PanicsOnRequest, PanicsOnResponse])
def test_what_is_no_exception_is_an_error_of_the_request_as_well(site: Site, middleware: type) -> None:
    site.page(f"{HOST}/", "first")

    class Told(Walk):
        async def start(self) -> AsyncIterator[Any]:
            yield Request(f"{HOST}/", errback=self.failed)

    theirs, lean = both(Told, site, DOWNLOADER_MIDDLEWARES={middleware: 10})
    assert [item["by"] for item in items_of([lean])] == ["Panic"]
    assert items_of([lean]) == items_of([theirs]) and lean.reason == "finished"
    assert lean.stats["ubi/failed/exception/Panic"] == theirs.stats["ubi/failed/exception/Panic"] == 1


@pytest.mark.parametrize("error", [Panic("parse"), asyncio.CancelledError("parse")])
@pytest.mark.parametrize("late", [False, True])
def test_a_callback_that_ends_with_no_exception_is_told_of(
    site: Site, error: BaseException, late: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Scrapy never ends such a crawl: there is nothing to compare."""
    site.page(f"{HOST}/", "first")

    class Panics(Walk):
        def parse(self, response: Response) -> Any:
            return self.some() if late else self.none()

        def none(self) -> Any:
            raise error

        def some(self) -> Iterator[Any]:
            yield {"before": "it"}
            raise error

    [lean] = crawl(Panics, site.proxy)
    assert items_of([lean]) == ([{"before": "it"}] if late else []) and lean.reason == "finished"
    assert caplog.text.count(f"Scraper bug processing <GET {HOST}/>") == 1
