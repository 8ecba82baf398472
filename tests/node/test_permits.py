"""Permits: one load at a time of a host, by its owner, and only of what is not done."""

from __future__ import annotations

import asyncio

from scrapy_ubi.frontier.memory import MemoryFrontier
from scrapy_ubi.node import clock
from scrapy_ubi.node.permits import Permits
from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.protocol.config import Config
from scrapy_ubi.protocol.host import Entry

HOST = "h1.example"


def agent() -> Agent:
    """One that is alone, and may fetch."""
    alone = Agent("a", "5" * 8, Config(), MemoryFrontier(0.0), lambda: "1" * 8, clock.now())
    alone.sure()
    alone.lease.acknowledged(clock.now())
    alone.read(clock.now(), clock.now(), {"a": alone.beat})
    alone.tick(clock.now())
    alone.read(clock.now(), clock.now(), {"a": alone.beat})
    return alone


def test_a_request_whose_page_was_done_elsewhere_while_it_waited_is_denied() -> None:
    async def run() -> None:
        me = agent()
        me.discover(HOST, Entry(1, f"http://{HOST}/", 0))
        found = me.next(clock.now())
        assert found is not None
        state, entry = found
        permits = Permits(me, clock.now)
        assert await permits.acquire(HOST, None)  # somebody else loads: the request has to wait
        waiting = asyncio.ensure_future(permits.acquire(HOST, state, entry.key))
        await asyncio.sleep(0)
        assert not waiting.done()
        me.frontier.add_done(state, [entry.key])
        permits.release(HOST)
        assert not await asyncio.wait_for(waiting, 10)

    asyncio.run(run())
