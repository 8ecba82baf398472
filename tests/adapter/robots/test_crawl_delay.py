"""Crawl-delay, in crawls: how long it holds, where, and up to which bound."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import Response, TextResponse

from scrapy_ubi.adapter.components import robots_middleware
from scrapy_ubi.adapter.downloads.gate import RequestHosts
from scrapy_ubi.policy.robots import record
from tests.adapter.robots.walks import FORBIDS, HOST, LONG, OTHER, Walk, one, pages, paths
from tests.support.site import Page, Site, Visit, links


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "FIRST_PAUSE", 0.02)


def test_a_crawl_delay_lies_between_the_end_of_a_load_and_the_next(site: Site) -> None:
    delay = 0.15
    pages(site)
    times: list[float] = []

    def timed(body: str) -> Any:
        def answer(visit: Visit) -> Page:
            times.append(time.monotonic())
            return Page(body)

        return answer

    site.page(f"{HOST}/robots.txt", timed(f"{FORBIDS}Crawl-delay: {delay}\n"))
    site.page(f"{HOST}/", timed(links("/yes", "/2", "/no/1", "/no/2")))
    for path in ("/yes", "/2"):
        site.page(HOST + path, timed("x"))
    outcome = one(site)
    assert len(times) == 4
    assert all(later - sooner >= delay for sooner, later in itertools.pairwise(times))
    assert outcome.stats["robotstxt/forbidden"] == 2


def test_a_long_delay_after_robots_txt_is_waited_for_in_the_queue(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(robots_middleware, "PATIENCE", 0.0)
    allowed = pages(site)
    site.page(f"{HOST}/robots.txt", FORBIDS)
    outcome = one(site, UBI_HOST_DELAY=0.1)
    assert outcome.items == allowed
    assert outcome.stats["ubi/scheduler/put_back"] == 1
    assert paths(site) == ["/robots.txt", "/", "/yes"]


@pytest.mark.parametrize(("most", "noted"), [(0, {}), (0.01, {"robots": 0.01}), (60, {"robots": 0.05})])
def test_a_crawl_delay_is_honoured_up_to_a_bound(site: Site, most: float, noted: dict[str, float]) -> None:
    class Looks(Walk):
        def parse(self, response: Response) -> Iterator[Any]:
            node = self.crawler.engine.scheduler.node  # type: ignore[union-attr]
            yield node.hosts.delays(node.frontier.find("h0.example"))

    pages(site)
    site.page(f"{HOST}/robots.txt", "User-agent: *\nCrawl-delay: 0.05\n")
    assert one(site, Looks, UBI_MAX_DELAY=most).items == [noted]


class FileFirst(Walk):
    """Asks for a file of OTHER before the queue has any page of it. Items are the delays of OTHER."""

    async def parse(self, response: Response) -> Any:
        if response.url.startswith(OTHER):
            return
        for number in range(2):
            await self.crawler.engine.download_async(Request(f"{OTHER}/file/{number}"))
        yield Request(f"{OTHER}/")
        node = self.crawler.engine.scheduler.node
        yield node.hosts.delays(node.frontier.find("h1.example"))


def test_a_crawl_delay_holds_whoever_has_asked_for_it(site: Site) -> None:
    site.page(f"{OTHER}/robots.txt", "User-agent: *\nCrawl-delay: 0.3\n")
    outcome = one(site, FileFirst)
    assert outcome.items == [{"robots": 0.3}]
    assert len(site.gaps("h1.example")) == 3 and min(site.gaps("h1.example")) >= 0.3


class Later(FileFirst):
    async def parse(self, response: Response) -> Any:
        if response.url != f"{OTHER}/":
            async for _ in super().parse(response):
                yield Request(f"{OTHER}/")
            return
        node = self.crawler.engine.scheduler.node
        yield node.hosts.delays(node.frontier.find("h1.example"))


def test_a_crawl_delay_comes_with_the_first_page_where_another_agent_owned_the_host(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RequestHosts, "own_state", lambda hosts, request: None)
    site.page(f"{HOST}/", "x")
    site.page(f"{OTHER}/", "x")
    site.page(f"{OTHER}/robots.txt", "User-agent: *\nCrawl-delay: 0.1\n")
    assert one(site, Later).items == [{"robots": 0.1}]


class Delays(Walk):
    """Yields the delays of its host at each page."""

    start_urls = ("http://www.d.example/",)

    def parse(self, response: Response) -> Iterator[Any]:
        node = self.crawler.engine.scheduler.node  # type: ignore[union-attr]
        (state,) = node.frontier.states()
        yield node.hosts.delays(state)
        assert isinstance(response, TextResponse)
        yield from response.follow_all(css="a")


def test_the_longest_crawl_delay_of_a_domain_holds_however_long_the_rules_beside_it(site: Site) -> None:
    site.page("http://www.d.example/robots.txt", LONG + "Crawl-delay: 0.1\n")
    site.page("http://www.d.example/", links("http://shop.d.example/"))
    site.page("http://shop.d.example/", "x")
    outcome = one(site, Delays, UBI_HOST_RULES=["startsWith(www.) =", "startsWith(shop.) ="])
    assert outcome.items == [{"robots": 0.1}] * 2
