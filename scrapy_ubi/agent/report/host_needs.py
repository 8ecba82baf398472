"""What a host needs yet, by what its agent knows of it: the figures of `remaining.SlowHost`."""

from __future__ import annotations

from scrapy_ubi.agent.hosts.host_limits import HostLimits
from scrapy_ubi.agent.hosts.host_notes import HostNotes
from scrapy_ubi.agent.hosts.rated_hosts import NO_RATES, NoRates
from scrapy_ubi.agent.profile.remaining import SlowHost
from scrapy_ubi.frontier.host_loads import Limit
from scrapy_ubi.protocol.host import HostState


class HostNeeds:
    """The needs of one agent's hosts. `limit` says how many loads a host may have at once (0: one); `rates`
    are those of hosts."""

    def __init__(self, notes: HostNotes, limits: HostLimits, limit: Limit, rates: NoRates = NO_RATES) -> None:
        self._notes = notes
        self._limits = limits
        self._limit = limit
        self._rates = rates
        self._are_rated = bool(rates.named)

    def at_most(self, state: HostState, queued: int, usual: float, now: float) -> float:
        """How long what waits of this host, so much, takes from now on at most (s): with one load at once, and where
        nothing has ended it. `usual` is the delay of all hosts. A microsecond: it is asked of every host."""
        times, delay, rest = self._notes.times, state.pause, state.next_at - now
        if usual > delay:
            delay = usual
        pace = delay + times.load(state.host) + times.every(state.host)
        if self._are_rated:
            pace = max(pace, self._rates.room_for(state.host, now)[0])
        return queued * pace + rest if rest > 0 else queued * pace

    def needs_of(self, state: HostState, usual: float, now: float) -> SlowHost:
        """The figures of this host. Of one that was given up nothing is loaded any more."""
        notes, host = self._notes, state.host
        queued = state.waiting
        if not self._limits.idle:
            queued = min(queued, self._limits.pages_left(state))
        why = notes.blocked_reason(state)
        if why == "ended":
            queued = 0
        each, free = self._rates.room_for(host, now)
        return SlowHost(
            host=host,
            queued=queued,
            delay=round(max(usual, state.pause), 3),
            load=round(notes.times.load(host), 3),
            loads=max(1, self._limit(host)),
            rest=round(max(0.0, state.next_at - now), 3) if queued else 0.0,
            why=why,
            every=round(notes.times.every(host), 3),
            each=round(each, 3),
            free=free,
        )
