"""Canaries: the tree that a page was parsed into."""

from __future__ import annotations

import gc
import weakref

from scrapy.http import HtmlResponse, JsonResponse, Response

from scrapy_ubi.adapter.scrapy_private.parsed_page import forget_tree, parsed_page
from tests.support.versions import since


def test_what_a_page_was_parsed_into_is_let_go() -> None:
    """Page and selector hold each other: without a collection of garbage they go when nobody else has them."""
    page = HtmlResponse("http://a.example", body=b"<title>T</title>", encoding="utf-8")
    held = page.selector
    tree = weakref.ref(held)
    gc.disable()
    try:
        forget_tree(page)
        assert held.css("title::text").get() == "T", "whoever holds it keeps it"
        del held
        assert tree() is None
    finally:
        gc.enable()
    assert page.css("title::text").get() == "T"
    forget_tree(Response("http://a.example"))


def test_whether_a_page_was_parsed() -> None:
    page = HtmlResponse("http://a.example", body=b"<title>T</title>", encoding="utf-8")
    assert parsed_page(page) is None
    assert page.css("title")
    assert parsed_page(page) is page.selector.root


@since(2, 18)
def test_a_page_of_json_was_parsed_into_no_tree() -> None:
    text = JsonResponse("http://a.example", body=b"{}", encoding="utf-8")
    assert text.selector.type == "json"
    assert parsed_page(text) is None
