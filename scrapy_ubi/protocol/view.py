"""Who is alive: beats, the failure detector, views and the lease (docs/explanation/protocol.md#membership).

Rules of this module:

* A beat's age is measured by the *observer's* monotonic clock since it last saw the beat change: no clocks agree.
* An agent is dead in an observer's view when, at the moment the observer *sent* a read, the beat had not changed for
  the failure timeout. Measuring to the sending of the read makes a slow answer count for the observed, never against
  it.
* An observer that was itself away (no read for longer than the lease) starts all ages anew. So does one that finds that
  Redis has forgotten everything since its last read: beats may have been written, and gone, in between.
  And what it finds there may be from long ago: a line of an unknown incarnation counts when the next one follows.
* Death is for ever for that incarnation, and contagious: beats name the incarnations their writers hold dead, and a
  reader believes them. It may: the writer saw no beat for the failure timeout, so the lease of the dead has ended. It
  must: an incarnation that one agent holds dead may not go on anyway. One that beats on has not heard of it, and is
  named again.
* A fence that ends raises the agent's *epoch*, which is part of every view: a fenced agent goes on only when every
  living agent has published the digest of a view that holds the new epoch, and so has seen a beat sent after the
  fence began.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import mmh3

from scrapy_ubi.protocol.ring import Ring, RingCollision

MOST_PENDING = 64  # a beat stays short: an agent with more pending hosts has not settled yet, and says so (MANY)
MOST_DEAD = 16  # deaths named in a beat: the last ones, and those who beat on, of whom there may be more in turn
EDITS = 8  # points of a ring that are drawn and sorted anew in the time one is added to it, of hundreds of agents
DEAD_REMEMBERED = 4096  # incarnations an observer remembers as dead; the oldest are forgotten beyond it

# Flags of a beat: going; gone; nothing left to do; without the right to fetch; has seen more agents lost than there are
# copies; has never seen a view complete; has left because the crawl is over; knows of no URL of the crawl; would have
# settled, but for too many pending hosts.
LEAVING, LEFT, PASSIVE, FENCED, LOSSY, NEW, OVER, BLANK, MANY = "l", "L", "p", "f", "x", "n", "o", "b", "m"

_BEAT = re.compile(
    r"([0-9a-f]{8})\.(\d{1,9}) (\d{1,15}) ([1-9]\d{0,5}) ([0-9a-f]{16}) ([0-9a-f]{16}|-) ([lLpfxnobm]{1,9}|-)"
    r" (\d{1,15}) ([0-9a-f]{16}(?:,[0-9a-f]{16}){0,63}|-) ([0-9a-f]{8}(?:,[0-9a-f]{8}){0,15}|-)",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Beat:
    """What an agent says of itself, about once a second.

    `digest` names the view it believes in; `settled` the view for which it has handed on all it holds ('' for none),
    but for the `pending` hosts (their ring points, 16 hex digits); `activity` counts everything it did, for
    quiescence; `dead` are the incarnations it last declared dead.
    """

    incarnation: str
    epoch: int
    replicas: int
    digest: str
    settled: str = ""
    flags: str = ""
    activity: int = 0
    pending: tuple[str, ...] = ()
    dead: tuple[str, ...] = ()
    counter: int = 0

    def has_brought(self, digest: str) -> bool:
        """Whether the agent has handed on all it holds under this view, however many hosts are pending."""
        return self.settled == digest or (MANY in self.flags and self.digest == digest)

    def line(self, counter: int) -> str:
        """The beat as a short line of text, with this counter."""
        return (
            f"{self.incarnation}.{self.epoch} {counter} {self.replicas} {self.digest} {self.settled or '-'} "
            f"{self.flags or '-'} {self.activity} {','.join(self.pending) or '-'} {','.join(self.dead) or '-'}"
        )

    @classmethod
    def parse(cls, line: str) -> Beat | None:
        """The beat in a line of text; None for anything that is not one."""
        match = _BEAT.fullmatch(line)
        if match is None:
            return None
        inc, epoch, counter, replicas, digest, settled, flags, activity, pending, dead = match.groups()
        return cls(
            inc,
            int(epoch),
            int(replicas),
            digest,
            "" if settled == "-" else settled,
            "" if flags == "-" else flags,
            int(activity),
            () if pending == "-" else tuple(pending.split(",")),
            () if dead == "-" else tuple(dead.split(",")),
            int(counter),
        )


class Member(NamedTuple):
    """An agent as it stands in a view."""

    incarnation: str
    epoch: int
    replicas: int


@dataclass(frozen=True, slots=True)
class View:
    """The set of agents believed alive and not leaving; `digest` names it, `ring` assigns hosts under it."""

    members: Mapping[str, Member]
    digest: str
    ring: Ring

    @classmethod
    def of(cls, members: Mapping[str, Member], near: View | None = None) -> View:
        """The view of these members; `near` is an earlier one whose ring is edited where that is cheaper. Where nothing
        has changed it is `near` itself."""
        if near is not None and near.members == members:
            return near
        text = "\n".join(f"{a} {m.incarnation}.{m.epoch} {m.replicas}" for a, m in sorted(members.items()))
        digest = f"{mmh3.hash64(text, 0, signed=False)[0]:016x}"
        return cls(dict(members), digest, _ring({a: m.replicas for a, m in members.items()}, near))

    def incarnation(self, agent: str) -> str:
        """The incarnation of an agent in this view, '' for none."""
        member = self.members.get(agent)
        return member.incarnation if member else ""


def _ring(replicas: dict[str, int], near: View | None) -> Ring:
    ring = near.ring if near is not None else Ring.of({})
    if sum(points for _, points in ring.agents.items() ^ replicas.items()) * EDITS > sum(replicas.values()):
        try:
            return Ring.of(replicas)
        except RingCollision:
            pass
    for agent, count in list(ring.agents.items()):
        if replicas.get(agent) != count:
            ring = ring.remove(agent)
    for agent in sorted(replicas):
        if agent not in ring.agents:
            try:
                ring = ring.add(agent, replicas[agent])
            except RingCollision:
                # Refused when an agent joins; of two that join at once the later name has no points, for everybody
                # alike.
                continue
    return ring


@dataclass(slots=True)
class Sight:
    """What an observer last saw of an agent, and when (its own clock) that last changed. `heard`: this incarnation has
    beaten while it was watched."""

    beat: Beat
    changed: float
    heard: bool = False


class Watch:
    """The failure detector of one observer: reads of all beats go in, the living come out."""

    def __init__(self, me: str, failure_timeout: float, lease_timeout: float) -> None:
        self.me = me
        self.failure_timeout = failure_timeout
        self.lease_timeout = lease_timeout
        self.seen: dict[str, Sight] = {}
        self._dead: dict[str, int | None] = {}  # -> the counter of its last beat, None while none was seen
        self._heard: set[str] = set()  # those of them that have beaten while they were watched
        self._left: dict[str, None] = {}  # incarnations that have left: what a late line says of them is old
        self._quiet = float("-inf")  # s: from then on nobody held dead has beaten for a failure time-out
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

    def was_heard(self, incarnation: str) -> bool:
        """Whether that incarnation, which is dead, has beaten while this observer was there."""
        return incarnation in self._heard

    def read(self, sent: float, received: float, beats: Mapping[str, Beat], memory: str = "") -> bool:
        """Take in one atomic read of all beats, sent and received at these times (s, the observer's clock). `memory` is
        another text whenever Redis has forgotten everything. True when it has, since the last read.
        """
        forgotten = self._memory is not None and self._memory != memory
        away = forgotten or (self._last_read is not None and sent - self._last_read > self.lease_timeout)
        self._last_read, self._memory = received, memory
        if forgotten:
            self._found = dict(beats)
        for agent, beat in beats.items():
            for incarnation in beat.dead:
                self._bury(incarnation)
            if agent != self.me:
                self._look(agent, beat, received)
        for agent, sight in list(self.seen.items()):
            if away:
                sight.changed = received
            if sent - sight.changed > self.failure_timeout:
                self._bury(sight.beat.incarnation)
            if LEFT in sight.beat.flags:
                self._leave(sight.beat.incarnation)
                del self.seen[agent]
            elif self.is_dead(sight.beat.incarnation):
                del self.seen[agent]
        self.restless = received < self._quiet
        return forgotten

    def _look(self, agent: str, beat: Beat, received: float) -> None:
        if beat.incarnation in self._left:
            return
        if self.is_dead(beat.incarnation):
            last = self._dead[beat.incarnation]
            if LEFT not in beat.flags and (last is None or beat.counter > last):
                self._dead[beat.incarnation] = beat.counter
                self._quiet = received + self.failure_timeout
                self._name(beat.incarnation)
            return  # an old line that came late, maybe: it says nothing of a newer incarnation
        sight = self.seen.get(agent)
        if self._is_old(agent, beat) and (sight is None or sight.beat.incarnation != beat.incarnation):
            return
        if sight is None:
            self.seen[agent] = Sight(beat, received)
        elif beat.incarnation != sight.beat.incarnation:
            self._bury(sight.beat.incarnation)  # an identifier has one living incarnation
            sight.beat, sight.changed, sight.heard = beat, received, False
        elif beat.counter > sight.beat.counter or LEFT in beat.flags:  # else it is old, and came late, maybe
            sight.beat, sight.changed, sight.heard = beat, received, True

    def _is_old(self, agent: str, beat: Beat) -> bool:
        """Whether this beat has stood there since Redis came back: of another incarnation than the one known it says
        nothing, until there is a next one."""
        found = self._found.get(agent)
        return found is not None and (found.incarnation, found.counter) == (beat.incarnation, beat.counter)

    def is_of_then(self, agent: str, beat: Beat) -> bool:
        """Whether this beat has stood there since Redis came back, and is nobody's who is or was known here."""
        if not self._is_old(agent, beat) or beat.incarnation in self._left or beat.incarnation in self._dead:
            return False
        return not self.alive(agent, beat.incarnation)

    def _bury(self, incarnation: str) -> None:
        if incarnation not in self._dead:
            sight = next((sight for sight in self.seen.values() if sight.beat.incarnation == incarnation), None)
            self._dead[incarnation] = sight.beat.counter if sight is not None else None
            if sight is not None and sight.heard:
                self._heard.add(incarnation)
            self._name(incarnation)
            if len(self._dead) > DEAD_REMEMBERED:
                oldest = next(iter(self._dead))
                self._heard.discard(oldest)
                del self._dead[oldest]

    def _name(self, incarnation: str) -> None:
        """Tell the others, and itself, that it is dead."""
        others = (each for each in self._named if each != incarnation)
        self._named = (*others, incarnation)[-MOST_DEAD:]

    def _leave(self, incarnation: str) -> None:
        self._left[incarnation] = None
        if len(self._left) > DEAD_REMEMBERED:
            del self._left[next(iter(self._left))]

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


class Lease:
    """The right to start a fetch, which ends by itself: the last acknowledged beat was *sent* less than a lease ago.

    `acknowledged` may be called from the beating thread; everything else from the loop. A gap between two
    acknowledged beats that is longer than the lease is a fence that outlasts the next beat, until `mend`: while it
    lasted others may have declared this incarnation dead.

    Loads under way may go on for the `grace` (s) beyond the lease: most end by themselves, and a page that was asked
    for is not asked for again. After it they are *lost*: the moment at which others may declare this incarnation dead,
    and fetch its hosts, comes near.
    """

    def __init__(self, timeout: float, grace: float = 0.0) -> None:
        self.timeout = timeout
        self.grace = grace
        self.gaps = 0
        self.losses = 0
        self._mended = 0
        self._sent: float | None = None

    def acknowledged(self, sent: float) -> None:
        """A beat sent at this time (s) was acknowledged."""
        if self._sent is not None and sent - self._sent > self.timeout:
            self.losses += sent - self._sent > self.timeout + self.grace
            self.gaps += 1  # before the lease is renewed: the loop may compare at any moment
        self._sent = sent

    def holds(self, now: float) -> bool:
        """Whether a fetch may start now."""
        return self.gaps == self._mended and self._sent is not None and now - self._sent < self.timeout

    def lost(self, now: float) -> bool:
        """Whether loads under way have no right to go on."""
        return self._sent is None or now - self._sent >= self.timeout + self.grace

    def heard_since(self, time: float) -> bool:
        """Whether a beat that was sent after this time (s) was acknowledged."""
        return self._sent is not None and self._sent > time

    def mend(self, gaps: int) -> None:
        """Everybody has seen this agent since the gap with this number."""
        self._mended = gaps

    @property
    def torn(self) -> bool:
        """Whether a gap waits to be mended."""
        return self.gaps != self._mended
