"""A giant host that agents share by its shards, in whole crawls."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from scrapy import Spider
from scrapy.http import Response

from scrapy_ubi.plainlinks import PlainLinks
from tests.support.crawls import agent_of, crawl, items_of, total
from tests.support.site import Site, links

HOST = "http://shop.example"
PAGES = 60
SHARDS = {"UBI_HOST_SHARDS": {"shop.example": 8}}


class Shop(Spider):
    """Follows every link, and says who has fetched which page."""

    name = "shop"

    async def start(self) -> Any:
        yield Response(f"{HOST}/0").follow("/0", dont_filter=False)

    def parse(self, response: Response) -> Any:
        yield {"url": response.url, "agent": agent_of(self).agent_id}
        yield from response.follow_all(css="a")


class ShortShop(Shop):
    """The same by the short path."""

    name = "short"

    def parse(self, response: Response) -> Any:
        yield {"url": response.url, "agent": agent_of(self).agent_id}
        yield PlainLinks([response.urljoin(link) for link in response.css("a::attr(href)").getall()])


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
