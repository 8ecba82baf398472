"""A giant host that agents share by its shards, in whole crawls."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.http import Response

from scrapy_ubi.adapter.extraction.plainlinks import PlainLinks
from tests.support.crawls import agent_of, crawl, items_of, total
from tests.support.site import Page, Site, links

HOST = "http://shop.example"
PAGES = 60
SHARDS = {"UBI_HOST_SHARDS": {"shop.example": 8}}


def page_of(response: Response) -> str:
    """The URL of a page, whichever spelling was met first."""
    return response.url.partition("#")[0]


class Shop(Spider):
    """Follows every link, and says who has fetched which page."""

    name = "shop"

    async def start(self) -> Any:
        yield Response(f"{HOST}/0").follow("/0", dont_filter=False)

    def parse(self, response: Response) -> Any:
        yield {"url": page_of(response), "agent": agent_of(self).agent_id}
        yield from response.follow_all(css="a")


class ShortShop(Shop):
    """The same by the short path."""

    name = "short"

    def parse(self, response: Response) -> Any:
        yield {"url": page_of(response), "agent": agent_of(self).agent_id}
        yield PlainLinks([response.urljoin(link) for link in response.css("a::attr(href)").getall()])


class Plain(Shop):
    """Runs without the add-on, too."""

    name = "plain"

    def parse(self, response: Response) -> Any:
        yield {"url": page_of(response)}
        yield from response.follow_all(css="a")


def shop(site: Site) -> set[str]:
    """A site of one host: each page leads to four others and, with arguments in another order, to one of them again."""
    urls = [f"{HOST}/{number}" for number in range(PAGES)]
    for number, url in enumerate(urls):
        to = [urls[(number * 3 + step) % PAGES] for step in range(4)]
        site.page(url, links(*to, f"{urls[(number + 1) % PAGES]}#part"))
    return set(urls)


@pytest.mark.parametrize("agents", [1, 3])
@pytest.mark.parametrize("spider", [Shop, ShortShop])
def test_every_page_of_a_shared_host_is_fetched_once_by_some_agent(
    site: Site, agents: int, spider: type[Spider]
) -> None:
    urls = shop(site)
    outcomes = crawl(spider, site.proxy, agents, SHARDS)
    assert site.urls() == dict.fromkeys(urls, 1)
    assert [outcome.reason for outcome in outcomes] == ["finished"] * agents
    by = Counter(item["agent"] for item in items_of(outcomes))
    assert len(by) == agents and by.total() == PAGES
    assert total(outcomes, "ubi/dead_letters") == 0


def test_the_items_are_those_of_plain_scrapy_and_no_more_loads_than_shards_are_open(site: Site) -> None:
    shop(site)
    [plain] = crawl(Plain, site.proxy, 1, {"ADDONS": {}})
    site.most_at_once.clear()
    ours = crawl(Plain, site.proxy, 3, {"UBI_HOST_SHARDS": {"shop.example": 4}})
    assert items_of(ours) == items_of([plain])
    assert 1 <= site.most_at_once["shop.example"] <= 4


def test_the_shares_of_a_limit_are_the_limit(site: Site) -> None:
    shop(site)
    outcomes = crawl(Shop, site.proxy, 3, {**SHARDS, "UBI_HOST_LIMITS": "pages=20"})
    assert 8 < len(site.urls()) <= 20
    assert [outcome.reason for outcome in outcomes] == ["finished"] * 3


@pytest.mark.parametrize("agents", [1, 3])
def test_robots_txt_is_asked_for_once_by_an_agent_and_its_delay_holds_in_every_shard(site: Site, agents: int) -> None:
    urls = shop(site)
    site.page(f"{HOST}/robots.txt", "User-agent: *\nDisallow: /7\nCrawl-delay: 0.01\n")
    pauses: dict[str, set[float]] = {}

    def look(crawlers: list[Crawler]) -> None:
        for crawler in crawlers:
            crawler.signals.connect(lambda spider: seen(spider), signals.spider_idle, weak=False)

    def seen(spider: Spider) -> None:
        states = agent_of(spider).node.frontier.states()
        for state in states:
            if state.notes.text:
                pauses.setdefault(state.host, set()).add(state.pause)

    outcomes = crawl(Shop, site.proxy, agents, {**SHARDS, "ROBOTSTXT_OBEY": True}, with_crawlers=look)
    asked = site.urls().pop(f"{HOST}/robots.txt")
    assert 1 <= asked <= agents
    assert {item["url"] for item in items_of(outcomes)} == {url for url in urls if not url.startswith(f"{HOST}/7")}
    assert set().union(*pauses.values()) == {0.08}, pauses


GATE = "http://gate.example"


class Gateway(Spider):
    """Asks an API for pages of other hosts."""

    name = "gateway"

    async def start(self) -> Any:
        for number in range(4):
            yield self.ask(number, 0)

    def ask(self, number: int, page: int) -> Request:
        target = f"http://t{number}.example/{page}"
        return Request(f"{GATE}/get?url={target}", meta=self.named(f"t{number}.example"))

    def named(self, host: str) -> dict[str, Any]:
        return {"ubi_host": host}

    def parse(self, response: Response) -> Any:
        visit = agent_of(self).flights.get(response.request).visit  # type: ignore[union-attr]
        yield {"url": response.url, "host": visit.host, "agent": agent_of(self).agent_id}  # type: ignore[union-attr]
        number, page = (int(part) for part in response.text.split())
        if page < 4:
            yield self.ask(number, page + 1)


class Asked(Gateway):
    """The same; a function of the project knows the host."""

    name = "asked"

    def named(self, host: str) -> dict[str, Any]:
        return {}


def target_of(request: Request) -> str | None:
    """What UBI_PARTITION names."""
    found = re.search(r"url=http://([^/]+)/", request.url)
    return found[1] if found else None


@pytest.mark.parametrize("agents", [1, 3])
@pytest.mark.parametrize(
    ("spider", "settings"),
    [(Gateway, {}), (Asked, {"UBI_PARTITION": "tests.crawls.test_shards.target_of"})],
    ids=["meta", "function"],
)
def test_requests_to_a_gateway_belong_to_the_hosts_that_they_name(
    site: Site, agents: int, spider: type[Spider], settings: dict[str, Any]
) -> None:
    site.host("gate.example", lambda visit: Page(" ".join(re.findall(r"\d+", visit.url.partition("url=")[2]))))
    outcomes = crawl(spider, site.proxy, agents, settings)
    items = items_of(outcomes)
    assert len(items) == 20
    assert all(f"http://{item['host']}/" in item["url"] for item in items)
    by_host = {item["host"]: item["agent"] for item in items}
    assert all(by_host[item["host"]] == item["agent"] for item in items)  # one owner each
    assert total(outcomes, "ubi/dead_letters") == 0
    assert site.most_at_once["gate.example"] <= 4


def test_a_request_that_names_no_host_is_dropped_with_a_reason(site: Site) -> None:
    class Wrong(Gateway):
        def named(self, host: str) -> dict[str, Any]:
            return {"ubi_host": f"{host}#3"}

    [outcome] = crawl(Wrong, site.proxy)
    assert outcome.reason == "finished"
    assert outcome.stats["ubi/scheduler/dropped/bad_host"] == 4
    assert not site.visits


def test_the_robots_txt_of_a_named_host_is_that_of_the_url_in_the_arguments(site: Site) -> None:
    site.host("gate.example", lambda visit: Page(" ".join(re.findall(r"\d+", visit.url.partition("url=")[2]))))
    site.page("http://t1.example/robots.txt", "User-agent: *\nDisallow: /2\n")
    outcomes = crawl(Gateway, site.proxy, 1, {"ROBOTSTXT_OBEY": True})
    urls = site.urls()
    assert {url for url in urls if url.endswith("/robots.txt")} == {f"http://t{n}.example/robots.txt" for n in range(4)}
    assert len(items_of(outcomes)) == 5 * 3 + 2


def test_where_no_argument_is_that_url_the_robots_txt_of_the_gateway_holds(site: Site) -> None:
    class Numbered(Gateway):
        def ask(self, number: int, page: int) -> Request:
            return Request(f"{GATE}/{number}/{page}", meta={"ubi_host": f"t{number}.example"})

        def parse(self, response: Response) -> Any:
            yield {"url": response.url}

    for number in range(4):
        site.page(f"{GATE}/{number}/0", "a page")
    site.page(f"{GATE}/robots.txt", "User-agent: *\nDisallow: /2/\n")
    for agents in (1, 3):
        site.visits.clear()
        outcomes = crawl(Numbered, site.proxy, agents, {"ROBOTSTXT_OBEY": True})
        assert [item["url"] for item in items_of(outcomes)] == [f"{GATE}/{number}/0" for number in (0, 1, 3)]
        assert 1 <= site.urls()[f"{GATE}/robots.txt"] <= agents
