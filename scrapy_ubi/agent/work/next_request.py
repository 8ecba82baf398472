"""Which request is fetched next.

Rules of this module:

* The frontier says whose turn it is. Of hosts that are ended, and beyond a limit of theirs, requests fail when their
  turn has come; what is joined with another page is done (`NextUnjoined`). Neither takes a load, nor the delay of its
  host. A page of an ended host that was to be visited again never is.
* That is done a slice at a time (`ENDED_AT_ONCE`): after it the loop turns, and the engine asks again. The engine is
  also made to ask again where the frontier has not looked at all hosts whose time has come, as very many of them may
  not be fetched here.
* The queues of hosts whose turn is near are read ahead: the loop never waits for the disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from scrapy_ubi.agent.crawl.crawl import Crawl
from scrapy_ubi.agent.crawl.fatal import Fatal
from scrapy_ubi.agent.hosts.host_limits import HostLimits
from scrapy_ubi.agent.hosts.host_notes import HostNotes
from scrapy_ubi.agent.hosts.learned_forms import LearnedForms
from scrapy_ubi.frontier.store import StoreError
from scrapy_ubi.protocol.done_mark_delivery import Outlinks
from scrapy_ubi.protocol.host import Entry, HostState, VisitRow

ENDED_AT_ONCE = 100  # requests of hosts that are ended, before the loop turns: a few milliseconds

Found = tuple[HostState, Entry]


class NextRequest:
    """Chooses for one agent. `on_given_up` is told why a request failed without a load; `arm` is called when there may
    be something to fetch, some time after it was asked for. The list `on_passed_over` hears of hosts of which a request
    was done without a load."""

    def __init__(
        self,
        crawl: Crawl,
        halt: Fatal,
        hosts: HostNotes,
        limits: HostLimits,
        on_given_up: Callable[[str], None],
        arm: Callable[[], None],
    ) -> None:
        self._crawl = crawl
        self._halt = halt
        self._hosts = hosts
        self._limits = limits
        self._given_up = on_given_up
        self._arm = arm
        self.on_passed_over: list[Callable[[HostState], object]] = []

    def find_next(self, now: float) -> Found | None:
        """The next request that is to be fetched; those of hosts that are ended, and those beyond a limit of theirs,
        fail on the way, some at a time.
        """
        for _ in range(ENDED_AT_ONCE):
            self._crawl.frontier.looks_on = False
            found = self._crawl.agent.work.next(now)
            if found is None:
                self._look_on()
                return None
            state, entry = found
            before = state.visits.out.get(entry.key)
            reason = self._hosts.read_end_reason(state) or (self._limits.reason(state, entry) if before is None else "")
            if not reason:
                return found
            if before is not None:
                self._pass_over(state, entry, now, None, before)
                continue
            self._crawl.fail(state.host, entry, reason)
            self._given_up(reason)
            self._pass_over(state, entry, now, None)
        asyncio.get_running_loop().call_soon(self._arm)
        return None

    def _pass_over(
        self, state: HostState, entry: Entry, now: float, outlinks: Outlinks | None, before: VisitRow | None = None
    ) -> None:
        """This request is done without a load; `outlinks` is what its page has taught, None where that is not known.
        `before`: of a page that was to be visited again."""
        agent = self._crawl.agent
        agent.work.freed(state, now)
        row = self._crawl.recrawl.passed(before) if before is not None else None
        agent.work.ended(state, entry.key, outlinks, row)
        self._crawl.frontier.hasten(state, now)  # nothing was loaded
        for passed_over in self.on_passed_over:
            passed_over(state)

    def _look_on(self) -> None:
        if self._crawl.frontier.looks_on:
            asyncio.get_running_loop().call_soon(self._arm)

    def read_ahead(self, now: float) -> None:
        """Let the queues of hosts be read whose turn has come."""
        crawl = self._crawl
        crawl.frontier.looks_on = False
        crawl.disk.read_ahead(now, lambda state: crawl.agent.work.may_fetch(state, now), self._arm)
        self._look_on()


class NextUnjoined(NextRequest):
    """Passes over what is joined with another page (a normal form that is learned), too."""

    def __init__(
        self,
        learner: LearnedForms,
        crawl: Crawl,
        halt: Fatal,
        hosts: HostNotes,
        limits: HostLimits,
        on_given_up: Callable[[str], None],
        arm: Callable[[], None],
    ) -> None:
        super().__init__(crawl, halt, hosts, limits, on_given_up, arm)
        self._learner = learner

    def find_next(self, now: float) -> Found | None:
        """The next request that is to be fetched; those that are joined with others are done on the way, some at a
        time.
        """
        for _ in range(ENDED_AT_ONCE):
            found = super().find_next(now)
            if found is None or not self._is_joined(*found):
                return found
            self._pass_over(*found, now, [])
        asyncio.get_running_loop().call_soon(self._arm)
        return None

    def _is_joined(self, state: HostState, entry: Entry) -> bool:
        try:
            return entry.key not in state.visits.out and self._learner.joins(state, entry)
        except StoreError as error:
            self._halt.broken(error)
            return False
