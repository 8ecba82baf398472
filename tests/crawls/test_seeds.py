"""What start() yields: taken once, and no faster than it can be sent."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from scrapy import FormRequest, Request, Spider
from scrapy.crawler import Crawler
from scrapy.http import Response

from scrapy_ubi.adapter.components.find_scheduler import scheduler_of
from scrapy_ubi.adapter.components.spider_middleware import PAUSE_EVERY
from tests.crawls.ring import AGENTS, HOSTS, Walk
from tests.support.crawls import LIMIT, agent_of, crawl, items_of
from tests.support.derived import derived
from tests.support.site import Held, Page, Site, links


class Floods(Walk):
    """Far more seeds than may wait to be sent, while Redis is away for a moment. `most` did."""

    most = 0

    async def start(self) -> AsyncIterator[Any]:
        hub, node = self.settings["TEST_HUB"], agent_of(self).node
        hub.down = True
        asyncio.get_running_loop().call_later(0.5, setattr, hub, "down", False)
        for number in range(400):
            yield Request(f"{HOSTS[number % 8]}/{number}")
            Floods.most = max(Floods.most, len(node.agent.outbox))


def test_seeds_wait_while_too_many_are_to_be_sent(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Floods, "most", 0)
    with derived(outbox_records=100):
        crawl(Floods, site.proxy, 3, {"HTTPERROR_ALLOW_ALL": True})
    assert site.urls() == {f"{HOSTS[number % 8]}/{number}": 1 for number in range(400)}
    assert Floods.most <= 100 + 2 * PAUSE_EVERY  # each may be told to its owner and a successor


class BitByBit(Walk):
    """Feeds itself as many seeds as the scheduler has room for."""

    async def start(self) -> AsyncIterator[Any]:
        scheduler = agent_of(self)
        for number in range(100):
            while len(scheduler) >= 5:
                await asyncio.sleep(0)
            yield Request(f"{HOSTS[number % 8]}/{number}")


@AGENTS
def test_a_spider_may_ask_how_many_requests_wait(site: Site, agents: int) -> None:
    crawl(BitByBit, site.proxy, agents, {"HTTPERROR_ALLOW_ALL": True})
    assert site.urls() == {f"{HOSTS[number % 8]}/{number}": 1 for number in range(100)}


class Seeds(Spider):
    """Seeds to be fetched anyway, twice each, one of them through a redirect that sets a cookie and returns."""

    name = "seeds"

    async def start(self) -> AsyncIterator[Any]:
        for _ in range(2):
            for host in HOSTS:
                yield Request(f"{host}/", dont_filter=True)

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url, "start": response.meta["is_start_request"]}


@AGENTS
def test_seeds_are_taken_once_also_unfiltered_and_through_redirects(site: Site, agents: int) -> None:
    for host in HOSTS:
        site.page(f"{host}/", host)
    site.redirect(f"{HOSTS[1]}/", f"{HOSTS[2]}/")
    site.redirect(f"{HOSTS[3]}/", f"{HOSTS[3]}/enter")
    site.redirect(f"{HOSTS[3]}/enter", f"{HOSTS[3]}/")
    site.page(
        f"{HOSTS[3]}/",
        lambda visit: Page("in") if visit.number > 1 else Page("", 302, {"Location": f"{HOSTS[3]}/enter"}),
    )
    outcomes = crawl(Seeds, site.proxy, agents)
    urls = [item["url"] for item in items_of(outcomes)]
    led_to = f"{HOSTS[2]}/"  # by its own seed, and by that of HOSTS[1]
    assert sorted(urls) == sorted([led_to, *(f"{host}/" for host in HOSTS if host != HOSTS[1])])
    asked = site.urls()
    assert asked.pop(f"{HOSTS[3]}/") == asked.pop(led_to) == 2
    assert set(asked.values()) == {1}
    assert all(item["start"] for item in items_of(outcomes))


class Short(Spider):
    """Short URLs, of which several lead to one page; an item says which."""

    name = "short"
    paths = tuple(f"{host}/{number}" for host in HOSTS[:4] for number in range(3))

    async def start(self) -> AsyncIterator[Any]:
        for url in self.paths:
            yield Request(url, dont_filter=True)
        for word in ("a", "b"):
            yield FormRequest(f"{HOSTS[5]}/ask", formdata={"word": word}, dont_filter=True)

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"from": response.meta["redirect_urls"][0], "to": response.url}


@AGENTS
def test_a_page_that_several_seeds_are_redirected_to_is_fetched_for_each_as_by_plain_scrapy(
    site: Site, agents: int
) -> None:
    for url in Short.paths:
        site.redirect(url, f"{HOSTS[4]}/hop")
    site.redirect(f"{HOSTS[4]}/hop", f"{HOSTS[6]}/end")
    site.redirect(f"{HOSTS[5]}/ask", f"{HOSTS[6]}/found", 303)
    site.page(f"{HOSTS[6]}/end", "end")
    site.page(f"{HOSTS[6]}/found", "found")
    items = items_of(crawl(Short, site.proxy, agents))
    found = sorted((item["from"], item["to"]) for item in items)
    posts = [(f"{HOSTS[5]}/ask", f"{HOSTS[6]}/found")] * 2
    assert found == sorted([(url, f"{HOSTS[6]}/end") for url in Short.paths] + posts)


class LogsIn(Spider):
    """Logs in once for each name, by a session of its own."""

    name = "logs-in"

    async def start(self) -> AsyncIterator[Any]:
        yield Request(f"{HOSTS[0]}/", dont_filter=True)
        for name in ("ann", "bob", 3):
            yield Request(f"{HOSTS[0]}/", dont_filter=True, meta={"cookiejar": name})
            yield Request(f"{HOSTS[1]}/", meta={"cookiejar": name})

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url, "as": response.meta.get("cookiejar")}


@AGENTS
def test_a_seed_to_be_fetched_anyway_is_taken_once_for_each_cookiejar(site: Site, agents: int) -> None:
    for host in HOSTS[:2]:
        site.page(f"{host}/", host)
    items = items_of(crawl(LogsIn, site.proxy, agents))
    assert site.urls() == {f"{HOSTS[0]}/": 4, f"{HOSTS[1]}/": 1}
    assert {item["as"] for item in items if item["url"] == f"{HOSTS[0]}/"} == {None, "ann", "bob", 3}


OPEN = {"SPIDER_MIDDLEWARES": {"scrapy.spidermiddlewares.httperror.HttpErrorMiddleware": None}}


@pytest.mark.parametrize("settings", [OPEN, {"HTTPERROR_ALLOW_ALL": True}], ids=["switched off", "allowed"])
def test_an_error_status_that_callbacks_get_is_no_failure(site: Site, settings: dict[str, Any]) -> None:
    [outcome] = crawl(Seeds, site.proxy, settings=settings)
    assert [item["url"] for item in items_of([outcome])] == [f"{host}/" for host in HOSTS]  # all are 404
    assert not [stat for stat in outcome.stats if stat.startswith("ubi/failed")]


class NamedByOne(Walk):
    """One agent names the seeds of all, and the pages of the later ones are fetched before, by links. `moment`: what a
    seed is named after."""

    moment: Callable[[], bool] = staticmethod(lambda: True)

    async def start(self) -> AsyncIterator[Any]:
        if agent_of(self).agent_id != "a0":
            return
        yield Request(f"{HOSTS[0]}/", dont_filter=True)
        while not NamedByOne.moment():
            await asyncio.sleep(0.01)
        for host in HOSTS:
            yield Request(f"{host}/", dont_filter=True)


def star(site: Site) -> None:
    """A page that links to one of each host."""
    site.page(f"{HOSTS[0]}/", links(*(f"{host}/" for host in HOSTS)))
    for host in HOSTS[1:]:
        site.page(f"{host}/", host)


@AGENTS
def test_a_page_that_a_link_led_to_is_not_fetched_again_for_a_later_seed_of_another_agent(
    site: Site, agents: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    star(site)
    monkeypatch.setattr(NamedByOne, "moment", staticmethod(lambda: len(site.urls()) == len(HOSTS)))
    items = items_of(crawl(NamedByOne, site.proxy, agents))
    assert sorted(item["url"] for item in items) == sorted(f"{host}/" for host in HOSTS)
    assert set(site.urls().values()) == {1}


@AGENTS
def test_a_seed_that_comes_while_a_link_has_its_page_fetched_is_done_with_it(
    site: Site, agents: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    star(site)
    crawlers: list[Crawler] = []
    with ExitStack() as stack:
        held = [stack.enter_context(site.hold(f"{host}/")) for host in HOSTS[1:]]
        monkeypatch.setattr(NamedByOne, "moment", staticmethod(lambda: all(one.arrived.is_set() for one in held)))
        looking = threading.Thread(target=_release_when_queued, args=(crawlers, held))
        looking.start()
        items = items_of(crawl(NamedByOne, site.proxy, agents, with_crawlers=crawlers.extend))
        looking.join()
    assert sorted(item["url"] for item in items) == sorted(f"{host}/" for host in HOSTS)
    assert set(site.urls().values()) == {1}


def _release_when_queued(crawlers: list[Crawler], held: list[Held]) -> None:
    """Let the pages have their answers when the seeds of their hosts wait."""
    end = time.monotonic() + LIMIT
    while time.monotonic() < end and sum(_waiting(crawler) for crawler in crawlers) < len(held):
        time.sleep(0.01)
    for one in held:
        one.release()


def _waiting(crawler: Crawler) -> int:
    scheduler = scheduler_of(crawler)
    return len(scheduler) if scheduler is not None else 0


class Looks:
    """A downloader middleware of a project."""

    def process_request(self, request: Request) -> None:
        """Nothing."""


class Leads(Spider):
    """Its link leads to another of its start pages."""

    name = "leads"
    start_urls = ("http://led.example/", "http://led.example/b")

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url}
        if response.url.endswith("/"):
            yield response.follow("/m")


@pytest.mark.parametrize("place", [None, 1, 543, 999])
def test_a_link_that_is_redirected_to_a_start_page_is_that_whatever_middlewares_a_project_has(
    site: Site, place: int | None
) -> None:
    host = "http://led.example"
    site.page(f"{host}/")
    site.page(f"{host}/b")
    site.redirect(f"{host}/m", f"{host}/b")
    settings = {"DOWNLOADER_MIDDLEWARES": {Looks: place} if place else {}}
    outcomes = crawl(Leads, site.proxy, settings=settings)
    assert site.urls() == {f"{host}/": 1, f"{host}/b": 1, f"{host}/m": 1}
    assert len(items_of(outcomes)) == 2
