"""Several loads of a host at once (UBI_HOST_CONCURRENCY), as the web sees them: never more than allowed, in all agents
together.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.http import Response

from tests.crawls.ring import AGENTS
from tests.support.crawls import crawl, items_of
from tests.support.site import Page, Site, Visit, links

HOST, OTHER = "big.example", "small.example"
PAGES = 40
START = f"http://{HOST}/0"


class Big(Spider):
    """Takes all pages of one big host, and some of a small one."""

    name = "big"
    start_urls = (START,)

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url}
        for link in response.css("a::attr(href)").getall():
            yield Request(response.urljoin(link))


def pages(site: Site, seconds: float = 0.03, count: int = PAGES) -> list[str]:
    """Pages of a big host and some of a small one, each of which takes so long; the first leads to all."""
    urls = [f"http://{HOST}/{number}" for number in range(count)]
    urls += [f"http://{OTHER}/{number}" for number in range(4)]

    def slow(visit: Visit) -> Page:
        time.sleep(seconds)
        return Page(links(*urls) if visit.url == START else "")

    site.host(HOST, slow)
    site.host(OTHER, slow)
    return urls


@AGENTS
def test_a_host_has_as_many_loads_at_once_as_are_allowed_in_all_agents(site: Site, agents: int) -> None:
    urls = pages(site)
    outcomes = crawl(Big, site.proxy, agents, {"UBI_HOST_CONCURRENCY": 4})
    assert site.urls() == dict.fromkeys(urls, 1)
    assert 1 < site.most_at_once[HOST] <= 4
    assert len(items_of(outcomes)) == len(urls)


def test_by_a_mapping_only_the_hosts_that_are_named_have_several(site: Site) -> None:
    pages(site)
    crawl(Big, site.proxy, settings={"UBI_HOST_CONCURRENCY": {HOST: 3}})
    assert 1 < site.most_at_once[HOST] <= 3 and site.most_at_once[OTHER] == 1


def test_scrapys_slots_cut_nothing(site: Site) -> None:
    pages(site, 0.1, 60)
    crawl(Big, site.proxy, settings={"UBI_HOST_CONCURRENCY": 16, "CONCURRENT_REQUESTS_PER_DOMAIN": 4})
    assert 4 < site.most_at_once[HOST] <= 16


@pytest.mark.parametrize("fast", [False, True])
def test_the_short_paths_keep_to_it_too(site: Site, fast: bool) -> None:
    urls = pages(site)
    settings = {"UBI_HOST_CONCURRENCY": 4, "UBI_FAST": fast, "UBI_LEAN": True}
    crawl(Big, site.proxy, settings=settings)
    assert site.urls() == dict.fromkeys(urls, 1)
    assert 1 < site.most_at_once[HOST] <= 4


class Noted(Big):
    """Notes when the pages were known: none of them was asked for before."""

    def parse(self, response: Response) -> Iterator[Any]:
        if response.url == START:
            self.crawler.known = time.monotonic()
        yield from super().parse(response)


def test_the_delay_counts_from_start_to_start(site: Site) -> None:
    """The web notes each start a while after it, on a busy machine a long while: so gaps between two notes say nothing,
    but no note is earlier than its start."""
    pages(site, 0.5, 12)
    (outcome,) = crawl(Noted, site.proxy, settings={"UBI_HOST_CONCURRENCY": 4, "DOWNLOAD_DELAY": 0.1})
    _, *began = sorted(span[0] for span in site.spans[HOST])
    known = outcome.crawler.known
    assert len(began) == 11 and all(noted >= known + 0.1 * number for number, noted in enumerate(began))
    assert 1 < site.most_at_once[HOST] <= 4


def test_all_wait_when_the_host_asks_for_it(site: Site) -> None:
    urls = pages(site, 0.05)
    asked: list[float] = []

    def busy(visit: Visit) -> Page:
        if visit.number > 1:
            return Page("")
        time.sleep(0.2)
        asked.append(time.monotonic())
        return Page("", 429, {"Retry-After": "1"})

    for number in range(1, 5):  # with the page that leads to them, all loads that are allowed
        site.page(f"http://{HOST}/{number}", busy)
    [outcome] = crawl(Big, site.proxy, settings={"UBI_HOST_CONCURRENCY": 4, "UBI_HOST_TRIES": 1})
    assert set(site.urls()) == set(urls)
    assert len(asked) == 4
    assert len(items_of([outcome])) == len(urls), "asked once, not four times in a row: the host is not given up"
    between = [b for b, _ in site.spans[HOST] if asked[0] + 0.1 < b < asked[0] + 0.9]
    assert between == []


def test_auto_begins_with_one_and_goes_up_to_what_is_allowed(site: Site) -> None:
    urls = pages(site, 0.05, 80)
    crawl(Big, site.proxy, settings={"UBI_HOST_CONCURRENCY": "auto(4)"})
    assert set(site.urls()) == set(urls)
    spans = sorted(site.spans[HOST])
    assert spans[0][1] <= spans[1][0], "one"
    assert site.most_at_once[HOST] <= 4
    assert site.most_at_once[HOST] > 1
