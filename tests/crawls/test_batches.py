"""Pipelines that write in batches (`ubi_flush_items`), in whole crawls: a page is done after its items are written."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.exceptions import DropItem
from scrapy.http import Response

from scrapy_ubi.adapter.feeds import pipeline_flush
from tests.crawls.ring import AGENTS, Walk, ring
from tests.support.crawls import crawl
from tests.support.site import Site, links

HOME = "http://shop.example/"


class Batches:
    """Keeps all back until it is told to write. `away`: so many calls fail first."""

    written: list[Any] = []  # noqa: RUF012 - of all agents; each test begins with none
    away = 0
    log: list[str] = []  # noqa: RUF012

    def __init__(self) -> None:
        self.rows: list[Any] = []

    def process_item(self, item: Any) -> Any:
        self.rows.append(item)
        if item.get("drop"):
            raise DropItem("not for the pipelines that follow")
        return item

    async def ubi_flush_items(self) -> None:
        Batches.log.append("flush")
        if Batches.away:
            Batches.away -= 1
            raise OSError("the database is away")
        Batches.written += self.rows
        self.rows = []

    def close_spider(self) -> None:
        Batches.log.append("close")


@pytest.fixture(autouse=True)
def begin() -> None:
    Batches.written, Batches.log, Batches.away = [], [], 0


PIPELINE = {"ITEM_PIPELINES": {Batches: 1}}


@AGENTS
def test_all_items_are_written_before_the_crawl_is_over(site: Site, agents: int) -> None:
    urls = ring(site)
    outcomes = crawl(Walk, site.proxy, agents, PIPELINE)
    assert {item["url"] for item in Batches.written} == urls
    assert {outcome.reason for outcome in outcomes} == {"finished"}


def test_a_database_that_is_away_for_a_while_holds_the_crawl_up_and_loses_nothing(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    urls = ring(site)
    caplog.set_level("INFO", "scrapy_ubi")
    Batches.away = 3
    crawl(Walk, site.proxy, 1, PIPELINE)
    assert {item["url"] for item in Batches.written} == urls
    assert "Batches.ubi_flush_items has failed: OSError: the database is away." in caplog.text
    assert "All items are written: the crawl goes on." in caplog.text


class Dropper(Spider):
    """One item that a pipeline drops after it has kept it; one of start()."""

    name = "dropper"

    async def start(self) -> AsyncIterator[Any]:
        yield {"url": "start"}
        yield Request(HOME)

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url, "drop": True}


@AGENTS
def test_items_that_are_dropped_and_those_of_start_are_written_too(site: Site, agents: int) -> None:
    site.page(HOME, "nothing")
    crawl(Dropper, site.proxy, agents, PIPELINE)
    assert {item["url"] for item in Batches.written} == {"start", HOME}


class OfShop(Walk):
    """The same walk, from another page."""

    start_urls = (HOME,)


def test_pages_whose_items_cannot_be_written_are_fetched_again_by_the_next_start(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database is away from the beginning to the end of the first one."""
    monkeypatch.setattr(pipeline_flush, "LONGEST_CALL", 0.05)
    site.page(HOME, links(f"{HOME}a"))
    site.page(f"{HOME}a", "the end")
    Batches.away = 1_000_000
    crawl(OfShop, site.proxy, 1, {**PIPELINE, "CLOSESPIDER_ITEMCOUNT": 1, "UBI_LEASE_TIMEOUT": 1.0}, place=tmp_path)
    assert not Batches.written
    Batches.away = 0
    crawl(OfShop, site.proxy, 1, PIPELINE, place=tmp_path)
    assert {item["url"] for item in Batches.written} == {HOME, f"{HOME}a"}
