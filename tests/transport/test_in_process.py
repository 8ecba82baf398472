"""The twin in memory: the faults a test may ask for, and beats by the loop's own clock."""

from __future__ import annotations

import asyncio

import pytest

from scrapy_ubi.transport import Outgoing, TransportDown
from scrapy_ubi.transport.in_process import MemoryHub, MemoryTransport
from tests.transport.exchanges import ids, letter, seqs


def test_broken_connection_applies_a_part_and_repeating_is_enough() -> None:
    async def run() -> None:
        for most in range(8):
            hub = MemoryHub()
            a, b = MemoryTransport(hub, "a"), MemoryTransport(hub, "b")
            await b.exchange(Outgoing(letters=[("a", letter(0))]))
            first = await a.exchange(Outgoing())
            out = Outgoing(
                letters=[("b", letter(1)), ("b", letter(2))], acks={("b", "lane"): "[0]"}, control={"run": "1"}
            )
            hub.break_after = most
            with pytest.raises(TransportDown):
                await a.exchange(Outgoing(out.letters, out.acks, ids(first), control=out.control))
            await a.exchange(out)  # without the ids: the transport remembers them
            incoming = await b.exchange(Outgoing())
            assert sorted(set(seqs(incoming))) == [1, 2]
            assert (incoming.acks, incoming.control) == ({"lane": "[0]"}, {"run": "1"})
            assert hub.shelf("crawl").inbox["a"] == {}

    asyncio.run(run())


def test_crawls_of_one_hub_are_apart() -> None:
    async def run() -> None:
        hub = MemoryHub()
        one, two = MemoryTransport(hub, "a", "one"), MemoryTransport(hub, "a", "two")
        assert await one.claim("a", None, "1")
        assert await two.claim("a", None, "2")
        assert await one.clear()
        assert (await one.beats(), await two.beats()) == ({}, {"a": "2"})

    asyncio.run(run())


class Leaping(asyncio.SelectorEventLoop):
    """A loop whose clock leaps to the next timer instead of waiting for it."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def time(self) -> float:
        return self.now

    def _run_once(self) -> None:  # type: ignore[misc]
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]
            self.now = max(self.now, self._scheduled[0]._when)  # type: ignore[attr-defined]
        super()._run_once()  # type: ignore[misc]


def test_beats_keep_to_the_clock_of_the_loop() -> None:
    async def run() -> None:
        loop, sent = asyncio.get_running_loop(), list[float]()
        transport = MemoryTransport(MemoryHub(), "a")
        transport.start_beating("a", 1.0, str, sent.append, lambda *read: None, loop.time, lambda: False)
        await asyncio.sleep(3.5)
        assert sent == [0.0, 1.0, 2.0, 3.0]
        transport.beat_now()
        transport.beat_now()
        await asyncio.sleep(0.01)
        assert sent[4:] == [3.5]
        transport.beat_now()  # a twentieth of the interval after the last
        await asyncio.sleep(0.3)
        assert sent[5:] == [3.55]
        await asyncio.sleep(1)
        assert sent[6:] == [4.0]  # back on the schedule
        await transport.close()
        await asyncio.sleep(5)
        assert len(sent) == 7

    with asyncio.Runner(loop_factory=Leaping) as runner:
        runner.run(run())


def test_beat_now_does_not_hurry_to_a_hub_that_is_down() -> None:
    async def run() -> None:
        loop, hub = asyncio.get_running_loop(), MemoryHub()
        transport = MemoryTransport(hub, "a")
        hub.down = True
        transport.start_beating("a", 1.0, str, lambda sent: None, lambda *read: None, loop.time, lambda: False)
        for _ in range(35):
            transport.beat_now()
            await asyncio.sleep(0.1)
        assert transport.counts["beats_failed"] == 4  # at 0, 1, 2 and 3

    with asyncio.Runner(loop_factory=Leaping) as runner:
        runner.run(run())
