"""How many pages are visited again a second, where that has a bound, whatever is due.

Rules of this module:

* Visits have *slots*, evenly spaced. A host whose page is due is given the next free one, and comes back then. So in
  any time there are at most as many visits as the bound says, and hosts have their turns one after the other.
* A slot may be used a little late, and no later: those of hosts that could not come are not made up for. So a burst has
  at most as many visits as `LATE` says.
* It begins without a free slot, after a restart, too, and where the bound changes: what was spent before is not known.
  Hosts that wait for their slots are given others then.
"""

from __future__ import annotations

import math

from scrapy_ubi.protocol.host import HostState

LATE, LEAST_LATE = 5, 0.2  # visits; s: by which a slot may be used late
MOST_TURNS = 8192  # hosts with a slot; beyond, the slots that are over are forgotten


class NoPace:
    """Visits have no bound: none is held back."""

    def held(self, state: HostState, pages_wait: bool, now: float) -> float:
        """Until when this host has no visit; 0.0 where it has one now, if it is not the turn of a page of its queue."""
        return 0.0


class VisitPace(NoPace):
    """The pace of one agent's visits. Times are seconds of its clock."""

    def __init__(self) -> None:
        self.rate = 0.0  # visits a second
        self._slot = 0.0  # the next free one
        self._turns: dict[str, float] = {}  # host -> its slot

    def follow(self, rate: float, now: float) -> list[str]:
        """So many visits a second, above 0, from now on; the hosts that wait for slots which are none any more, and
        have to be given others: they may come sooner.
        """
        if rate == self.rate:
            return []
        self.rate, self._slot = rate, now + 1 / rate
        waiting, self._turns = [*self._turns], {}
        return waiting

    @property
    def late(self) -> float:
        """For how long (s) a slot can be used."""
        return max(LATE / self.rate, LEAST_LATE)

    def held(self, state: HostState, pages_wait: bool, now: float) -> float:
        if not self.rate:
            return now + 1.0
        if pages_wait and not state.visits.after_page:
            return 0.0
        at = self._turns.pop(state.host, -math.inf)
        if at < now - self.late:
            at = max(self._slot, now - self.late)
            self._slot = at + 1 / self.rate
        if at <= now:
            return 0.0
        if len(self._turns) >= MOST_TURNS:
            self._turns = {host: turn for host, turn in self._turns.items() if turn >= now - self.late}
        self._turns[state.host] = at
        return at
