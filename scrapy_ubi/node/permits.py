"""One load at a time of a host, and none without the right to it: asked last, right before a load starts.

Rules of this module:

* A permit is held from the moment a load may start until its transfer has ended, by whoever loads: a request of the
  queue, a robots.txt, media, a redirect's next hop. A request handed out by the workbench holds no permit while it
  waits, so the robots.txt it waits for can be loaded.
* A permit is given only when, at that moment, the agent owns the host, the host is not held, the lease holds, and the
  politeness delay has passed. What will come true is waited for; what will not (another agent's host) is denied.
* A request of the queue whose host was put off for long (`PATIENCE`) does not wait here: it is denied, and waits in its
  queue, so that it takes nobody's place.
* A request that was handed out may wait through a fence, while another agent fetches it: once its page is done, it is
  denied.
* Who lost its permit in the middle of a load, and is to load again, comes before all others: it keeps its place in
  Scrapy's downloader, and whoever had the permit would wait for that place.
* The check and the taking are one step: nothing is awaited in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.protocol.host import HostState
from scrapy_ubi.protocol.setstate import SetState

from .waiting import wait_briefly

PATIENCE = 60.0  # s: longer than robots.txt and its delay take, but for very long delays


class Permits:
    """The permits of one agent, by host. `clock` gives the agent's time."""

    def __init__(self, agent: Agent, clock: Callable[[], float]) -> None:
        self._agent = agent
        self._clock = clock
        self._held: dict[str, HostState | None] = {}  # host -> the borrowed state, None for a request of the queue
        self._kept: set[str] = set()  # hosts whose next permit is that of who loads again
        self._changed: asyncio.Event = asyncio.Event()
        self.closed = False

    async def acquire_again(self, host: str, state: HostState | None, key: int = 0) -> bool:
        """As `acquire`, before all others; to be called in the turn in which the permit was released."""
        self._kept.add(host)
        try:
            return await self.acquire(host, state, key, again=True)
        finally:
            self._kept.discard(host)
            self.look_again()

    async def acquire(self, host: str, state: HostState | None, key: int = 0, again: bool = False) -> bool:
        """Wait for the permit; False when this agent must not load from the host now, or need not. `state` and `key`
        are those of a request of the queue, `state` is None for what bypasses it."""
        while not self.closed and not self._agent.finished:
            if not self._agent.owns(host) or (state is not None and state.is_done(key)):
                return False
            if host not in self._held and (again or host not in self._kept):
                known = state or self._agent.frontier.find(host) or SetState(host)
                now = self._clock()
                if self._agent.may_fetch(known, now):
                    if known.next_at <= now:
                        self._held[host] = None if state is not None else self._agent.borrow(host)
                        return True
                    if state is not None and known.next_at - now > PATIENCE:
                        return False
                    await wait_briefly(self._changed, known.next_at - now)
                    continue
            await wait_briefly(self._changed, None)
        return False

    def release(self, host: str) -> bool:
        """The transfer has ended; False when no permit was held."""
        if host not in self._held:
            return False
        borrowed = self._held.pop(host)
        if borrowed is not None:
            self._agent.give_back(borrowed, self._clock())
        self.look_again()
        return True

    def look_again(self) -> None:
        """Something changed that permits hang on: let those who wait look again."""
        self._changed.set()
        self._changed = asyncio.Event()

    def close(self) -> None:
        """Deny whatever waits."""
        self.closed = True
        self.look_again()
