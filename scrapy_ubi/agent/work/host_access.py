"""Whether loads from a host may begin at this agent, and the permits for them: what the gate asks the node for.

Rules of this module:

* The methods touch memory only, and each gives the answer of the moment: nothing here is remembered but the permits.
* The permits are those of the agent that the crawl has now (`Crawl.follow`).
* The waker is armed where a host may have become ready.
"""

from __future__ import annotations

from collections.abc import Callable

from scrapy_ubi.agent.crawl.crawl import Crawl
from scrapy_ubi.agent.crawl.fatal import Fatal
from scrapy_ubi.agent.hosts.foreign_hosts import ForeignHosts
from scrapy_ubi.agent.work.engine_wakeup import EngineWakeup
from scrapy_ubi.agent.work.permits import PATIENCE, Permits
from scrapy_ubi.agent.work.visits import Visit, Visits
from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.protocol.memory_state import SetState


class HostAccess:
    """The access of one agent to hosts, `foreign` being those of other agents. `clock` gives the agent's time (s);
    `make_permits` makes the permits of an agent."""

    def __init__(
        self,
        crawl: Crawl,
        visits: Visits,
        waker: EngineWakeup,
        fatal: Fatal,
        clock: Callable[[], float],
        foreign: ForeignHosts,
        make_permits: Callable[[Agent], Permits],
    ) -> None:
        self._crawl = crawl
        self._visits = visits
        self._waker = waker
        self._fatal = fatal
        self._clock = clock
        self.foreign = foreign
        self._make_permits = make_permits
        crawl.follow(self._begin)

    def _begin(self) -> None:
        """Give permits of the agent that the crawl has now."""
        self._agent = self._crawl.agent
        self.permits = self._make_permits(self._agent)

    def permit_now(self, host: str, visit: Visit | None, foreign: bool = False) -> bool | None:
        """As `permit`, without waiting: None where one would have to wait."""
        if visit is None:
            return self.permits.try_acquire(host, None, foreign=foreign)
        return self.permits.try_acquire(host, visit.state, visit.entry.key)

    async def permit(self, host: str, visit: Visit | None, again: bool = False, foreign: bool = False) -> bool:
        """Wait until a load from this host may start, at this moment. False: this agent must not load from it, or the
        page of the visit is done by now, or its host was put off for long. `again`: its permit was just released, in
        the middle of the load. `foreign`: where another agent owns the host, at most one such load at a time will do.
        """
        if visit is None:
            return await self.permits.acquire(host, None, again=again, foreign=foreign)
        return await self.permits.acquire(host, visit.state, visit.entry.key, again)

    def release(self, host: str, visit: Visit | None = None, again: bool = False) -> None:
        """The transfer has ended: the host is free for the next one, after its delay. `again`: that is the same one,
        and no other page of the host is handed out before."""
        if visit is not None and again:
            self._visits.defer(visit)
        elif visit is not None:
            self._visits.free(visit)
        if self.permits.release(host, visit is not None):
            self._waker.arm()

    def not_before(self, host: str, seconds: float) -> None:
        """No load of this host starts within so many seconds, whatever asks for it."""
        self.permits.not_before(host, seconds)

    def may_fetch(self, host: str) -> bool:
        """Whether a load from this host, as its owner, may start now: asked directly before the write."""
        state = self._crawl.frontier.find(host) or SetState(host)
        return self._agent.work.may_fetch(state, self._clock())

    def may_load(self, host: str) -> bool:
        """Whether a load beside the scheduler may start now that holds the permit of this host, which may be a foreign
        one."""
        return self._agent.work.may_act(self._clock()) if self.permits.is_foreign(host) else self.may_fetch(host)

    def is_own(self, host: str) -> bool:
        """Whether this agent owns this host."""
        return self._agent.keeping.owns(host)

    def is_foreign(self, host: str) -> bool:
        """Whether a load is under way here from this host as from that of another agent."""
        return self.permits.is_foreign(host)

    def loads(self, host: str) -> bool:
        """Whether loads may begin at this agent: the crawl goes on, here as well, and the lease holds; and from this
        host before long, as it was not put off."""
        if self._agent.end.finished or self._fatal.dead or self.permits.closed:
            return False
        now = self._clock()
        return self._agent.group.lease.holds(now) and self.permits.next_at(host) - now <= PATIENCE
