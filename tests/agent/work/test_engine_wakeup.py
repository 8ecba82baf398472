"""The engine is woken when there may be something for it, at once or by one timer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest

from scrapy_ubi.agent.work.engine_wakeup import EngineWakeup
from tests.agent.crawler import LIMIT
from tests.agent.parts import Part

LATER = 3600.0


class Engine(Part):
    """Counts how often it is woken."""

    def __init__(self) -> None:
        super().__init__()
        self.woken = 0
        self.wake = asyncio.Event()
        self.waker = EngineWakeup(self.crawl, self.halt, self.clock, self.woke)

    def woke(self) -> None:
        self.woken += 1
        self.wake.set()

    def find(self, ready_in: float = 0.0) -> None:
        """A page waits, of a host that is ready then."""
        at = self.now + ready_in
        self.crawl.frontier.next_ready = lambda: at  # type: ignore[method-assign]


async def others() -> None:
    """Let everything else have its turn."""
    for _ in range(3):
        await asyncio.sleep(0)


def run(test: Callable[[Engine], object]) -> None:
    async def inside() -> None:
        engine = Engine()
        done = test(engine)
        if asyncio.iscoroutine(done):
            await asyncio.wait_for(done, LIMIT)
        engine.waker.stop()

    asyncio.run(inside())


def test_a_host_that_is_ready_wakes_it_while_the_lease_holds() -> None:
    def test(engine: Engine) -> None:
        engine.find()
        engine.waker.arm()
        assert not engine.woken, "the agent is fenced"
        engine.hold_lease()
        engine.waker.arm(wake=False)
        assert not engine.woken, "it has just looked"
        engine.waker.arm()
        assert engine.woken == 1

    run(test)


def test_nothing_wakes_it_where_nothing_waits() -> None:
    async def test(engine: Engine) -> None:
        engine.hold_lease()
        engine.waker.arm()
        await others()
        assert not engine.woken

    run(test)


def test_a_host_that_is_ready_later_wakes_it_then() -> None:
    async def test(engine: Engine) -> None:
        engine.hold_lease()
        engine.find(ready_in=0.001)
        engine.waker.arm()
        assert not engine.woken
        await engine.wake.wait()
        assert engine.woken == 1

    run(test)


def test_there_is_one_timer_and_it_can_be_taken_back() -> None:
    async def test(engine: Engine) -> None:
        engine.hold_lease()
        engine.find(LATER)
        loop, timers = asyncio.get_running_loop(), list[asyncio.TimerHandle]()
        call_later = loop.call_later

        def kept(*given: Any) -> asyncio.TimerHandle:
            timers.append(call_later(*given))
            return timers[-1]

        with patch.object(loop, "call_later", kept):
            for _ in range(2):
                engine.waker.arm()
        assert [timer.cancelled() for timer in timers] == [True, False]
        engine.waker.stop()
        assert [timer.cancelled() for timer in timers] == [True, True]

    run(test)


@pytest.mark.parametrize("end", ["over", "dead"])
def test_the_end_wakes_it_though_it_has_just_looked(end: str) -> None:
    def test(engine: Engine) -> None:
        if end == "over":
            engine.crawl.agent.accept_end(lossy=False)
        else:
            engine.halt.stop("It ends.")
        engine.waker.arm(wake=False)
        assert engine.woken == 1

    run(test)


def test_what_comes_soon_comes_once() -> None:
    async def test(engine: Engine) -> None:
        first: list[int] = []
        engine.hold_lease()
        engine.find()
        for _ in range(3):
            engine.waker.soon(lambda: first.append(engine.woken))
        assert not engine.woken and not first, "all else has its turn before"
        await others()
        assert (engine.woken, first) == (1, [0])
        engine.waker.soon(lambda: first.append(engine.woken))
        await others()
        assert (engine.woken, first) == (2, [0, 1])

    run(test)
