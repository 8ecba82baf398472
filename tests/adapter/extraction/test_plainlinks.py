"""The object that spiders yield in place of requests."""

from __future__ import annotations

from typing import Any

import pytest
from itemadapter import ItemAdapter
from scrapy import Request
from scrapy.http import HtmlResponse, JsonResponse, Response, TextResponse
from scrapy.link import Link
from scrapy.linkextractors import LinkExtractor as ScrapysExtractor

from scrapy_ubi import LinkExtractor, PlainLinks, UbiSpider
from scrapy_ubi.adapter.extraction import linkextractor
from scrapy_ubi.urls.links.page import Page

URL = "http://h1.example/"
BODY = b"<a href=a>first</a> <a href=/b>second</a> <a href=a#x>third</a> <a href=a>again</a>"


class Walk(UbiSpider):
    name = "walk"

    def other(self, response: Response) -> None:
        """A callback."""


def page(body: bytes = BODY) -> HtmlResponse:
    return HtmlResponse(URL, body=body, encoding="utf-8")


def test_each_url_counts_once_with_the_text_it_has_first() -> None:
    links = PlainLinks(iter(["a", "b", "a"]), link_texts=iter(["1", "2", "3"]))
    assert links.urls == ["a", "b"] and links.link_texts == ["1", "2"] and len(links) == 2
    odd: list[Any] = [["no", "hash"], None, "a", "a"]
    assert PlainLinks(odd).urls == odd


def test_what_the_spider_says_wrongly_is_an_error() -> None:
    with pytest.raises(TypeError, match="a list of URLs, not one text"):
        PlainLinks(URL)
    with pytest.raises(ValueError, match="2 urls, but 1 link_texts"):
        PlainLinks(["a", "b"], link_texts=["1"])
    spider = Walk()
    for wrong in ("missing", "name", 7):
        with pytest.raises(ValueError, match=f"callback is {wrong!r}"):
            spider.links(page(), callback=wrong)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=f"errback is {wrong!r}"):
            list(PlainLinks([URL], errback=wrong).requests(spider))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"priority is 1\.5"):
        PlainLinks([URL], priority=1.5)  # type: ignore[arg-type]


def test_the_requests_that_they_stand_for() -> None:
    spider = Walk()
    links = PlainLinks(
        [URL, None, "no URL", f"{URL}b"],  # type: ignore[list-item]
        callback="other",
        errback=spider.other,
        cb_kwargs={"a": 1},
        meta={"b": 2},
        priority=3,
        headers={"X-C": "4"},
        link_texts=["first", "", "", "second"],
    )
    found = list(links.requests(spider))
    assert [request and request.url for request in found] == [URL, None, None, f"{URL}b"]
    first, last = found[0], found[-1]
    assert isinstance(first, Request) and isinstance(last, Request)
    assert (first.callback, first.errback, first.cb_kwargs, first.priority) == (spider.other, spider.other, {"a": 1}, 3)
    assert first.meta == {"b": 2, "link_text": "first"} and last.meta["link_text"] == "second"
    assert first.headers["X-C"] == b"4"
    assert first.meta is not last.meta and first.cb_kwargs is not last.cb_kwargs


def test_a_spider_finds_the_links_of_a_page() -> None:
    spider = Walk()
    expected = [f"{URL}a", f"{URL}b", f"{URL}a#x"]
    assert spider.links(page()).urls == expected
    assert spider.links(page(), ScrapysExtractor(), callback="other").urls == expected
    spider.link_extractor = ScrapysExtractor(deny="b$")  # type: ignore[misc]
    assert spider.links(page()).urls == [expected[0], expected[2]]


def test_a_page_is_parsed_once_for_its_fields_and_its_links_whoever_comes_in_between(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parsed: list[bytes] = []
    monkeypatch.setattr(linkextractor, "Page", lambda data: parsed.append(data) or Page(data))
    spider, large = Walk(), b"<title>one</title>" + BODY + b" " * 500_000
    first, second = page(large), page(b"<title>two</title><a href=d>fourth</a>")
    for response, title in ((first, "one"), (second, "two"), (first, "one")):
        found = spider.lexbor(response).css_first("title")
        assert found is not None and found.text() == title
    assert len(spider.links(first)) == 3 and len(spider.links(second)) == 1
    assert [large, second.body] == parsed


def test_a_page_that_may_take_lexbor_seconds_is_not_parsed_by_it() -> None:
    with pytest.raises(ValueError, match=r"http://h1.example/ may take lexbor seconds .*: ask by response\.css"):
        Walk().lexbor(page(b"<ul><li>" * 40_000))


def test_an_extractor_derived_from_ours_is_asked_for_its_own_links() -> None:
    class Fewer(LinkExtractor):
        def extract_links(self, response: TextResponse) -> list[Link]:
            return super().extract_links(response)[:1]

    assert Walk().links(page(), Fewer()).urls == [f"{URL}a"]


@pytest.mark.parametrize(
    "response",
    [
        Response(URL, body=b"\x89PNG"),
        TextResponse(URL, body=b"plain text"),
        JsonResponse(URL, body=b'{"a": "<a href=/b>"}'),
        JsonResponse(URL, body=b"no JSON"),
        TextResponse(URL, body=b"[1]"),
        TextResponse(URL, body=b"[" * 200_000),
    ],
)
def test_a_response_without_html_has_no_links(response: Response) -> None:
    assert Walk().links(response).urls == []
    assert Walk().links(response, LinkExtractor(restrict_xpaths="//p")).urls == []


def test_they_are_shown_shortly_and_are_an_item_where_items_are_shown() -> None:
    links = PlainLinks(["a" * 1000, "b", "c", "d"])
    assert (
        repr(links).startswith("<PlainLinks 4: aaa") and len(repr(links)) < 250 and repr(links).endswith("b, c, ...>")
    )
    assert ItemAdapter(links)["priority"] == 0  # `scrapy parse` shows what is no request so
