"""Membership: what one agent is to the others, and they to it, put together from reads of everybody's beats.

Rules of this module:

* An agent is *sure* of its picture once a lease and its grace have passed since its first beat, or an agent that
  has settled is in it: Redis may have forgotten the others a moment before it came, but every living agent is seen, or
  fenced and without loads, by then. If Redis forgets once more meanwhile it waits again. An agent that is not sure
  settles nothing and fetches nothing (decision 0003). `Config.start_wait` may make the wait shorter. That is safe as
  long as Redis has forgotten nothing since the first of the living came: of two agents that claim their names in one
  Redis, the later one then finds the earlier one's beat, and waits until that one has settled for both.
* A gap in the lease raises the epoch, and is mended when everybody alive has published the digest of a view that
  holds it, and no incarnation that is held dead beats on (`Detector.restless`).
* An agent whose incarnation another agent holds dead joins again under another one.
* More than `t` agents lost between two complete views, and what only they knew may be lost: the crawl is *lossy* from
  then on, and says so at its end. So it is when an agent that begins again from a disk misses
  somebody whom the disk knows when its first view is complete, unless that one has ended the crawl: nothing that it
  knew was left then. Who was lost is recorded (`losses`): it may come back.
  Lines that never changed while this agent was there are of a time before it, and no loss that it has seen.
* Who dies on its way out, before a view without it is complete, is lost as well: the others may lack what it knew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from scrapy_ubi.protocol.beat import LOSSY, NEW, OVER, Beat
from scrapy_ubi.protocol.config import Config, Counters
from scrapy_ubi.protocol.detector import Detector
from scrapy_ubi.protocol.lease import Lease
from scrapy_ubi.protocol.losses import MOST_LOSSES, MOST_MEMBERS, GroupLoss
from scrapy_ubi.protocol.view import Member, View

TORN = ""  # stands for an incarnation that is lost though its agent is there: its disk is torn


class Membership:
    """The membership of one agent. `shadowed`: another process's line was under this identifier at the last read;
    `usurped`: that process lives."""

    def __init__(self, me: str, config: Config, counters: Counters, new_incarnation: Callable[[], str]) -> None:
        self.me = me
        self.config = config
        self.counters = counters
        self.incarnation = new_incarnation()
        self.epoch = 0
        self.lease = Lease(config.lease_timeout, config.grace)
        self.watch = Detector(me, config.failure_timeout, config.lease_timeout)
        self.leaving = False
        self.lossy = False
        self.shadowed = self.usurped = False
        self.sure = False
        self._new_incarnation = new_incarnation
        self._own = {self.incarnation}
        self._gaps = 0
        self._begun: float | None = None
        self._beat: Beat | None = None  # the own one, as last read
        self._stranger: Beat | None = None  # another process's under this identifier, as last read
        self._lost: dict[str, str] = {}  # since the last complete view: incarnation -> name
        self.losses: list[GroupLoss] = []
        self._losing = False  # the last of them is of this time
        self.peers: frozenset[str] = frozenset()  # who was in the last view that was complete
        self._missed: frozenset[str] = frozenset()  # who was in that of the disk, until a view is complete again
        self._leavers: dict[str, str] = {}  # on their way out since the last complete view: incarnation -> name

    def view(self, near: View | None = None) -> View:
        """The view that follows from what is seen; `near` is an earlier one."""
        members = self.watch.members()
        if not self.leaving:
            members[self.me] = Member(self.incarnation, self.epoch, self.config.replicas)
        return View.of(members, near)

    def read(self, sent: float, received: float, beats: Mapping[str, Beat], memory: str = "") -> dict[str, Beat]:
        """Take in one atomic read of all beats (`Detector.read`); those of everybody alive, the own included if it was
        there.
        """
        own = beats.get(self.me)
        self.shadowed = own is not None and own.incarnation not in self._own
        if own is not None and self.shadowed:
            self.usurped = self.usurped or self._goes_on(own)
        forgotten = self.watch.read(sent, received, beats, memory)
        self.lossy = self.lossy or any(
            LOSSY in beat.flags and not self.watch.is_of_then(agent, beat) for agent, beat in beats.items()
        )
        for agent in self._missed & beats.keys():
            if OVER in beats[agent].flags and not self.watch.is_of_then(agent, beats[agent]):
                self._missed -= {agent}
        if self._begun is None or forgotten:
            self._begun = sent
        if not self.sure:
            wait = self.config.wait
            waited = not wait or sent - self._begun > wait
            self.sure = waited or any(sight.beat.settled for sight in self.watch.seen.values())
        alive = {agent: sight.beat for agent, sight in self.watch.seen.items()}
        if own is not None and own.incarnation == self.incarnation:
            alive[self.me] = self._latest(own)
        return alive

    @property
    def begun(self) -> float | None:
        """When the beats were first asked for from which the start wait counts (s); None before."""
        return self._begun

    def _goes_on(self, stranger: Beat) -> bool:
        """Whether this is another line of that process: a first one may be of a former life, from a file of Redis's."""
        last, self._stranger = self._stranger, stranger
        return last is not None and last.incarnation == stranger.incarnation and last.counter != stranger.counter

    def _latest(self, own: Beat) -> Beat:
        """The own beat, or the one read before where a read has overtaken another."""
        last = self._beat
        if last is None or last.incarnation != own.incarnation or own.counter >= last.counter:
            self._beat = last = own
        return last

    @property
    def dead(self) -> bool:
        """Whether somebody holds this incarnation dead."""
        return self.watch.is_dead(self.incarnation)

    def rejoin(self) -> None:
        """Join again, as another incarnation."""
        self.incarnation = self._new_incarnation()
        self._own.add(self.incarnation)
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

        Who is held dead and beats on has not heard of it (Redis may have forgotten), and may be fetching: not then.
        """
        if not self.lease.torn or self.watch.restless or any(beat.digest != digest for beat in alive.values()):
            return False
        self.lease.mend(self._gaps)
        return True

    def may_act(self, now: float) -> bool:
        """Whether this agent has the right to start fetches at this time (s)."""
        return self.sure and self.lease.holds(now) and self.lease.gaps == self._gaps

    def alive(self, agent: str, incarnation: str) -> bool:
        """Whether that incarnation of an agent lives, as far as is known here."""
        return incarnation == self.incarnation if agent == self.me else self.watch.alive(agent, incarnation)

    def leaves(self, agent: str) -> bool:
        """Whether this agent, or this one itself, is on its way out."""
        return self.leaving if agent == self.me else self.watch.leaves(agent)

    def count_lost(self, before: View, new: bool) -> None:
        """The view `before` has ended: count those who died. `new`: this agent has never seen a view complete."""
        for agent, member in before.members.items():
            if agent == self.me:
                continue
            if self.watch.is_dead(member.incarnation):
                self._lost[member.incarnation] = agent
            elif self.watch.leaves(agent):
                self._leavers[member.incarnation] = agent
        self._count(new)

    def count_lost_leavers(self, new: bool) -> None:
        """Beats were read: count those who have died on their way out. `new`: as above."""
        dead = [incarnation for incarnation in self._leavers if self.watch.is_dead(incarnation)]
        for incarnation in dead:
            self._lost[incarnation] = self._leavers.pop(incarnation)
        if dead:
            self._count(new)

    def _count(self, new: bool) -> None:
        # Where no agent is left that has seen a view complete, none has a whole copy: one death is one too many.
        nobody_knows = new and all(NEW in sight.beat.flags for sight in self.watch.seen.values())
        spare = 0 if nobody_knows else self.config.replication
        if len(self._lost) > spare:
            self.lossy = True
            spare = max(0, spare - (TORN in self._lost))  # that one does not come back
            self._record(tuple((n, i) for i, n in self._lost.items() if self.watch.was_heard(i)), spare)

    def _record(self, lost: tuple[tuple[str, str], ...], spare: int) -> None:
        """So many were lost together, as far as is seen by now."""
        if len(lost) <= spare:
            return
        if self._losing:
            spare = min(spare, self.losses.pop().spare)
        self._losing = True
        self.losses = [*self.losses, GroupLoss(lost[-MOST_MEMBERS:], spare)][-MOST_LOSSES:]

    def completed(self, view: View) -> None:
        """This view, the present one, is complete: every host has all its copies again."""
        self._losing = False
        if missed := self._missed - view.members.keys():
            self.lossy = True  # even one: this disk may be older than theirs
            self._record(tuple((name, "") for name in sorted(missed)), 0)
            self._losing = False
        self._missed = frozenset()
        self._lost.clear()
        self._leavers.clear()
        self.peers = frozenset(view.members)

    def resume(self, lossy: bool, peers: frozenset[str], torn: bool = False) -> None:
        """What a disk tells of the group: who is not back when a view is complete again may come later, with work.
        `torn`: its last flushes are lost, as if this agent had been lost with its disk."""
        self.lossy = lossy
        if torn:
            self._lost[TORN] = self.me
        self.peers = self._missed = peers
