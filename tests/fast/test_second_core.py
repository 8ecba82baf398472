"""Large pages in a second thread: the same crawl, page for page, and only while there is a core to spare."""

from __future__ import annotations

import asyncio
import gzip
import logging
import random
import threading
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any, ClassVar

import brotli
import pytest
from scrapy import Request
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.exceptions import IgnoreRequest
from scrapy.http import HtmlResponse, Response
from scrapy.utils.test import get_crawler

from scrapy_ubi import UbiSpider
from scrapy_ubi.adapter.extraction.parsed_ahead import MOST_CREDIT, ParsedPage, parsed_ahead
from scrapy_ubi.adapter.requests.decompress import zstd
from scrapy_ubi.fast import second_core
from scrapy_ubi.fast.second_core import HandOver, Job
from scrapy_ubi.fast.spare_cores import CoresSeen
from scrapy_ubi.urls.links.page import Page as ParsedTree
from tests.support.crawls import Outcome, crawl
from tests.support.site import Page, Site

HOSTS = ("http://h1.example", "http://h2.example")
NAME = "ubi-second-core"
PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "br": partial(brotli.compress, quality=3),
    "zstd": zstd.compress,
}


class Told:
    """A switch that is told: on from the first look, turned off and on again after so many `looks`."""

    looks = 1 << 30

    def __init__(self) -> None:
        self.is_on = False
        self.looked = 0

    def look(self, seen: CoresSeen) -> bool:
        self.is_on = self.looked // self.looks % 2 == 0
        self.looked += 1
        return self.is_on


@pytest.fixture
def forced(monkeypatch: pytest.MonkeyPatch) -> type[Told]:
    """On at once, whatever the cores of this machine do."""
    monkeypatch.setattr(second_core, "is_scrapys_process", lambda: True)
    monkeypatch.setattr(second_core, "EVERY", 0.001)
    monkeypatch.setattr(second_core, "Cores", lambda: SimpleNamespace(count=2.0, idle=lambda passed: 1.0))
    monkeypatch.setattr(second_core, "Switch", Told)
    return Told


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    """What is parsed ahead is of the process."""
    yield
    parsed_ahead.credit.clear()
    parsed_ahead.wanted_by.clear()


class Links(UbiSpider):
    """Takes all links by lexbor, and says in which order it was asked."""

    name = "links"
    start_urls = tuple(f"{host}/0" for host in HOSTS)
    custom_settings: ClassVar = {
        "UBI_HOST_DELAY": 0, "UBI_HOST_CONCURRENCY": 8, "CONCURRENT_REQUESTS": 16, "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
        "RETRY_ENABLED": False, "UBI_HOST_FAILURES": 0, "DOWNLOAD_MAXSIZE": 2_000_000, "ROBOTSTXT_OBEY": False,
        "UBI_LEASE_TIMEOUT": 60, "UBI_FAILURE_TIMEOUT": 90,  # a busy machine fetches no page twice
    }  # fmt: skip

    def parse(self, response: Response) -> Iterator[Any]:
        if isinstance(response, HtmlResponse):
            links = self.links(response, errback=self.failed)
            yield {"url": response.url, "size": len(response.body), "links": links.urls}
            yield links
        else:
            yield {"url": response.url, "size": len(response.body)}

    def failed(self, failure: Any) -> Iterator[Any]:
        yield {"failed": failure.request.url, "by": failure.type.__name__, "says": str(failure.value)}


def page_of(draw: random.Random, host: str, number: int, pages: int) -> Page:
    """A page of any size and encoding, whole or broken, that leads to others."""
    words = "".join(f"<p>{draw.random()} über</p>" for _ in range(draw.choice((1, 100, 1500, 4000))))
    hrefs = [f"/{other}" for other in range(number + 1, min(number + 6, pages))]
    anchors = "".join(f"<a href={href}>{href}</a>" for href in hrefs)
    kind = draw.randrange(10)
    charset = "latin-1" if kind == 0 else "utf-8"
    body = f"<html><head><title>{host}</title></head>{anchors}{words}".encode(charset)
    headers = {"Content-Type": f"text/html; charset={charset}"}
    if kind == 1:
        headers["Content-Type"] = "application/octet-stream"
    if kind == 2:
        body = b"<p>" + b"nothing " * 300_000  # more than DOWNLOAD_MAXSIZE
    if (encoding := draw.choice([None, *PACK])) is not None or kind == 2:
        encoding = encoding or "gzip"
        headers["Content-Encoding"] = encoding
        body = PACK[encoding](body)
        if kind == 3:
            body = body[: draw.randrange(len(body))]
    return Page(body, headers=headers)


def told_of(outcome: Outcome) -> dict[str, Any]:
    """The stats that are the same with and without."""
    named = ("httpcompression/", "item_scraped", "spider_exc")
    return {name: value for name, value in outcome.stats.items() if name.startswith(named)}


@pytest.mark.parametrize("looks", [1 << 30, 3], ids=["on", "on and off"])
def test_a_crawl_is_the_same_with_and_without(
    looks: int, forced: type[Told], site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forced, "looks", looks)
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    draw = random.Random(seed)
    for host in HOSTS:
        site.page(f"{host}/0", large("/1"))  # the first one that is parsed is what others are parsed ahead for
        for number in range(1, 20):
            site.page(f"{host}/{number}", page_of(draw, host, number, 20))
    with monkeypatch.context() as without:
        without.setattr(second_core, "EVERY", 1e9)
        (before,) = crawl(Links, site.proxy)
    (after,) = crawl(Links, site.proxy)
    assert "ubi/second_core/pages" not in before.stats
    assert sorted(map(repr, after.items)) == sorted(map(repr, before.items))
    assert told_of(after) == told_of(before)


def large(*hrefs: str) -> Page:
    anchors = "".join(f"<a href={href}>{href}</a>" for href in hrefs)
    return Page(f"<html><body>{anchors}{'<p>words and more of them</p>' * 2000}", headers={"Content-Type": "text/html"})


def test_pages_are_parsed_ahead_for_a_callback_that_asks_for_that(
    forced: type[Told], site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    for host in HOSTS:
        for number in range(12):
            site.page(f"{host}/{number}", large(f"/{number + 1}", f"/{number + 2}"))
    threads = set[str]()

    class Counting(Links):
        def parse(self, response: Response) -> Iterator[Any]:
            threads.update(thread.name for thread in threading.enumerate())
            yield from super().parse(response)

    with caplog.at_level(logging.INFO, "scrapy_ubi"):
        (outcome,) = crawl(Counting, site.proxy)
    assert NAME in threads
    assert outcome.stats["ubi/second_core/parsed"] > 5
    assert outcome.stats["ubi/second_core/parsed_used"] >= outcome.stats["ubi/second_core/parsed"] - 2
    (line,) = [text for text in caplog.messages if "a second thread from now on" in text]
    assert "1.0 of 2 cores were idle" in line


def test_where_it_does_not_pay_there_is_no_thread(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in a program of others, not with one core, and not before a look that says so."""
    site.page(f"{HOSTS[0]}/0", large())
    site.page(f"{HOSTS[1]}/0", large())
    made: list[object] = []
    monkeypatch.setattr(second_core, "Worker", made.append)
    monkeypatch.setattr(second_core, "EVERY", 0.01)
    crawl(Links, site.proxy)
    monkeypatch.setattr(second_core, "is_scrapys_process", lambda: True)
    monkeypatch.setattr(second_core, "Cores", lambda: SimpleNamespace(count=1.5))
    crawl(Links, site.proxy)
    monkeypatch.setattr(second_core, "Cores", lambda: SimpleNamespace(count=4.0, idle=lambda passed: 0.1))
    crawl(Links, site.proxy)
    assert not made


# What one page meets


class Path:
    """Where the middleware's method is called."""

    def __init__(self, middleware: HttpCompressionMiddleware) -> None:
        self.calls: dict[Any, Any] = {middleware.process_response: middleware.process_response}

    def replace_call(self, method: Any, call: Any) -> Any:
        before, self.calls[method] = self.calls[method], call
        return before


class HandedOver:
    """A crawl's middleware, and what stands in its place."""

    def __init__(self) -> None:
        self.stats, self.noted = list[str](), list[str]()
        self.middleware = HttpCompressionMiddleware.from_crawler(get_crawler())
        self.path = Path(self.middleware)
        self.pages = HandOver(self.path, self.middleware, self.stats.append, self.noted.append)  # type: ignore[arg-type]
        assert self.pages.take_over()

    async def ask(self, request: Request, response: Response) -> Any:
        """As `LeanPath` asks it."""
        answer = self.path.calls[self.middleware.process_response](request=request, response=response)
        return answer if isinstance(answer, Response) else await answer

    @property
    def stands_back(self) -> bool:
        method = self.middleware.process_response
        return self.path.calls[method] == method and self.middleware._decode is HttpCompressionMiddleware._decode


@pytest.fixture
def parse_ahead() -> None:
    """The callbacks of these tests ask for their pages, parsed."""
    parsed_ahead.credit[""] = MOST_CREDIT


HTML = {"Content-Type": "text/html"}
PAGE = b"<html><a href=/x>x</a>" + "<p>words über words</p>".encode() * 3000


def response_of(body: bytes, encoding: str = "", slot: str = "a") -> tuple[Request, Response]:
    headers = HTML | ({"Content-Encoding": encoding} if encoding else {})
    request = Request(f"http://{slot}.example/", meta={"download_slot": slot})
    response = HtmlResponse if not encoding else Response
    return request, response(request.url, body=body, headers=headers, request=request)


@pytest.mark.usefixtures("parse_ahead")
@pytest.mark.parametrize("encoding", ["", *PACK])
def test_a_large_page_is_unpacked_and_parsed_elsewhere(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[str] = []

    def parsed(page: bytes) -> ParsedTree:
        threads.append(threading.current_thread().name)
        return ParsedTree(page)

    monkeypatch.setattr(second_core, "Page", parsed)
    monkeypatch.setattr(second_core, "LEAST_PACKED", 0)

    async def run() -> None:
        here = HandedOver()
        body = PACK[encoding](PAGE) if encoding else PAGE
        monkeypatch.setattr(second_core, "GROWS", 10_000)
        request, response = response_of(body, encoding)
        answer = await here.ask(request, response)
        assert answer.body == PAGE and isinstance(answer, HtmlResponse)
        assert threads == [NAME]
        found = parsed_ahead.take(answer, PAGE)
        assert found is not None and found.page is not None and len(found.page.tags("a")) == 1
        done, parsed, used = "ubi/second_core/pages", "ubi/second_core/parsed", "ubi/second_core/parsed_used"
        assert here.stats == [done, parsed, used] and here.noted == ["second_core"]
        here.pages.stand_down()
        assert here.stands_back
        here.pages.close()

    asyncio.run(run())


@pytest.mark.usefixtures("parse_ahead")
def test_pages_of_a_slot_go_on_in_their_order_and_others_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    go = threading.Event()
    work = Job.work

    def held(self: Job) -> None:
        assert go.wait(60)
        work(self)

    monkeypatch.setattr(Job, "work", held)

    async def run() -> None:
        here, order = HandedOver(), list[str]()

        async def visit(name: str, body: bytes, slot: str) -> None:
            await here.ask(*response_of(body, slot=slot))
            order.append(name)

        visits = [asyncio.create_task(visit(*each)) for each in
                  [("large", PAGE, "a"), ("small", b"s", "a"), ("large too", PAGE, "a"), ("small too", b"s", "a"),
                   ("other host", b"s", "b"), ("cancelled", b"s", "a")]]  # fmt: skip
        while "other host" not in order:
            await asyncio.sleep(0)
        assert order == ["other host"]
        here.pages.stand_down()
        assert not here.stands_back, "as others wait for their turn"
        late = asyncio.create_task(visit("after its end", PAGE, "a"))
        await asyncio.sleep(0)
        visits.pop().cancel()
        go.set()
        await asyncio.gather(*visits, late)
        assert order == ["other host", "large", "small", "large too", "small too", "after its end"]
        assert here.stands_back
        while any(thread.name == NAME for thread in threading.enumerate()):
            await asyncio.sleep(0.01)
        assert here.pages.take_over()
        await visit("again", PAGE, "a")
        assert here.stats.count("ubi/second_core/pages") == 3
        here.pages.stand_down()

    asyncio.run(run())


@pytest.mark.usefixtures("parse_ahead")
def test_at_the_bounds_the_loop_does_it_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    go = threading.Event()
    monkeypatch.setattr(Job, "work", lambda self: go.wait(60))
    monkeypatch.setattr(second_core, "MOST_PAGES", 3)

    async def run() -> None:
        here = HandedOver()
        tasks = [asyncio.create_task(here.ask(*response_of(PAGE, slot=str(number)))) for number in range(5)]
        while here.stats.count("ubi/second_core/left") < 2:
            await asyncio.sleep(0)
        assert [task.done() for task in tasks] == [False, False, False, True, True]
        monkeypatch.setattr(second_core, "MOST_BYTES", 3 * len(PAGE))
        monkeypatch.setattr(second_core, "MOST_PAGES", 100)
        await here.ask(*response_of(PAGE, slot="6"))
        assert here.stats.count("ubi/second_core/left") == 3
        go.set()
        answers = await asyncio.gather(*tasks)
        assert {answer.body for answer in answers} == {PAGE}
        monkeypatch.setattr(second_core, "MOST_BYTES", len(PAGE))
        monkeypatch.setattr(second_core, "MOST_PAGES", 1)
        await here.ask(*response_of(PAGE, slot="7"))
        assert here.stats.count("ubi/second_core/left") == 3, "nothing is held of those that have come back"
        here.pages.close()

    asyncio.run(run())


def test_whatever_a_body_is_the_answer_is_that_of_the_middleware(monkeypatch: pytest.MonkeyPatch) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    draw = random.Random(seed)
    monkeypatch.setattr(second_core, "LEAST_PACKED", 0)
    monkeypatch.setattr(second_core, "LEAST_UNPACKED", 0)

    async def outcome(ask: Callable[..., Any], body: bytes, encoding: str, most: int) -> object:
        request, response = response_of(body, encoding)
        request.meta["download_maxsize"] = most
        try:
            answer = ask(request=request, response=response)
            answer = answer if isinstance(answer, Response) else await answer
        except IgnoreRequest as error:
            return str(error)
        except Exception as error:  # noqa: BLE001 - the same one, whichever
            return type(error), str(error)
        return type(answer), answer.body, answer.headers

    async def run() -> None:
        here = HandedOver()
        plain = HttpCompressionMiddleware.from_crawler(get_crawler()).process_response
        for _ in range(400):
            encoding = draw.choice([*PACK, "gzip, gzip", "GZIP ", "deflate", "unknown", "x-gzip"])
            body = draw.randbytes(draw.choice([0, 1, 300])) * draw.choice([1, 30, 3000])
            for one in encoding.strip().lower().split(", "):
                body = PACK.get(one.removeprefix("x-"), bytes)(body)
            body = draw.choice([body, body[: draw.randrange(len(body) + 1)], body + body, body + b"more"])
            most = draw.choice([0, 1, 1000, 100_000])
            assert await outcome(here.pages.process_response, body, encoding, most) == await outcome(
                plain, body, encoding, most
            ), (encoding, body, most)
        assert here.stats.count("ubi/second_core/pages") > 50
        here.pages.stand_down()
        here.pages.close()

    asyncio.run(run())


@pytest.mark.usefixtures("parse_ahead")
def test_what_breaks_in_the_thread_is_done_anew_in_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_core, "is_costly", lambda page: 1 / 0)

    async def run() -> None:
        here = HandedOver()
        answer = await here.ask(*response_of(gzip.compress(draw_page()), "gzip"))
        assert answer.body == draw_page()
        assert parsed_ahead.take(answer, answer.body) is None
        here.pages.close()

    asyncio.run(run())


def draw_page() -> bytes:
    """A page that gzip makes a fifth of."""
    draw = random.Random(5)
    return "".join(f"<p>{draw.random()} {draw.choice('abcdef') * 20}</p>" for _ in range(2000)).encode()


# What is parsed ahead


@pytest.mark.usefixtures("parse_ahead")
def test_what_one_crawl_of_a_process_ends_another_goes_on_with() -> None:
    async def scene() -> None:
        one, other = HandedOver(), HandedOver()
        answer = await other.ask(*response_of(PAGE))
        assert parsed_ahead.take(answer, answer.body) is not None
        assert "ubi/second_core/parsed_used" in other.stats
        assert one.stats == []
        one.pages.stand_down()
        assert parsed_ahead.wanted_by == {other.pages}
        one.pages.stand_down()
        other.pages.stand_down()
        assert not parsed_ahead.wanted_by

    asyncio.run(scene())


def test_only_callbacks_that_ask_have_pages_parsed_ahead() -> None:
    request, response = response_of(PAGE)
    assert not parsed_ahead.spend_credit(request)
    parsed_ahead.take(response, b"small")
    assert not parsed_ahead.spend_credit(request)
    for _ in range(2 * MOST_CREDIT):
        parsed_ahead.take(response, PAGE)
    assert [parsed_ahead.spend_credit(request) for _ in range(MOST_CREDIT + 1)] == [True] * MOST_CREDIT + [False]
    assert not parsed_ahead.spend_credit(request.replace(callback=response_of))


def test_a_page_that_was_parsed_ahead_is_used_only_for_the_very_same_bytes() -> None:
    _, response = response_of(PAGE)
    tree = ParsedPage(PAGE, ParsedTree(PAGE))
    parsed_ahead.keep(response, tree, lambda: None)
    assert parsed_ahead.take(response, PAGE + b" ") is None
    parsed_ahead.keep(response, tree, lambda: None)
    assert parsed_ahead.take(response, bytes(bytearray(PAGE))) is tree
    assert parsed_ahead.take(response, PAGE) is None, "once"
