"""Rates that the group keeps (UBI_RATES), by the web's own log: never more in any window, and what waits holds nothing
else up.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from itertools import chain
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.http import Response

from tests.crawls.ring import AGENTS
from tests.support.crawls import crawl, items_of
from tests.support.site import Site, links

HOST, OTHERS = "rated.example", ("b.example", "c.example", "d.example")
SHORT = {"UBI_LEASE_TIMEOUT": 2.0, "UBI_FAILURE_TIMEOUT": 3.0}


def most_in_a_window(site: Site, seconds: float, *hosts: str) -> int:
    """The most requests that began within so many seconds at these hosts, by the web's own clock."""
    times = sorted(begin for begin, _ in chain.from_iterable(site.spans.get(host, ()) for host in hosts))
    return max((sum(1 for time in times if first <= time < first + seconds) for first in times), default=0)


class Pages(Spider):
    """Takes all pages that the first page leads to; those under `/slow` name a rate of their own."""

    name = "pages"
    start_urls = (f"http://{HOST}/",)

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url}
        for link in response.css("a::attr(href)").getall():
            yield Request(link, meta={"ubi_rate": "slow"} if "/slow" in link else {})


def pages(site: Site, number: int, *hosts: str) -> list[str]:
    urls = [f"http://{HOST}/", *(f"http://{host}/{page}" for host in hosts for page in range(number))]
    for url in urls:
        site.page(url, links(*urls) if url == urls[0] else "")
    return urls


@pytest.mark.parametrize("extra", [{}, {"UBI_HOST_CONCURRENCY": 8}, {"UBI_FAST": True, "UBI_LEAN": True}])
def test_a_host_is_loaded_at_its_rate_and_others_are_not_held_up(site: Site, extra: dict[str, Any]) -> None:
    urls = pages(site, 12, HOST, *OTHERS)
    outcomes = crawl(Pages, site.proxy, settings={"UBI_RATES": {HOST: "5/s"}, "CONCURRENT_REQUESTS": 2, **extra})
    assert site.urls() == dict.fromkeys(urls, 1)
    assert len(items_of(outcomes)) == len(urls)
    assert 1 < most_in_a_window(site, 1.0, HOST) <= 5
    last = max(begin for begin, _ in chain(*(site.spans[host] for host in OTHERS)))
    assert last < max(begin for begin, _ in site.spans[HOST]), "the others were done before it"


@AGENTS
def test_a_label_is_one_rate_of_all_agents(site: Site, agents: int) -> None:
    urls = pages(site, 0)
    slow = [f"http://{host}/slow/{page}" for host in OTHERS for page in range(5)]
    site.page(urls[0], links(*slow))
    for url in slow:
        site.page(url, "")
    outcomes = crawl(Pages, site.proxy, agents, {"UBI_RATES": {"slow": "4/s"}, **SHORT})
    assert site.urls() == dict.fromkeys([*urls, *slow], 1)
    assert len(items_of(outcomes)) == 16
    assert 1 <= most_in_a_window(site, 1.0, *OTHERS) <= 4


@AGENTS
def test_the_shards_of_a_host_keep_its_rate_together(site: Site, agents: int) -> None:
    urls = pages(site, 16, HOST)
    settings = {"UBI_RATES": {HOST: "4/s"}, "UBI_HOST_SHARDS": {HOST: (8, "fast")}, **SHORT}
    crawl(Pages, site.proxy, agents, settings)
    assert site.urls() == dict.fromkeys(urls, 1)
    assert 1 <= most_in_a_window(site, 1.0, HOST) <= 4


def test_robots_txt_and_media_count_as_well(site: Site) -> None:
    urls = pages(site, 6, HOST)
    site.page(f"http://{HOST}/robots.txt", "User-agent: *\nAllow: /")
    crawl(Pages, site.proxy, settings={"UBI_RATES": {HOST: "3/s"}, "ROBOTSTXT_OBEY": True})
    assert site.urls() == dict.fromkeys([*urls, f"http://{HOST}/robots.txt"], 1)
    assert 1 < most_in_a_window(site, 1.0, HOST) <= 3


def test_the_log_says_what_waits_and_why_and_an_unknown_name_once(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    pages(site, 3, HOST)
    site.page(f"http://{HOST}/", links(f"http://{HOST}/1", f"http://{HOST}/slow/2", f"http://{HOST}/slow/3"))
    crawl(Pages, site.proxy, settings={"UBI_RATES": {HOST: "1/s"}})
    assert f"Something waits for the rate of {HOST} (UBI_RATES: 1/s)" in caplog.text
    assert caplog.text.count("names 'slow', which UBI_RATES does not") == 1


class Oddly(Spider):
    """Its requests have labels of all kinds, of which some are none."""

    name = "oddly"

    async def start(self) -> Any:
        for number, label in enumerate(
            [5, None, ["slow", 7], {"a": 1}, [], " SLOW ", [f"x{one}" for one in range(20)]]
        ):
            yield Request(f"http://{HOST}/{number}", meta={"ubi_rate": label})

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url}


def test_labels_that_are_none_have_no_effect_and_are_said_once(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(7):
        site.page(f"http://{HOST}/{number}", "")
    outcomes = crawl(Oddly, site.proxy, settings={"UBI_RATES": {"slow": "100/s"}})
    assert len(items_of(outcomes)) == 7
    assert caplog.text.count("what is none has no effect") == 1
