"""Spiders and pages of the crawls that test robots.txt."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scrapy import Spider
from scrapy.http import Response, TextResponse

from tests.support.crawls import Outcome, crawl
from tests.support.site import Site, links

HOSTS = [f"http://h{number}.example" for number in range(6)]
HOST, OTHER = HOSTS[0], HOSTS[1]
OBEY: dict[str, Any] = {"ROBOTSTXT_OBEY": True}
FORBIDS = "User-agent: *\nDisallow: /no\n"
LONG = "User-agent: *\n" + "".join(f"Disallow: /private/{number:04}\n" for number in range(300)) + "Disallow: /no\n"


class Walk(Spider):
    """Follows every link, yields the URL of every page."""

    name = "walk"
    start_urls = (f"{HOST}/",)
    handle_httpstatus_list = (404,)

    def parse(self, response: Response) -> Iterator[Any]:
        yield response.url
        if isinstance(response, TextResponse):
            yield from response.follow_all(css="a")


class Both(Walk):
    start_urls = (f"{HOST}/", f"{OTHER}/")


def pages(site: Site, *hosts: str) -> list[str]:
    """Each host with two pages and one that FORBIDS forbids."""
    for host in hosts or (HOST,):
        site.page(f"{host}/", links(f"{host}/yes", f"{host}/no", *(f"{other}/" for other in hosts)))
        site.page(f"{host}/yes", "fine")
    return sorted(f"{host}/{page}" for host in hosts or (HOST,) for page in ("", "yes"))


def paths(site: Site) -> list[str]:
    return [visit.url.removeprefix(HOST) for visit in site.visits]


def one(site: Site, spider: type[Spider] = Walk, **settings: Any) -> Outcome:
    return crawl(spider, site.proxy, settings={**OBEY, **settings})[0]
