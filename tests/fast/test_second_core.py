"""Large pages in a second thread: the same crawl, page for page, and only while there is a core to spare."""

from __future__ import annotations

import asyncio
import gzip
import logging
import random
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import brotli
import pytest
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.exceptions import IgnoreRequest
from scrapy.http import HtmlResponse, Response
from scrapy.utils.test import get_crawler

from scrapy_ubi import UbiSpider
from scrapy_ubi.adapter.extraction.parsed_ahead import MOST_CREDIT, ParsedPage, parsed_ahead
from scrapy_ubi.adapter.requests.decompress import zstd
from scrapy_ubi.fast import second_core
from scrapy_ubi.fast.second_core import HandOver, Job, Worker
from scrapy_ubi.fast.spare_cores import CoresSeen
from scrapy_ubi.urls.links.page import Page as ParsedTree
from tests.support.crawls import Outcome, crawl
from tests.support.site import Page, Site

HOSTS = ("http://h1.example", "http://h2.example")
NAME = "ubi-second-core"
PACK: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "br": brotli.compress, "zstd": zstd.compress}


class Told:
    """A switch that is told: on from the first look, off from the look `until`."""

    until = 1 << 30

    def __init__(self) -> None:
        self.is_on = False
        self.looks = 0

    def look(self, seen: CoresSeen) -> bool:
        self.looks += 1
        self.is_on = self.looks < self.until
        return self.is_on


@pytest.fixture
def forced(monkeypatch: pytest.MonkeyPatch) -> type[Told]:
    """On at once, whatever the cores of this machine do."""
    monkeypatch.setattr(second_core, "is_scrapys_process", lambda: True)
    monkeypatch.setattr(second_core, "EVERY", 0.01)
    monkeypatch.setattr(second_core, "Cores", lambda: SimpleNamespace(count=2.0, idle=lambda passed: 1.0))
    monkeypatch.setattr(second_core, "Switch", Told)
    monkeypatch.setattr(Told, "until", 1 << 30)
    return Told


class Links(UbiSpider):
    """Takes all links by lexbor, and says in which order it was asked."""

    name = "links"
    start_urls = [f"{host}/0" for host in HOSTS]
    custom_settings = {
        "UBI_HOST_DELAY": 0, "UBI_HOST_CONCURRENCY": 8, "CONCURRENT_REQUESTS": 16, "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
        "RETRY_ENABLED": False, "UBI_HOST_FAILURES": 0, "DOWNLOAD_MAXSIZE": 2_000_000, "ROBOTSTXT_OBEY": False,
    }  # fmt: skip

    def parse(self, response: Response) -> Iterator[Any]:
        if isinstance(response, HtmlResponse):
            links = self.links(response, errback=self.failed)
            yield {"url": response.url, "size": len(response.body), "links": links.urls}
            yield links
        else:
            yield {"url": response.url, "size": len(response.body)}

    def failed(self, failure: Any) -> Iterator[Any]:
        yield {"failed": failure.request.url, "by": failure.type.__name__, "says": str(failure.value)}


def page_of(draw: random.Random, host: str, number: int, pages: int) -> Page:
    """A page of any size and encoding, whole or broken, that leads to others."""
    words = "".join(f"<p>{draw.random()} über</p>" for _ in range(draw.choice((1, 100, 1500, 4000))))
    hrefs = [f"/{other}" for other in range(number + 1, min(number + 6, pages))]
    anchors = "".join(f"<a href={href}>{href}</a>" for href in hrefs)
    kind = draw.randrange(10)
    charset = "latin-1" if kind == 0 else "utf-8"
    body = f"<html><head><title>{host}</title></head>{anchors}{words}".encode(charset)
    headers = {"Content-Type": f"text/html; charset={charset}"}
    if kind == 1:
        headers["Content-Type"] = "application/octet-stream"
    if kind == 2:
        body = b"<p>" + b"nothing " * 400_000  # a bomb
    if (encoding := draw.choice([None, *PACK])) is not None or kind == 2:
        encoding = encoding or "gzip"
        headers["Content-Encoding"] = encoding
        body = PACK[encoding](body)
        if kind == 3:
            body = body[: draw.randrange(len(body))]
    return Page(body, headers=headers)


def told_of(outcome: Outcome) -> dict[str, Any]:
    """The stats that are the same with and without."""
    named = ("httpcompression/", "item_scraped", "downloader/resp", "downloader/exc", "spider_exc", "ubi/scheduler")
    return {name: value for name, value in outcome.stats.items() if name.startswith(named)}


def test_a_crawl_is_the_same_with_and_without(forced: type[Told], site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    draw = random.Random(seed)
    for host in HOSTS:
        for number in range(40):
            site.page(f"{host}/{number}", page_of(draw, host, number, 40))
    with monkeypatch.context() as without:
        without.setattr(second_core, "EVERY", 1e9)
        (before,) = crawl(Links, site.proxy)
    (after,) = crawl(Links, site.proxy)
    assert after.stats.get("ubi/second_core/pages", 0) > 5
    assert "ubi/second_core/pages" not in before.stats
    assert sorted(map(repr, after.items)) == sorted(map(repr, before.items))
    assert told_of(after) == told_of(before)
