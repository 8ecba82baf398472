"""What is summed up over all hosts that an agent owns, for its counters: some hosts at a time, as a million take a
second."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from scrapy_ubi.agent.profile.remaining import SlowHost
from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.protocol.host import HostState
from scrapy_ubi.protocol.view import View
from scrapy_ubi.urls.host_shards import FIRST, MARK


class Needs(Protocol):
    """What hosts need yet (`report.host_needs`)."""

    def at_most(self, state: HostState, queued: int, usual: float, now: float, /) -> float:
        """Return how long (s) what waits of this host takes at most."""

    def needs_of(self, state: HostState, usual: float, now: float, /) -> SlowHost:
        """Return the figures of this host."""


class HostSums:
    """The sums of one agent at this time. `last`: the view by which the last agent to leave owned what it has; the
    present view has no members, so by that one no agent owns it, and none is awaited for a handover. With `needs` they
    have the host that takes longest."""

    def __init__(self, agent: Agent, now: float, last: View | None = None, needs: Needs | None = None) -> None:
        self._agent = agent
        self._now = now
        self._needs = needs
        self._has_left = last is not None and not agent.view.members
        others = last is not None and self._has_left and last.members.keys() - {agent.me}
        self._by_ring = last.ring.owner if last is not None and others else None
        self._usual = agent.frontier.delay
        self._longest = -1.0
        self._slowest: SlowHost | None = None
        self.unique = self.queued = self._hosts = self._held = self._busy = self._waiting = self._complete = 0

    def add(self, states: Iterable[HostState]) -> None:
        """These hosts, too."""
        agent, by_ring, needs, usual, now = self._agent, self._by_ring, self._needs, self._usual, self._now
        keepers, me, has_left = agent.keeping.keepers, agent.me, self._has_left
        for state in states:
            if by_ring is not None:
                if by_ring(state.host) != me:
                    continue
            elif not has_left and keepers(state)[:1] != (me,):
                continue
            self._hosts += MARK not in state.host or state.host.endswith(FIRST)
            self.unique += state.done_count
            waits = state.waiting
            self.queued += waits
            if state.out:
                self._busy += 1
            elif waits:
                self._waiting += 1
            elif not state.open_work and state.done_count:
                self._complete += 1
            if needs is not None and waits and needs.at_most(state, waits, usual, now) > self._longest:
                found = needs.needs_of(state, usual, now)
                if (takes := found.needs()) > self._longest:
                    self._longest = takes
                    self._slowest = found
            self._held += (
                bool(waits) and not has_left and not agent.view_history.may_fetch(state.host, agent.group.alive)
            )

    def as_counters(self) -> dict[str, Any]:
        """The counters that are sums."""
        return {
            **({"slowest": self._slowest._asdict()} if self._slowest is not None else {}),
            "unique": self.unique,
            "queued": self.queued,
            "hosts": self._hosts,
            "hosts_held": self._held,
            "hosts_busy": self._busy,
            "hosts_waiting": self._waiting,
            "hosts_complete": self._complete,
        }
