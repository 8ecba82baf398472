"""Two transports that exchange letters: what the tests of the contract have in common."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from scrapy_ubi.agent.waits import retry_until
from scrapy_ubi.ground import clock
from scrapy_ubi.transport import (
    Incoming,
    Outgoing,
    Transport,
)
from tests.transport.worlds import World

EMPTY = Outgoing()
OPEN_LIMIT = 20.0  # s


async def open_in_time(*transports: Transport) -> None:
    """Open them as agents do: a server on a busy machine may take longer than the time-out of a test."""
    for transport in transports:
        await retry_until(transport.open, OPEN_LIMIT, clock.now)


def play(world: World, scene: Callable[..., Awaitable[None]], **limits: int) -> None:
    """Run `scene(a, b)` with two open transports of agents `a` and `b`."""

    async def run() -> None:
        a, b = world.transport("a", **limits), world.transport("b", **limits)
        await open_in_time(a, b)
        try:
            await scene(a, b)
        finally:
            await a.close()
            await b.close()

    asyncio.run(run())


def letter(number: int, **more: str) -> dict[str, str]:
    return {"from": "a", "seq": str(number), **more}


def seqs(incoming: Incoming) -> list[int]:
    return [int(fields[b"seq"]) for _, fields in incoming.letters]


def said(incoming: Incoming) -> Incoming:
    """What it says, but for what names the memory of the server."""
    return replace(incoming, memory="")


async def read_again(transport: Transport, out: Outgoing = EMPTY) -> Incoming:
    """Exchange until letters come: a line that has failed rests for a moment."""
    while not (incoming := await transport.exchange(out)).letters:
        await asyncio.sleep(0.01)
        out = EMPTY
    return incoming


def ids(incoming: Incoming) -> list[str]:
    return [one for one, _ in incoming.letters]


async def take(transport: Transport, wanted: int) -> list[int]:
    """Exchange and consume until `wanted` letters have come."""
    got: list[int] = []
    consumed: list[str] = []
    while len(got) < wanted:
        incoming = await transport.exchange(Outgoing(consumed=consumed))
        got += seqs(incoming)
        consumed = ids(incoming)
        assert consumed, "letters are missing"
    await transport.exchange(Outgoing(consumed=consumed))
    return got
