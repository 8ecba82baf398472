"""Whole crawls inside this process: real spiders, the real node, and a transport in memory that the agents share.

Scrapy runs without a Twisted reactor here, so that a test may run one crawl after another, each in an event loop of its
own. What only the reactor shows (its download handler, signals, exit codes) is tested with processes.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from scrapy import Spider, signals
from scrapy.crawler import AsyncCrawlerRunner, Crawler
from scrapy.http import HtmlResponse, Response
from scrapy.utils.reactor import is_reactor_installed

from scrapy_ubi.adapter.components.find_scheduler import scheduler_of
from scrapy_ubi.adapter.components.scheduler import UbiScheduler
from scrapy_ubi.adapter.components.scheduler_builder import SchedulerBuilder
from scrapy_ubi.transport import Transport
from scrapy_ubi.transport.in_process import MemoryHub, MemoryTransport

LIMIT = 150.0  # seconds for a whole crawl: far more than any needs, so that a hanging one fails

# Short times, as everything is in one process; still far above what a busy machine makes of a loop's turn.
FAST: dict[str, Any] = {
    "ADDONS": {"scrapy_ubi.Addon": 500},
    "TWISTED_REACTOR_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
    "LOG_LEVEL": "DEBUG",
    "RETRY_TIMES": 2,
    "UBI_HEARTBEAT_INTERVAL": 0.05,
    "UBI_LEASE_TIMEOUT": 5.0,
    "UBI_FAILURE_TIMEOUT": 8.0,
}


def agent_of(spider: Spider) -> UbiScheduler:
    """The scheduler of the agent that this spider crawls at."""
    scheduler = scheduler_of(spider.crawler)
    assert scheduler is not None
    return scheduler


class SharedBuilder(SchedulerBuilder):
    def make_transport(self) -> Transport:
        hub: MemoryHub = self.crawler.settings["TEST_HUB"]
        settings = self.scheduler.settings
        return MemoryTransport(hub, self.scheduler.agent_id, settings.crawl, settings.max_letter_bytes)


class SharedScheduler(UbiScheduler):
    """Agents of one process that share a hub in memory in place of a Redis. The crawl begins when all are there: on a
    busy machine the first would else have crawled half of it before the last one joins.
    """

    builder_class = SharedBuilder
    alone = False

    async def _join(self, spider: Spider) -> None:
        await super()._join(spider)
        async with asyncio.timeout(LIMIT / 2):
            while len(self.node.agent.view.members) < self.crawler.settings.getint("TEST_AGENTS"):
                await asyncio.sleep(0.01)


class Hub(MemoryHub):
    """A hub that a copy of the settings still shares."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Hub:
        return self


class Walk(Spider):
    """Follows every link."""

    name = "walk"
    start_urls = ("http://a.example/",)

    def parse(self, response: Response) -> Iterator[Any]:
        if isinstance(response, HtmlResponse):
            for href in response.css("a::attr(href)").getall():
                yield response.follow(href)


@dataclass
class Outcome:
    """What one agent's crawl came to."""

    crawler: Crawler
    items: list[Any] = field(default_factory=list)
    reason: str = ""

    @property
    def stats(self) -> dict[str, Any]:
        return self.crawler.stats.get_stats()


def crawl(
    spider: type[Spider],
    proxy: str = "",
    agents: int = 1,
    settings: dict[str, Any] | None = None,
    with_crawlers: Callable[[list[Crawler]], None] | None = None,
    place: Path | None = None,
    **spider_arguments: Any,
) -> list[Outcome]:
    """Run a crawl of so many agents to its end. `with_crawlers` sees the crawlers before they start; what is kept in
    the agents' directories, `a0`, `a1` ..., goes with the crawl, unless `place` is where they lie."""
    assert not is_reactor_installed(), "a Twisted reactor was imported in this process: in-process crawls cannot run"
    with tempfile.TemporaryDirectory() as temporary, mock.patch.dict(os.environ, {"http_proxy": proxy, "no_proxy": ""}):
        hub = Hub()
        outcomes = [
            _prepare(spider, {**FAST, "TEST_HUB": hub, **(settings or {})}, place or Path(temporary), number, agents)
            for number in range(agents)
        ]
        if with_crawlers is not None:
            with_crawlers([outcome.crawler for outcome in outcomes])
        asyncio.run(_run(outcomes, spider_arguments))
    return outcomes


def _prepare(spider: type[Spider], settings: dict[str, Any], place: Path, number: int, agents: int) -> Outcome:
    own: dict[str, Any] = {"UBI_AGENT_ID": f"a{number}", "UBI_DIR": str(place / f"a{number}")}
    if agents > 1:
        own |= {"SCHEDULER": "tests.support.crawls.SharedScheduler", "TEST_AGENTS": agents}
    outcome = Outcome(Crawler(spider, {**own, **settings}))

    def scraped(item: Any) -> None:
        outcome.items.append(item)

    def closed(reason: str) -> None:
        outcome.reason = reason

    outcome.crawler.signals.connect(scraped, signals.item_scraped, weak=False)
    outcome.crawler.signals.connect(closed, signals.spider_closed, weak=False)
    return outcome


async def _run(outcomes: list[Outcome], arguments: dict[str, Any]) -> None:
    runner = AsyncCrawlerRunner({"TWISTED_REACTOR_ENABLED": False})
    await asyncio.wait_for(asyncio.gather(*(runner.crawl(one.crawler, **arguments) for one in outcomes)), LIMIT)


def items_of(outcomes: list[Outcome]) -> list[Any]:
    """All items of all agents, in an order of their own."""
    return sorted((item for outcome in outcomes for item in outcome.items), key=repr)


def total(outcomes: list[Outcome], stat: str) -> int:
    """The sum of a stat over all agents."""
    return sum(int(outcome.stats.get(stat, 0)) for outcome in outcomes)
