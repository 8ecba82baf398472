"""What of a request cannot travel to another agent."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.http import Response

from tests.crawls.ring import HOSTS
from tests.support.crawls import crawl, items_of, total
from tests.support.site import Page, Site, links


class Lambdas(Spider):
    """Requests that cannot travel whole."""

    name = "lambdas"

    start_urls = (f"{HOSTS[0]}/start",)

    def parse(self, response: Response) -> Iterator[Any]:
        for host in HOSTS:
            yield Request(f"{host}/", callback=lambda response: [{"by": "lambda"}], meta={"spider": self})


def test_at_one_agent_nothing_of_a_request_is_lost(site: Site) -> None:
    for url in [f"{HOSTS[0]}/start", *(f"{host}/" for host in HOSTS)]:
        site.page(url)
    site.page(f"{HOSTS[0]}/", lambda visit: Page("", 503 if visit.number == 1 else 200))
    outcomes = crawl(Lambdas, site.proxy)
    assert items_of(outcomes) == [{"by": "lambda"}] * len(HOSTS)
    assert outcomes[0].stats["ubi/codec/untravelled/callback"] == len(HOSTS) + 1  # and the retry


def test_a_callback_that_could_not_travel_fails_the_page_and_calls_no_other(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    for url in [f"{HOSTS[0]}/start", *(f"{host}/" for host in HOSTS)]:
        site.page(url)
    outcomes = crawl(Lambdas, site.proxy, 3)
    lost = total(outcomes, "ubi/failed/codec/callback")
    assert lost > 0 and len(items_of(outcomes)) == len(HOSTS) - lost == len(site.visits) - 1
    warnings = [record.getMessage() for record in caplog.records if "cannot travel" in record.getMessage()]
    assert len(warnings) == 2 and "meta['spider']" in warnings[0] and "its callback" in warnings[1]
    assert [outcome.reason for outcome in outcomes] == ["finished"] * 3


class Partials(Spider):
    """Callbacks and errbacks with arguments of their own, which come before the response."""

    name = "partials"
    start_urls = (f"{HOSTS[0]}/start",)

    def parse(self, response: Response) -> Iterator[Any]:
        for number, host in enumerate(HOSTS):
            page, missed = partial(self.page, number, {"of": [host]}), partial(self.missed, number)
            yield Request(f"{host}/", callback=page, errback=missed)
            yield Request(f"{host}/gone", callback=page, errback=missed)

    async def page(self, number: int, told: Any, response: Any) -> Any:
        yield {"page": number, "told": told, "url": response.url}

    def missed(self, number: int, failure: Any) -> Iterator[Any]:
        yield {"missed": number}


def test_a_partial_of_a_method_is_called_at_another_agent_with_its_arguments(site: Site) -> None:
    for url in [f"{HOSTS[0]}/start", *(f"{host}/" for host in HOSTS)]:
        site.page(url, lambda visit: Page("", 503 if visit.number == 1 else 200))
    for host in HOSTS:
        site.page(f"{host}/gone", Page("", 404))
    outcomes = crawl(Partials, site.proxy, 3)
    pages = [{"page": number, "told": {"of": [host]}, "url": f"{host}/"} for number, host in enumerate(HOSTS)]
    missed = [{"missed": number} for number in range(len(HOSTS))]
    assert sorted(items_of(outcomes), key=str) == sorted([*pages, *missed], key=str)
    assert sum(outcome.stats.get("response_received_count", 0) > 0 for outcome in outcomes) > 1, "agents have hosts"


class Proxied(Spider):
    """Each page goes through the proxy that the spider chooses."""

    name = "proxied"

    async def start(self) -> Any:
        yield Request("http://h0.example/", meta={"proxy": self.settings["TEST_PROXY"]})

    def parse(self, response: Any) -> Any:
        yield {"url": response.url}
        for url in response.css("a::attr(href)").getall():
            yield Request(url, meta={"proxy": self.settings["TEST_PROXY"]})


@pytest.mark.parametrize("named", [True, False])
def test_proxies_that_the_spider_chooses_are_obeyed_by_others_where_they_are_named(
    site: Site, named: bool, caplog: pytest.LogCaptureFixture
) -> None:
    urls = [f"http://h{number}.example/" for number in range(40)]
    site.page(urls[0], links(*urls[1:]))
    for url in urls[1:]:
        site.page(url, "leaf")
    settings = {"TEST_PROXY": site.proxy, "UBI_PROXIES": ["127.0.0.1"] if named else []}
    outcomes = crawl(Proxied, agents=2, settings=settings)
    failed = total(outcomes, "ubi/failed/codec/proxy")
    assert len(items_of(outcomes)) + failed == len(urls)
    assert (failed == 0) is named
    said = [record.getMessage() for record in caplog.records if "Set UBI_PROXIES" in record.getMessage()]
    assert bool(said) is not named
