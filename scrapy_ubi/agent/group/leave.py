"""How an agent leaves its group: it hands over what it holds, then publishes its last counters.

Rules of this module:

* Where the crawl is over, or the agent is dead, nothing is handed over. Else everything is, for at most
  `UBI_LEAVE_TIMEOUT`; what is left over then stays on its disk, and to the others it is as after a crash.
* Where the crawl is over, it is seen first what came of it (`find_lost`): the last counters tell of that.
* Where no agent is left to hand over to, the last counters are of what the agent owned: it keeps that.
* The last exchange says how it ended. A Redis that does not take it is waited for as long as a lease.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from scrapy_ubi.agent.crawl.crawl import Crawl
from scrapy_ubi.agent.crawl.disk import NoDisk
from scrapy_ubi.agent.crawl.fatal import Fatal
from scrapy_ubi.agent.mail.exchange_loop import ExchangeLoop
from scrapy_ubi.settings import UbiSettings

logger = logging.getLogger("scrapy_ubi")

SILENCE = 5.0  # s between two lines of the log while hosts are handed over

FULL = (
    "What this agent did last could not be written (see above why), no other agent was told of it, and it is fetched "
    "again. Mend that before the agent is started again."
)


class Leave:
    """One agent's leave. `stage`: empty, `leaving`, then `left` or, when the crawl is over, `finished`."""

    def __init__(
        self,
        crawl: Crawl,
        settings: UbiSettings,
        halt: Fatal,
        exchanges: ExchangeLoop,
        renew_profile: Callable[[], None],
        clock: Callable[[], float],
        find_lost: Callable[[], Awaitable[None]],
    ) -> None:
        self._find_lost = find_lost
        self._crawl = crawl
        self._settings = settings
        self._halt = halt
        self._exchanges = exchanges
        self._renew_profile = renew_profile
        self._clock = clock
        self.stage = ""

    async def go(self) -> None:
        """Hand over, where there is something to hand over, and tell everybody how it ended."""
        if not self._crawl.agent.end.finished and not self._halt.dead:
            await self._hand_over()
        self.stage = "finished" if self._crawl.agent.end.finished else "left"
        self._crawl.tally.ended = self._clock()
        if not self._halt.dead:
            self._crawl.agent.record_leave()
        if self._crawl.agent.end.finished and not self._halt.dead:
            await self._find_lost()
        if not self._halt.dead:
            await self._exchange_last()

    async def _hand_over(self) -> None:
        self.stage = "leaving"
        agent, begun = self._crawl.agent, self._clock()
        self._crawl.last_view = agent.view
        agent.leave(begun)
        others = len(agent.view.members)
        if others:
            logger.info(
                "Handing over what is known of %d hosts to %d other agents, for at most %g s (UBI_LEAVE_TIMEOUT). "
                "A second Ctrl-C or SIGTERM ends the process immediately.",
                len(self._crawl.frontier),
                others,
                self._settings.leave_timeout,
            )
        if not await self._wait_for_others(begun):
            return
        self._crawl.handed_over = bool(agent.view.members) and agent.self_status.may_go()
        if not agent.view.members and (others or not agent.self_status.may_go()):
            logger.info("No other agent is left to hand over to: %s.", self._stays())
        elif others and agent.self_status.may_go():
            logger.info("Handed over in %.1f s.", self._clock() - begun)

    async def _wait_for_others(self, begun: float) -> bool:
        """Exchange mail until there is nothing left to wait for; False when it took too long."""
        agent, told = self._crawl.agent, begun
        end = begun + self._settings.leave_timeout
        while not agent.self_status.may_go() and agent.view.members and not agent.end.finished and not self._halt.dead:
            now = self._clock()
            if now > end:
                logger.warning("Not all was handed over within UBI_LEAVE_TIMEOUT: %s.", self._left_over())
                return False
            if now - told > SILENCE:
                told = now
                logger.info("Still handing over: %s.", self._left_over())
            self._exchanges.press(hurry=self._exchanges.sendable > 0)
            await self._exchanges.wait()
        return True

    def _stays(self) -> str:
        if isinstance(self._crawl.disk, NoDisk):
            return "what was not fetched is forgotten with this process"
        return f"what was not fetched stays in {self._settings.dir}, and the same command goes on with it"

    def _left_over(self) -> str:
        agent = self._crawl.agent
        return f"{len(agent.outbox)} records in the outbox, {len(agent.handover.open)} hosts on their way"

    async def _exchange_last(self) -> None:
        """Say that the crawl is over, and publish the last counters."""
        self._crawl.write_facts()
        begun = self._clock()
        while not self._exchanges.has_told(begun) and not self._halt.dead:
            if self._clock() > begun + self._settings.lease_timeout:
                logger.warning(
                    FULL if self._exchanges.disk_full else "Redis did not take the last counters of this agent."
                )
                return
            self._renew_profile()  # one that was made for a full disk may not have been needed
            self._exchanges.press(hurry=not self._exchanges.busy)
            await self._exchanges.wait()
