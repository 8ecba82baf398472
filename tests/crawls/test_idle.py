"""A spider that its own handlers hold open at idle: the crawl is not over as long as they do."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider, DontCloseSpider
from scrapy.http import Response

from scrapy_ubi.adapter.components.scheduler import UbiScheduler
from tests.support.crawls import agent_of, crawl, items_of, total
from tests.support.site import Site

HOSTS = [f"http://h{number}.example" for number in range(8)]
READS = 20  # of all beats: the crawl would be over after a few


class Fed(Spider):
    """Fed from outside, by agent a0, when all beats have been read so often while nothing else was left to do."""

    name = "fed"
    start_urls = (f"{HOSTS[0]}/",)
    meals = 2

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Fed:
        self = super().from_crawler(crawler, *args, **kwargs)
        self.left, self.waits = cls.meals, False
        crawler.signals.connect(self.idle, signals.spider_idle)
        return self

    @property
    def scheduler(self) -> UbiScheduler:
        return agent_of(self)

    def idle(self) -> None:
        if self.scheduler.agent_id != "a0" or not self.left:
            return
        if not self.waits:
            self.waits = True
            self.wait()
        raise DontCloseSpider

    def wait(self) -> None:
        agent: Any = self.scheduler.node.agent
        read, reads = agent.read, 0

        def counted(sent: float, received: float, *args: Any) -> None:
            nonlocal reads
            reads += agent.self_status.passive(received, True)
            read(sent, received, *args)
            if reads == READS:
                agent.read = read
                asyncio.get_running_loop().call_soon(self.feed)

        agent.read = counted

    def feed(self) -> None:
        self.waits = False
        for host in HOSTS:
            self.crawler.engine.crawl(Request(f"{host}/{self.left}"))
        self.left -= 1

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url}


@pytest.mark.parametrize("lean", [True, False], ids=["", "not lean"])
@pytest.mark.parametrize("agents", [1, 2])
def test_the_crawl_goes_on_as_long_as_a_handler_holds_the_spider_open(site: Site, agents: int, lean: bool) -> None:
    urls = [f"{HOSTS[0]}/", *(f"{host}/{meal}" for host in HOSTS for meal in (1, 2))]
    for url in urls:
        site.page(url)
    outcomes = crawl(Fed, site.proxy, agents, {"UBI_LEAN": lean})
    assert [item["url"] for item in items_of(outcomes)] == sorted(urls)
    assert [outcome.reason for outcome in outcomes] == ["finished"] * agents
    assert agents == 1 or all(outcome.items for outcome in outcomes), "the other one has stayed, and helped"
    assert not total(outcomes, "ubi/scheduler/dropped/over")


class Late(Spider):
    """Holds itself open when all is over, and asks for a page then."""

    name = "late"
    start_urls = (f"{HOSTS[0]}/",)

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Late:
        self = super().from_crawler(crawler, *args, **kwargs)
        self.asked, self.dropped = 0, list[str]()
        crawler.signals.connect(self.idle, signals.spider_idle)
        crawler.signals.connect(self.drop, signals.request_dropped)
        return self

    def idle(self) -> None:
        if agent_of(self).node.over and self.asked < 2:
            self.asked += 1
            self.crawler.engine.crawl(Request(f"{HOSTS[1]}/{self.asked}"))
            raise DontCloseSpider

    def drop(self, request: Request) -> None:
        self.dropped.append(request.url)

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url}


def test_what_comes_after_the_end_is_dropped_and_said(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    site.page(f"{HOSTS[0]}/")
    [outcome] = crawl(Late, site.proxy)
    assert (outcome.reason, outcome.items) == ("finished", [{"url": f"{HOSTS[0]}/"}])
    late: Any = outcome.crawler.spider
    assert late.dropped == [f"{HOSTS[1]}/1", f"{HOSTS[1]}/2"]
    assert outcome.stats["ubi/scheduler/dropped/over"] == 2 and outcome.stats["ubi/scheduler/enqueued"] == 1
    said = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert len(said) == 1 and f"{HOSTS[1]}/1" in said[0] and "DontCloseSpider" in said[0]


class Closing(Spider):
    """Asks for another page whenever it is idle, without holding itself open, and has a reason of its own to close."""

    name = "closing"

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Closing:
        self = super().from_crawler(crawler, *args, **kwargs)
        self.asked = 0
        crawler.signals.connect(self.idle, signals.spider_idle)
        return self

    def idle(self) -> None:
        if self.asked == 3:
            raise CloseSpider("enough")
        self.asked += 1
        self.crawler.engine.crawl(Request(f"{HOSTS[0]}/{self.asked}"))

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url}


def test_a_handler_may_ask_for_pages_and_close_the_spider_for_a_reason(site: Site) -> None:
    urls = [f"{HOSTS[0]}/{number}" for number in (1, 2, 3)]
    for url in urls:
        site.page(url)
    [outcome] = crawl(Closing, site.proxy)
    assert [item["url"] for item in outcome.items] == urls
    assert outcome.reason == "enough"
