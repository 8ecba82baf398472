"""Requests that pipelines, extensions and handlers of signals make by `engine.crawl`: each is fetched, as by plain
Scrapy, also where it is a copy of one that was fetched, has failed, or is under way."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, ClassVar

import pytest
from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import DontCloseSpider, IgnoreRequest
from scrapy.http import Response
from twisted.python.failure import Failure

from scrapy_ubi.adapter.requests.check import NONCE
from tests.support.crawls import crawl, items_of
from tests.support.site import Page, Site, Visit

HOSTS = [f"http://h{number}.example" for number in range(3)]
PLAIN = {"ADDONS": {}}
BOTH = pytest.mark.parametrize("agents", [1, 2])


class Repeats(Spider):
    """Asks at idle once more for what has failed, and for each start page and each page under a new callback."""

    name = "repeats"
    start_urls = tuple(f"{host}/" for host in HOSTS)

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Repeats:
        self = super().from_crawler(crawler, *args, **kwargs)
        self.again = list[Request]()
        crawler.signals.connect(self.idle, signals.spider_idle)
        return self

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"start": response.url}
        assert response.request is not None
        self.again.append(response.request.replace(callback=self.last, dont_filter=True))
        for name in ("fine", "fails", "moved"):
            yield response.follow(f"/{name}", self.page, errback=self.failed)

    def page(self, response: Response) -> Iterator[Any]:
        yield {"page": response.url}
        assert response.request is not None
        self.again.append(response.request.replace(callback=self.last, errback=None, dont_filter=True))

    def failed(self, failure: Failure) -> None:
        request: Request = failure.request  # type: ignore[attr-defined]
        assert request.meta["retry_times"]
        self.again.append(request.replace(callback=self.last, errback=None, dont_filter=True))

    def last(self, response: Response) -> Iterator[Any]:
        yield {"last": response.url}

    def idle(self) -> None:
        again, self.again = self.again, []
        for request in again:
            self.crawler.engine.crawl(request)
        if again:
            raise DontCloseSpider


@BOTH
def test_copies_of_what_was_fetched_or_has_failed_are_fetched_again(site: Site, agents: int) -> None:
    def furnish() -> None:
        site.visits.clear()
        for host in HOSTS:
            site.page(f"{host}/")
            site.page(f"{host}/fine")
            site.page(f"{host}/fails", lambda visit: Page("", 500 if visit.number <= 2 else 200))
            site.redirect(f"{host}/moved", f"{host}/there")
            site.page(f"{host}/there")

    settings = {"RETRY_TIMES": 1}
    furnish()
    plain = items_of(crawl(Repeats, site.proxy, settings=settings | PLAIN))
    furnish()
    assert items_of(crawl(Repeats, site.proxy, agents, settings=settings)) == plain
    assert len(plain) == 7 * len(HOSTS)


class Variants:
    """A pipeline that asks for the page of an item, which is still under way, once for each of its sizes."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Variants:
        return cls(crawler)

    def process_item(self, item: Any) -> Any:
        spider: Any = self.crawler.spider
        for size in ("S", "M", "L") if "product" in item else ():
            asked = {"headers": {"X-Size": size}, "cb_kwargs": {"size": size}, "dont_filter": True}
            self.crawler.engine.crawl(Request(item["product"], spider.variant, **asked))
        return item


class Banned:
    """A downloader middleware that drops a page of which the site says so, and has the engine ask for it again."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Banned:
        return cls(crawler)

    def process_response(self, request: Request, response: Response) -> Response:
        if response.body == b"banned":
            self.crawler.engine.crawl(request.replace(dont_filter=True))
            raise IgnoreRequest
        return response


class Shop(Spider):
    name = "shop"
    start_urls = tuple(f"{host}/" for host in HOSTS)

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"product": response.url}
        yield response.follow("/other", self.other)

    def other(self, response: Response) -> Iterator[Any]:
        yield {"product": response.url}

    def variant(self, response: Response, size: str) -> Iterator[Any]:
        yield {"variant": response.url, "size": size, "shown": response.body.decode()}


@BOTH
def test_several_requests_for_a_page_that_is_under_way_are_all_fetched(site: Site, agents: int) -> None:
    def product(visit: Visit) -> Page:
        return Page("banned" if visit.number == 1 else visit.headers.get("x-size", "none"))

    for host in HOSTS:
        site.page(f"{host}/", product)
        site.page(f"{host}/other", product)
    settings = {
        "ITEM_PIPELINES": {Variants: 1},
        "DOWNLOADER_MIDDLEWARES": {Banned: 700},
        "RETRY_ENABLED": False,
        "UBI_HOST_FAILURES": 0,
    }
    plain = items_of(crawl(Shop, site.proxy, settings=settings | PLAIN))
    site.visits.clear()
    assert items_of(crawl(Shop, site.proxy, agents, settings=settings)) == plain
    assert len(plain) == 8 * len(HOSTS)


class Refused:
    """A downloader middleware that fails a page of which the site says so, which an errback hears."""

    def process_response(self, request: Request, response: Response) -> Response:
        if response.body == b"refused":
            raise IgnoreRequest
        return response


class Stubborn(Spider):
    """Asks in its errback once more for what has failed, and for two pages besides."""

    name = "stubborn"
    nonces: ClassVar[list[str]] = []

    async def start(self) -> AsyncIterator[Any]:
        for host in HOSTS:
            yield Request(f"{host}/", errback=self.failed)

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"page": response.url}
        self.nonces.append(response.meta.get(NONCE, ""))

    def failed(self, failure: Failure) -> Iterator[Any]:
        request: Request = failure.request  # type: ignore[attr-defined]
        yield {"failed": request.url}
        yield request.replace(dont_filter=True)
        for name in "ab":
            yield Request(f"{request.url}{name}")


class Patient(Stubborn):
    async def failed(self, failure: Failure) -> AsyncIterator[Any]:  # type: ignore[override]
        for found in super().failed(failure):
            yield found


@BOTH
@pytest.mark.parametrize("lean", [True, False])
@pytest.mark.parametrize("spider", [Stubborn, Patient])
def test_what_errbacks_yield_is_fetched_and_has_nonces_of_its_page(
    site: Site, agents: int, lean: bool, spider: type[Stubborn], caplog: pytest.LogCaptureFixture
) -> None:
    """So a page that fails again after a crash asks for the same again."""

    def furnish() -> None:
        site.visits.clear()
        for host in HOSTS:
            site.page(f"{host}/", lambda visit: Page("refused" if visit.number == 1 else "fine"))
            for name in "ab":
                site.page(f"{host}/{name}")

    settings = {"DOWNLOADER_MIDDLEWARES": {Refused: 700}, "UBI_HOST_FAILURES": 0}
    furnish()
    plain = items_of(crawl(spider, site.proxy, settings=settings | PLAIN))
    furnish()
    Stubborn.nonces.clear()
    assert items_of(crawl(spider, site.proxy, agents, settings=settings | {"UBI_LEAN": lean})) == plain
    assert len(plain) == 4 * len(HOSTS)
    assert "the lean way is not taken" not in caplog.text
    nonces = [nonce for nonce in Stubborn.nonces if nonce]
    assert len(nonces) == len(HOSTS) and all(nonce.endswith(".1") for nonce in nonces)
