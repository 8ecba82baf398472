"""Groups of crawlers for the tests of nodes, and one node alone, driven by the test."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from typing import Any

from scrapy_ubi.transport.in_process import MemoryHub
from tests.agent.crawler import LIMIT, SETTINGS, Crawler, Log, entry
from tests.transport.worlds import until

SEEDS = ["http://h0.example/1", "http://h5.example/2"]


HELD = 30  # pages after which the web stops answering, in tests that do something in the middle


async def ends(*crawlers: Crawler) -> None:
    """All of these end by themselves."""
    await asyncio.wait_for(asyncio.gather(*(crawler.task for crawler in crawlers)), LIMIT)


def group(hub: MemoryHub, log: Log, agents: int, seeds: list[str] = SEEDS) -> list[Crawler]:
    """So many crawlers, started with the same seeds."""
    crawlers = [Crawler(hub, f"a{number}", log) for number in range(agents)]
    for crawler in crawlers:
        crawler.start(seeds)
    return crawlers


def profile(hub: MemoryHub, name: str) -> dict[str, Any]:
    return json.loads(hub.shelf(SETTINGS.crawl).agents[name.encode()])


# -- visits


class Alone(Crawler):
    """One node, and the test in the place of the engine."""

    def __init__(self, **settings: Any) -> None:
        self.hub = MemoryHub()
        super().__init__(self.hub, "a", Log(), dataclasses.replace(SETTINGS, **settings))

    async def ready(self, *urls: str) -> None:
        """It may fetch, and these pages are found."""
        await self.node.open()
        for url in urls:
            assert self.node.discover(*entry(url))
        await until(lambda: self.node.agent.view_history.complete is not None)
