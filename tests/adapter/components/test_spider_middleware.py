"""The outermost spider middleware: marks of seeds and of what is to be fetched anyway, and pauses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request, signals
from scrapy.http import Response
from scrapy.signalmanager import SignalManager

from scrapy_ubi.adapter.components import spider_middleware
from scrapy_ubi.adapter.components.scheduler import SEED, UbiScheduler
from scrapy_ubi.adapter.components.spider_middleware import PAUSE_EVERY, UbiSpiderMiddleware
from scrapy_ubi.adapter.components.start_items import StartItems
from scrapy_ubi.adapter.extraction.plainlinks import PlainLinks
from scrapy_ubi.adapter.process.log_once import Notices
from scrapy_ubi.adapter.requests.check import NONCE
from scrapy_ubi.adapter.requests.inflight import Flights
from scrapy_ubi.adapter.requests.observers import Observers
from tests.support.turns import turns_of_others

URL = "http://h1.example/"


def alone() -> StartItems:
    """The items of an agent that is alone."""
    return StartItems(None, "a1", dict, 1.0, lambda: True, Notices(), lambda stat: None)


class Recorder(UbiScheduler):
    """A scheduler that only notes what it is told."""

    is_trial = False
    output_waits = False

    def __init__(self) -> None:
        self.ended = 0
        self.marked: list[Request | None] = []
        self.waits = 0
        self.start_items = alone()
        self.flights = Flights()
        self.observers = Observers(self.flights)
        self.enqueue: Any = SimpleNamespace(mark_child=self.mark_child, is_known=self.is_known)
        self.asks_each = False

    @property
    def start_waits(self) -> bool:
        self.waits -= 1
        return self.waits >= 0

    def start_ended(self) -> None:
        self.ended += 1

    def mark_child(self, request: Request, parent: Request | None) -> None:
        self.marked.append(parent)
        request.meta[NONCE] = "n"

    def is_known(self, request: Request) -> bool:
        return request.url.endswith("/known")


class World:
    def __init__(self, scheduler: Any = None) -> None:
        self.scheduler = scheduler or Recorder()
        self.crawled: list[Request] = []
        slot = SimpleNamespace(scheduler=self.scheduler)  # where Scrapy before 2.19 has it
        engine = SimpleNamespace(scheduler=self.scheduler, _slot=slot, crawl=self.crawled.append)
        self.crawler: Any = SimpleNamespace(engine=engine)
        self.crawler.settings = {"SCHEDULER": UbiScheduler}
        self.crawler.signals = SignalManager(self.crawler)
        self.middleware = UbiSpiderMiddleware.from_crawler(self.crawler)


async def several(*things: Any) -> AsyncIterator[Any]:
    for thing in things:
        yield thing


def started(world: World, start: AsyncIterator[Any]) -> list[Any]:
    async def run() -> list[Any]:
        return [found async for found in world.middleware.process_start(start)]

    return asyncio.run(run())


def test_requests_of_start_are_seeds_and_items_pass() -> None:
    world = World()
    item = {"a": 1}
    found = started(world, several(Request(URL), item))
    assert found[0].meta == {SEED: True} and found[1] is item
    assert world.scheduler.ended == 1


def test_a_start_that_breaks_has_ended_too() -> None:
    async def broken() -> AsyncIterator[Any]:
        yield Request(URL)
        raise RuntimeError("broken")

    world = World()
    with pytest.raises(RuntimeError):
        started(world, broken())
    assert world.scheduler.ended == 1


async def drained(found: AsyncIterator[Any]) -> None:
    async for _ in found:
        pass


def test_a_long_start_lets_others_run() -> None:
    start = World().middleware.process_start(several(*range(10 * PAUSE_EVERY)))
    assert asyncio.run(turns_of_others(drained(start))) >= 10


def test_a_start_waits_while_no_more_should_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spider_middleware, "LOOK_EVERY", 0.0)

    async def run() -> None:
        world = World()
        world.scheduler.waits = 5
        count = 0
        async for _ in world.middleware.process_start(several(*range(PAUSE_EVERY + 1))):
            count += 1
            assert world.scheduler.waits == (5 if count <= PAUSE_EVERY else -1)
        assert count == PAUSE_EVERY + 1

    asyncio.run(run())


def test_a_start_that_waits_ends_when_the_crawl_is_closed() -> None:
    async def run() -> None:
        world = World()
        world.scheduler.waits = 10**9

        async def drain() -> None:
            async for _ in world.middleware.process_start(several(*range(PAUSE_EVERY + 1))):
                pass

        draining = asyncio.ensure_future(drain())
        async with asyncio.timeout(60):
            while world.scheduler.waits == 10**9:
                await asyncio.sleep(0)
        draining.cancel()
        with pytest.raises(asyncio.CancelledError):
            await draining
        assert world.scheduler.ended == 1

    asyncio.run(run())


def outputs(world: World, kind: str, response: Response, *things: Any) -> list[Any]:
    if kind == "sync":
        return list(world.middleware.process_spider_output(response, things))

    async def run() -> list[Any]:
        return [found async for found in world.middleware.process_spider_output_async(response, several(*things))]

    return asyncio.run(run())


@pytest.mark.parametrize("known", [False, True])
def test_a_callback_with_very_many_requests_lets_others_run(known: bool) -> None:
    requests = several(*(Request(f"{URL}known" if known else URL) for _ in range(10 * PAUSE_EVERY)))
    response = Response(URL, request=Request(URL))
    found = World().middleware.process_spider_output_async(response, requests)
    assert asyncio.run(turns_of_others(drained(found))) >= 10


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_requests_of_callbacks_go_to_the_engine_and_items_pass(kind: str) -> None:
    world = World()
    response = Response(URL, request=Request(URL))
    request = Request(URL, meta={SEED: True, NONCE: "copied from the page"})
    assert outputs(world, kind, response, 1, request, None) == [1, None]
    assert world.crawled == [request]
    assert request.meta == {NONCE: "n"}
    assert world.scheduler.marked == [response.request]


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_plain_links_of_a_class_of_the_users_are_plain_links(kind: str) -> None:
    class Own(PlainLinks):
        pass

    world = World()
    taken: list[PlainLinks] = []
    world.scheduler.page_links = SimpleNamespace(take_links=lambda links, *rest: taken.append(links) or iter(()))
    links = Own([URL])
    assert outputs(world, kind, Response(URL, request=Request(URL)), links) == []
    assert taken == [links]


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_without_our_scheduler_requests_go_to_the_engine_by_scrapys_way(kind: str) -> None:
    world = World(SimpleNamespace())
    request = Request(URL)
    assert outputs(world, kind, Response(URL, request=Request(URL)), request) == [request]
    assert not world.crawled


def test_a_request_that_is_known_goes_no_further() -> None:
    world = World()
    yielded = [Request(f"{URL}known"), Request(f"{URL}new")]
    assert list(world.middleware.process_spider_output(Response(URL, request=Request(URL)), yielded)) == []
    assert world.crawled == yielded[1:]


@pytest.mark.parametrize("signal", [signals.request_scheduled, signals.request_dropped])
def test_but_who_listens_hears_of_every_request(signal: object) -> None:
    def listener() -> None:
        """Of the user's."""

    world = World()
    world.crawler.signals.connect(listener, signal)
    yielded = [Request(f"{URL}known"), Request(f"{URL}new")]
    assert list(world.middleware.process_spider_output(Response(URL, request=Request(URL)), yielded)) == []
    assert world.crawled == yielded
