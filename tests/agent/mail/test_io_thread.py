"""The courier: coroutines run in a thread of their own, and what comes of them arrives in the caller's loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from scrapy_ubi.agent.mail.io_thread import IoThread
from scrapy_ubi.transport import TransportDown

LIMIT = 60.0  # s: what has not come by then never will


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), LIMIT))


async def where() -> str:
    await asyncio.sleep(0)
    return threading.current_thread().name


async def fail() -> None:
    await asyncio.sleep(0)
    raise TransportDown("away")


@pytest.fixture(params=[False, True], ids=["here", "own_thread"])
def own_thread(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def test_call_waits_for_what_comes_of_it(own_thread: bool) -> None:
    async def test() -> None:
        courier = IoThread(own_thread)
        courier.start()
        assert (await courier.call(where()) == threading.current_thread().name) != own_thread
        with pytest.raises(TransportDown):
            await courier.call(fail())
        await courier.stop()

    run(test)


def test_what_was_sent_arrives_in_the_callers_loop(own_thread: bool) -> None:
    async def test() -> None:
        courier = IoThread(own_thread)
        courier.start()
        arrived = asyncio.Event()
        arrivals = []

        def on_arrival() -> None:
            arrivals.append((threading.current_thread(), future.done()))
            arrived.set()

        future = courier.send(where(), on_arrival)
        assert arrivals == [], "never at once: the caller is in the middle of something"
        await arrived.wait()
        assert arrivals == [(threading.current_thread(), True)]
        assert (future.result() == threading.current_thread().name) != own_thread
        await courier.stop()

    run(test)


def test_failures_arrive_too(own_thread: bool) -> None:
    async def test() -> None:
        courier = IoThread(own_thread)
        courier.start()
        arrived = asyncio.Event()
        future = courier.send(fail(), arrived.set)
        await arrived.wait()
        with pytest.raises(TransportDown, match="away"):
            future.result()
        await courier.stop()

    run(test)


def test_a_callers_loop_that_is_blocked_does_not_stop_what_is_under_way() -> None:
    async def test() -> None:
        courier = IoThread(own_thread=True)
        courier.start()
        future = courier.send(where(), lambda: None)
        assert future.result(LIMIT) == "ubi-mail", "waited for without giving way"
        await courier.stop()

    run(test)


def test_stopped_the_thread_has_ended() -> None:
    async def test() -> None:
        courier = IoThread(own_thread=True)
        courier.start()
        await courier.call(where())
        await courier.stop()
        await courier.stop()
        assert "ubi-mail" not in [thread.name for thread in threading.enumerate()]

    run(test)


def test_what_arrives_after_the_callers_loop_is_closed_is_nobodys() -> None:
    courier = IoThread(own_thread=True)
    go, done = threading.Event(), threading.Event()
    arrivals = []

    async def slow() -> None:
        await asyncio.to_thread(go.wait, LIMIT)

    async def test() -> None:
        courier.start()
        future = courier.send(slow(), lambda: arrivals.append(1))
        future.add_done_callback(lambda _: done.set())

    run(test)
    go.set()
    assert done.wait(LIMIT)
    asyncio.run(courier.stop())
    assert arrivals == []
