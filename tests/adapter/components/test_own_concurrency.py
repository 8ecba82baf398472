"""The places of Scrapy's downloader, as many as the agent bears: given while all are taken, and only by who may."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary

import pytest
from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.utils.test import get_crawler

from scrapy_ubi.adapter.components import own_concurrency
from scrapy_ubi.adapter.components.own_concurrency import OwnConcurrency
from scrapy_ubi.adapter.requests.transfer_states import Transfer
from tests.fast.http.raw import run

SCHEDULERS: WeakKeyDictionary[Crawler, Any] = WeakKeyDictionary()


class Agent:
    """A crawler with all places of its downloader taken, and what the extension looks at of an agent."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> None:
        self.live, self.woken = dict[str, int](), 0
        self.crawler: Crawler = get_crawler(settings_dict=settings)
        self.downloader = SimpleNamespace(total_concurrency=16, active=range(1000))
        self.crawler.engine = SimpleNamespace(downloader=self.downloader)  # type: ignore[assignment]
        self.scheduler = SimpleNamespace(
            settings=SimpleNamespace(concurrency=None, memory_mb=256),
            is_trial=False,
            node=SimpleNamespace(live=SimpleNamespace(scrapys=self.live)),
            hooks=SimpleNamespace(wake=self.wake),
            flights=[],
        )
        monkeypatch.setattr(own_concurrency, "scheduler_of", lambda crawler: SCHEDULERS.get(crawler))
        SCHEDULERS[self.crawler] = self.scheduler
        monkeypatch.setattr(own_concurrency, "INTERVAL", 0.01)
        self.extension = OwnConcurrency.from_crawler(self.crawler)

    def wake(self) -> None:
        self.woken += 1

    def tell(self, signal: object) -> None:
        self.crawler.signals.send_catch_log(signal, spider=None)

    async def until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            await asyncio.sleep(0.005)


async def meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as another agent takes to look several times."""
    other = Agent(monkeypatch)
    other.tell(signals.spider_opened)
    await other.until(lambda: other.downloader.total_concurrency > 60)
    other.tell(signals.spider_closed)


def test_places_grow_while_all_are_taken_until_the_spider_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        agent = Agent(monkeypatch)
        agent.tell(signals.spider_opened)
        assert agent.downloader.total_concurrency == 16
        await agent.until(lambda: agent.downloader.total_concurrency > 40)
        assert agent.woken >= 2, "the engine asks for requests as soon as there is a place"
        agent.tell(signals.spider_closed)
        had = agent.downloader.total_concurrency
        await meanwhile(monkeypatch)
        assert agent.downloader.total_concurrency == had
        assert agent.crawler.stats.get_value("ubi/concurrency/max") == had

    run(main())


def test_what_people_say_holds_as_long_as_they_say_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        agent = Agent(monkeypatch, UBI_CONCURRENCY="auto(30)")
        agent.live["CONCURRENT_REQUESTS"] = agent.downloader.total_concurrency = 2
        agent.tell(signals.spider_opened)
        agent.downloader.total_concurrency = 2
        await meanwhile(monkeypatch)
        assert agent.downloader.total_concurrency == 2
        agent.live.clear()
        await agent.until(lambda: agent.downloader.total_concurrency == 30)
        agent.tell(signals.spider_closed)

    run(main())


def test_silent_transfers_get_places_beside_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        agent = Agent(monkeypatch, UBI_CONCURRENCY="auto(16)")
        waits, hangs = (
            SimpleNamespace(transfer=each, began=-1e9) for each in (Transfer.WAITING, Transfer.TRANSFERRING)
        )
        agent.scheduler.flights = [waits, hangs, hangs]
        agent.tell(signals.spider_opened)
        await agent.until(lambda: agent.downloader.total_concurrency == 18)
        agent.tell(signals.spider_closed)

    run(main())


@pytest.mark.parametrize("lacks", ["scheduler", "downloader"])
def test_beside_others_parts_nothing_is_done(lacks: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        agent = Agent(monkeypatch)
        if lacks == "scheduler":
            del SCHEDULERS[agent.crawler]
        else:
            agent.crawler.engine = SimpleNamespace(downloader=SimpleNamespace())  # type: ignore[assignment]
        agent.tell(signals.spider_opened)
        await meanwhile(monkeypatch)
        agent.tell(signals.spider_closed)
        assert agent.downloader.total_concurrency == 16

    run(main())
