"""The delays of hosts as people change them while a crawl runs.

Rules of this module:

* A longer delay holds from the end of the next load of a host on. A shorter one holds at once: who waits by the former
  one waits no longer than by the new one, but for what else postpones its host.
* A host's own delay (`scrapy ubi set --host`) is one of its sources of delays beside its robots.txt and others, of
  which the largest counts, the crawl's among them. It holds here and now, and is not noted: every agent knows it.
* So is what the limits of a host say (`delay` in UBI_HOST_LIMITS, or brought by a seed), from its next turn on.
* A paused host is put off a little whenever its turn comes. Nothing of that is kept: it goes on when it is let go.
"""

from __future__ import annotations

from collections.abc import Callable

from scrapy_ubi.agent.hosts.host_limits import HostLimits
from scrapy_ubi.agent.hosts.host_notes import HostNotes
from scrapy_ubi.agent.steering.runtime import RuntimeSettings
from scrapy_ubi.protocol.frontier_contract import Frontier
from scrapy_ubi.protocol.host import HostState

SOURCE = "set"  # of a host's delay, beside `robots` and others
PUT_OFF = 1.0  # s until a paused host is looked at again


class HostPace:
    """The delays of one agent's hosts. `clock` is the agent's (s)."""

    def __init__(self, live: RuntimeSettings, hosts: HostNotes, limits: HostLimits, clock: Callable[[], float]) -> None:
        self._live = live
        self._limits = limits
        self._hosts = hosts
        self._clock = clock
        self._own: dict[str, float] = {}  # by host: the delay that people have given it

    def follow(self, live: RuntimeSettings, frontier: Frontier) -> None:
        """The settings are others now."""
        before = self._own
        self._own = {host: settings.host_delay for host, settings in live.of_host.items()}
        self._own = {host: delay for host, delay in self._own.items() if delay != live.now.host_delay}
        for host in before.keys() | self._own.keys():
            if (state := frontier.find(host)) is not None:
                self._give(state)
        if frontier.delay != live.now.host_delay:
            self._set(live.now.host_delay, frontier)

    def _set(self, delay: float, frontier: Frontier) -> None:
        now = self._clock()
        frontier.delay, shorter = delay, delay < frontier.delay
        for state in frontier.states() if self._live.now.host_shards else ():
            self._hosts.follow_delays(state)
        for state in frontier.states() if shorter or not self._live.begun else ():
            latest = now + max(delay, state.pause)
            if not state.waiting and not state.visits.awaited:
                continue
            if not shorter:  # what was under way when the last process ended is not known
                frontier.defer(state, now)
            elif state.next_at > latest:
                frontier.hasten(state, latest)
                self._hosts.put_off_again(state)

    def _give(self, state: HostState) -> None:
        delay = max(self._own.get(state.host, 0.0), self._limits.delay(state))
        if self._hosts.delays(state).get(SOURCE, 0.0) != delay:
            self._hosts.set_delay(state, SOURCE, delay, kept=False)

    def on_turn(self, state: HostState, now: float) -> None:
        """The turn of this host has come."""
        if state.host in self._own or not self._limits.idle:  # it may have been met, or have come here, only now
            self._give(state)
        if state.host in self._live.paused_hosts:
            self._hosts.wait_until(state, now + PUT_OFF)
