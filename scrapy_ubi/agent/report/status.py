"""How an agent stands at this moment: what it is doing, what keeps it from fetching, what waits.

Rules of this module: it only reads, in memory. Nothing of it is remembered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scrapy_ubi.agent.crawl.crawl import Crawl
from scrapy_ubi.agent.crawl.fatal import Fatal
from scrapy_ubi.agent.group.beats import Beats
from scrapy_ubi.agent.group.leave import Leave
from scrapy_ubi.agent.hosts.crawl_limits import CrawlLimits
from scrapy_ubi.agent.hosts.host_notes import HostNotes
from scrapy_ubi.agent.mail.exchange_loop import ExchangeLoop, MailTrouble
from scrapy_ubi.agent.profile.idle_reason import IdleReason
from scrapy_ubi.agent.profile.remaining import Point
from scrapy_ubi.agent.steering.live_entries import PAUSE, field_of
from scrapy_ubi.agent.steering.runtime import RuntimeSettings
from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.protocol.host import HostState


class Status:
    """The status of one agent. `crawl_limits`: those of the whole crawl, as it sees them; `clock` gives the agent's
    time (s)."""

    def __init__(
        self,
        crawl: Crawl,
        hosts: HostNotes,
        crawl_limits: CrawlLimits,
        live: RuntimeSettings,
        exchanges: ExchangeLoop,
        beats: Beats,
        leave: Leave,
        fatal: Fatal,
        clock: Callable[[], float],
    ) -> None:
        self._crawl = crawl
        self._hosts = hosts
        self.crawl_limits = crawl_limits
        self._live = live
        self._exchanges = exchanges
        self._beats = beats
        self._leave = leave
        self._fatal = fatal
        self._clock = clock

    @property
    def agent(self) -> Agent:
        """Its part in the protocol."""
        return self._crawl.agent

    @property
    def state(self) -> str:
        """What this agent is doing, for people."""
        if self._leave.stage:
            return self._leave.stage
        if not self.holds_lease:
            if not self._beats.were_read:
                return "joining"
            return "waiting" if not self.others else "fenced"  # alone there is no agent to be fenced from
        if self._exchanges.blocked or self._live.paused:
            return "blocked" if self._exchanges.blocked else "paused"
        return "crawling" if self.agent.work.out or self.pending() else "waiting"

    # -- the group

    @property
    def over(self) -> bool:
        """Whether the crawl is over everywhere."""
        return self.agent.end.finished

    @property
    def leaving(self) -> bool:
        """Whether it is on its way out, or has gone."""
        return bool(self._leave.stage)

    @property
    def holds_lease(self) -> bool:
        """Whether its beats are acknowledged, so that it may fetch."""
        return self.agent.group.lease.holds(self._clock())

    @property
    def has_read_beats(self) -> bool:
        """Whether it has read who is there."""
        return self._beats.were_read

    @property
    def others(self) -> tuple[str, ...]:
        """The other agents of its group, as it believes, by name."""
        return tuple(sorted(name for name in self.agent.view.members if name != self.agent.me))

    # -- what keeps it from fetching

    @property
    def paused(self) -> bool:
        """Whether people have paused the crawl."""
        return self._live.paused

    @property
    def paused_since(self) -> float:
        """When people have paused the crawl (unix s); 0.0 where they have not."""
        entry = self._crawl.live.entries.get(field_of(PAUSE))
        return entry.when if entry is not None and entry.stands else 0.0

    @property
    def limit_reached(self) -> str:
        """The limit of the crawl because of which nothing more is fetched; empty while there is none."""
        full = self.crawl_limits.full(self._crawl.tally.pages + self.agent.work.out)
        return "UBI_CRAWL_LIMITS" if full else ""

    @property
    def trouble(self) -> MailTrouble:
        """What keeps its mail from leaving."""
        return self._exchanges.trouble

    @property
    def times_ahead(self) -> int:
        """How many times from the disk and from other agents were of a clock that was ahead."""
        return self._hosts.ahead + self._crawl.disk.ahead + self._crawl.recrawl.ahead

    # -- what waits

    def pending(self) -> bool:
        """Tell whether requests are queued that are this agent's to fetch."""
        return not self.over and self._crawl.frontier.waits(self._is_own)

    @property
    def waiting(self) -> int:
        """How many requests are queued that are this agent's to fetch; linear in the hosts."""
        states = self._crawl.frontier.states()
        return sum(state.waiting for state in states if state.waiting and self._is_own(state))

    def _is_own(self, state: HostState) -> bool:
        return self.agent.keeping.keepers(state)[:1] == (self.agent.me,)

    @property
    def crowded(self) -> bool:
        """Whether what comes from outside should wait: too much is to be sent already, or nothing can be written."""
        if self.over or self._fatal.dead:
            return False
        most = self._crawl.settings.outbox_records
        return self._live.paused or self._exchanges.choked or len(self.agent.outbox) > most

    @property
    def congested(self) -> bool:
        """Whether a page that yields very many links should wait with further ones: while the outbox is full nothing is
        fetched (UBI_OUTBOX_RECORDS), so one page must not fill it."""
        if self.over or self._fatal.dead or self._leave.stage:
            return False
        return len(self.agent.outbox) > self._crawl.settings.outbox_records // 2

    # -- what has changed

    def progress(self) -> object:
        """Return what changes whenever something is fetched, or done."""
        counters = self.agent.counters
        return self._crawl.tally.pages, counters.done, counters.visited

    def of_the_moment(self, curve: list[Point], reason: IdleReason | None) -> dict[str, Any]:
        """Return what its profile says beside its counters, that changes while it runs. `reason`: why nothing is
        fetched, where nothing is."""
        limits = self.crawl_limits
        most = {"most_pages": limits.most_pages, "most_seconds": limits.most_seconds}
        idle = {"idle": reason.as_json()} if reason is not None else {}
        return {"curve": curve, **idle, **{name: value for name, value in most.items() if value}}
