"""Sessions that a callback begins itself, at hosts of other agents."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from scrapy import Request, Spider
from scrapy.http import Response

from tests.crawls.ring import AGENTS, HOSTS
from tests.support.crawls import crawl, items_of
from tests.support.site import Page, Site, Visit


class LogsIn(Spider):
    """Each page awaits a login at the next host before it asks for an account there."""

    name = "logs_in"
    start_urls = tuple(f"{host}/" for host in HOSTS)

    async def parse(self, response: Response) -> AsyncIterator[Any]:
        there = HOSTS[(HOSTS.index(response.url.rstrip("/")) + 1) % len(HOSTS)]
        jar = {"cookiejar": there[-1]} if there == HOSTS[0] else {}
        await self.crawler.engine.download_async(Request(f"{there}/login", method="POST", meta=jar))
        yield Request(f"{there}/account", self.account, meta=jar)

    def account(self, response: Response) -> Iterator[Any]:
        yield {"account": response.url, "cookies": response.body.decode(), "meta": "ubi_cookies" in response.meta}
        yield Request(f"{response.url}/more", self.more, meta={**response.meta})

    def more(self, response: Response) -> Iterator[Any]:
        yield {"account": response.url, "cookies": response.body.decode()}


@AGENTS
def test_what_a_callback_logs_in_to_is_known_to_the_agent_that_fetches_it(site: Site, agents: int) -> None:
    def said(visit: Visit) -> Page:
        return Page(visit.headers.get("cookie", "none"))

    for number, host in enumerate(HOSTS):
        site.page(f"{host}/", "home")
        site.page(f"{host}/login", Page("in", headers={"Set-Cookie": f"session=s{number}; Path=/"}))
        site.page(f"{host}/account", said)
        site.page(f"{host}/account/more", said)
    outcomes = crawl(LogsIn, site.proxy, agents)
    items = sorted((item["account"], item["cookies"]) for item in items_of(outcomes))
    pages = ("account", "account/more")
    assert items == sorted((f"{host}/{page}", f"session=s{n}") for n, host in enumerate(HOSTS) for page in pages)
    assert not any(item.get("meta") for item in items_of(outcomes))
