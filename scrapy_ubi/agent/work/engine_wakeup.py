"""When the engine looks for requests again.

Rules of this module:

* What may have made a host ready calls `arm`: the engine is woken at once when one is ready now, else by one timer
  at the time the first one will be.
* The end of the crawl, or of this agent, wakes it, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from scrapy_ubi.agent.crawl.crawl import Crawl
from scrapy_ubi.agent.crawl.fatal import Fatal
from scrapy_ubi.ground.timer import Timer


class EngineWakeup:
    """Wakes the engine of one agent by `on_wake`."""

    def __init__(self, crawl: Crawl, halt: Fatal, clock: Callable[[], float], on_wake: Callable[[], None]) -> None:
        self._crawl = crawl
        self._halt = halt
        self._clock = clock
        self._wake = on_wake
        self._timer = Timer()
        self._soon = False

    def arm(self, wake: bool = True) -> None:
        """Wake the engine when a host is ready (or all is over), or let a timer do it at the time one will be. Not
        at once without `wake`: the engine has just looked, and found nothing.
        """
        self._timer.clear()
        agent, frontier = self._crawl.agent, self._crawl.frontier
        if self._halt.dead or agent.end.finished:
            self._wake()
            return
        now, ready = self._clock(), frontier.next_ready()
        if ready is None or ready > now:  # what is ready now, as at full pelt, is asked about no further
            read = frontier.next_read()
            ready = read if ready is None else ready if read is None else min(ready, read)
        if ready is None:
            return
        if ready > now:
            self._timer.set(ready - now, self._wake)
        elif wake and agent.group.lease.holds(now):
            self._wake()

    def soon(self, first: Callable[[], None]) -> None:
        """Call `first`, then `arm`, after all else that the loop does at this moment: so once for all links of a page,
        however often this is called."""
        if not self._soon:
            self._soon = True
            asyncio.get_running_loop().call_soon(self._arm_after, first)

    def _arm_after(self, first: Callable[[], None]) -> None:
        self._soon = False
        first()
        self.arm()

    def stop(self) -> None:
        """Take the timer back."""
        self._timer.clear()
