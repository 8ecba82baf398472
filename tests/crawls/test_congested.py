"""A page that yields very many links to other agents' hosts waits while the outbox is half full: it is bounded, and the
agent goes on fetching."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.http import Response

from scrapy_ubi import UbiSpider
from tests.support.crawls import agent_of, crawl, total
from tests.support.derived import derived
from tests.support.site import Site, links

HOME = "http://directory.example/"
PAGES = [f"http://h{number % 20}.example/{number}" for number in range(400)]
MOST = 100  # records in the outbox
SLACK = 64 + 20  # links between two looks, and done marks


class Directory(Spider):
    """Looks at the outbox whenever it is asked for a link."""

    name = "directory"
    start_urls = (HOME,)
    fullest = 0

    def look(self) -> None:
        Directory.fullest = max(Directory.fullest, len(agent_of(self).node.agent.outbox))

    def parse(self, response: Response) -> Iterator[Any]:
        for url in PAGES:
            self.look()
            yield Request(url, callback=self.leaf)

    def leaf(self, response: Response) -> None:
        """Nothing comes of it."""


class Asynchronous(Directory):
    """The same, of an asynchronous generator."""

    async def parse(self, response: Response) -> AsyncIterator[Any]:  # type: ignore[override]
        for found in super().parse(response):
            yield found


class Together(Directory, UbiSpider):
    """The same, by plain links."""

    def parse(self, response: Response) -> Iterator[Any]:
        yield self.links(response, callback=self.leaf)
        self.look()


@pytest.mark.parametrize("lean", [True, False], ids=["lean", "not lean"])
@pytest.mark.parametrize("spider", [Directory, Asynchronous, Together])
def test_the_outbox_is_bounded_and_all_pages_are_fetched(
    site: Site, monkeypatch: pytest.MonkeyPatch, spider: type[Directory], lean: bool
) -> None:
    monkeypatch.setattr(Directory, "fullest", 0)
    site.page(HOME, links(*PAGES))
    for url in PAGES:
        site.page(url, links())
    with derived(outbox_records=MOST):
        outcomes = crawl(spider, site.proxy, 3, {"UBI_LEAN": lean})
    assert {outcome.reason for outcome in outcomes} == {"finished"}
    assert total(outcomes, "downloader/response_status_count/200") == len(PAGES) + 1
    if spider is not Together:
        assert 0 < Directory.fullest <= MOST // 2 + SLACK
