"""Budgets of hosts in whole crawls, by the log of the site: bytes, delays, limits by name; hosts that are complete."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

import pytest
from scrapy import Request, Spider
from scrapy.http import Response, TextResponse

from scrapy_ubi import PageObserver
from tests.support.crawls import crawl
from tests.support.site import Page, Site, Visit, links

BIG, SMALL, PLAIN = "http://big.gov.example", "http://small.example", "http://plain.example"
SIZE = 10_000
TOLD: list[Mapping[str, object]] = []


class Hears(PageObserver):
    """Keeps what is told of complete hosts."""

    def completed(self, host: Mapping[str, object]) -> None:
        TOLD.append(dict(host))


class Walk(Spider):
    name = "walk"
    start_urls = (f"{BIG}/0", f"{SMALL}/0", f"{PLAIN}/0")

    async def start(self) -> Any:
        for url in self.start_urls:
            yield Request(url)

    def parse(self, response: Response) -> Iterator[Any]:
        assert isinstance(response, TextResponse)
        for link in response.css("a::attr(href)").getall():
            yield response.follow(link)


@pytest.fixture
def three(site: Site) -> Site:
    """Hosts of thirty pages each; those of the first have ten thousand bytes."""
    TOLD.clear()
    for place in (BIG, SMALL, PLAIN):
        for number in range(30):
            body = links(*(f"{place}/{(number * 2 + more) % 30}" for more in (1, 2)))
            text = body if isinstance(body, str) else body.decode()
            site.page(f"{place}/{number}", text + ("x" * (SIZE - len(text)) if place == BIG else ""))
    return site


def by_host(site: Site) -> Counter[str]:
    return Counter(urlsplit(visit.url).netloc for visit in site.visits)


HEARS = {"UBI_OBSERVERS": [f"{__name__}.Hears"]}


@pytest.mark.parametrize("agents", [1, 3])
def test_each_host_has_the_limits_of_its_name(three: Site, agents: int) -> None:
    limits = {"*": "pages=20", ".gov.example": f"bytes={SIZE * 5}, pages=0", "small.example": "pages=7"}
    outcomes = crawl(Walk, three.proxy, agents, settings={"UBI_HOST_LIMITS": limits, **HEARS})
    assert {outcome.reason for outcome in outcomes} == {"finished"}
    assert by_host(three) == {"big.gov.example": 5, "small.example": 7, "plain.example": 20}
    assert {str(one["host"]): one["complete"] for one in TOLD} == {
        "big.gov.example": "limit/host_bytes",
        "small.example": "limit/host_pages",
        "plain.example": "limit/host_pages",
    }
    assert len(TOLD) == 3
    assert {one["bytes"] for one in TOLD} == {0, 5 * SIZE}


@pytest.mark.parametrize("agents", [1, 3])
def test_a_host_that_is_fetched_to_its_end_is_complete_once(three: Site, agents: int) -> None:
    crawl(Walk, three.proxy, agents, settings={"UBI_HOST_LIMITS": {}, **HEARS})
    assert sorted((str(one["host"]), one["complete"], one["pages"]) for one in TOLD) == [
        ("big.gov.example", "all", 30),
        ("plain.example", "all", 30),
        ("small.example", "all", 30),
    ]


def test_without_the_setting_nothing_is_told(three: Site) -> None:
    crawl(Walk, three.proxy, 1, settings=HEARS)
    assert not TOLD and sum(by_host(three).values()) == 90


def test_a_delay_of_one_name_holds_for_that_alone(three: Site) -> None:
    times: dict[str, list[float]] = {SMALL: [], PLAIN: []}

    def noted(place: str, number: int) -> Callable[[Visit], Page]:
        def page(visit: Visit) -> Page:
            times[place].append(monotonic())
            return Page(links(f"{place}/{number + 1}"))

        return page

    for place in times:
        for number in range(6):
            three.page(f"{place}/{number}", noted(place, number))
    limits = {"small.example": "delay=0.4", "*": "pages=5"}
    crawl(Walk, three.proxy, 1, settings={"UBI_HOST_LIMITS": limits})
    waits = {place: [after - one for one, after in pairwise(began)] for place, began in times.items()}
    assert len(waits[SMALL]) == len(waits[PLAIN]) == 4
    assert min(waits[SMALL]) >= 0.39
    assert min(waits[PLAIN]) < 0.39


@pytest.mark.parametrize("agents", [1, 3])
def test_bytes_of_all_end_the_crawl(three: Site, agents: int) -> None:
    settings = {"UBI_CRAWL_LIMITS": f"bytes={SIZE * 4}", "UBI_HOST_DELAY": 0.3, "UBI_HOST_LIMITS": {}}
    outcomes = crawl(Walk, three.proxy, agents, settings=settings)
    assert {outcome.reason for outcome in outcomes} == {"limit/crawl_bytes"}
    assert by_host(three)["big.gov.example"] < 20


def test_a_page_that_comes_twice_costs_twice(three: Site) -> None:
    """What counts is what came."""
    three.page(f"{BIG}/0", lambda visit: Page("no", 500) if visit.number == 1 else Page(links(f"{BIG}/1")))
    crawl(Walk, three.proxy, 1, settings={"UBI_HOST_LIMITS": f"bytes={10**9}", **HEARS, "RETRY_TIMES": 2})
    (big,) = [one for one in TOLD if one["host"] == "big.gov.example"]
    assert big["bytes"] == 2 + len(links(f"{BIG}/1")) + 29 * SIZE
