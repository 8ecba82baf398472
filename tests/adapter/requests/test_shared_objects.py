"""Several requests with one object: as in plain Scrapy where one agent has them, and said where others have copies."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from pathlib import PurePath
from typing import Any
from uuid import UUID

import pytest
from scrapy import Request, Spider
from scrapy.http import Response

from scrapy_ubi.adapter.requests.shared_objects import MOST_SEEN, SharedObjects, holds_objects
from tests.support.crawls import crawl, items_of
from tests.support.site import Page, Site, Visit

HOST = "http://h.example"
PLAIN: dict[str, Any] = {"ADDONS": {}}
PARTS = [f"{HOST}/{number}" for number in range(6)]


def request(**held: Any) -> Request:
    return Request(HOST, **held)


@pytest.mark.parametrize(
    ("packed", "holds"),
    [
        ({}, False),
        ({"meta": {"n": 1}, "cb_kwargs": {"text": "a"}}, False),
        ({"cb_kwargs": {"item": {}}}, True),
        ({"meta": {"seen": []}}, True),
        ({"callback": "parse"}, False),
        ({"callback": {"method": "parse", "args": [[]]}}, True),
        ({"meta": {"redirect_urls": [HOST], "handle_httpstatus_list": [404]}}, False),
    ],
)
def test_only_objects_of_the_spider_count(packed: dict[str, Any], holds: bool) -> None:
    assert holds_objects(packed) == holds


def test_an_object_is_shared_where_one_page_has_it_in_two_requests() -> None:
    shared, bag, page = SharedObjects(), {"parts": []}, object()
    assert shared.shared(request(cb_kwargs={"bag": bag, "n": 1}), page) == []
    assert shared.shared(request(cb_kwargs={"bag": {"parts": []}}), page) == [], "equal is not the same"
    assert shared.shared(request(cb_kwargs={"bag": bag}, meta={"also": bag}), page) == [
        "cb_kwargs['bag']",
        "meta['also']",
    ]
    assert shared.shared(request(callback=partial(print, bag, 1, bag=bag)), page) == ["callback(0)", "callback(bag)"]
    assert shared.shared(request(cb_kwargs={"bag": bag}), object()) == [], "it goes from page to page"
    assert shared.shared(request(meta={"redirect_urls": (urls := [HOST])}), page) == []
    assert shared.shared(request(meta={"redirect_urls": urls}), page) == []


@pytest.mark.parametrize(
    "value",
    [
        datetime.date(2026, 1, 1),
        datetime.timedelta(1),
        datetime.UTC,
        Decimal("1.50"),
        UUID(int=1),
        PurePath("a"),
        1j,
        int,
    ],
)
def test_what_cannot_change_is_no_object_that_callbacks_share(value: object) -> None:
    shared, page = SharedObjects(), object()
    for _ in range(2):
        assert shared.shared(request(cb_kwargs={"value": value}, meta={"value": value}), page) == []


def test_what_is_remembered_is_bounded() -> None:
    shared, first = SharedObjects(), [0]
    for held in (first, *([number] for number in range(MOST_SEEN))):
        assert shared.shared(request(meta={"held": held}), None) == []
    assert shared.shared(request(meta={"held": first}), None) == []
    assert shared.remembered == MOST_SEEN


class Bag(Spider):
    """An item of several pages: each adds its part to one dict, and the last one yields it."""

    name = "bag"
    start_urls = (f"{HOST}/",)

    def parse(self, response: Response) -> Iterator[Any]:
        bag: dict[str, Any] = {"parts": []}
        for url in PARTS:
            yield Request(url, self.parse_part, cb_kwargs={"bag": bag})

    def parse_part(self, response: Response, bag: dict[str, Any]) -> Iterator[Any]:
        bag["parts"].append(response.url)
        if len(bag["parts"]) == len(PARTS):
            yield {"parts": sorted(bag["parts"])}


def test_one_agent_gives_the_items_of_plain_scrapy_also_after_retries_and_pauses(site: Site) -> None:
    """Some pages fail at first, and are tried again; some are put back, as their host asks for a pause."""
    visits: Counter[str] = Counter()

    def answer(visit: Visit) -> Page:
        visits[visit.url] += 1
        if visits[visit.url] == 1 and visit.url in PARTS[1::2]:
            return Page(status=503)
        if visits[visit.url] == 1 and visit.url in PARTS[::4]:
            return Page(status=503, headers={"Retry-After": "0"})
        return Page("")

    site.host("h.example", answer)
    plain = items_of(crawl(Bag, site.proxy, settings=PLAIN))
    assert plain == [{"parts": PARTS}]
    visits.clear()
    assert items_of(crawl(Bag, site.proxy)) == plain


class Apart(Bag):
    """The parts are on hosts of their own."""

    def parse(self, response: Response) -> Iterator[Any]:
        bag: dict[str, Any] = {"parts": []}
        for number in range(len(PARTS)):
            yield Request(f"http://h{number}.example/", self.parse_part, cb_kwargs={"bag": bag})


def test_a_group_says_once_that_other_agents_have_copies(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    for host in ("h.example", *(f"h{number}.example" for number in range(len(PARTS)))):
        site.page(f"http://{host}/")
    crawl(Apart, site.proxy, agents=3)
    assert caplog.text.count("cb_kwargs['bag'] is one object in several requests of a page") == 1


class Chain(Spider):
    """An item that goes from page to page."""

    name = "chain"
    start_urls = (f"{HOST}/",)

    def parse(self, response: Response, item: dict[str, Any] | None = None, number: int = 0) -> Iterator[Any]:
        item = {"parts": []} if item is None else item
        item["parts"].append(number)
        if number == len(PARTS):
            yield item
        else:
            yield Request(f"http://h{number}.example/", cb_kwargs={"item": item, "number": number + 1})


@pytest.mark.parametrize("agents", [1, 3])
def test_an_item_that_goes_from_page_to_page_is_whole_and_nothing_is_said(
    site: Site, agents: int, caplog: pytest.LogCaptureFixture
) -> None:
    for host in ("h.example", *(f"h{number}.example" for number in range(len(PARTS)))):
        site.page(f"http://{host}/")
    assert items_of(crawl(Chain, site.proxy, agents)) == [{"parts": list(range(len(PARTS) + 1))}]
    assert "one object in several requests" not in caplog.text
