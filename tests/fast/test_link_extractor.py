"""Links that Scrapy's LinkExtractor finds: the same with the part and without it, on any page."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scrapy.http import HtmlResponse, TextResponse, XmlResponse
from scrapy.link import Link
from scrapy.linkextractors import LinkExtractor
from scrapy.linkextractors.lxmlhtml import LxmlLinkExtractor

from scrapy_ubi.fast import compared
from scrapy_ubi.fast.link_extractor import FastLinkExtraction, Reader, told
from tests.adapter.extraction.test_linkextractor import CHOICES, pieces
from tests.urls.links.pages import ADDRESS, BASES, HREFS, PAGES, page, tidy

pytestmark = pytest.mark.skipif(
    bool(compared.changed(LinkExtractor()) or compared.changed(LinkExtractor().link_extractor)),
    reason="this version of Scrapy was not compared",
)
MORE: list[dict[str, Any]] = [
    *CHOICES,
    {"restrict_xpaths": ["//li", "//div"], "restrict_text": "t"},
    {"restrict_xpaths": "//li", "restrict_css": "div", "canonicalize": True},
    {"restrict_xpaths": "//a/@href"},
    {"restrict_xpaths": "//text()"},
    {"restrict_text": re.compile("t")},
]
scrapys = LxmlLinkExtractor.extract_links


@contextmanager
def in_place() -> Iterator[None]:
    """The part, as while a spider is open in Scrapy's own process."""
    undo = FastLinkExtraction.change()
    try:
        yield
    finally:
        undo()


Outcome = list[Link] | tuple[type[Exception], str]


def outcome(extractor: LinkExtractor, response: TextResponse) -> Outcome:
    """The links of a page that nobody has looked at, or what is raised."""
    try:
        return extractor.extract_links(response.replace())
    except Exception as error:  # noqa: BLE001
        return type(error), str(error)


def same(response: TextResponse, **arguments: Any) -> None:
    extractor = LinkExtractor(**arguments)
    expected = outcome(extractor, response)
    with in_place():
        assert outcome(extractor, response) == expected
        assert outcome(LinkExtractor(**arguments), response) == expected


@pytest.mark.parametrize("number", range(len(MORE)))
def test_a_made_corpus_with_every_argument(number: int) -> None:
    for text in PAGES:
        same(page(text), **MORE[number])
    for base in (ADDRESS, BASES[number % len(BASES)]):
        text = "".join(f"<li><a href='{href}'>text of {href}</a>" for href in HREFS if "'" not in href)
        same(page(text, base), **MORE[number])


@given(tidy, st.sampled_from(BASES), st.sampled_from(MORE))
def test_tidy_pages(text: str, address: str, arguments: dict[str, Any]) -> None:
    same(page(text, address), **arguments)


@given(
    st.lists(pieces | st.text(max_size=4)).map("".join) | st.binary(),
    st.sampled_from(["utf-8", "latin-1", "shift_jis", "utf-16"]),
    st.sampled_from(MORE),
)
@example("<a href>x</a><A HREF=y>x<!-- c -->y<?z a?></a><area href=z>", "utf-8", {})
@example("<base href='http://[x'><a href=y>z</a>", "utf-8", {})
@example("<a href='/?q=1'>1</a>", "utf-16", {})
def test_any_page(text: str | bytes, charset: str, arguments: dict[str, Any]) -> None:
    same(page(text, charset=charset), **arguments)


@pytest.mark.parametrize("kind", [XmlResponse, TextResponse])
def test_what_is_no_html(kind: type[TextResponse]) -> None:
    same(kind(ADDRESS, body=b"<r><a href='x'>y</a></r>"))


@pytest.mark.parametrize("arguments", [{}, {"restrict_css": "div"}, {"canonicalize": True}, {"restrict_text": "x"}])
def test_most_extractors_are_read_here(arguments: dict[str, Any]) -> None:
    response = page("<div><a href='y'>x</a></div>")
    links = Reader(told(LinkExtractor(**arguments))).links(response)
    assert links is not None and links == LinkExtractor(**arguments).extract_links(response)


@pytest.mark.parametrize(
    "arguments", [{"unique": False}, {"process_value": str}, {"tags": "*"}, {"attrs": ["href", "src"]}, {"tags": ()}]
)
def test_what_few_ask_for_is_scrapys(arguments: dict[str, Any]) -> None:
    assert Reader(told(LinkExtractor(**arguments))).links(page("<a href='y'>x</a>")) is None


def test_what_is_set_later_counts_from_then_on() -> None:
    response = page("<a href='a'>x</a><a href='b'>y</a>")
    extractor = LinkExtractor()
    with in_place():
        assert len(extractor.extract_links(response)) == 2
        extractor.allow_res.append(re.compile("b$"))
        assert [link.text for link in extractor.extract_links(response)] == ["y"]
        extractor.deny_domains = {"www.example.com"}
        assert extractor.extract_links(response) == []


def test_a_class_derived_from_it_and_an_extractor_of_its_own_are_scrapys() -> None:
    class Own(LinkExtractor):
        def _process_links(self, links: list[Link]) -> list[Link]:
            return links[:1]

    patched: Any = LinkExtractor()
    patched._link_allowed = lambda link: link.text == "y"
    response = page("<a href='a'>x</a><a href='b'>y</a>")
    with in_place():
        assert [link.text for link in Own().extract_links(response)] == ["x"]
        assert [link.text for link in patched.extract_links(response)] == ["y"]


def test_what_a_spider_drops_from_a_page_is_no_link() -> None:
    response = page("<nav><a href=1>1</a></nav><p><a href=2>2</a></p>")
    response.css("nav")[0].drop()
    with in_place():
        assert [link.text for link in LinkExtractor().extract_links(response)] == ["2"]


def test_afterwards_all_is_scrapys() -> None:
    with in_place():
        assert LxmlLinkExtractor.extract_links is not scrapys
    assert LxmlLinkExtractor.extract_links is scrapys


def test_with_a_function_that_was_not_compared_it_is_left_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(LxmlLinkExtractor, "_link_allowed", lambda self, link: False)
    with caplog.at_level(logging.INFO), in_place():
        assert LxmlLinkExtractor.extract_links is scrapys
        assert LinkExtractor().extract_links(HtmlResponse(ADDRESS, body=b"<a href=x>y</a>")) == []
    assert "LxmlLinkExtractor._link_allowed" in caplog.text
