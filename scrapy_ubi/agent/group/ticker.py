"""The passing of time: the protocol hears of it, and what it then says at once is done.

Rules of this module:

* Mail has its turn several times a flush interval, and the protocol hears of the time once; and whenever word has come.
* Without time no fence falls: an agent whose time has stopped by a mistake of ours must stop, too.
* An agent whose loop is busy for too long is stalled: it stops beating, since it could not keep what it says.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from scrapy_ubi.agent.crawl.crawl import Crawl
from scrapy_ubi.agent.crawl.fatal import Fatal
from scrapy_ubi.agent.mail.timing import EAGER
from scrapy_ubi.protocol.agent import Effects
from scrapy_ubi.protocol.beat import Beat
from scrapy_ubi.settings import UbiSettings

logger = logging.getLogger("scrapy_ubi")


class Ticker:
    """The time of one agent. `on_turn` has mail exchanged, `on_cancel` aborts all loads, `on_tick` sees to all else
    that may follow; the first and the last are told the time (s), the last the beat that is to be published, too."""

    def __init__(
        self,
        crawl: Crawl,
        settings: UbiSettings,
        halt: Fatal,
        on_turn: Callable[[float], None],
        on_cancel: Callable[[], None],
        on_tick: Callable[[float, Beat], None],
        clock: Callable[[], float],
    ) -> None:
        self._crawl = crawl
        self._settings = settings
        self._halt = halt
        self._clock = clock
        self._on_turn = on_turn
        self._on_cancel = on_cancel
        self._on_tick = on_tick
        self._task: asyncio.Task[None] | None = None
        self._ticked = clock()
        self._cancels = self._overdue = 0  # done so far (`Effects`)

    @property
    def started(self) -> bool:
        """Whether time has begun to pass."""
        return self._task is not None

    def start(self) -> None:
        """Let time pass."""
        self._task = asyncio.ensure_future(self._pass())
        self._task.add_done_callback(self._stopped)

    def stop(self) -> None:
        """Stop: no time passes from now on."""
        if self._task is not None:
            self._task.cancel()

    def stalled(self) -> bool:
        """Whether no beat may be sent: the loop has been busy for too long, or the identifier is another process's now.
        From any thread."""
        return self._crawl.agent.usurped or self._clock() - self._ticked > self._settings.stall_timeout

    def late(self) -> float:
        """For how long the loop has not turned (s), as far as it should have. From any thread."""
        return self._clock() - self._ticked if self.started else 0.0

    async def _pass(self) -> None:
        turns = 0
        while True:
            await asyncio.sleep(self._settings.flush_interval / EAGER)
            turns = (turns + 1) % EAGER
            if not turns:
                self.tick()
            self._on_turn(self._clock())

    def _stopped(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._halt.failed(error)

    def tick(self) -> None:
        """Time has passed, or word has come."""
        self._ticked = now = self._clock()
        self._crawl.recrawl.tick(self._crawl.agent, now)
        effects = self._crawl.agent.tick(now)
        self._do(effects)
        self._on_tick(now, effects.beat)

    def _do(self, effects: Effects) -> None:
        """Do what is to be done at once, as far as it is not done yet."""
        if effects.cancels > self._cancels:
            self._cancels = effects.cancels
            self._on_cancel()
        if effects.overdue > self._overdue:
            logger.warning(
                "%d hosts of this agent were not handed over within %g s: it fetches them now, "
                "and pages may be fetched twice. Where agents run but are slow to hand over, a longer "
                "UBI_FAILURE_TIMEOUT helps.",
                effects.overdue - self._overdue,
                self._settings.handoff_timeout,
            )
            self._overdue = effects.overdue
        if effects.usurped and not self._halt.dead:
            self._halt.stop(
                f"Another process lives as agent {self._crawl.agent.me} in crawl {self._settings.crawl}: this one "
                "stops. Give each process its own UBI_AGENT_ID."
            )
