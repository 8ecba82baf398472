"""The places of Scrapy's downloader, as many as the agent bears: given while all are taken, and only by who may."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary

import pytest
from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.utils.test import get_crawler

from scrapy_ubi.adapter.components import own_concurrency
from scrapy_ubi.adapter.components.own_concurrency import ConcurrencyRules, LoadsSeen, OwnConcurrency
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


def looks(decides: ConcurrencyRules, times: int, **seen: float) -> int:
    """The limit after so many looks at an agent all of whose places are taken."""
    for _ in range(times):
        decides.look(dataclasses.replace(LoadsSeen(active=decides.limit), **seen))  # type: ignore[arg-type]
    return decides.limit


def test_it_grows_to_the_most_while_all_places_are_taken() -> None:
    decides = ConcurrencyRules(16, 500)
    assert looks(decides, 1) == 24
    assert looks(decides, 30) == 500


def test_with_a_place_left_nothing_changes() -> None:
    decides = ConcurrencyRules(16, 500)
    assert looks(decides, 20, active=15) == 16


def test_a_busy_thread_wants_no_more_and_a_late_loop_fewer() -> None:
    decides = ConcurrencyRules(16, 500)
    looks(decides, 8)
    before = decides.limit
    assert looks(decides, 20, busy=0.95) == before
    assert looks(decides, 1, late=0.7) < before
    assert looks(decides, 50, late=0.7) == 16


def test_more_failures_than_usual_want_fewer_and_usual_ones_do_not() -> None:
    decides = ConcurrencyRules(16, 500)
    assert looks(decides, 30, answered=90, failed=10) == 500
    assert looks(decides, 1, answered=20, failed=80) < 500
    many_dead = ConcurrencyRules(16, 500)
    looks(many_dead, 40, answered=50, failed=50, active=0)
    assert looks(many_dead, 30, answered=50, failed=50) == 500, "half of all hosts of this web are dead"


def test_silent_loads_hold_no_place() -> None:
    decides = ConcurrencyRules(16, 16)
    assert looks(decides, 1, silent=10) == 26
    assert looks(decides, 1, silent=100) == 32, "as many again, and no more"
    assert looks(decides, 1) == 16


def test_large_pages_and_few_files_bound_it() -> None:
    decides = ConcurrencyRules(16, 500, most_bytes=64e6)
    assert looks(decides, 40, page_bytes=4e6) == 16
    assert looks(decides, 1, page_bytes=0) == 16, "none came: they are as they were"
    assert looks(ConcurrencyRules(16, 500, most_files=100), 40) == 100
    assert looks(ConcurrencyRules(16, 500, most_bytes=1e6), 1, page_bytes=5e6) == 1
