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
* More than `t` agents lost between two views in which all have settled (then every host has all its copies), and what
  only they knew may be lost: the crawl is *lossy* from then on. So it is when an agent that begins again from a disk
  misses somebody whom the disk knows when its first view is so far, unless that one has ended the crawl: nothing that
  it knew was left then. Lossy says no more than that agents may come back, with work.
* Whether anything is missing is asked at the end, of what is recorded: who was lost (`losses`), whom this agent misses
  since it began again (`missed`), and whose deaths it has counted (`counted`), so that others need not miss them. Who
  has left, with all handed on, is counted with the dead.
* A death is counted by who has been in such a view, and in those since: it knows what had its copies when. Where no
  such agent is left, those who live may all be *behind* the dead: all may have settled in a view of these alone.
  The `era` in the beats tells: it grows by one with each such view, for all who see it, and stays on their disks. Where
  all have just begun none has an era, and one death is one death. Nor is one ahead, whatever its era, where one of
  those who live was in the view of that era: it was killed before it could see that all had settled. Newcomers do not
  know that, and leave it to those who go on from disks, where there are any.
* Whom an agent misses since it began again had nothing that its disk has not, where the last line of the missed one is
  of the era of that disk. So much may be away then as there are copies; else none may.
  Lines that never changed while this agent was there are of a time before it, and no loss that it has seen.
* Who dies on its way out, before a view without it is complete, is lost as well: the others may lack what it knew. So
  is who leaves before it has handed on all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from scrapy_ubi.protocol.beat import LEAVING, LOSSY, NEW, OVER, Beat, LastWords, words_after
from scrapy_ubi.protocol.config import Config, Counters
from scrapy_ubi.protocol.detector import Detector
from scrapy_ubi.protocol.lease import Lease
from scrapy_ubi.protocol.losses import MOST_COUNTED, MOST_LOSSES, MOST_MEMBERS, GroupLoss
from scrapy_ubi.protocol.view import Member, View

BEGUN = 1  # the era of a disk that an agent has left before all had settled for the first time; an empty one has 0
MOST_VIEWS = 16  # whose digests are remembered
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
        self.missed: list[GroupLoss] = []
        self.counted: list[str] = []  # incarnations
        self.era = self.base = 0  # complete views: as far as is known, and when the present view was entered
        self.complete = self.base_view = ""  # the digests of the last of them, as far as was known at these moments
        self.peers: Mapping[str, str] = {}  # who was in it: name -> incarnation
        self._absent: list[tuple[str, str]] = []  # who was in that of the disk or known since, until there is another
        self._dead_before: Mapping[str, str] = {}  # who of these was seen dead before: incarnation -> name
        self._missed: frozenset[str] = frozenset()  # the same, but for those who have ended the crawl
        self._lines: dict[str, dict[str, Beat]] = {}  # of each of them the last one, by incarnation
        self._last: dict[str, Beat] = {}  # of those who live, or are lost: incarnation -> its last beat
        self._views: dict[
            str, list[str]
        ] = {}  # incarnation -> digests of the last views in which it was, the own included
        self._was_there = False  # this incarnation has seen a view in which all had settled
        self._leavers: dict[str, str] = {}  # on their way out since the last complete view: incarnation -> name
        self.before: tuple[LastWords, ...] = ()  # of incarnations that had this name, as their last lines said

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
        there = {sight.beat.incarnation for sight in self.watch.seen.values()}
        forgotten = self.watch.read(sent, received, beats, memory)
        self._look_at_eras(beats)
        for agent, beat in beats.items():
            for last in (beat, *(words.beat for words in beat.before)):
                if last.incarnation in there and last.has_left_some:
                    self._leavers.pop(last.incarnation, None)
                    self._lost[last.incarnation] = agent
                    self._count()
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

    def _look_at_eras(self, beats: Mapping[str, Beat]) -> None:
        """See how far everybody has come."""
        for agent, _ in self._absent:
            if agent in beats:
                lines = self._lines.setdefault(agent, {})
                lines[beats[agent].incarnation] = beats[agent]
                for words in beats[agent].before:
                    lines.setdefault(words.incarnation, words.beat)
        for sight in self.watch.seen.values():
            self._last[sight.beat.incarnation] = sight.beat
            if LEAVING not in sight.beat.flags:
                self._has_entered(sight.beat.incarnation, sight.beat.digest)

    def entered(self, view: View) -> None:
        """This agent believes in that view from now on."""
        self.base, self.base_view = self.era, self.complete
        if self.me in view.members:
            self._has_entered(self.incarnation, view.digest)

    def _has_entered(self, incarnation: str, digest: str) -> None:
        views = self._views.setdefault(incarnation, [])
        if not views or views[-1] != digest:
            views.append(digest)
            del views[:-MOST_VIEWS]

    def _shared(self, digest: str) -> bool:
        """Whether somebody who lives, or this agent, was in the view with that digest."""
        lives = [self.incarnation, *(sight.beat.incarnation for sight in self.watch.seen.values())]
        return any(digest in self._views.get(life, ()) for life in lives)

    def _era_of(self, incarnation: str) -> int:
        """How far one that is lost can have come in a view without those who live."""
        if incarnation == TORN:
            return self.era
        beat = self._last.get(incarnation)
        if beat is None:
            return 0
        alone = (bool(beat.settled) or NEW not in beat.flags) and not self._shared(beat.digest)
        if not alone and self._shared(beat.complete):
            return 0
        return max(BEGUN, beat.era) + alone

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
        views = self._views.pop(self.incarnation, [])
        self.incarnation = self._new_incarnation()
        self._views[self.incarnation] = views
        self._own.add(self.incarnation)
        self.epoch = 0
        self.base, self.base_view = self.era, self.complete
        self._begin_again(self.peers, self.seen_dead)
        self._was_there = False
        self._lost = {TORN: self.me} if TORN in self._lost else {}
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

    def loads_end(self, agent: str, incarnation: str) -> float:
        """By when (s) all loads of that incarnation have ended: infinity where it is not known to be dead."""
        if self.alive(agent, incarnation):
            return math.inf
        return self.watch.silent_since(incarnation) + self.config.lease_timeout + self.config.grace

    def leaves(self, agent: str) -> bool:
        """Whether this agent, or this one itself, is on its way out."""
        return self.leaving if agent == self.me else self.watch.leaves(agent)

    def count_lost(self, before: View) -> None:
        """The view `before` has ended: count those who died."""
        for agent, member in before.members.items():
            if agent == self.me:
                continue
            if self.watch.is_dead(member.incarnation):
                self._lost[member.incarnation] = agent
            elif self.watch.leaves(agent):
                self._leavers[member.incarnation] = agent
        self._count()

    def count_lost_leavers(self) -> None:
        """Beats were read: count those who have died on their way out."""
        dead = [incarnation for incarnation in self._leavers if self.watch.is_dead(incarnation)]
        for incarnation in dead:
            self._lost[incarnation] = self._leavers.pop(incarnation)
        if dead:
            self._count()

    def _count(self) -> None:
        torn = TORN in self._lost  # that one does not come back
        spare = max(0, self.config.replication - torn)
        others = [sight.beat for sight in self.watch.seen.values()]
        known = any(NEW not in beat.flags for beat in others)
        if len(self._lost) > self.config.replication:
            self.lossy = True
            if self._was_there or not known:  # else who has seen all these deaths counts them
                self._record(self._heard(self._lost), spare)
        elsewhere = not self.era and any(beat.era for beat in others)  # they go on from disks, and know more
        if not self._was_there and not known and not elsewhere:
            newest = max((BEGUN, *(beat.era for beat in others)))
            newest = newest if torn else max(newest, self.era)
            ahead = [incarnation for incarnation in self._lost if self._era_of(incarnation) > newest]
            if ahead:
                self.lossy = True
                self._record(self._heard(ahead), max(0, min(spare, len(ahead) - 1 - torn)))

    def _heard(self, incarnations: Iterable[str]) -> tuple[tuple[str, str], ...]:
        return tuple((self._lost[one], one) for one in incarnations if self.watch.was_heard(one))

    def _record(self, lost: tuple[tuple[str, str], ...], spare: int) -> None:
        """So many were lost together, as far as is seen by now."""
        if len(lost) <= spare:
            return
        if self._losing:
            spare = min(spare, self.losses.pop().spare)
        self._losing = True
        self.losses = [*self.losses, GroupLoss(lost[-MOST_MEMBERS:], spare)][-MOST_LOSSES:]

    def released(self, view: View, eras: Iterable[int]) -> None:
        """Everybody has settled in this view, the present one: every host has all its copies again, those that are
        pending as well. `eras` are those of everybody's beats."""
        self._losing = False
        if self._missed - view.members.keys():
            self.lossy = True  # even one: this disk may be older than theirs
        if self._absent:
            self._miss(view)
        if self._was_there:
            self._have_counted((*self._lost, *self._leavers))
        self._was_there = True
        self._missed, self._dead_before = frozenset(), {}
        self._absent.clear()
        self._lines.clear()
        self._lost.clear()
        self._leavers.clear()
        self._last.clear()
        alive = {self.incarnation, *(sight.beat.incarnation for sight in self.watch.seen.values())}
        self._views = {life: views for life, views in self._views.items() if life in alive}
        self.era = max(BEGUN, *eras) + 1
        self.complete, self.peers = view.digest, {name: member.incarnation for name, member in view.members.items()}

    def _miss(self, view: View) -> None:
        """Say who of the last complete view that is known here is not there: its deaths were not seen."""
        told_of = [line for lines in self._lines.values() for line in lines.values()]
        ended = {line.digest for line in told_of if OVER in line.flags}  # views in which the crawl was found to be over
        missed: list[tuple[str, str]] = []
        level: list[str] = []
        for name, incarnation in self._absent:
            lines = [*self._lines.get(name, {}).values()]
            here = view.incarnation(name) == incarnation if incarnation else name in view.members
            if name == self.me or here or any(line.digest in ended for line in lines):
                continue
            missed.append((name, incarnation))
            told = any(self._is_level(line, incarnation) for line in lines) and not any(map(self._is_ahead, lines))
            if told or incarnation in self._dead_before:
                level.append(incarnation)
        if not missed:
            return
        torn = TORN in self._lost
        spare = max(0, self.config.replication - torn) if len(level) == len(missed) else 0
        self._have_counted(level)
        self.missed = [*self.missed, GroupLoss(tuple(sorted(missed))[-MOST_MEMBERS:], spare)][-MOST_LOSSES:]

    def _is_level(self, line: Beat, incarnation: str) -> bool:
        """Whether who has said this last had that disk, and cannot have seen a view with all copies that this agent
        does not know."""
        known = line.incarnation == incarnation or line.era in (BEGUN, self.era)
        return (known or line.digest == self.complete) and not self._is_ahead(line)

    def _is_ahead(self, line: Beat) -> bool:
        """Whether who said this may have seen such a view."""
        if line.digest == self.complete:
            return False
        later = line.era > self.era and not self._shared(line.complete)
        return later or (bool(line.settled) and not self._shared(line.digest))

    @property
    def own_views(self) -> tuple[str, ...]:
        """The digests of the last views in which this agent was."""
        return tuple(self._views.get(self.incarnation, ()))

    @property
    def seen_dead(self) -> dict[str, str]:
        """Who was seen dead since all had settled: incarnation -> name."""
        return {life: name for life, name in (*self._dead_before.items(), *self._lost.items()) if life != TORN}

    def _begin_again(self, peers: Mapping[str, str], lost: Mapping[str, str]) -> None:
        """It is to be seen what became of these meanwhile."""
        self._absent = list(dict.fromkeys([*peers.items(), *((name, life) for life, name in lost.items())]))
        self._dead_before = dict(lost)
        self._lines.clear()

    def _have_counted(self, incarnations: Iterable[str]) -> None:
        found = [one for one in incarnations if one not in ("", TORN)]
        self.counted = list(dict.fromkeys((*self.counted, *found)))[-MOST_COUNTED:]

    def follow(self, last: Beat) -> None:
        """This agent has taken a name whose last line says that: its own lines repeat it."""
        self.before = words_after(last)

    def resume(
        self,
        lossy: bool,
        peers: Mapping[str, str],
        torn: bool = False,
        view: str = "",
        era: int = 0,
        lost: Mapping[str, str] | None = None,
        views: Iterable[str] = (),
    ) -> None:
        """What a disk tells of the group: who is not back when a view is complete again may come later, with work.
        `torn`: its last flushes are lost, as if this agent had been lost with its disk. `view` and `era`: of the last
        complete view; `lost` were seen dead since, `views` are digests of the last ones that it was in."""
        self.lossy = lossy
        if torn:
            self._lost[TORN] = self.me
        self.peers = peers
        self._begin_again(peers, lost or {})
        self._missed = frozenset(peers)
        self.complete = self.base_view = view
        self.era = self.base = max(BEGUN, era)
        self._views[self.incarnation] = [*views, *self._views.get(self.incarnation, ())][-MOST_VIEWS:]
