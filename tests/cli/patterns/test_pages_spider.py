"""Items of pages, ordinary and hostile ones."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Request
from scrapy.http import Headers, Response, TextResponse
from scrapy.responsetypes import responsetypes

from scrapy_ubi.cli.patterns.pages_spider import PageItems
from scrapy_ubi.cli.patterns.rules_reader import read_rules
from scrapy_ubi.outputs.page_text import MOST_READ, MOST_TEXT, MOST_TITLE

URL = "http://a.example/page"
ALL = {"page": ["url", "status", "depth", "title", "text", "language", "html", "accuracy"]}
FIELDS = {"head": {"xpath": "//h1"}, "links": {"css": "a::attr(href)", "many": True}}


def maker(**tables: Any) -> PageItems:
    return PageItems(read_rules({"crawl": {"start": URL}, **tables}, lambda _: "rules"))


def came(body: bytes, kind: str = "text/html", status: int = 200, depth: int = 2) -> Response:
    """A response as Scrapy makes it of what came."""
    headers = Headers({"Content-Type": kind} if kind else {})
    cls = responsetypes.from_args(headers=headers, url=URL, body=body)
    return cls(URL, status=status, headers=headers, body=body, request=Request(URL, meta={"depth": depth}))


def test_an_item_says_what_page_it_is() -> None:
    item = maker().item(came(b"<title>A title</title><p>Some <b>text</b>"))
    assert item == {"url": URL, "status": 200, "depth": 2, "title": "A title", "text": "Some text"}


def test_which_pages_give_items() -> None:
    assert maker(collect={"allow": "/page$"}).item(came(b"x")) is not None
    assert maker(collect={"allow": ["/other", "/pages"]}).item(came(b"x")) is None
    assert maker(collect={"deny": "page"}).item(came(b"x")) is None
    assert maker().item(came(b"x", status=404)) is None
    item = maker(collect={"errors": True}).item(came(b"x", status=404))
    assert item is not None and item["status"] == 404


def test_fields_stand_beside_what_is_said_of_the_page() -> None:
    page = came(b"<h1>Head</h1><a href=/x>x</a>")
    assert maker(fields=FIELDS).item(page) == {"url": URL, "status": 200, "depth": 2, "head": "Head", "links": ["/x"]}
    assert maker(fields=FIELDS, collect={"page": []}).item(page) == {"head": "Head", "links": ["/x"]}
    named = {"title": {"css": "h1"}}
    assert maker(fields=named, collect={"page": ["title"]}).item(page) == {"title": "Head"}


def test_a_page_without_any_field_or_without_one_that_is_required_gives_no_item() -> None:
    assert maker(fields=FIELDS).item(came(b"<p>x")) is None
    assert maker(fields=FIELDS).item(came(b"<a href=/x>x")) is not None
    required = {**FIELDS, "head": {"xpath": "//h1", "required": True}}
    assert maker(fields=required).item(came(b"<a href=/x>x")) is None


@pytest.mark.parametrize("kind", ["image/png", "application/pdf", "application/octet-stream", ""])
def test_what_is_no_text_gives_no_item(kind: str) -> None:
    assert maker().item(came(b"text", "image/png")) is None
    assert maker(collect=ALL).item(came(b"\x89PNG\r\n\x1a\n\x00\x00", kind)) is None


def test_a_picture_that_says_it_is_a_page_gives_an_item_of_what_can_be_read() -> None:
    item = maker(collect=ALL).item(came(b"\x89PNG\r\n\x1a\n\x00\xff\xfe" * 1000))
    assert item is not None and "\x00" not in item["text"]


@pytest.mark.parametrize("kind", ["text/html; charset=nothing-known", "text/html; charset=utf-16", "text/html"])
def test_a_wrong_charset_is_no_error(kind: str) -> None:
    page = came("<h1>Größe".encode("latin-1") + b"\xff\xfe\x00", kind)
    assert maker(collect=ALL).item(page) is not None
    maker(fields=FIELDS).item(page)


def test_empty_bodies_and_texts_of_other_kinds() -> None:
    empty = maker(collect=ALL).item(came(b""))
    assert empty is not None and (empty["title"], empty["text"], empty["html"]) == ("", "", "")
    assert maker(fields=FIELDS).item(came(b"")) is None
    json = maker().item(came(b'{"a": "b"}', "application/json"))
    assert json is not None and json["text"] == '{"a": "b"}'
    assert maker(fields=FIELDS).item(came(b'{"a": "b"}', "application/json")) is None
    assert maker(fields={"a": {"xpath": "//b"}}).item(came(b"<a><b>c</b></a>", "text/xml")) is not None


def test_what_an_item_holds_is_bounded() -> None:
    page = b"<title>" + b"t" * 5000 + b"</title><body>" + b"word " * 500_000
    item = maker(collect=ALL).item(came(page))
    assert item is not None
    assert (len(item["title"]), len(item["text"]), len(item["html"])) == (MOST_TITLE, MOST_TEXT, MOST_READ)


def test_a_pattern_that_cannot_be_evaluated_on_a_page_finds_nothing_and_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    made = maker(fields={"a": {"xpath": "//div[re:test(., string(@title))]"}, "b": {"css": "p"}})
    with caplog.at_level(logging.WARNING, "scrapy_ubi"):
        for _ in range(2):
            item = made.item(came(b"<div title='('>x</div><p>y"))
            assert item is not None and (item["a"], item["b"]) == (None, "y")
    assert made.faults == 2 and len(caplog.records) == 1


kinds = st.sampled_from(["text/html", "text/plain", "application/xhtml+xml", "text/xml", "application/json", ""])


@given(st.binary(max_size=300) | st.text("<>/ab &;!-'\"\x00\r\n=x:", max_size=80).map(str.encode), kinds)
def test_no_page_is_an_error(body: bytes, kind: str) -> None:
    page = came(body, kind)
    for made in (maker(collect=ALL), maker(collect=ALL, fields=FIELDS, keywords={"words": "a"})):
        item = made.item(page)
        assert item is None or isinstance(page, TextResponse)
