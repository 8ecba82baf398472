"""Waiting briefly: it ends with the event, or with the time, and a cancellation is heard."""

from __future__ import annotations

import asyncio

import pytest

from scrapy_ubi.node.group.waiting import wait_briefly


async def waits(most: float | None) -> tuple[asyncio.Event, asyncio.Task[None]]:
    """Somebody who waits already."""
    event = asyncio.Event()
    waiting = asyncio.ensure_future(wait_briefly(event, most))
    await asyncio.sleep(0)
    assert not waiting.done()
    return event, waiting


@pytest.mark.parametrize("most", [None, 60.0])
def test_it_ends_with_the_event(most: float | None) -> None:
    async def run() -> None:
        event, waiting = await waits(most)
        event.set()
        await waiting

    asyncio.run(run())


def test_it_ends_without_the_event() -> None:
    asyncio.run(wait_briefly(asyncio.Event(), 0.0))


def test_who_is_cancelled_hears_of_it_though_the_event_comes_at_the_same_time() -> None:
    async def run() -> None:
        event, waiting = await waits(60.0)
        event.set()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(run())
