"""The end of a crawl at Scrapy's scheduler: who holds it open, what waits for a lease, who closes the spider."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.http import Response

from scrapy_ubi.adapter.components.find_scheduler import scheduler_of
from scrapy_ubi.adapter.components.scheduler import SEED
from scrapy_ubi.settings import UbiSettings
from tests.adapter.components.unit import HOST, URL, FakeScheduler, Unit
from tests.support.crawls import crawl
from tests.support.fakenode import FakeNode
from tests.support.site import Site


def test_the_spider_stays_open_until_the_crawl_is_over_everywhere() -> None:
    unit = Unit()
    assert unit.hooks.idle(False)
    unit.start_ended()
    assert not unit.hooks.idle(False)


def test_the_crawl_is_not_over_while_a_handler_holds_the_spider_open() -> None:
    unit = Unit()
    unit.start_ended()
    assert not unit.node.agent.end.start_exhausted, "nobody was asked yet"
    for held in (True, False, True):
        assert unit.hooks.idle(held) == held
        assert unit.node.agent.end.start_exhausted != held
        assert unit.node.agent.end.start_over, "that is another source"
    assert unit.enqueue_request(Request(URL))


def test_what_comes_after_the_end_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    unit = Unit()
    unit.start_ended()
    unit.enqueue_request(Request(URL))
    page = unit.take()
    unit.hooks.idle(False)
    unit.node.out = 0  # as if others had said that all is over, while the page is still out
    assert not unit.enqueue_request(Request(f"{HOST}/late")) and not unit.enqueue_request(Request(f"{HOST}/later"))
    assert unit.stat("scheduler/dropped/over") == 2
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    child = Request(f"{HOST}/child")
    unit.enqueue.mark_child(child, page)
    assert unit.enqueue_request(child) and unit.enqueue_request(Request(f"{HOST}/seed", meta={SEED: True}))
    assert unit.enqueue_request(page.replace(dont_filter=True)), "a retry"


@pytest.mark.parametrize(
    ("reason", "of_ours", "redis_url", "said"),
    [
        ("enough", False, "redis://h.example", True),
        ("closespider_itemcount", False, "redis://h.example", True),
        ("enough", False, None, False),
        ("enough", True, "redis://h.example", False),
        ("shutdown", False, "redis://h.example", False),
        ("finished", False, "redis://h.example", False),
    ],
)
def test_a_project_that_closes_its_spider_hears_that_it_closes_one_agent(
    reason: str, of_ours: bool, redis_url: str | None, said: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        unit = Unit()

        async def close(*, reason: str) -> None:
            pass

        unit.crawler.engine = SimpleNamespace(close_spider_async=close)  # type: ignore[assignment]
        if of_ours:
            unit.parts.ending.end(reason)
        unit.parts.ending.say_closed(reason, unit.node, UbiSettings(redis_url=redis_url))

    asyncio.run(run())
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert [reason in text and "this agent only" in text for text in warnings] == [True] * said


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as running:
        running.page(URL)
        yield running


class Losing(Spider):
    """Its agent loses its rights before anything is fetched; then the test's `then` is done."""

    name = "losing"
    then: Callable[[Any, FakeNode], Any]
    failures: list[Any]

    async def start(self) -> AsyncIterator[Any]:
        node, agent = FakeScheduler.made, scheduler_of(self.crawler)
        assert agent is not None
        node.change(fenced=True)
        yield Request(URL, errback=self.failed)
        while not any(flight.task for flight in agent.flights):
            await asyncio.sleep(0)
        await type(self).then(self, node)

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url}

    def failed(self, failure: Any) -> None:
        self.failures.append(failure)


def losing(site: Site, then: Callable[[Any, FakeNode], Any], robots: bool) -> SimpleNamespace:
    Losing.then, Losing.failures = then, []
    settings = {"SCHEDULER": FakeScheduler, "ROBOTSTXT_OBEY": robots}
    outcome = crawl(Losing, site.proxy, settings=settings)[0]
    assert Losing.failures == []
    return SimpleNamespace(outcome=outcome, calls=FakeScheduler.made.calls, held=FakeScheduler.made.held)


@pytest.mark.parametrize("robots", [False, True])
def test_a_crawl_closes_although_its_pages_wait_for_a_lease(site: Site, robots: bool) -> None:
    async def close(spider: Spider, node: FakeNode) -> None:
        asyncio.ensure_future(spider.crawler.engine.close_spider_async(reason="enough"))  # noqa: RUF006 - as a signal does

    result = losing(site, close, robots)
    assert result.outcome.reason == "enough"
    assert [call for call in result.calls if call[0] in ("put_back", "ended", "leave")] == [
        ("put_back", URL),
        ("leave", "enough"),
    ]
    assert not site.visits and not result.held


@pytest.mark.parametrize("robots", [False, True])
def test_a_host_that_is_lost_and_regained_is_fetched_after_its_robots_txt(site: Site, robots: bool) -> None:
    async def lose(spider: Spider, node: FakeNode) -> None:
        node.change(fenced=False, lost={"h1.example"})
        while ("put_back", URL) not in node.calls:
            await asyncio.sleep(0)
        node.change(lost=set())

    site.page(f"{HOST}/robots.txt", "User-agent: *\nAllow: /\n")
    result = losing(site, lose, robots)
    assert result.outcome.items == [{"url": URL}]
    assert [visit.url for visit in site.visits] == ([f"{HOST}/robots.txt"] if robots else []) + [URL]
    assert result.calls[-2:] == [("ended", URL, None, True), ("leave", "finished")]


@pytest.mark.parametrize("end", ["_stop", "drain"])
def test_the_task_that_closes_the_spider_is_kept_and_its_error_told(end: str, caplog: pytest.LogCaptureFixture) -> None:
    """The loop alone would let go of it in the middle."""

    async def run() -> None:
        unit, going = Unit(), asyncio.Event()

        async def close(*, reason: str) -> None:
            await going.wait()
            raise RuntimeError(f"no end for {reason}")

        unit.crawler.engine = SimpleNamespace(close_spider_async=close)  # type: ignore[assignment]
        unit.parts.ending.drain() if end == "drain" else unit.parts.ending.stop("Too many errors.", "burst")
        [closing] = asyncio.all_tasks() - {asyncio.current_task()}
        kept = weakref.ref(closing)
        del closing
        gc.collect()
        task = kept()
        assert task is not None and not task.done()
        going.set()
        await asyncio.wait([task])

    asyncio.run(run())
    reason = "drained" if end == "drain" else "burst"
    assert f"The spider could not be closed: RuntimeError('no end for {reason}')" in caplog.text
