"""When the agent's mail is exchanged: the exchange's turns in the loop.

Rules of this module:

* What runs in the event loop calls `turn`: it takes what an exchange has brought, and begins another one when it is
  time, so that no exchange waits for a turn of the loop.
* What others wait for sets `hurry`: the next exchange begins as soon as the one under way has ended.
* While mail cannot leave, only as much is to be fetched as is worth fetching twice (`choked`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from scrapy_ubi.agent.crawl.crawl import Crawl
from scrapy_ubi.agent.mail.exchange import Exchange, NoExchange
from scrapy_ubi.agent.waits import wait_briefly

A_MOMENT = 0.5  # s: who waits for an exchange looks again after it


class MailTrouble(NamedTuple):
    """What keeps mail from leaving: the disk; so much waits that nothing is fetched; a kind of `Outage`, or empty."""

    disk_full: bool = False
    choked: bool = False
    outage: str = ""


class Profiles(Protocol):
    """The profiles that leave with mail (`report.publish.Publisher`)."""

    def profile(self) -> str | None:
        """Return the profile; None when it is too soon for another one."""

    def taken(self) -> None:
        """Hear that the last one was taken."""

    def renew(self) -> None:
        """Let the next one be due now, and count again for it."""


class ExchangeLoop:
    """The exchanges of one agent, from `attach` on. `on_exchange` is told of each that has ended, whatever came of it.
    `most_waiting` is `flush_records` of the settings. `hurry`: there is cause to begin another one."""

    def __init__(
        self,
        crawl: Crawl,
        publishing: Profiles,
        most_waiting: int,
        on_exchange: Callable[[Exchange | NoExchange], None],
        clock: Callable[[], float],
    ) -> None:
        self._crawl = crawl
        self._publishing = publishing
        self._most_waiting = most_waiting
        self._on_exchange = on_exchange
        self._clock = clock
        self._ended = asyncio.Event()
        self.exchange: Exchange | NoExchange = NoExchange()
        self._closed = True
        self.hurry = False

    def attach(self, exchange: Exchange) -> None:
        """From now on there is somebody to exchange mail with."""
        self._closed = False
        self.exchange = exchange
        exchange.counts_anew = self._crawl.counts_anew

    def detach(self) -> None:
        """From now on the result of an exchange under way is not used."""
        self._closed = True
        self.exchange = NoExchange()

    def turn(self, now: float) -> None:
        """Give and take mail, when there is some."""
        exchange = self.exchange
        if exchange.collect(now):
            self._ended.set()
            if exchange.published is not None:
                self._counted(exchange)
            self._on_exchange(exchange)
        if exchange.may_send(now, self.hurry):
            self.hurry = False
            self._crawl.agent.tick(now)
            exchange.send(now, self._publishing.profile)

    def _counted(self, exchange: Exchange | NoExchange) -> None:
        """A profile was taken, or left out."""
        taken, exchange.published = bool(exchange.published), None
        self._crawl.published(taken)
        exchange.counts_anew = self._crawl.counts_anew
        if taken:
            self._publishing.taken()
        else:
            exchange.count_anew()
            self._publishing.renew()

    def arrived(self) -> None:
        """There is something to take."""
        self.turn(self._clock())

    def soon(self, call: Callable[[], None]) -> None:
        """Call this in the next turn of the loop, unless the exchanges are closed by then."""
        asyncio.get_running_loop().call_soon(lambda: None if self._closed else call())

    def look_for_much(self) -> None:
        """Hurry when much waits to be sent."""
        if self.sendable >= self._most_waiting:
            self.hurry = True

    @property
    def sendable(self) -> int:
        """Records that the next exchange can send: not those under way, nor what waits for them."""
        outbox = self._crawl.agent.outbox
        window = outbox.bounds.window
        lanes = outbox.lanes.values()
        return sum([len(lane.waiting) for lane in lanes if len(lane.unacknowledged) < window])

    # -- an agent that leaves waits for them

    def press(self, hurry: bool = True) -> None:
        """Begin one, if none is under way; `wait` waits for the end of one from now on."""
        self.hurry = hurry
        self._ended.clear()
        self.turn(self._clock())

    async def wait(self) -> None:
        """Wait for the end of an exchange, or a moment."""
        await wait_briefly(self._ended, A_MOMENT)

    # -- how it stands

    @property
    def busy(self) -> bool:
        """Whether something waits for an exchange to take it."""
        return self.exchange.busy

    def has_told(self, since: float) -> bool:
        """Whether all that was new at this time (s) has left, with a profile that was made later."""
        return self.exchange.told_at >= since

    def control(self) -> Mapping[str, str]:
        """What the control hash said last."""
        return self.exchange.control

    def slowest(self) -> float:
        """How long the slowest exchange took that was answered since this was asked last (s)."""
        slowest, self.exchange.slowest = self.exchange.slowest, 0.0
        return slowest

    @property
    def disk_full(self) -> bool:
        """Whether the last flush could not be written."""
        return self.exchange.disk_full

    @property
    def blocked(self) -> bool:
        """Whether the disk or Redis is full."""
        return self.exchange.full or self.exchange.disk_full

    @property
    def trouble(self) -> MailTrouble:
        """What keeps mail from leaving now."""
        return MailTrouble(self.disk_full, self.choked, self.exchange.outage.kind)

    @property
    def choked(self) -> bool:
        """Whether the disk is full, or Redis (or that of a mail slot) full or away and so much waits to be sent that
        nothing should be added: were this agent killed now, or cut off until it is held dead, all pages that are not
        written, or whose done marks wait, would be fetched again.
        """
        exchange = self.exchange
        return exchange.disk_full or (
            (exchange.full or exchange.away or exchange.slots_away > 0)
            and len(self._crawl.agent.outbox) >= self._most_waiting
        )
