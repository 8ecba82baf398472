"""Hosts under rates of the group (UBI_RATES): whose turn may come, and what waits for which rate.

Rules of this module:

* A host that waits for a rate is put off, in its queue; it holds no place of the downloader, and no other host.
* It begins no load and ends none: that is done where a transfer begins (`adapter.downloads.rated_gate`).
* That a rate keeps something waiting is said in the log once a rate, and is why nothing is fetched, where nothing is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from scrapy_ubi.agent.hosts.host_notes import HostNotes
from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.protocol.host import HostState
from scrapy_ubi.protocol.rates import GroupRates
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.settings.rates import RateLimit
from scrapy_ubi.urls.host_shards import host_of_key

logger = logging.getLogger("scrapy_ubi")

MOST = 10_000  # hosts of which it is known that they wait

WAITS = (
    "Something waits for the rate of %s (UBI_RATES: %s): the group has used it up, or may begin with it only a window "
    "after what may have been loaded before. Said once for each rate."
)


class Wait(NamedTuple):
    """For which rate a host waits, and until when it is put off (s, the agent's clock)."""

    name: str
    until: float


class NoRates:
    """There are no rates."""

    named: Mapping[str, RateLimit] = {}

    def work_for(self, agent: Agent) -> None:
        """The crawl has this agent from now on."""

    def begin_run(self, is_new: bool) -> None:
        """The agent has joined its group; `is_new`: the run has begun with it, as far as is known."""

    def after(self, on_turn: Callable[[HostState, float], None]) -> Callable[[HostState, float], None]:
        """What is told of each host whose turn it is: first this, then the rates."""
        return on_turn

    def room_for(self, host: str, now: float) -> tuple[float, int]:
        """How many seconds a load the slowest of a host's rates leaves, 0.0 where it has none, and how many loads that
        has room for at this time (s), as far as this agent knows."""
        return 0.0, 0

    def why(self, host: str, now: float) -> str:
        """For which rate a host waits now, with what it is; "" where it waits for none."""
        return ""


NO_RATES = NoRates()


class RatedHosts(NoRates):
    """The rates of one agent, `rates`, once `work_for` has said for which it works. `clock` is the agent's (s)."""

    rates: GroupRates  # of the agent that the crawl has now

    def __init__(self, named: Mapping[str, RateLimit], notes: HostNotes, clock: Callable[[], float]) -> None:
        self.named = named
        self._notes = notes
        self._clock = clock
        self._waits: dict[str, Wait] = {}
        self._said: set[str] = set()
        self._begun = 0  # crawls that this process has begun

    def work_for(self, agent: Agent) -> None:
        """The crawl has this agent from now on."""
        self._begun += 1
        self.rates = agent.talks.keep_rates(self.named)

    def begin_run(self, is_new: bool) -> None:
        """The agent has joined its group. Where its directory held a run that was over, there may have been loads a
        moment ago."""
        self.rates.fresh = is_new and self._begun == 1

    def after(self, on_turn: Callable[[HostState, float], None]) -> Callable[[HostState, float], None]:
        """What is told of each host whose turn it is: first this, then the rates."""

        def both(state: HostState, now: float) -> None:
            on_turn(state, now)
            if state.next_at <= now:
                self.on_turn(state, now)

        return both

    def of_host(self, host: str) -> tuple[str, ...]:
        """The rates of a host, by its partition key."""
        names = (host, host_of_key(host)) if "#" in host else (host,)
        return tuple(name for name in names if name in self.named)

    def room_for(self, host: str, now: float) -> tuple[float, int]:
        """How many seconds a load the slowest of a host's rates leaves, 0.0 where it has none, and how many loads that
        has room for at this time (s), as far as this agent knows."""
        names = self.of_host(host)
        if not names:
            return 0.0, 0
        name = max(names, key=lambda each: self.named[each].seconds / self.named[each].loads)
        loads, seconds = self.named[name]
        return seconds / loads, max(0, loads - self.rates.shares[name].used(now))

    def on_turn(self, state: HostState, now: float) -> None:
        """The turn of this host has come: it is put off where its rate has no room."""
        names = self.of_host(state.host)
        if names and (wait := self.rates.wait(names, state.host, now)):
            self.put_off(state, names, wait)

    def start_load(self, names: Sequence[str], host: str) -> float:
        """Start a load under these rates; 0, or after how many seconds it may be tried again."""
        wait = self.rates.start_load(names, host, self._clock())
        if not wait:
            self._waits.pop(host, None)
        return wait

    def holds(self, names: Iterable[str]) -> bool:
        """Whether a load that has started may send its request now."""
        return self.rates.holds(names, self._clock())

    def end_load(self, names: Iterable[str]) -> None:
        """A load that was started under these has ended."""
        self.rates.end_load(names, self._clock())

    def put_off(self, state: HostState, names: Iterable[str], seconds: float) -> None:
        """This host is not looked at within so many seconds, since it waits for one of these."""
        now = self._clock()
        self.note(state.host, names, seconds)
        self._notes.wait_until(state, now + seconds)

    def note(self, host: str, names: Iterable[str], seconds: float) -> None:
        """Something of this host waits for one of these."""
        now = self._clock()
        name = next((name for name in names if not self.rates.shares[name].may_start(now)), "")
        if not name:
            return
        if name not in self._said:
            self._said.add(name)
            logger.info(WAITS, name, self.named[name])
        if len(self._waits) >= MOST:
            self._waits = {host: wait for host, wait in self._waits.items() if wait.until > now}
        if len(self._waits) < MOST:
            self._waits[host] = Wait(name, now + seconds)

    def why(self, host: str, now: float) -> str:
        """For which rate a host waits now, with what it is; "" where it waits for none."""
        wait = self._waits.get(host)
        if wait is None or wait.until < now:
            return ""
        return f"{wait.name}: {self.named[wait.name]}"


def rates_of(settings: UbiSettings, notes: HostNotes, clock: Callable[[], float]) -> NoRates:
    """What these settings want."""
    return RatedHosts(settings.rates.named, notes, clock) if settings.rates.named else NO_RATES
