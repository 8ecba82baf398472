"""Who goes the lean way: an agent's requests; not what only looks at a page or two, nor another scheduler's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Spider, signals
from scrapy.crawler import Crawler

from scrapy_ubi.adapter.components.scheduler import UbiScheduler
from scrapy_ubi.fast import one_task
from scrapy_ubi.fast.one_task import OneTask


@pytest.fixture
def placed(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The engines that requests of were placed on the lean way."""
    found: list[Any] = []

    def place(engine: Any, outcome: Any, successor: Any, outermost: Any) -> str:
        found.append(engine)
        return ""

    monkeypatch.setattr(one_task, "place", place)
    return found


def opened(scheduler: object) -> Any:
    """The engine of a crawl with this scheduler, whose spider has opened."""
    crawler = Crawler(Spider, {})
    engine: Any = SimpleNamespace(scheduler=scheduler)
    crawler.engine = engine
    kept = OneTask.from_crawler(crawler)
    crawler.signals.send_catch_log(signals.spider_opened, spider=None)
    assert kept is not None, "signals hold their receivers weakly"
    return engine


def agents_scheduler() -> UbiScheduler:
    scheduler: Any = UbiScheduler(Crawler(Spider, {}))
    scheduler.dequeue, scheduler.enqueue = SimpleNamespace(outcome=None), SimpleNamespace(mark_successor=None)
    return scheduler  # type: ignore[no-any-return]


def test_an_agents_requests_do(placed: list[Any]) -> None:
    engine = opened(agents_scheduler())
    assert placed == [engine]


def test_a_look_at_a_page_or_two_does_not(placed: list[Any]) -> None:
    scheduler = agents_scheduler()
    scheduler.is_trial = True
    opened(scheduler)
    assert placed == []


def test_another_scheduler_is_left_alone(placed: list[Any]) -> None:
    opened(object())
    assert placed == []
