"""A callback that is at one large page for minutes, as it yields very many links: the pages of other hosts are fetched
meanwhile, with Scrapy's own bounds as they are."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.http import Response

from scrapy_ubi.adapter.downloads import page_room
from tests.crawls.ring import AGENTS
from tests.support.crawls import crawl, total
from tests.support.site import Site, links

HOME = "http://directory.example/"
CHAIN = "http://chain.example/"
LENGTH = 15  # pages of the chain, one after the other
LINKS = 500  # different ones of the large page, which are yielded over and over
LIMIT = 90.0  # s after which the callback gives up
LARGE = 6_000_000  # bytes: more than the room of pages, and than SCRAPER_SLOT_MAX_ACTIVE_SIZE


class Directory(Spider):
    """The callback of the large page ends when the other host's pages were all fetched."""

    name = "directory"
    start_urls = (HOME, f"{CHAIN}0")
    fetched = 0  # pages of the chain, by all agents
    stood_still = False

    def parse(self, response: Response) -> Any:
        if response.url == HOME:
            return self.links(response)
        return self.chain(response)

    def links(self, response: Response) -> Iterator[Any]:
        limit, number = time.monotonic() + LIMIT, 0
        while Directory.fetched < LENGTH:
            if time.monotonic() > limit:
                Directory.stood_still = True
                return
            number += 1
            yield Request(f"{HOME}{number % LINKS}", callback=self.leaf)

    def chain(self, response: Response) -> Iterator[Any]:
        Directory.fetched += 1
        if (number := int(response.url.removeprefix(CHAIN)) + 1) < LENGTH:
            yield Request(f"{CHAIN}{number}")

    def leaf(self, response: Response) -> None:
        """Nothing comes of it."""


class Asynchronous(Directory):
    """The same, of an asynchronous generator that waits for nothing."""

    def parse(self, response: Response) -> Any:
        return self.later(response) if response.url == HOME else self.chain(response)

    async def later(self, response: Response) -> AsyncIterator[Any]:
        for found in self.links(response):
            yield found


class Waiting(Directory):
    """The same, of a coroutine that waits, and gives its links at the end."""

    def parse(self, response: Response) -> Any:
        return self.wait(response) if response.url == HOME else self.chain(response)

    async def wait(self, response: Response) -> list[Any]:
        limit = time.monotonic() + LIMIT
        while Directory.fetched < LENGTH:
            if time.monotonic() > limit:
                Directory.stood_still = True
                break
            await asyncio.sleep(0.01)
        return [Request(f"{HOME}{number}", callback=self.leaf) for number in range(LINKS)]


@AGENTS
@pytest.mark.parametrize("spider", [Directory, Asynchronous, Waiting])
@pytest.mark.parametrize("size", ["small", "middling"])
def test_pages_of_other_hosts_are_fetched_meanwhile(
    site: Site, monkeypatch: pytest.MonkeyPatch, spider: type[Directory], agents: int, size: str
) -> None:
    monkeypatch.setattr(Directory, "fetched", 0)
    monkeypatch.setattr(Directory, "stood_still", False)
    monkeypatch.setattr(page_room, "PATIENCE", 0.1)
    site.page(HOME, "<html>" + " " * LARGE)
    for number in range(LENGTH):
        site.page(f"{CHAIN}{number}", "<html>" + " " * (300_000 if size == "middling" else 0))
    for number in range(LINKS):
        site.page(f"{HOME}{number}", links())
    outcomes = crawl(spider, site.proxy, agents)
    assert not Directory.stood_still
    assert {outcome.reason for outcome in outcomes} == {"finished"}
    assert total(outcomes, "downloader/response_status_count/200") >= LENGTH + LINKS
