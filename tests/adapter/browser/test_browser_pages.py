"""What a page may load in the browser, by the crawl: kinds, bounds, what makes the page fail. No browser is there."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.http import HtmlResponse, Response

pytest.importorskip("scrapy_playwright")

from scrapy_ubi.adapter.browser import browser_pages
from scrapy_ubi.adapter.browser.browser_pages import CrawlLoads, KeptScripts

PAGE = "http://h.example/page"


class Route:
    """One question of the browser, and its answer: a status with a body, or `aborted`."""

    def __init__(self) -> None:
        self.answer: object = None

    async def abort(self) -> None:
        self.answer = "aborted"

    async def fulfill(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.answer = (status, body)
        self.headers = headers


class Crawl:
    """A crawl in which one page is shown. `answers`: by URL, what the crawl gets; an error is raised."""

    def __init__(self, kept: KeptScripts | None = None) -> None:
        self.asked: list[Request] = []
        self.answers: dict[str, Response | Exception] = {}
        self.stats: list[str] = []
        self.hang = asyncio.Event()
        crawler = cast("Any", SimpleNamespace(engine=SimpleNamespace(download_async=self._download)))
        self.request = request = Request(PAGE, meta={"cookiejar": 3, "depth": 2})
        response = HtmlResponse(PAGE, body="<p>é".encode("latin-1"), encoding="latin-1", request=request)
        self.kept = kept or KeptScripts()
        self.loads = CrawlLoads(
            crawler, response, self.kept, lambda url: urlsplit(url).hostname, lambda name: self.stats.append(name)
        )

    async def _download(self, request: Request) -> Response:
        self.asked.append(request)
        answer = self.answers.get(request.url, Response(request.url, body=b"x"))
        if request.url.endswith("/hangs"):
            await self.hang.wait()
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def ask(self, url: str, kind: str = "fetch", method: str = "GET", **headers: str) -> Any:
        """What the browser gets for this."""
        asked = SimpleNamespace(
            url=url,
            resource_type=kind,
            method=method,
            headers={name.replace("_", "-"): value for name, value in headers.items()},
            post_data_buffer=b"q" if method == "POST" else None,
            is_navigation_request=lambda: kind == "document",
        )
        route = Route()
        handlers: list[Any] = []

        async def take_route(pattern: str, handler: Any) -> None:
            handlers.append(handler)

        await self.loads.serve_page(cast("Any", SimpleNamespace(route=take_route)), self.request)
        await handlers[0](route, asked)
        return route.answer


def test_the_page_itself_is_given_once_and_nothing_takes_its_place() -> None:
    async def run() -> None:
        crawl = Crawl()
        assert await crawl.ask(PAGE, "document") == (200, "<p>é".encode())
        assert await crawl.ask("http://h.example/frame", "document") == "aborted"
        assert not crawl.asked

    asyncio.run(run())


@pytest.mark.parametrize(
    ("url", "kind", "method"),
    [
        ("http://h.example/i.png", "image", "GET"),
        ("http://h.example/v", "media", "GET"),
        ("http://h.example/f", "font", "GET"),
        ("http://h.example/b", "ping", "POST"),
        ("http://h.example/x", "fetch", "DELETE"),
        ("ws://h.example/", "fetch", "GET"),
        ("file:///etc/passwd", "fetch", "GET"),
    ],
)
def test_what_no_text_comes_from_is_not_loaded(url: str, kind: str, method: str) -> None:
    async def run() -> None:
        crawl = Crawl()
        assert await crawl.ask(url, kind, method) == "aborted" and not crawl.asked
        assert crawl.stats == ["ubi/browser/loads/left_out"]
        assert await crawl.ask("http://h.example/s.css", "stylesheet") == (200, b"") and not crawl.asked

    asyncio.run(run())


def test_a_load_is_a_request_of_the_crawl_with_the_session_of_its_page() -> None:
    async def run() -> None:
        crawl = Crawl()
        await crawl.ask("http://api.example/x", method="POST", content_type="application/json", x_key="1", cookie="c=1")
        (request,) = crawl.asked
        assert (request.method, request.body, request.meta["cookiejar"]) == ("POST", b"q", 3)
        assert "depth" not in request.meta and "cookie" not in request.headers and request.headers["x-key"] == b"1"
        assert request.headers["referer"] == PAGE.encode()

    asyncio.run(run())


def test_scripts_are_loaded_once_for_all_pages() -> None:
    async def run() -> None:
        kept, url = KeptScripts(), "http://cdn.example/app.js"
        one, two = Crawl(kept), Crawl(kept)
        one.answers[url] = Response(url, body=b"run()")
        assert await asyncio.gather(one.ask(url, "script"), two.ask(url, "script")) == [(200, b"run()")] * 2
        assert await two.ask(url, "script") == (200, b"run()") and len(one.asked) + len(two.asked) == 1
        await one.ask("http://cdn.example/data"), await one.ask("http://cdn.example/data")
        assert len(one.asked) == 3, "what scripts fetch may be another each time"

    asyncio.run(run())


def test_scripts_are_kept_within_bounds_and_not_where_they_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser_pages, "MOST_KEPT", 100)

    async def run() -> None:
        crawl = Crawl()
        for number in range(9):
            url = f"http://h.example/{number}.js"
            crawl.answers[url] = Response(url, body=b"x" * 40)
            await crawl.ask(url, "script")
        assert [number for number in range(9) if crawl.kept.find(f"http://h.example/{number}.js")] == [7, 8]
        crawl.answers["http://h.example/no.js"] = Response("", headers={"Cache-Control": "No-Store"}, body=b"x")
        await crawl.ask("http://h.example/no.js", "script")
        assert crawl.kept.find("http://h.example/no.js") is None

    asyncio.run(run())


def test_a_page_has_a_bound_of_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser_pages, "MOST_LOADS", 3)

    async def run() -> None:
        crawl = Crawl()
        answers = [await crawl.ask(f"http://h.example/{number}") for number in range(5)]
        assert answers == [(200, b"x")] * 3 + ["aborted"] * 2 and not crawl.loads.lacks
        assert crawl.stats.count("ubi/browser/loads/too_many") == 2

    asyncio.run(run())


@pytest.mark.parametrize(
    ("url", "answer", "lacks"),
    [
        ("http://h.example/x", Response("", status=503), True),
        ("http://h.example/x", Response("", status=429), True),
        ("http://h.example/x", ConnectionError("reset"), True),
        ("http://h.example/x", Response("", status=404), False),
        ("http://h.example/x", IgnoreRequest("Forbidden by robots.txt"), False),
        ("http://ads.example/x", Response("", status=503), False),
        ("http://ads.example/x", ConnectionError("reset"), False),
    ],
)
def test_what_the_host_of_a_page_owes_makes_the_page_fail(url: str, answer: Response | Exception, lacks: bool) -> None:
    async def run() -> None:
        crawl = Crawl()
        crawl.answers[url] = answer
        await crawl.ask(url)
        assert crawl.loads.lacks is lacks

    asyncio.run(run())


def test_a_page_that_is_over_waits_for_nothing_and_breaks_off_what_is_its_own() -> None:
    async def run() -> None:
        crawl = Crawl()
        url = "http://h.example/hangs"
        asked = [asyncio.ensure_future(crawl.ask(url, kind)) for kind in ("fetch", "script")]
        while len(crawl.asked) < 2:
            await asyncio.sleep(0)
        crawl.loads.stop_serving()
        assert await asyncio.gather(*asked) == ["aborted"] * 2 and not crawl.loads.lacks
        assert await crawl.ask("http://h.example/late") == "aborted" and len(crawl.asked) == 2
        assert set(crawl.kept.under_way) == {url}, "a script goes on: other pages may wait for it"
        crawl.hang.set()
        while crawl.kept.under_way:
            await asyncio.sleep(0)
        assert crawl.kept.find(url) is not None
        crawl.loads.stop_serving()

    asyncio.run(run())
