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
from scrapy.downloadermiddlewares.redirect import MetaRefreshMiddleware
from scrapy.exceptions import ScrapyDeprecationWarning
from scrapy.http import HtmlResponse, Response, TextResponse
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
