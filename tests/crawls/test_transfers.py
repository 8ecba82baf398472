"""Transfers whose right is lost, and those that bypass the scheduler."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.http import Response

from tests.crawls.ring import HOSTS
from tests.support.crawls import agent_of, crawl, items_of, total
from tests.support.site import Held, Page, Site, Visit


class Fenced(Spider):
    """Its agent loses the right to its hosts while a page is under way, for a moment."""

    name = "fenced"
    loop: asyncio.AbstractEventLoop

    async def start(self) -> AsyncIterator[Any]:
        Fenced.loop = asyncio.get_running_loop()
        yield Request(f"{HOSTS[0]}/", errback=self.failed)

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url, "retries": response.meta.get("retry_times")}

    def failed(self, failure: Any) -> Iterator[Any]:
        yield {"failed": repr(failure.value)}


def test_a_page_whose_transfer_is_cancelled_is_fetched_again_and_nobody_is_told(site: Site) -> None:
    crawlers: list[Crawler] = []
    second = Held()

    def cancelled_at_first(visit: Visit) -> Page:
        if visit.number > 1:
            second.release()
            return Page("there")
        Fenced.loop.call_soon_threadsafe(lambda: agent_of(crawlers[0].spider).gate.cancel())  # type: ignore[arg-type]
        second.wait()
        return Page("too late")

    site.page(f"{HOSTS[0]}/", cancelled_at_first)
    outcome = crawl(Fenced, site.proxy, with_crawlers=crawlers.extend)[0]
    assert outcome.items == [{"url": f"{HOSTS[0]}/", "retries": None}]
    assert (outcome.stats["ubi/guard/cancelled"], outcome.stats["ubi/scheduler/put_back"]) == (1, 1)
    assert (outcome.stats["ubi/pages"], outcome.stats["ubi/done"], len(site.visits)) == (1, 1, 2)
    assert "retry/count" not in outcome.stats


class Files(Spider):
    """Every page has a file on the next host, which bypasses the scheduler."""

    name = "files"

    async def start(self) -> AsyncIterator[Any]:
        node = agent_of(self).node
        while len(node.agent.view.members) < 3:  # or one crawls all of it before the others are there
            await asyncio.sleep(0.01)
        for host in HOSTS:
            yield Request(f"{host}/")

    def parse(self, response: Response) -> Iterator[Any]:
        following = HOSTS[(HOSTS.index(response.url[:-1]) + 1) % len(HOSTS)]
        yield {"url": response.url, "file_urls": [f"{following}/file"]}


@pytest.mark.parametrize("policy", ["polite", "refuse", "allow"])
def test_media_of_another_agents_host_is_as_the_setting_says(site: Site, policy: str, tmp_path: Path) -> None:
    for host in HOSTS:
        site.page(f"{host}/")
        site.page(f"{host}/file", host)
    settings = {
        "ITEM_PIPELINES": {"scrapy.pipelines.files.FilesPipeline": 1},
        "FILES_STORE": str(tmp_path),
        "UBI_FOREIGN_DOWNLOADS": policy,
    }
    outcomes = crawl(Files, site.proxy, 3, settings)
    stored = sum(len(item["files"]) for item in items_of(outcomes))
    done = {"polite": "polite", "refuse": "refused", "allow": "allowed"}[policy]
    foreign = total(outcomes, f"ubi/guard/foreign_{done}")
    assert foreign > 0
    assert total(outcomes, "ubi/downloads/loaded") == stored
    assert total(outcomes, "ubi/downloads/failed/refused") == len(HOSTS) - stored
    assert stored == len(HOSTS) - (foreign if policy == "refuse" else 0)
    assert {outcome.reason for outcome in outcomes} == {"finished"}
