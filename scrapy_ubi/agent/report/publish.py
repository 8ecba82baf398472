"""When an agent publishes its profile (`profile`): every two seconds, so that people do not take it for silent. Where
counting takes long, it counts seldomer, and says its last counters again in between. Of many hosts it counts `SLICE` at
a time, and the loop turns in between: a count of all of a million would hold it for a second.

Who comes after the end of the crawl has counted nothing. Where Redis has a profile of its identifier, of a former
process that took part, that one's counters stay: the report of the crawl adds them up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from math import inf
from typing import Any

from scrapy_ubi.agent.crawl.crawl import Crawl
from scrapy_ubi.agent.mail.io_thread import IoThread
from scrapy_ubi.agent.profile import figures as profile
from scrapy_ubi.agent.profile.host_sums import HostSums
from scrapy_ubi.agent.report.big_host import BigHost
from scrapy_ubi.ground.timer import Timer
from scrapy_ubi.protocol.host import HostState
from scrapy_ubi.transport import Transport, TransportError

COUNTING = 50  # where counting takes long (it is linear in the hosts): how many times that long until the next time
SLICE = 5000  # hosts counted at once: some milliseconds
REST = 0.02  # s between two slices

UNANSWERED = 3.0  # s that are waited for what all have published


async def published(io: IoThread, transport: Transport) -> dict[str, str]:
    """Agent -> its profile, of all agents; nothing where Redis does not answer in time."""
    try:
        async with asyncio.timeout(UNANSWERED):
            return await io.call(transport.profiles())
    except (TransportError, TimeoutError):
        return {}


class Publisher:
    """The profiles of one agent. `state` says what it is doing; `kept` is one that is to stay in place of these;
    `more` gives what else is told of the moment."""

    def __init__(
        self,
        crawl: Crawl,
        state: Callable[[], str],
        clock: Callable[[], float],
        more: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        self._crawl = crawl
        self.state = state
        self._clock = clock
        self._more = more
        self._big_host = BigHost(crawl)
        self._next_at = self._count_at = 0.0
        self._counted = -inf
        self._counters: dict[str, Any] = {}
        self._counting = Timer()  # the next slice of a count that goes on
        self._changes = 0  # of what is known of losses, that the last one published has
        self._shown = ""
        self._shown_at = -2 * profile.PUBLISH
        self.kept = ""

    def profile(self) -> str | None:
        """The profile, None when it is too soon for another one. It is not where the end of the crawl waits for what
        this agent knows of losses."""
        now, book = self._clock(), self._crawl.agent.group.losses.book
        if now < self._next_at and (self.kept or book.is_published):
            return None
        self._next_at = now + profile.PUBLISH
        if self.kept:
            return self.kept
        self._changes = book.changes
        return self._text(now)

    def taken(self) -> None:
        """Others can read the last one."""
        self._crawl.agent.group.losses.book.publish(self._changes)

    def _text(self, now: float) -> str:
        crawl, counters = self._crawl, self.counted(now)
        self._shown_at = now
        self._shown = profile.profile_text(
            crawl.fixed, crawl.agent, self.state(), counters, crawl.former, crawl.handed_over, crawl.live, self._more()
        )
        return self._shown

    def shown(self) -> str:
        """The last profile, for who asks the agent itself; a new one where that is old, as none is published while
        Redis is away."""
        now = self._clock()
        return self._text(now) if now - self._shown_at >= 2 * profile.PUBLISH else self._shown

    def counted(self, now: float, age: float = 0.0) -> dict[str, Any]:
        """The counters at this time (s), or those counted last where it is too soon to count again, or where these are
        no older than `age`."""
        if not self._counting.is_set and now >= self._count_at and now - self._counted >= age:
            if self._counted == -inf or len(self._crawl.frontier) <= SLICE:
                self._take(now, self._crawl.counters(), 0.0)
            else:
                self._count(self._crawl.new_sums(), iter(self._crawl.frontier.states()), 0.0)
        return self._counters

    def _count(self, sums: HostSums, states: Iterator[HostState], spent: float) -> None:
        """Go on with a count that has taken so long (s)."""
        begun = self._clock()
        some = [*islice(states, SLICE)]
        sums.add(some)
        now = self._clock()
        if some:
            self._counting.set(REST, partial(self._count, sums, states, spent + now - begun))
        else:
            self._take(now, self._crawl.counters(sums), spent)

    def _take(self, now: float, counters: dict[str, Any], spent: float) -> None:
        """These are the counters of this time (s); to count has taken so long (s)."""
        self._counted = now
        self._counters = counters
        self._big_host.check_hosts(counters["queued"], counters["in_flight"])
        self._count_at = now + (self._clock() - now + spent) * COUNTING

    def soon(self, changed: object = None) -> None:
        """Let the next one be due now: there is news, as what has `changed` says."""
        self._next_at = 0.0

    def renew(self) -> None:
        """Let the next one be due now, and count again for it, all at once."""
        self._counting.clear()
        self._next_at, self._count_at, self._counted = 0.0, 0.0, -inf
