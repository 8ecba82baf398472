"""The life of one agent: it joins its group, exchanges mail and beats while time passes, and leaves.

Rules of this module:

* What follows from an exchange, from a read of beats and from the passing of time begins here; who cares for it is
  registered by the builder.
* An agent that never joined leaves nothing behind but its closed disk.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from scrapy_ubi.agent.crawl.crawl import Crawl
from scrapy_ubi.agent.crawl.fatal import Fatal
from scrapy_ubi.agent.group.beats import Beats
from scrapy_ubi.agent.group.join import Join
from scrapy_ubi.agent.group.leave import Leave
from scrapy_ubi.agent.group.lost_agents import LostAgents
from scrapy_ubi.agent.group.ticker import Ticker
from scrapy_ubi.agent.mail.exchange import Exchange
from scrapy_ubi.agent.mail.exchange_loop import ExchangeLoop
from scrapy_ubi.agent.mail.io_thread import IoThread
from scrapy_ubi.agent.mail.seed_inbox import SeedInbox
from scrapy_ubi.agent.report.idle_watch import IdleWatch
from scrapy_ubi.agent.report.publish import Publisher, published
from scrapy_ubi.agent.report.recorder import Recorder
from scrapy_ubi.agent.steering.runtime import RuntimeSettings
from scrapy_ubi.agent.work.engine_wakeup import EngineWakeup
from scrapy_ubi.agent.work.handout import Handout
from scrapy_ubi.agent.work.host_access import HostAccess
from scrapy_ubi.transport import Transport

logger = logging.getLogger("scrapy_ubi")

MakeExchange = Callable[[Mapping[str, str]], Exchange]  # of what the control hash said at the start


class Lifecycle:
    """The life of one agent, by the parts that take part in it. `published`: agent -> its profile, when this one had
    left."""

    def __init__(
        self,
        crawl: Crawl,
        transport: Transport,
        io: IoThread,
        fatal: Fatal,
        seeds: SeedInbox,
        publisher: Publisher,
        exchanges: ExchangeLoop,
        make_exchange: MakeExchange,
        beats: Beats,
        ticker: Ticker,
        join: Join,
        leave: Leave,
        lost: LostAgents,
        live: RuntimeSettings,
        access: HostAccess,
        handout: Handout,
        waker: EngineWakeup,
        recorder: Recorder,
        idle: IdleWatch,
    ) -> None:
        self._crawl = crawl
        self.transport = transport
        self._io = io
        self._fatal = fatal
        self._seeds = seeds
        self.publisher = publisher
        self.exchanges = exchanges
        self._make_exchange = make_exchange
        self.beats = beats
        self.ticker = ticker
        self.join = join
        self._leave = leave
        self._lost = lost
        self._live = live
        self._access = access
        self._handout = handout
        self._waker = waker
        self._recorder = recorder
        self._idle = idle
        self.published: dict[str, str] = {}

    async def open(self) -> None:
        """Join the group. Raises UbiError with one sentence when refused, TransportError when Redis cannot be used."""
        self._io.start()
        try:
            control = await self.join.go()
            self.publisher.kept = self.join.published
            if self.transport.takes_seeds:
                self._crawl.agent.end.allow_outside_entries()
            else:
                self._seeds.close()
        except BaseException:
            await self._let_go()
            raise
        self._live.begin_with(control, self._crawl.live)
        exchange = self._make_exchange(control)
        await exchange.write_first()
        self.exchanges.attach(exchange)
        self.beats.start(self.ticker.stalled)
        self.ticker.start()
        await self.beats.wait()
        self.join.introduce(self.beats.watched)
        await self._recorder.start()

    async def leave(self, reason: str) -> None:
        """Leave: say that the crawl is over, or hand everything over first, for at most `UBI_LEAVE_TIMEOUT`."""
        self._access.permits.close()
        self._handout.close()
        if not self.ticker.started:  # it never joined
            await self._crawl.disk.close()
            return
        await self._leave.go()
        await self._idle.close()
        if not self._fatal.dead:
            self.published = await published(self._io, self.transport)
        await self._recorder.close(self._leave.stage)
        self.exchanges.detach()
        self.ticker.stop()
        self._waker.stop()
        agent = self._crawl.agent
        await self.transport.stop_beating(None if self._fatal.dead else agent.last_beat().line(0))
        await self._let_go()
        logger.info("Agent %s has %s (reason: %s).", agent.me, self._leave.stage, reason)

    @property
    def lost_agents(self) -> tuple[str, ...]:
        """Once this agent has left a crawl that is over: who was lost, more than there are copies."""
        return self._lost.names

    async def _let_go(self) -> None:
        """Close transport, I/O thread and disk."""
        await self._io.call(self.transport.close())
        await self._io.stop()
        await self._crawl.disk.close()
