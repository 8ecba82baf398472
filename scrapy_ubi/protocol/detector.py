"""The failure detector: who is alive, by the beats that one observer has read
(docs/explanation/protocol.md#membership).

Rules of this module:

* A beat's age is measured by the *observer's* monotonic clock since it last saw the beat change: no clocks agree.
* An agent is dead in an observer's view when, at the moment the observer *sent* a read, the beat had not changed for
  the failure timeout. Measuring to the sending of the read makes a slow answer count for the observed, never against
  it.
* An observer that was itself away (no read for longer than the lease) starts all ages again. So does one that finds
  that Redis has forgotten everything since its last read: beats may have been written, and gone, in between.
  And what it finds there may be from long ago: a line of an unknown incarnation counts when the next one follows.
* An identifier has one living incarnation: the one before is dead. But one that was last seen on its way out has left:
  who takes over an identifier knows whether the one before had, and names it as dead where it had not.
* Death is permanent for that incarnation, and passed on: beats name the incarnations their writers hold dead, and a
  reader believes them. It may: the writer saw no beat for the failure timeout, so the lease of the dead has ended. It
  must: an incarnation that one agent holds dead may not go on anyway. One that beats on has not heard of it, and is
  named again.
* But what the dead name is not believed, and who joins again lets go of those whom it alone holds dead and who beat on
  (`reconsider`): nothing was done upon it. To act on a death takes a view that all its members have published, and with
  it the death.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from scrapy_ubi.protocol.beat import LEAVING, LEFT, MOST_DEAD, Beat
from scrapy_ubi.protocol.view import Member

DEAD_REMEMBERED = 4096  # incarnations an observer remembers as dead; the oldest are forgotten beyond it


@dataclass(slots=True)
class Sight:
    """What an observer last saw of an agent, and when (its own clock) that last changed. `heard`: this incarnation has
    beaten while it was watched."""

    beat: Beat
    changed: float
    heard: bool = False


class Detector:
    """The failure detector of one observer: reads of all beats go in, the living come out."""

    def __init__(self, me: str, failure_timeout: float, lease_timeout: float) -> None:
        self.me = me
        self.failure_timeout = failure_timeout
        self.lease_timeout = lease_timeout
        self.seen: dict[str, Sight] = {}
        self._dead: dict[str, int | None] = {}  # -> the counter of its last beat, None while none was seen
        self._silent: dict[str, float] = {}  # since when those of them are silent whose beats were read
        self._heard: set[str] = set()  # of these, and of those that have left, who has beaten while it was watched
        self._awake: set[str] = set()  # those of them that have beaten since
        self._told: set[str] = set()  # whom the living others named as dead at the last read
        self._left: dict[str, None] = {}  # incarnations that have left: what a late line says of them is old
        self._quiet = float("-inf")  # s: from then on none that is held dead has beaten for a failure time-out
        self.restless = False  # whether, at the last read, one held dead had beaten lately: it does not know, maybe
        self._named: tuple[str, ...] = ()
        self._last_read: float | None = None
        self._found: dict[str, Beat] = {}  # what stood there when Redis came back: it may be from long ago
        self._memory: str | None = None

    @property
    def dead(self) -> tuple[str, ...]:
        """The incarnations last declared dead, as a beat names them."""
        return self._named

    def is_dead(self, incarnation: str) -> bool:
        """Whether this observer holds that incarnation dead."""
        return incarnation in self._dead

    def silent_since(self, incarnation: str) -> float:
        """Since when (s) that incarnation, which is dead, has not beaten, as far as this observer has read;
        infinity where it has read no beat of it."""
        return self._silent.get(incarnation, math.inf)

    def was_heard(self, incarnation: str) -> bool:
        """Whether that incarnation, which is dead or has left, has beaten while this observer was there."""
        return incarnation in self._heard

    def read(self, sent: float, received: float, beats: Mapping[str, Beat], memory: str = "") -> bool:
        """Take in one atomic read of all beats, sent and received at these times (s, the observer's clock). `memory` is
        another text whenever Redis has forgotten everything. True when it has, since the last read.
        """
        forgotten = self._memory is not None and self._memory != memory
        away = forgotten or (self._last_read is not None and sent - self._last_read > self.lease_timeout)
        self._last_read = received
        self._memory = memory
        if forgotten:
            self._found = dict(beats)
        self._believe(beats)
        for agent, beat in beats.items():
            if agent != self.me:
                self._look(agent, beat, received)
        for agent, sight in list(self.seen.items()):
            if away:
                sight.changed = received
            if sent - sight.changed > self.failure_timeout:
                self.hold_dead(sight.beat.incarnation)
            if LEFT in sight.beat.flags:
                self._leave(sight.beat.incarnation)
                if sight.heard:
                    self._heard.add(sight.beat.incarnation)
                del self.seen[agent]
            elif self.is_dead(sight.beat.incarnation):
                del self.seen[agent]
        self.restless = received < self._quiet
        return forgotten

    def _believe(self, beats: Mapping[str, Beat]) -> None:
        """Hold dead whom these beats name, but for those of the dead."""
        named = {agent: beat.dead for agent, beat in beats.items() if not self.is_dead(beat.incarnation)}
        self._told = {incarnation for agent, dead in named.items() if agent != self.me for incarnation in dead}
        for dead in named.values():
            for incarnation in dead:
                self.hold_dead(incarnation)

    def _look(self, agent: str, beat: Beat, received: float) -> None:
        if beat.incarnation in self._left:
            return
        if self.is_dead(beat.incarnation):
            last = self._dead[beat.incarnation]
            if LEFT not in beat.flags and (last is None or beat.counter > last):
                self._dead[beat.incarnation] = beat.counter
                self._awake.add(beat.incarnation)
                self._silent[beat.incarnation] = received
                self._quiet = received + self.failure_timeout
                self._name(beat.incarnation)
            return  # an old line that came late, maybe: it says nothing of a newer incarnation
        sight = self.seen.get(agent)
        if self._is_old(agent, beat) and (sight is None or sight.beat.incarnation != beat.incarnation):
            return
        if sight is None:
            self.seen[agent] = Sight(beat, received)
        elif beat.incarnation != sight.beat.incarnation:
            self._replaced(sight.beat, beat)
            sight.beat, sight.changed, sight.heard = beat, received, False
        elif beat.counter > sight.beat.counter or LEFT in beat.flags:  # else it is old, and came late, maybe
            sight.beat, sight.changed, sight.heard = beat, received, True

    def _replaced(self, last: Beat, beat: Beat) -> None:
        """Another incarnation has the identifier. Who was on its way out has left: its last line was written over
        before it was read, unless the new one says that it is dead."""
        if LEAVING in last.flags and last.incarnation not in beat.dead:
            self._leave(last.incarnation)
        else:
            self.hold_dead(last.incarnation)

    def _is_old(self, agent: str, beat: Beat) -> bool:
        """Whether this beat has stood there since Redis came back: of another incarnation than the one known it says
        nothing, until there is a next one."""
        found = self._found.get(agent)
        return found is not None and (found.incarnation, found.counter) == (beat.incarnation, beat.counter)

    def is_of_then(self, agent: str, beat: Beat) -> bool:
        """Whether this beat has stood there since Redis came back, and is of no agent that is or was known here."""
        if not self._is_old(agent, beat) or beat.incarnation in self._left or beat.incarnation in self._dead:
            return False
        return not self.alive(agent, beat.incarnation)

    def hold_dead(self, incarnation: str) -> None:
        """Hold this incarnation dead from now on, and tell the others."""
        if incarnation not in self._dead:
            sight = next((sight for sight in self.seen.values() if sight.beat.incarnation == incarnation), None)
            self._dead[incarnation] = sight.beat.counter if sight is not None else None
            if sight is not None:
                self._silent[incarnation] = sight.changed
            if sight is not None and sight.heard:
                self._heard.add(incarnation)
            self._name(incarnation)
            if len(self._dead) > DEAD_REMEMBERED:
                self._forget(next(iter(self._dead)))

    def reconsider(self) -> None:
        """The observer joins again, held dead itself: those whom it alone holds dead and who have beaten since are to
        be seen as any other."""
        for incarnation in self._awake - self._told:
            self._named = tuple(each for each in self._named if each != incarnation)
            self._forget(incarnation)

    def _forget(self, incarnation: str) -> None:
        self._heard.discard(incarnation)
        self._silent.pop(incarnation, None)
        self._awake.discard(incarnation)
        del self._dead[incarnation]

    def _name(self, incarnation: str) -> None:
        """Tell the others, and itself, that it is dead."""
        others = (each for each in self._named if each != incarnation)
        self._named = (*others, incarnation)[-MOST_DEAD:]

    def _leave(self, incarnation: str) -> None:
        self._left[incarnation] = None
        if len(self._left) > DEAD_REMEMBERED:
            oldest = next(iter(self._left))
            self._heard.discard(oldest)
            del self._left[oldest]

    def alive(self, agent: str, incarnation: str) -> bool:
        """Whether that incarnation of another agent lives (the leaving included)."""
        sight = self.seen.get(agent)
        return sight is not None and sight.beat.incarnation == incarnation

    def leaves(self, agent: str) -> bool:
        """Whether another agent lives, and is on its way out."""
        sight = self.seen.get(agent)
        return sight is not None and LEAVING in sight.beat.flags

    def members(self) -> dict[str, Member]:
        """The others that belong into a view: alive and not leaving."""
        return {
            agent: Member(s.beat.incarnation, s.beat.epoch, s.beat.replicas)
            for agent, s in self.seen.items()
            if LEAVING not in s.beat.flags
        }
