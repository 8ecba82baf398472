"""Whole crawls by ordinary spiders: every page once, in order, to the end, with one agent and with several."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import scrapy
from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.http import Response

from tests.crawls.ring import AGENTS, HOSTS, Walk, ring
from tests.support.crawls import FAST, LIMIT, crawl, items_of, total
from tests.support.site import Site
from tests.support.versions import since


@AGENTS
def test_every_page_is_fetched_once_and_the_crawl_ends_by_itself(site: Site, agents: int) -> None:
    urls = ring(site)
    outcomes = crawl(Walk, site.proxy, agents)
    assert site.urls() == dict.fromkeys(urls, 1)
    assert [outcome.reason for outcome in outcomes] == ["finished"] * agents
    assert len(items_of(outcomes)) == len(urls)
    # A link to the seed is a request that is done, too, where its finder had not heard that the seed is known.
    assert total(outcomes, "ubi/unique") - len(urls) in (0, 1)
    assert max(site.most_at_once.values()) == 1


class Heard(Walk):
    """The same with a listener, which has to hear of every request."""

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Heard:
        self = super().from_crawler(crawler, *args, **kwargs)
        self.heard = Counter[str]()
        crawler.signals.connect(self.scheduled, signals.request_scheduled)
        crawler.signals.connect(self.dropped, signals.request_dropped)
        crawler.signals.connect(self.told, signals.spider_closed)
        return self

    def scheduled(self, request: Request) -> None:
        self.heard["scheduled"] += 1

    def dropped(self, request: Request) -> None:
        self.heard["dropped"] += 1

    def told(self) -> None:
        for name, number in self.heard.items():
            self.crawler.stats.set_value(f"heard/{name}", number)


def test_stats_are_the_same_whether_somebody_hears_of_every_request_or_nobody(site: Site) -> None:
    ring(site)
    [unheard], [heard] = crawl(Walk, site.proxy, 1), crawl(Heard, site.proxy, 1)
    names = ("ubi/scheduler/duplicates", "ubi/scheduler/enqueued", "ubi/unique", "ubi/done")
    counts = [[outcome.stats.get(name, 0) for name in names] for outcome in (unheard, heard)]
    assert counts[0][0] == counts[1][0]
    # One more where a link to the seed was met before its finder had heard that the seed is known.
    assert all(abs(one - other) <= 1 for one, other in zip(*counts, strict=True)), counts
    assert heard.stats["heard/dropped"] == heard.stats["ubi/scheduler/duplicates"]
    assert heard.stats["heard/scheduled"] == len(HOSTS) * 3 * 4 + 1


class HeardLate(Walk):
    """The same with a listener that is connected by the first callback."""

    def parse(self, response: Response) -> Iterator[Any]:
        if response.url == self.start_urls[0]:
            self.dropped = list[str]()
            self.crawler.signals.connect(self.drop, signals.request_dropped)
            yield from (Request(f"{HOSTS[0]}/a") for _ in range(2))

    def drop(self, request: Request) -> None:
        self.dropped.append(request.url)


def test_who_listens_from_a_callback_on_hears_of_its_own_links(site: Site) -> None:
    site.page(f"{HOSTS[0]}/")
    site.page(f"{HOSTS[0]}/a")
    [outcome] = crawl(HeardLate, site.proxy)
    assert outcome.crawler.spider.dropped == [f"{HOSTS[0]}/a"]  # type: ignore[union-attr]


def test_depths_are_those_of_one_agent(site: Site) -> None:
    ring(site)
    assert items_of(crawl(Walk, site.proxy, 3)) == items_of(crawl(Walk, site.proxy, 1))


class Important(Spider):
    """One host, so that the order is that of the frontier alone."""

    name = "important"
    start_urls = (f"{HOSTS[0]}/",)

    def parse(self, response: Response) -> Iterator[Any]:
        for number in (1, 3, 2):
            yield Request(f"{HOSTS[0]}/{number}", self.page, priority=number)

    def page(self, response: Response) -> None:
        """Nothing."""


def test_requests_of_higher_priority_come_first(site: Site) -> None:
    for path in ("", "1", "2", "3"):
        site.page(f"{HOSTS[0]}/{path}")
    crawl(Important, site.proxy)
    assert [visit.url[-1] for visit in site.visits] == ["/", "3", "2", "1"]


class Stops(Walk):
    name = "stops"

    def parse(self, response: Response) -> Iterator[Any]:
        yield from super().parse(response)
        raise scrapy.exceptions.CloseSpider("enough")


def test_a_spider_that_closes_itself_closes_with_its_reason(site: Site) -> None:
    ring(site)
    outcomes = crawl(Stops, site.proxy)
    assert outcomes[0].reason == "enough"
    assert len(outcomes[0].items) == len(site.visits) < 24


class Breaks(Spider):
    name = "breaks"

    async def start(self) -> AsyncIterator[Any]:
        yield {"from": "start"}
        yield Request(f"{HOSTS[0]}/")
        raise RuntimeError("start broke")

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url}


@since(2, 18)
def test_items_of_start_arrive_and_a_start_that_breaks_ends_with_scrapys_reason(site: Site) -> None:
    site.page(f"{HOSTS[0]}/")
    outcomes = crawl(Breaks, site.proxy)
    assert items_of(outcomes) == [{"from": "start"}, {"url": f"{HOSTS[0]}/"}]
    assert outcomes[0].reason == "start_error"


def test_a_crawl_without_any_request_ends(site: Site) -> None:
    class Nothing(Spider):
        name = "nothing"

    assert [outcome.reason for outcome in crawl(Nothing, site.proxy, 2)] == ["finished", "finished"]


def test_a_crawl_that_has_ended_leaves_nothing_in_memory(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A process may run one after another for months."""
    ring(site)
    monkeypatch.setenv("http_proxy", site.proxy)
    crawler = Crawler(Walk, {**FAST, "UBI_DIR": str(tmp_path)})
    asyncio.run(asyncio.wait_for(crawler.crawl_async(), LIMIT))
    assert site.visits
    kept = weakref.ref(crawler)
    del crawler
    caplog.clear()
    gc.collect()
    assert kept() is None
