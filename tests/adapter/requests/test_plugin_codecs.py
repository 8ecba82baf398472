"""Meta of known plug-ins, which need not be installed."""

from __future__ import annotations

import json
import sys
from types import ModuleType
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.http import Response
from scrapy.settings import Settings

from scrapy_ubi.adapter.requests.codec import Codec
from scrapy_ubi.adapter.requests.untravelled import CodecError
from scrapy_ubi.protocol.host import Entry

URL = "http://h1.example/"
KEY = "playwright_page_methods"


def page_method() -> Any:
    """The class as scrapy-playwright 0.0.4x has it. It is no global here: this module would mention it."""

    class PageMethod:
        def __init__(self, method: Any, *args: Any, **kwargs: Any) -> None:
            self.method, self.args, self.kwargs = method, args, kwargs
            self.result: Any = None

    PageMethod.__module__, PageMethod.__qualname__ = "scrapy_playwright.page", "PageMethod"
    return PageMethod


PAGE: Any = ModuleType("scrapy_playwright.page")
PAGE.PageMethod = page_method()


class Injectable:
    """As web-poet's."""


class ProductPage(Injectable):
    pass


POET: Any = ModuleType("web_poet.pages")
POET.Injectable = Injectable


class Walk(Spider):
    name = "walk"

    def parse(self, response: Response) -> None: ...


@pytest.fixture
def playwright(monkeypatch: pytest.MonkeyPatch) -> None:
    """scrapy-playwright is there."""
    monkeypatch.setitem(sys.modules, "scrapy_playwright.page", PAGE)


@pytest.fixture
def poet(monkeypatch: pytest.MonkeyPatch) -> None:
    """scrapy-poet is there."""
    monkeypatch.setitem(sys.modules, "web_poet.pages", POET)


def codec() -> Codec:
    return Codec(Walk(), Settings())


def travelled(request: Request) -> Request:
    encoded = codec().encode(request)
    assert codec().check(encoded.text) is None
    return codec().decode(Entry(1, request.url, 0, 0, encoded.text))


@pytest.mark.usefixtures("playwright")
@pytest.mark.parametrize("kind", [list, tuple, dict])
def test_what_a_page_does_in_the_browser_travels(kind: Any) -> None:
    methods = [
        PAGE.PageMethod("wait_for_selector", "div.quote", timeout=500),
        PAGE.PageMethod("evaluate", "window.scrollBy(0, document.body.scrollHeight)"),
        PAGE.PageMethod("screenshot", path="a.png", clip={"x": 1, "y": 2.5}),
    ]
    methods[1].result = object()  # of a load before this one
    given = {str(number): method for number, method in enumerate(methods)} if kind is dict else kind(methods)
    request = travelled(Request(URL, meta={"playwright": True, KEY: given}))
    assert request.meta["playwright"] is True and type(request.meta[KEY]) is kind
    made = list(request.meta[KEY].values()) if kind is dict else request.meta[KEY]
    assert [type(one) for one in made] == [PAGE.PageMethod] * 3
    assert [(one.method, one.args, one.kwargs, one.result) for one in made] == [
        (one.method, one.args, one.kwargs, None) for one in methods
    ]


@pytest.mark.usefixtures("playwright")
@pytest.mark.parametrize(
    "value",
    [
        [PAGE.PageMethod(lambda page: None)],
        [PAGE.PageMethod("click", object())],
        [PAGE.PageMethod("on", handler=print)],
        [PAGE.PageMethod("click", "a"), "click"],
        {PAGE.PageMethod("click", "a")},
        PAGE.PageMethod("click", "a"),
    ],
    ids=["function", "argument", "named argument", "text", "set", "one"],
)
def test_a_page_is_never_fetched_without_what_it_was_to_do(value: Any) -> None:
    with pytest.raises(CodecError) as caught:
        travelled(Request(URL, meta={"playwright": True, KEY: value}))
    assert caught.value.reason == "meta" and f"meta[{KEY!r}]" in str(caught.value)


def test_where_scrapy_playwright_is_not_imported_the_page_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scrapy_playwright.page", None)
    with pytest.raises(CodecError, match=r"scrapy_playwright\.page\.PageMethod is not imported here") as caught:
        travelled(Request(URL, meta={KEY: [PAGE.PageMethod("click", "a")]}))
    assert caught.value.reason == "meta"
    assert sys.modules["scrapy_playwright.page"] is None, "and nothing imports it"


@pytest.mark.usefixtures("playwright")
@pytest.mark.parametrize(
    "data",
    [
        [{"method": "click", "args": 1, "kwargs": {}}],
        [{"method": "click", "args": {"~": "tuple", "v": []}}],
        [{"method": "click", "args": {"~": "tuple", "v": []}, "kwargs": {}, "result": 1}],
        [{"method": 1, "args": {"~": "tuple", "v": []}, "kwargs": {}}],
        [{"method": "click", "args": {"~": "tuple", "v": []}, "kwargs": {"~": "dict", "v": [[1, 1]]}}],
        ["click"],
        "click",
        None,
    ],
    ids=["args", "kwargs", "result", "method", "names", "text", "no list", "none"],
)
def test_data_that_makes_none_fails_the_page(data: Any) -> None:
    text = json.dumps({"meta": {KEY: {"~": "codec", "v": data}}})
    with pytest.raises(CodecError) as caught:
        codec().decode(Entry(1, URL, 0, 0, text))
    assert caught.value.reason == "meta" and "PageMethods raises ValueError" in str(caught.value)


class Browsed:
    """A page of the browser, as playwright has it."""

    def __init__(self, closed: bool) -> None:
        self._closed = closed

    def is_closed(self) -> bool:
        return self._closed


Browsed.__module__ = "playwright.async_api._generated"


@pytest.mark.parametrize(
    ("meta", "lost"),
    [
        ({"playwright_page": Browsed(False)}, False),
        ({"playwright_page": Browsed(True), "playwright": True}, False),
        ({"playwright_page": Browsed(False), "playwright": True}, True),
        ({"playwright_page": object()}, True),
    ],
    ids=["not by the browser", "closed", "open", "no page"],
)
def test_a_page_of_the_browser_that_was_copied_along_is_left_out_where_it_is_of_no_use(
    meta: dict[str, Any], lost: bool
) -> None:
    """A callback passes the meta of its response on, and with it the page that was loaded."""
    request = Request(URL, meta=meta)
    encoded = codec().encode(request)
    assert [loss.kind.partition("/")[0] for loss in encoded.losses] == ["meta"] * lost
    assert "playwright_page" in request.meta, "it stays with the request itself"
    if not lost:
        assert "playwright_page" not in travelled(request).meta


@pytest.mark.usefixtures("poet")
@pytest.mark.parametrize("kind", [list, tuple])
def test_the_classes_that_a_callback_asks_for_travel(kind: Any) -> None:
    assert travelled(Request(URL, meta={"inject": kind([ProductPage])})).meta["inject"] == kind([ProductPage])


@pytest.mark.usefixtures("poet")
def test_a_class_of_a_function_does_not() -> None:
    class Local(Injectable):
        pass

    encoded = codec().encode(Request(URL, meta={"inject": [Local]}))
    assert [loss.kind for loss in encoded.losses] == ["meta/class"]


@pytest.mark.usefixtures("poet")
@pytest.mark.parametrize("name", ["os._Environ", "subprocess.Popen", "nothing.Here", "x" * 400, ""])
def test_no_other_class_is_found_because_data_names_it(name: str) -> None:
    text = json.dumps({"meta": {"inject": {"~": "codec", "v": [name]}}})
    with pytest.raises(CodecError) as caught:
        codec().decode(Entry(1, URL, 0, 0, text))
    assert caught.value.reason == "meta"
