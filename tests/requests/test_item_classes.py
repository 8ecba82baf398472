"""Values of other classes by their fields; those of scrapy-playwright among them, which need not be installed."""

from __future__ import annotations

import json
import sys
from types import ModuleType
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.http import Response
from scrapy.settings import Settings

from scrapy_ubi.protocol.host import Entry
from scrapy_ubi.requests.codec import Codec, CodecError
from scrapy_ubi.requests.item_classes import is_item_class, is_named_tuple

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


class Walk(Spider):
    name = "walk"

    def parse(self, response: Response) -> None: ...


@pytest.fixture
def playwright(monkeypatch: pytest.MonkeyPatch) -> None:
    """scrapy-playwright is there."""
    monkeypatch.setitem(sys.modules, "scrapy_playwright.page", PAGE)


def codec() -> Codec:
    return Codec(Walk(), Settings())


def travelled(request: Request) -> Request:
    encoded = codec().encode(request)
    assert codec().check(encoded.text) is None
    return codec().decode(Entry(1, request.url, 0, 0, encoded.text))


@pytest.mark.usefixtures("playwright")
@pytest.mark.parametrize("as_dict", [False, True])
def test_what_a_page_does_in_the_browser_travels(as_dict: bool) -> None:
    methods = [
        PAGE.PageMethod("wait_for_selector", "div.quote", timeout=500),
        PAGE.PageMethod("evaluate", "window.scrollBy(0, document.body.scrollHeight)"),
        PAGE.PageMethod("screenshot", path="a.png", clip={"x": 1, "y": 2.5}),
    ]
    methods[1].result = object()  # of a load before this one
    given: Any = {str(number): method for number, method in enumerate(methods)} if as_dict else methods
    request = travelled(Request(URL, meta={"playwright": True, KEY: given}))
    made = list(request.meta[KEY].values()) if as_dict else request.meta[KEY]
    assert [type(one) for one in made] == [PAGE.PageMethod] * 3
    assert [(one.method, one.args, one.kwargs, one.result) for one in made] == [
        (one.method, one.args, one.kwargs, None) for one in methods
    ]


@pytest.mark.usefixtures("playwright")
@pytest.mark.parametrize(
    "method",
    [PAGE.PageMethod(lambda page: None), PAGE.PageMethod("click", object()), PAGE.PageMethod("on", handler=print)],
)
def test_a_page_is_never_fetched_without_what_it_was_to_do(method: Any) -> None:
    with pytest.raises(CodecError) as caught:
        travelled(Request(URL, meta={"playwright": True, KEY: [method]}))
    assert caught.value.reason == "meta" and f"meta[{KEY!r}]" in str(caught.value)


def test_where_scrapy_playwright_is_not_known_it_does_not_travel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scrapy_playwright.page", None)
    encoded = codec().encode(Request(URL, meta={KEY: [PAGE.PageMethod("click", "a")]}))
    assert [loss.kind for loss in encoded.losses] == ["meta/PageMethod"]
    text = '{"meta":{"k":{"~":"item","v":["scrapy_playwright.page.PageMethod",{"method":"click"}]}}}'
    assert codec().check(text) is not None
    assert "scrapy_playwright" not in sys.modules or sys.modules["scrapy_playwright.page"] is None


@pytest.mark.usefixtures("playwright")
@pytest.mark.parametrize(
    ("fields", "checked"),
    [({"method": "click", "args": 1, "kwargs": {}}, True), ({"method": "click"}, True), ({"result": 1}, False)],
)
def test_fields_that_make_none_are_refused(fields: dict[str, Any], checked: bool) -> None:
    value = {"~": "item", "v": ["scrapy_playwright.page.PageMethod", fields]}
    text = json.dumps({"meta": {"k": value}})
    assert (codec().check(text) is None) is checked
    with pytest.raises(CodecError) as caught:
        codec().decode(Entry(1, URL, 0, 0, text))
    assert caught.value.reason == "value"


def test_what_is_no_class_of_these_is_none() -> None:
    class Odd(tuple):  # type: ignore[type-arg]
        _fields = "ab"

    assert not any(is_item_class(value) for value in (int, "Book", None, object()))
    assert not any(is_named_tuple(value) for value in (tuple, Odd, "Pair"))
