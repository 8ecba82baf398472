"""Middlewares' methods, called with less ado: the same answers, for the same arguments."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Request, Spider
from scrapy.core.downloader.middleware import DownloaderMiddlewareManager
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.cookies import CookiesMiddleware
from scrapy.downloadermiddlewares.redirect import MetaRefreshMiddleware
from scrapy.downloadermiddlewares.stats import DownloaderStats
from scrapy.exceptions import ScrapyDeprecationWarning
from scrapy.http import HtmlResponse, Response, TextResponse
from scrapy.http.cookies import CookieJar
from scrapy.statscollectors import MemoryStatsCollector
from scrapy.utils import decorators

from scrapy_ubi.fast import calls
from scrapy_ubi.fast.calls import READ, Call, lean_calls
from scrapy_ubi.fast.compared import WARNING, digest

REQUEST = Request("http://h.example/")


def manager(*middlewares: Any) -> DownloaderMiddlewareManager:
    crawler = Crawler(Spider, {})
    crawler.spider = Spider("walk")
    return DownloaderMiddlewareManager(*middlewares, crawler=crawler)


def lean(middleware: Any, name: str = "process_response") -> Call | None:
    """What is called in the place of this middleware's method."""
    of = manager(middleware)
    return lean_calls(of, of.methods[name]).get(getattr(middleware, name))


def refresh() -> MetaRefreshMiddleware:
    return MetaRefreshMiddleware(Crawler(Spider, {}).settings)


def page(text: str, cls: type[TextResponse] = HtmlResponse) -> TextResponse:
    return cls("http://h.example/", body=text.encode(), encoding="utf-8", request=REQUEST)


class Counting:
    """A middleware of a user's, with Scrapy's decorator."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    @decorators._warn_spider_arg
    def process_request(self, request: Request, spider: Spider | None = None) -> str:
        self.asked.append(request)
        return f"{request.url} {spider}"

    @decorators._warn_spider_arg
    async def process_response(self, request: Request, response: Response, spider: Spider | None = None) -> Response:
        return response


class Old:
    """One that was written long ago."""

    def process_exception(self, request: Request, exception: Exception, spider: Spider) -> None:
        """Wants a spider."""


def test_the_decorator_is_as_it_was() -> None:
    assert digest(decorators._warn_spider_arg) == WARNING


def test_who_passes_no_spider_calls_what_is_wrapped() -> None:
    middleware = Counting()
    call = lean(middleware, "process_request")
    assert call is not None
    assert call.__func__ is Counting.process_request.__wrapped__  # type: ignore[attr-defined]
    assert call(request=REQUEST) == middleware.process_request(request=REQUEST)
    assert middleware.asked == [REQUEST, REQUEST]


def test_a_coroutine_is_called_as_it_is() -> None:
    middleware = Counting()
    assert lean(middleware) == middleware.process_response


def test_who_wants_a_spider_is_scrapys_matter() -> None:
    with pytest.warns(ScrapyDeprecationWarning, match="requires a spider"):
        assert lean(Old(), "process_exception") is None


def test_another_decorator_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    middleware = Counting()
    monkeypatch.setattr(calls, "WARNING", "another text")
    assert lean(middleware, "process_request") == middleware.process_request


def test_what_is_no_method_is_left_alone() -> None:
    class Odd:
        process_request = staticmethod(len)

    assert lean(Odd(), "process_request") is len


def test_a_page_without_the_word_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MetaRefreshMiddleware.process_response.__wrapped__, "__code__", _fails.__code__)  # type: ignore[attr-defined]
    monkeypatch.setattr(calls, "changed", lambda part: "")
    call = lean(refresh())
    assert call is not None
    response = page("<html><head><meta charset=utf-8></head>" + "x" * READ + "refresh")
    assert call(request=REQUEST, response=response) is response
    for text in ("<meta http-equiv=ReFresh>", "<meta http-equiv='&#114;efresh'>"):
        with pytest.raises(AssertionError, match="it was asked"):
            call(request=REQUEST, response=page(text))
    with pytest.raises(AssertionError, match="it was asked"):
        call(request=REQUEST, response=page("", TextResponse))


def _fails(self: Any, request: Request, response: Response, spider: Spider | None = None) -> Response:
    raise AssertionError("it was asked")


@pytest.mark.parametrize("how", ["another text", "on the object", "a subclass"])
def test_a_changed_one_is_asked_of_every_page(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    middleware = refresh()
    if how == "another text":
        monkeypatch.setattr(MetaRefreshMiddleware, "process_response", _fails)
    elif how == "on the object":
        middleware.process_response = _fails.__get__(middleware)  # type: ignore[method-assign]
    else:
        middleware = type("Own", (MetaRefreshMiddleware,), {"process_response": _fails})(Crawler(Spider, {}).settings)
    call = lean(middleware)
    assert call is not None
    with pytest.raises(AssertionError, match="it was asked"):
        call(request=REQUEST, response=page("nothing"))


PIECES = st.sampled_from(
    ["<meta http-equiv=", "refresh", "REFRESH", "'refresh'", "&#114;", "&#x72;efresh", "&eacute;", "'", '"', ">",
     " content=", "5; url=/there", "'0;url=http://other.example/'", "<base href=/b/>", "<noscript>", "</noscript>",
     "<!--", "-->", "<script>", "</script>", " " * 100, "x" * 1000, "\u0130", "\ufb04", "\x00", "\u017f"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=12).map("".join))
def test_every_page_has_the_same_answer(text: str) -> None:
    middleware = refresh()
    call = lean(middleware)
    assert call is not None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = call(request=REQUEST, response=page(text))
    wanted = middleware.process_response(request=REQUEST, response=page(text))
    assert type(found) is type(wanted)
    assert found.url == wanted.url


URLS = st.sampled_from(
    "http://h.example/ http://h.example http://H.example:80/a?b http://u:p@h/x;y?z#f http://[::1]:80/?q# http://h//a "
    "https://1.2.3.4:5/a?b=%20 data:,x file:///a".split()
)
VALUES = st.lists(st.binary(max_size=5), max_size=2)
HEADERS = st.dictionaries(st.sampled_from(["A", "Cookie", "Set-Cookie", "set-cookie2", "X-Long-Name"]), VALUES)


def counted(middleware: Any, name: str, call: Call, **arguments: Any) -> dict[str, Any]:
    middleware.stats.clear_stats()
    call(**arguments)
    return dict(middleware.stats.get_stats())


@given(URLS, st.sampled_from(["GET", "post", "B\u00dc"]), HEADERS, st.binary(max_size=3))
def test_bytes_are_counted_as_scrapy_counts_them(url: str, method: str, headers: Any, body: bytes) -> None:
    middleware = DownloaderStats(MemoryStatsCollector(Crawler(Spider, {})))
    request = Request(url, method=method, headers=headers, body=body)
    response = Response("http://h.example/", status=404 if body else 200, headers=headers, body=body)
    for name, arguments in (
        ("process_request", {"request": request}),
        ("process_response", {"request": request, "response": response}),
    ):
        call, scrapys = lean(middleware, name), getattr(middleware, name)
        assert call is not None
        assert "counted" in call.__qualname__
        assert counted(middleware, name, call, **arguments) == counted(middleware, name, scrapys, **arguments)


@pytest.mark.parametrize("meta", [{}, {"cookiejar": 1}, {"dont_merge_cookies": True}])
@pytest.mark.parametrize("sent", [{}, {"Cookie": "own=1"}])
@pytest.mark.parametrize("cookies", [{}, {"a": "b"}])
@pytest.mark.parametrize("told", [{}, {"Set-Cookie": "c=d"}, {"Set-Cookie2": "e=f"}])
def test_cookies_are_kept_and_sent_as_by_scrapy(meta: Any, sent: Any, cookies: Any, told: Any) -> None:
    ways = []
    for is_lean in (True, False):
        middleware = CookiesMiddleware()
        calls = []
        for name in ("process_request", "process_response"):
            call = lean(middleware, name)
            assert call is not None
            assert "sparingly" in call.__qualname__
            calls.append(call if is_lean else getattr(middleware, name))
        headers = []
        for _ in range(2):
            request = Request("http://h.example/", meta=meta, headers=sent, cookies=cookies)
            response = Response(request.url, headers=told, request=request)
            assert calls[0](request=request) is None
            headers.append(dict(request.headers))
            assert calls[1](request=request, response=response) is response
        jars = {key: ([(c.name, c.value) for c in jar], jar.processed) for key, jar in middleware.jars.items()}
        ways.append((headers, jars))
    assert ways[0] == ways[1]


def test_a_jar_of_the_users_is_asked() -> None:
    class Jar(CookieJar):
        asked = 0

        def add_cookie_header(self, request: Request) -> None:
            self.asked += 1

    middleware = CookiesMiddleware()
    jar = middleware.jars[None] = Jar()
    call = lean(middleware, "process_request")
    assert call is not None
    call(request=Request("http://h.example/"))
    assert jar.asked == 1
