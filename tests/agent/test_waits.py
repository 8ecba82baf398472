"""A Redis that is away is waited for, and an event, and not without a limit."""

from __future__ import annotations

import asyncio
import logging

import pytest

from scrapy_ubi.agent.waits import retry_until, wait_briefly
from scrapy_ubi.transport import TransportDown, TransportError, TransportFull


class Redis:
    """Is away, or what `error` says, when it is asked the first `away` times; `now` is what the clock says, and each
    look at it a second.
    """

    def __init__(self, away: int, error: type[TransportError] = TransportDown) -> None:
        self.away, self.asked, self.now = away, 0, 0.0
        self.error = error

    async def step(self) -> str:
        self.asked += 1
        if self.asked <= self.away:
            raise self.error("nothing listens.")
        return "there"

    def clock(self) -> float:
        self.now += 1
        return self.now


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapy_ubi.agent.waits.PAUSE", 0.0)


def wait(redis: Redis, most: float) -> str:
    return asyncio.run(retry_until(redis.step, most, redis.clock))


def test_one_that_is_there_is_asked_once_and_nothing_is_said(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    redis = Redis(0)
    assert wait(redis, 10) == "there"
    assert redis.asked == 1
    assert not caplog.messages


@pytest.mark.parametrize("error", [TransportDown, TransportFull])
def test_one_that_comes_is_waited_for_and_both_are_said_once(
    caplog: pytest.LogCaptureFixture, error: type[TransportError]
) -> None:
    caplog.set_level(logging.INFO)
    assert wait(Redis(3, error), 10) == "there"
    assert caplog.messages == [
        "nothing listens. Trying again for up to 10 s (UBI_REDIS_WAIT).",
        "Redis is there now.",
    ]


def test_one_that_does_not_come_is_given_up() -> None:
    redis = Redis(1000)
    with pytest.raises(TransportDown):
        wait(redis, 10)
    assert redis.asked == 11, "at once, and each second until ten have passed"


def test_with_nothing_to_wait_it_is_given_up_at_once_and_nothing_is_said(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    redis = Redis(1)
    with pytest.raises(TransportDown):
        wait(redis, 0)
    assert redis.asked == 1
    assert not caplog.messages


def test_what_waiting_cannot_mend_is_not_waited_for() -> None:
    asked: list[str] = []

    async def step() -> None:
        asked.append("once")
        raise TransportError("a wrong password.")

    redis = Redis(0)
    with pytest.raises(TransportError):
        asyncio.run(retry_until(step, 10, redis.clock))
    assert len(asked) == 1


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
