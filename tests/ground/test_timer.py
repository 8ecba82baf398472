"""A call that is made later, once, or taken back."""

from __future__ import annotations

import asyncio

from scrapy_ubi.ground.timer import Timer


def test_it_calls_once_and_is_not_set_any_more() -> None:
    async def run() -> None:
        timer, called = Timer(), asyncio.Event()
        assert not timer.is_set
        timer.set(0.0, lambda: (called.set(), states.append(timer.is_set)))
        assert timer.is_set
        await called.wait()

    states: list[bool] = []
    asyncio.run(run())
    assert states == [False]


def test_what_is_set_or_cleared_takes_the_place_of_what_was_to_be_called() -> None:
    async def run() -> None:
        first, second = Timer(), Timer()
        first.set(0.0, lambda: called.append("first"))
        second.set(0.0, lambda: called.append("second"))
        first.clear()
        last = asyncio.Event()
        second.set(0.0, last.set)
        await last.wait()
        assert not first.is_set and not second.is_set

    called: list[str] = []
    asyncio.run(run())
    assert not called
