"""Membership: what one agent is to the others, and they to it, put together from reads of everybody's beats.

Rules of this module:

* An agent is *sure* of its picture once Redis is known to have forgotten nothing for a lease and its grace: every
  living agent has beaten since, and is seen, or is fenced and without loads. That is known from the agent's first read
  on, or from earlier where the transport can tell (`watched`, decision 0119). If Redis forgets meanwhile it waits
  again. An agent that is not sure settles nothing and fetches nothing (decision 0003).
* Before that it is sure by the word of one that is there, has settled, and has seen all settle, or had looked before it
  looked first: never each by the word of the other. That one knows who lives, and all settle in one view. Its word ends
  with its life: the line may have been of one that was killed, and nobody else may know of an agent that cannot beat
  (decision 0152). Once all have settled it is sure for good.
* `Config.start_wait` may make the wait shorter. That is safe as long as Redis has forgotten nothing since the first of
  the living came: of two agents that claim their names in one Redis, the later one then finds the earlier one's beat,
  and waits until that one has settled for both.
* Where agents are *expected*, neither what the transport can tell nor `start_wait` makes the wait shorter: who has left
  with what others may not have, and who was in the last view that this agent's disk knows, unless it has handed on all.
  All were stopped together, as a rule, and are started together: what each did last is on its own disk alone
  (decision 0136). The wait ends when they are back. One that was there when this agent came may leave so, too: that
  counts as long as all have not settled, and that whole wait is not over.
* Whose lease had a gap in which Redis has forgotten everything is not sure any more (decision 0175): agents may have
  come, found nobody, and waited until they were sure. Their lines count only when the next ones follow; and where Redis
  has forgotten once more there are none. It waits the whole time, whatever the transport can tell; or until one that
  holds its lease, and has seen all settle, has settled in this very view, with the new epoch: that was said after the
  gap, by one who had none. What others said before says nothing.
  The gap may be known before that Redis has forgotten, or after it: while the own line is only looked at.
* A gap in the lease raises the epoch, and is mended when everybody alive has published the digest of a view that
  holds it, and no incarnation that is held dead beats on (`Detector.restless`).
* An agent whose incarnation another agent holds dead joins again under another one.
* Who was lost, and whether that was more than there are copies, is another matter (`loss_counter.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping

from scrapy_ubi.protocol.beat import FENCED, NEW, OVER, Beat
from scrapy_ubi.protocol.config import Config, Counters
from scrapy_ubi.protocol.detector import Detector
from scrapy_ubi.protocol.lease import Lease
from scrapy_ubi.protocol.loss_counter import LossCounter
from scrapy_ubi.protocol.view import Member, View, digest_of


class Claim:
    """The claim of one agent to its identifier, as reads of beats show it. `shadowed`: another process's line was there
    at the last read; `usurped`: that process lives. `last` is the own beat, as last read."""

    def __init__(self, incarnation: str) -> None:
        self.shadowed = self.usurped = False
        self.last: Beat | None = None
        self._incarnations = {incarnation}  # the own ones
        self._stranger: Beat | None = None  # the other process's, as last read

    def rejoin(self, incarnation: str) -> None:
        """This agent goes on as that incarnation."""
        self._incarnations.add(incarnation)

    def read(self, found: Beat | None) -> None:
        """Take in what was read under the identifier."""
        self.shadowed = found is not None and found.incarnation not in self._incarnations
        if found is not None and self.shadowed:
            self.usurped = self.usurped or self._goes_on(found)

    def _goes_on(self, stranger: Beat) -> bool:
        """Whether this is another line of that process: a first one may be of a former life, from a file of Redis's."""
        last, self._stranger = self._stranger, stranger
        return last is not None and last.incarnation == stranger.incarnation and last.counter != stranger.counter

    def latest(self, own: Beat) -> Beat:
        """The own beat, or the one read before where a read has overtaken another."""
        last = self.last
        if last is None or last.incarnation != own.incarnation or own.counter >= last.counter:
            self.last = last = own
        return last


class Membership:
    """The membership of one agent. `expected`: who may come back with work that nobody has who was there then;
    `forgotten`: how often Redis has forgotten everything so far."""

    def __init__(self, me: str, config: Config, counters: Counters, new_incarnation: Callable[[], str]) -> None:
        self.me = me
        self.config = config
        self.counters = counters
        self.incarnation = new_incarnation()
        self.epoch = 0
        self.lease = Lease(config.lease_timeout, config.grace)
        self.watch = Detector(me, config.failure_timeout, config.lease_timeout)
        self.losses = LossCounter(me, config.replication, self.watch, self.incarnation)
        self.leaving = False
        self.claim = Claim(self.incarnation)
        self.sure = False
        self._sure_for_good = False
        self._looks = True  # who knows who lives, and who is expected
        self._sure_by: set[str] = set()  # incarnations
        self._came_back = False  # from a gap in the lease in which Redis has forgotten: not sure for good since
        self._new_incarnation = new_incarnation
        self._gaps = 0
        self.expected: tuple[str, ...] = ()
        self.forgotten = 0
        self._begun: float | None = None
        self._watched = 0.0  # s for which Redis was known before that to have forgotten nothing
        self._sent = -math.inf  # the latest read

    def view(self, near: View | None = None) -> View:
        """The view that follows from what is seen; `near` is an earlier one."""
        return View.of(self._members(), near)

    def _members(self) -> dict[str, Member]:
        members = self.watch.members()
        if not self.leaving:
            members[self.me] = Member(self.incarnation, self.epoch, self.config.replicas)
        return members

    def read(
        self, sent: float, received: float, beats: Mapping[str, Beat], memory: str = "", watched: float = 0.0
    ) -> dict[str, Beat]:
        """Take in one atomic read of all beats (`Detector.read`); those of everybody alive, the own included if it was
        there. `watched`: for how long (s), up to this read, Redis is known to have forgotten nothing.
        """
        own = beats.get(self.me)
        self.claim.read(own)
        there = {sight.beat.incarnation for sight in self.watch.seen.values()}
        forgotten = self.watch.read(sent, received, beats, memory)
        if forgotten:
            self.forgotten += 1
            self.losses.book.unpublish()
        self.losses.read(beats, there)
        if self._begun is None or forgotten:
            self._begun = received if forgotten else sent  # lines found now count for nothing, if written since, too
            self._watched = watched if sent >= self._sent else 0.0  # one that was overtaken tells of before
        self._sent = max(self._sent, sent)
        if forgotten and (self.lease.ended(sent) or self.lease.torn):  # in this order: beats come from a thread
            self._come_back()
        if self._looks:
            self._look_who_knows(sent, self._begun, beats)
        alive = {agent: sight.beat for agent, sight in self.watch.seen.items()}
        if own is not None and own.incarnation == self.incarnation:
            alive[self.me] = self.claim.latest(own)
        return alive

    def _come_back(self) -> None:
        """The lease had a gap, and Redis has forgotten everything meanwhile: who lives is not known. Whatever was said
        of the view until now, by this agent as well, was said before that."""
        self._came_back = self._looks = True
        self._sure_for_good = False
        self.expected = ()
        self._sure_by.clear()
        if self.lease.gaps == self._gaps:  # else the new gap does
            self.epoch += 1

    def _look_who_knows(self, sent: float, begun: float, beats: Mapping[str, Beat]) -> None:
        """See whether this agent is sure by now, by a read that was sent then (s)."""
        if not self._came_back:
            self.expected = self._expected(beats)
        waits = self.config.wait or self.expected or self._came_back
        is_known = sent > self._wait_ends(begun) or not waits
        self._sure_for_good = is_known or (self._sure_for_good and not self.expected)
        self._looks = sent <= self._longest_wait_ends(begun)  # nobody is waited for twice, should Redis forget then
        seen = [sight.beat for sight in self.watch.seen.values()]
        self._sure_by.update(beat.incarnation for beat in self._those_who_know(seen))
        self._sure_by &= {beat.incarnation for beat in seen}
        self.sure = self._sure_for_good or bool(self._sure_by)

    def _those_who_know(self, seen: Iterable[Beat]) -> Iterator[Beat]:
        """Those who have settled, and are sure who lives by another's word than that of this agent."""
        settled = [beat for beat in seen if beat.settled]
        if not self._came_back:
            return (beat for beat in settled if NEW not in beat.flags or self.losses.had_looked(beat.incarnation))
        if self.lease.gaps != self._gaps:  # it has yet to publish its new epoch
            return iter(())
        digest = digest_of(self._members())
        return (b for b in settled if b.settled == digest and NEW not in b.flags and FENCED not in b.flags)

    def make_sure(self) -> None:
        """It is known who lives."""
        self.sure = self._sure_for_good = True
        self._came_back = self._looks = False

    def _expected(self, beats: Mapping[str, Beat]) -> tuple[str, ...]:
        """Who may come back with work that no agent has which is there."""
        left = {name for name, beat in beats.items() if beat.has_left_some}
        done = {name for name, beat in beats.items() if beat.has_left_all or OVER in beat.flags}
        return tuple(sorted((left | self.losses.missed) - done - self.watch.seen.keys() - {self.me}))

    @property
    def awaits(self) -> bool:
        """Whether this agent is not sure, and some are expected. Its own line may say that it has settled: it is of
        before that. Who was on its way out when it left with work was in no view, so the view is the same."""
        return not self.sure and bool(self.expected)

    @property
    def start_wait_ends(self) -> float | None:
        """When the start wait ends (s), if nobody comes and Redis forgets nothing; None before the first read."""
        return None if self._begun is None else self._wait_ends(self._begun)

    def _wait_ends(self, begun: float) -> float:
        if self.expected or self._came_back:
            return self._longest_wait_ends(begun)
        return begun - self._watched + self.config.wait

    def _longest_wait_ends(self, begun: float) -> float:
        return begun + max(self.config.wait, self.config.safe_wait)

    @property
    def dead(self) -> bool:
        """Whether somebody holds this incarnation dead."""
        return self.watch.is_dead(self.incarnation)

    def rejoin(self) -> None:
        """Join again, as another incarnation."""
        self.incarnation = self._new_incarnation()
        self.losses.rejoin(self.incarnation)
        self.claim.rejoin(self.incarnation)
        self.epoch = 0
        self.watch.reconsider()
        self.counters.rejoins += 1

    def notice_gaps(self) -> bool:
        """Raise the epoch when there is a new gap in the lease; True when there is."""
        if self.lease.gaps == self._gaps:
            return False
        self._gaps = self.lease.gaps
        self.epoch += 1
        self.counters.fences += 1
        return True

    def mend(self, alive: Mapping[str, Beat], digest: str) -> bool:
        """Mend the lease when everybody alive has published this digest, that of the present view; True when mended.

        Who is held dead and beats on has not heard of it (Redis may have forgotten), and may be fetching: not then. Nor
        before it is known who lives, where Redis has forgotten meanwhile.
        """
        if not self.lease.torn or self.watch.restless or any(beat.digest != digest for beat in alive.values()):
            return False
        if self._came_back and not self.sure:
            return False
        self.lease.mend(self._gaps)
        return True

    def may_act(self, now: float) -> bool:
        """Whether this agent has the right to start fetches at this time (s)."""
        return self.sure and self.lease.holds(now) and self.lease.gaps == self._gaps

    def alive(self, agent: str, incarnation: str) -> bool:
        """Whether that incarnation of an agent lives, as far as is known here."""
        return incarnation == self.incarnation if agent == self.me else self.watch.alive(agent, incarnation)

    def loads_end(self, agent: str, incarnation: str) -> float:
        """By when (s) all loads of that incarnation have ended: infinity where it is not known to be dead."""
        if self.alive(agent, incarnation):
            return math.inf
        return self.watch.silent_since(incarnation) + self.config.lease_timeout + self.config.grace

    def leaves(self, agent: str) -> bool:
        """Whether this agent, or this one itself, is on its way out."""
        return self.leaving if agent == self.me else self.watch.leaves(agent)
