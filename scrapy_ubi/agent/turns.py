"""What follows in an agent when an exchange of mail has ended, when beats were read, when time has passed, and when
people change its crawl.

Rules of this module:

* The order in which parts hear of it is here, and nowhere else. Of a change of settings they are told once for all.
* All of it runs in the event loop, and touches memory only.
* A paused crawl, or host, starts no load of a page; loads under way end, with what their pages load besides. What
  waits for its permit goes back to its queue.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from scrapy_ubi.agent.crawl.crawl import Crawl
from scrapy_ubi.agent.group.beats import Beats
from scrapy_ubi.agent.group.group_watch import GroupWatch
from scrapy_ubi.agent.group.limit_watch import LimitWatch
from scrapy_ubi.agent.group.ticker import Ticker
from scrapy_ubi.agent.hosts.complete_hosts import CompleteHosts
from scrapy_ubi.agent.hosts.crawl_limits import CrawlLimits
from scrapy_ubi.agent.hosts.host_limits import HostLimits
from scrapy_ubi.agent.hosts.host_pace import HostPace
from scrapy_ubi.agent.hosts.policy import refuses_by
from scrapy_ubi.agent.mail.exchange import Exchange, NoExchange
from scrapy_ubi.agent.mail.exchange_loop import ExchangeLoop
from scrapy_ubi.agent.mail.seed_inbox import SeedInbox
from scrapy_ubi.agent.report.status import Status
from scrapy_ubi.agent.steering.runtime import RuntimeSettings
from scrapy_ubi.agent.work.engine_wakeup import EngineWakeup
from scrapy_ubi.agent.work.host_access import HostAccess
from scrapy_ubi.agent.work.next_request import NextRequest
from scrapy_ubi.protocol.beat import Beat
from scrapy_ubi.transport.redis_keys import drain_field

logger = logging.getLogger("scrapy_ubi")

AHEAD = (
    "%d times on the disk, or from other agents, lie further ahead than anything could have set them, as a clock was "
    "ahead: they count as set now."
)


class Turns:
    """The turns of one agent. `also` is called whenever time has passed; `on_drain` once, when a person has asked it to
    leave."""

    def __init__(
        self,
        crawl: Crawl,
        exchanges: ExchangeLoop,
        beats: Beats,
        ticker: Ticker,
        group_watch: GroupWatch,
        complete_hosts: CompleteHosts,
        limit_watch: LimitWatch,
        access: HostAccess,
        choice: NextRequest,
        also: Sequence[Callable[[], object]],
        waker: EngineWakeup,
        status: Status,
        on_drain: Callable[[], None],
        clock: Callable[[], float],
    ) -> None:
        self._crawl = crawl
        self._exchanges = exchanges
        self._beats = beats
        self._ticker = ticker
        self._group_watch = group_watch
        self._complete_hosts = complete_hosts
        self._limit_watch = limit_watch
        self._access = access
        self._choice = choice
        self._also = also
        self._waker = waker
        self._status = status
        self._on_drain = on_drain
        self._clock = clock
        self._asked_to_leave = False
        self._said_ahead = False

    def exchanged(self, exchange: Exchange | NoExchange) -> None:
        """Hear that an exchange of mail has ended."""
        tally = self._crawl.tally
        tally.dead_letters, tally.writes_refused = exchange.dead_letters, exchange.writes_refused
        asked = exchange.control.get(drain_field(self._crawl.agent.me)) in self._crawl.lives
        if asked and not self._asked_to_leave:
            self._asked_to_leave = True
            self._on_drain()
        self._ticker.tick()

    def heard(self, end: bool, lines: Mapping[str, str]) -> None:
        """Hear that the beats of all agents were read, from these lines; `end`: they say that the crawl is over."""
        if end or self._crawl.agent.end.seen is not None:
            self._exchanges.hurry = True
        self._ticker.tick()
        self._group_watch.check_beats(lines, self._clock())

    def ticked(self, now: float, beat: Beat) -> None:
        """Hear that the protocol was told the time: see to all that may follow."""
        if not self._said_ahead and (ahead := self._status.times_ahead):
            self._said_ahead = True
            logger.warning(AHEAD, ahead)
        self._beats.publish(beat)
        self._access.permits.look_again()
        self._limit_watch.check_limits(now)
        for see_to in self._also:
            see_to()
        self._complete_hosts.look(now)
        self._choice.read_ahead(now)
        self._waker.arm()


class Steered:
    """The parts of one node that people can steer, by `live`: delays, limits, whether it fetches at all, whether it
    waits for seeds, and whether pages are visited again."""

    def __init__(
        self,
        live: RuntimeSettings,
        pace: HostPace,
        crawl: Crawl,
        limits: HostLimits,
        crawl_limits: CrawlLimits,
        access: HostAccess,
        waker: EngineWakeup,
        seeds: SeedInbox,
    ) -> None:
        self._seeds = seeds
        self._pace = pace
        self._crawl = crawl
        self._access = access
        self._waker = waker
        self._limits = limits
        self._crawl_limits = crawl_limits
        live.follow(self._follow)

    def _follow(self, live: RuntimeSettings) -> None:
        self._limits.follow(live.now, live.of_host)
        self._pace.follow(live, self._crawl.frontier)
        self._crawl.agent.discovery.refuses = refuses_by(self._limits)
        self._crawl_limits.follow(live.now)
        self._seeds.finishing = live.finish_asked
        self._crawl.agent.work.visits_ended = live.finish_asked or not self._crawl.recrawl.visits_again
        self._access.permits.pause(live.paused, live.paused_hosts)
        if live.begun:
            self._waker.arm()
