"""Links by content type in whole crawls, and of single responses."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from scrapy import Spider
from scrapy.http import HtmlResponse, Response, TextResponse
from scrapy.linkextractors import LinkExtractor as ScrapysExtractor
from scrapy.settings import Settings
from scrapy.utils.test import get_crawler

from scrapy_ubi import LinkExtractor, UbiSpider
from scrapy_ubi.adapter.extraction import content_links
from scrapy_ubi.urls.links.handlers import pdf_child
from scrapy_ubi.urls.links.handlers.pdf_child import PdfAnswer
from tests.support.crawls import agent_of, crawl
from tests.support.site import Page, Site
from tests.support.site import links as html

HOME = "http://h0.example"
PDF = "http://h1.example/doc.pdf"
ALL = ["html", "header", "feed", "sitemap", "pdf", "css", "json"]


class Walk(UbiSpider):
    name = "walk"
    start_urls = (f"{HOME}/",)

    def parse(self, response: Response) -> Iterator[Any]:
        yield self.links(response)


class Awaiting(Walk):
    async def parse(self, response: Response) -> AsyncIterator[Any]:  # type: ignore[override]
        yield await self.links_of(response)


class ToLinks:
    """A handler of a user's."""

    types = ("text/x-other",)

    def links(self, body: bytes, url: str, headers: Any) -> Any:
        return json.loads(body)


class StubChild:
    """In place of the child that reads PDF: waits for `go`, unless it is set."""

    def __init__(self, answer: PdfAnswer) -> None:
        self.answer = answer
        self.began, self.go, self.closed = threading.Event(), threading.Event(), threading.Event()

    def read(self, body: bytes) -> PdfAnswer:
        self.began.set()
        assert self.go.wait(60)
        return self.answer

    def close(self) -> None:
        self.closed.set()

    def prepare(self) -> None:
        """Nothing runs."""

    def end(self) -> None:
        """Nothing runs."""


@pytest.fixture
def child(monkeypatch: pytest.MonkeyPatch) -> StubChild:
    stub = StubChild(PdfAnswer([f"{HOME}/of-pdf", "/other.pdf"]))
    monkeypatch.setattr(content_links, "PdfQueue", lambda: pdf_child.PdfQueue(stub))  # type: ignore[arg-type]
    return stub


def spider_with(links_of: list[Any], cls: type[UbiSpider] = Walk) -> UbiSpider:
    return cls.from_crawler(get_crawler(cls, {"UBI_LINKS_OF": links_of}))


def page(body: str, content_type: str) -> Page:
    return Page(body, headers={"Content-Type": content_type})


def every_kind(site: Site) -> list[str]:
    """A chain over all kinds of documents; its URLs in their order."""
    paths = ["/", "/feed", "/map.xml", "/data.json", "/style.css", "/old", "/last"]
    a, b, c, d, e, f, g = [f"{HOME}{path}" for path in paths]
    site.page(a, page(html("/feed"), "text/html"))
    site.page(b, page("<rss><link>/map.xml</link></rss>", "application/xml"))
    site.page(c, page(f"<urlset><url><loc>{d}</loc></url></urlset>", "application/octet-stream"))
    site.page(d, page(f'{{"a": "{e}"}}', "application/json"))
    site.page(e, page('@import "old"', "text/css"))
    site.page(f, Page("x", headers={"Content-Type": "image/png", "Link": '<last>; rel="next"'}))
    site.page(g, page("", "text/html"))
    return [a, b, c, d, e, f, g]


@pytest.mark.parametrize("spider", [Walk, Awaiting])
def test_a_crawl_goes_through_all_kinds(site: Site, spider: type[UbiSpider], child: StubChild) -> None:
    urls = every_kind(site)
    (outcome,) = crawl(spider, site.proxy, settings={"UBI_LINKS_OF": ALL})
    assert site.urls() == dict.fromkeys(urls, 1) and "log_count/ERROR" not in outcome.stats
    for kind in ("feed", "sitemap", "css", "json"):
        assert outcome.stats[f"ubi/links/read/{kind}"] == outcome.stats[f"ubi/links/found/{kind}"] == 1
    assert outcome.stats["ubi/links/found/header"] == 1
    assert child.closed.is_set() and not child.began.is_set()


def test_without_the_setting_it_ends_where_html_ends(site: Site) -> None:
    urls = every_kind(site)
    (outcome,) = crawl(Awaiting, site.proxy)
    assert site.urls() == dict.fromkeys(urls[:2], 1)
    assert not [stat for stat in outcome.stats if stat.startswith("ubi/links/")]


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("lean", [True, False])
def test_a_page_is_not_done_while_its_pdf_is_read(site: Site, child: StubChild, lean: bool) -> None:
    beside = [f"http://h2.example/{number}" for number in range(3)]
    seen: list[int] = []

    class Watching(Awaiting):
        async def parse(self, response: Response) -> AsyncIterator[Any]:  # type: ignore[override]
            if response.url == beside[-1]:
                await until(child.began.is_set)
                await until(lambda: self.done() >= 3)  # all but this one, and the PDF
                seen.append(self.done())
                child.go.set()
            yield await self.links_of(response)

        def done(self) -> int:
            return int(agent_of(self).node.counters()["done"])

    site.page(f"{HOME}/", page(html(PDF, beside[0]), "text/html"))
    site.page(PDF, page("%PDF-1.4", "application/pdf"))
    for number, url in enumerate(beside):
        site.page(url, page(html(*beside[number + 1 : number + 2]), "text/html"))
    site.page(f"{HOME}/of-pdf", page("", "text/html"))
    site.page("http://h1.example/other.pdf", page("", "text/plain"))
    (outcome,) = crawl(Watching, site.proxy, settings={"UBI_LINKS_OF": ["html", "pdf"], "UBI_LEAN": lean})
    assert seen == [3]
    assert outcome.stats["ubi/done"] == len(site.urls()) == 7 and outcome.reason == "finished"
    assert outcome.stats["ubi/links/found/pdf"] == 2 and child.closed.is_set()


def test_a_pdf_wants_to_be_awaited(child: StubChild, caplog: pytest.LogCaptureFixture) -> None:
    spider = spider_with(["html", "pdf"])
    response = Response(PDF, headers={"Content-Type": "application/pdf"}, body=b"%PDF-1.4")
    assert spider.links(response).urls == spider.links(response).urls == []
    assert caplog.text.count("yield await self.links_of(response)") == 1
    assert spider.crawler.stats.get_value("ubi/links/refused/pdf/not_awaited") == 2
    child.go.set()
    links = asyncio.run(spider.links_of(response, callback="parse", priority=3))
    assert links.urls == [f"{HOME}/of-pdf", "http://h1.example/other.pdf"] and links.priority == 3
    with pytest.raises(ValueError, match="callback is 'missing'"):
        asyncio.run(spider.links_of(response, callback="missing"))
    child.answer = PdfAnswer(["/a"], cut="time")
    assert asyncio.run(spider.links_of(response)).urls == ["http://h1.example/a"]
    child.answer = PdfAnswer(refused="encrypted")
    assert asyncio.run(spider.links_of(response)).urls == []
    stats = spider.crawler.stats
    assert stats.get_value("ubi/links/cut/pdf/time") == stats.get_value("ubi/links/refused/pdf/encrypted") == 1


def test_the_extractor_judges_what_is_found() -> None:
    spider = spider_with(["html", "json", "pdf"])
    body = b'["http://a.example/1", "http://a.example/2.pdf", "http://b.example/3", "http://a.example/4.zip"]'
    response = TextResponse(HOME, headers={"Content-Type": "application/json"}, body=body)
    urls = ["http://a.example/1", "http://a.example/2.pdf", "http://b.example/3", "http://a.example/4.zip"]
    assert spider.links(response).urls == urls[:3]  # extensions of what is read are let pass, where none is given
    assert spider.links(response, LinkExtractor(allow_domains="a.example")).urls == urls[:1]
    assert spider.links(response, ScrapysExtractor(deny="3$")).urls == [urls[0], urls[1], urls[3]]
    spider.link_extractor = LinkExtractor(deny_extensions=())  # type: ignore[misc]
    assert spider.links(response).urls == urls
    page = HtmlResponse(HOME, body=b"<a href=/1.pdf><a href=/1.zip>", encoding="utf-8")
    assert spider_with(["html", "pdf"]).links(page).urls == [f"{HOME}/1.pdf"]


def test_what_no_handler_takes_is_as_without() -> None:
    page = HtmlResponse(HOME, body=b"<a href=/1>", encoding="utf-8", headers={"Content-Type": "text/html"})
    feed = TextResponse(HOME, body=b"<rss><link>/1</link></rss>", headers={"Content-Type": "application/rss+xml"})
    assert spider_with(["html", "css"]).links(page).urls == [f"{HOME}/1"]
    assert spider_with(["feed"]).links(page).urls == []
    assert spider_with(["html", "css"]).links(feed).urls == Walk().links(feed).urls == []


def test_bounds_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content_links, "MOST_LINKS", 5)
    spider = spider_with(["json"])
    body = "".join(f'"http://a.example/{number}",' for number in range(100)).encode()
    response = TextResponse(HOME, body=body, headers={"Content-Type": "application/json"})
    assert len(spider.links(response)) == len(asyncio.run(spider.links_of(response))) == 5
    monkeypatch.setattr(content_links, "MOST_SECONDS", -1.0)
    assert len(spider.links(response)) == 1
    stats = spider.crawler.stats
    assert stats.get_value("ubi/links/cut/json/links") == 2 and stats.get_value("ubi/links/cut/json/time") == 1


def test_a_handler_of_ones_own_goes_first_and_its_mistakes_are_seen() -> None:
    spider = spider_with(["html", ToLinks()])

    def links(body: bytes) -> list[str]:
        response = TextResponse(HOME, body=body, headers={"Content-Type": "text/x-other; charset=x"})
        return spider.links(response).urls

    given = ["a", "http://b.example/", "mailto:c", " d ", "a", "e" * 10_000]
    assert links(json.dumps(given).encode()) == [f"{HOME}/a", "http://b.example/", f"{HOME}/d"]
    assert spider.crawler.stats.get_value("ubi/links/long/ToLinks") == 1
    with pytest.raises(TypeError, match=r"the handler ToLinks has given 1: give texts, URLs"):
        links(b"[1]")
    with pytest.raises(json.JSONDecodeError):
        links(b"[")


def test_links_of_html_have_their_texts_where_these_are_asked_for() -> None:
    body = b"<a href=/1>one</a><a href=/2>two</a><a href=/1>again</a>"
    headers = {"Content-Type": "text/html", "Link": "</3>; rel=next"}
    page = HtmlResponse(HOME, body=body, encoding="utf-8", headers=headers)
    for names, texts in ((["html"], ["one", "two"]), (["html", "header"], ["", "one", "two"])):
        spider = spider_with(names)
        found = [spider.links(page, anchors=True), asyncio.run(spider.links_of(page, anchors=True))]
        assert [one.anchors for one in found] == [texts, texts]
        assert spider.links(page).anchors == []


def test_what_does_not_hold_refuses_the_start() -> None:
    with pytest.raises(SystemExit, match="UBI_LINKS_OF has 'pfd', which is no handler: did you mean 'pdf'"):
        content_links.check(Settings({"UBI_LINKS_OF": ["html", "pfd"]}))
    with pytest.raises(SystemExit, match="UBI_LINKS_OF is 7"):
        get_crawler(Walk, {"UBI_LINKS_OF": 7})
        content_links.check(Settings({"UBI_LINKS_OF": 7}))
    assert content_links.wanted_of(Settings({"UBI_LINKS_OF": "html, feed"})).by_kind
    assert content_links.wanted_of(Settings()).only_html


def test_a_spider_of_scrapys_knows_nothing_of_it(site: Site) -> None:
    class Plain(Spider):
        name = "plain"
        start_urls = (f"{HOME}/",)

        def parse(self, response: Response) -> Iterator[Any]:
            assert isinstance(response, HtmlResponse)
            yield from response.follow_all(css="a")

    site.page(f"{HOME}/", Page(html("/1"), headers={"Content-Type": "text/html", "Link": "</2>; rel=next"}))
    site.page(f"{HOME}/1", page("", "text/html"))
    crawl(Plain, site.proxy, settings={"UBI_LINKS_OF": ["html", "header"]})
    assert site.urls() == {f"{HOME}/": 1, f"{HOME}/1": 1}
