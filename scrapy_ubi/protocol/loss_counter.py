"""Counting losses: whether more agents are lost than there are copies of what they knew, as one agent sees it.

Rules of this module:

* Copies are whole when all have *settled* in a view, whatever is pending. More than `t` agents lost between two such
  views, and what only they knew may be lost: the crawl is *lossy* from then on. So it is when an agent that begins
  again from a disk misses somebody whom the disk knows when its first view is so far, unless that one has ended the
  crawl: nothing that it knew was left then. Lossy says no more than that agents may come back, with work.
* Where all are on their way out no agent keeps what they hand on: that they have settled means nothing.
* Whether anything is missing is asked at the end, of what is in the `book`: who was lost, whom this agent misses since
  it began again, whose deaths it has counted, so that others need not miss them, and who is *safe*. Who has left, with
  all handed on, is counted with the dead.
* A beat names the lives before whose disk its writer has (`carried`). Once all have settled in a view with it these
  are safe: others have all that was on that disk, and should it be lost later that is another loss.
* A death is counted by who has been in such a view, and in those since: it knows what had its copies when. Where no
  such agent is left, those who live may all be *behind* the dead: all may have settled in a view of these alone.
  The `era` in the beats tells: it grows by one with each such view, for all who see it, and stays on their disks. Where
  all have just begun none has an era, and one death is one death. Nor is one ahead, whatever its era, where one of
  those who live was in the view of that era: it was killed before it could see that all had settled. Nor is a leaver
  by a view that it is not in itself. Nor is anybody by a view with a member whose disk is here, whether or not that one
  has ever been in it: it may have been dead, and not known to be, when others settled. Where such a member was lost as
  well, it is one of the same loss: should it be back, so many may be away as there are copies.
  The members are those that a line names, or who give the digest of that view (`found_lines.py`). Who was in a view
  that is complete for others, and not for it, misses all who were in it, too. Its disk does not answer for a view that
  it does not know, though a life before was a member.
* Newcomers do not know in which views others were before. They leave the judgement to those who go on from disks, or
  had looked before they looked first, where there are any. Who is not fenced has: its lease began with an answer. So of
  two newcomers never each leaves it to the other, however often one that hears nothing has beaten.
* Whom an agent misses since it began again had nothing that its disk has not, where the last line of the missed one is
  of the era of that disk. So many may be away as there are copies. Who may have gone on has to be back or, where lines
  name those in the view by which it is ahead, one of these: it knows what all in it knew, and misses its own
  (decision 0153). Ahead is a life, not a name: another disk may have had that since.
* Nor does it miss whom it had seen dead, and who was not ahead, where lines tell that all have settled since in the
  last view that its disk knows: it had counted these deaths before it entered that, and others have copies since.
* A life is judged by the latest that it has said: as it left, or as its name repeats. Words that are repeated are
  later than a line that knows less of this agent.
* Lines that never changed while this agent was there are of a time before it, and no loss that it has seen.
* Who was never heard while this agent was there was dead before it came: no loss that it has seen, but one of which it
  may be the only one to tell. So a newcomer that has nobody to leave the judgement to looks at all lines, when all have
  settled for the first time: those who came furthest, further than all who live, are missed, with those in their view.
  To whom it leaves that may die before they have seen all settle: then it does so itself. As far as those who live had
  come when they were found: what they have seen since tells nothing of the dead. Nor does the era of a disk of which
  no life is in the view of one of these: it went on without it. Who is back with a disk of before all had settled,
  where others came further, leaves it to these whom it misses, in the same way.
  Two of one era may have come as far apart: only who knows the same view answers for the other.
* That all know where the crawl begins does not hold where nobody who is there at its end knows a URL: then all who
  were lost are a loss, but those who have said that they knew none either: one has to be back. Each who is there says
  so, and it stands as long as nobody knows a URL.
* Who dies on its way out, before a view without it is complete, is lost as well: the others may lack what it knew. So
  is who leaves before it has handed on all.
* Who leaves with work while nobody is there keeps that on its disk, and nobody will see that it is gone. So it says
  itself who is away together, itself included (`leave_alone`), and a crawl in which somebody has left like that, and is
  not back, is lossy to those who come later.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from scrapy_ubi.protocol.beat import (
    BLANK,
    FENCED,
    LEAVING,
    LEFT,
    LOSSY,
    MOST_CARRIED,
    NEW,
    OVER,
    PASSIVE,
    Beat,
    LastWords,
    words_after,
)
from scrapy_ubi.protocol.detector import Detector
from scrapy_ubi.protocol.found_lines import FoundLines
from scrapy_ubi.protocol.losses import MOST_MEMBERS, GroupLoss, LossBook
from scrapy_ubi.protocol.view import View

BEGUN = 1  # the era of a disk that an agent has left before all had settled for the first time; an empty one has 0
MOST_VIEWS = 16  # whose digests are remembered
NO_VIEW = "0" * 16  # stands for the views of others that one on its way out sees: whoever dies there dies after its own
TORN = ""  # stands for an incarnation that is lost though its agent is there: its disk is torn


class RollCall:
    """Whom an agent knew before it began again, and what lines tell of them, until all have settled.

    `absent`: who was in the last view known or since (name, incarnation); `dead`: whom of these it had seen dead
    (incarnation -> name); `missed`: the names of those in that view who have not ended the crawl; `views`: digests of
    the last views that it was in before.
    """

    def __init__(self) -> None:
        self.absent: list[tuple[str, str]] = []
        self.dead: Mapping[str, str] = {}
        self.missed: frozenset[str] = frozenset()
        self.views: list[str] = []
        self._lines: dict[str, dict[str, Beat]] = {}  # the last lines of the absent: name -> incarnation -> line

    def begin(self, peers: Mapping[str, str], lost: Mapping[str, str], views: Iterable[str]) -> None:
        """It is to be seen what became of these meanwhile."""
        self.absent = list(dict.fromkeys([*peers.items(), *((name, life) for life, name in lost.items())]))
        self.dead = dict(lost)
        self.views = [*views]
        self._lines.clear()

    def add(self, name: str, life: str, lines: Mapping[str, Beat]) -> None:
        """Another one was with this agent before, though its disk does not know; `lines` are those of its name."""
        self.absent.append((name, life))
        self._lines.setdefault(name, {}).update(lines)

    def read(self, beats: Mapping[str, Beat]) -> None:
        """Take in a read of all beats."""
        for name, _ in self.absent:
            if name in beats:
                lines = self._lines.setdefault(name, {})
                lines[beats[name].incarnation] = beats[name]
                for words in beats[name].before:
                    lines.setdefault(words.incarnation, words.beat)

    def lines_of(self, name: str) -> list[Beat]:
        """What those who had that name have said last."""
        return [*self._lines.get(name, {}).values()]

    def lines(self) -> list[Beat]:
        """What all have said last."""
        return [line for lines in self._lines.values() for line in lines.values()]

    def close(self) -> None:
        """All have settled."""
        self.absent.clear()
        self.dead = {}
        self.missed = frozenset()
        self._lines.clear()


class LossCounter:
    """Counts the losses of a group for agent `me`, of which there are `replication` copies beside the owner's.

    `lossy` and `book`: see above. `era` and `complete`: how many views in which all had settled it knows of, and the
    digest of the last one; `base` and `base_view` are the same as of the moment when it came to believe in its view;
    `former`: the lives before whose disk it has. `before`: of
    incarnations that had its name, as their last lines said.
    """

    def __init__(self, me: str, replication: int, watch: Detector, incarnation: str) -> None:
        self.me = me
        self.incarnation = incarnation
        self.lossy = False
        self.book = LossBook()
        self.era = self.base = 0
        self.complete = self.base_view = ""
        self.former: list[str] = []
        self.before: tuple[LastWords, ...] = ()
        self._peers: Mapping[str, str] = {}
        self._copies = replication
        self._watch = watch
        self._was_there = False  # this incarnation has seen a view in which all had settled
        self._elders: set[str] | None = None  # who had looked before this agent looked first
        # Until this incarnation has seen all settled: all lines, and those before them, by incarnation (with the name).
        self._found = FoundLines()
        # Whom to miss should nobody live to judge: none of these (with the era of each) is known to have done so yet.
        self._judges: dict[str, int] = {}
        self._unjudged: list[GroupLoss] = []
        # Who was lost, and may have known of URLs that it had told nobody, by incarnation.
        self._unshared: dict[str, str] = {}
        # Since all had settled: incarnation -> name, of the lost, and of those on their way out.
        self._lost: dict[str, str] = {}
        self._leavers: dict[str, str] = {}
        self._relieved: set[str] = set()  # of those who have left: others have all that they knew
        # Of those who live, or are lost, by incarnation: the last beat, the digests of the last views it was in (the
        # own ones included).
        self._last: dict[str, Beat] = {}
        self._views: dict[str, list[str]] = {}
        self._roll_call = RollCall()

    # -- what is seen

    def read(self, beats: Mapping[str, Beat], there: Collection[str]) -> None:
        """Take in a read of all beats, which the detector has seen; the incarnations `there` lived until then."""
        self._look_at_eras(beats)
        news = {agent: beat for agent, beat in beats.items() if not self._watch.is_of_then(agent, beat)}
        for agent, beat in beats.items():
            for last in (beat, *(words.beat for words in beat.before)):
                if not self._was_there and agent in news:
                    self._found.take(agent, last)
                if last.has_left_all:
                    self._relieved.add(last.incarnation)
                elif last.incarnation in there and last.has_left_some:
                    self._leavers.pop(last.incarnation, None)
                    self._lost[last.incarnation] = agent
                    self._count()
                elif last.has_left_alone and agent in news and last.incarnation not in self._here(beats.values()):
                    self.lossy = True
        self.lossy = self.lossy or any(LOSSY in beat.flags for beat in news.values())
        self._roll_call.missed -= {agent for agent, beat in news.items() if OVER in beat.flags}
        self._judge_in_place_of_the_dead(beats.values())
        if self._elders is None:
            self._elders = {beat.incarnation for beat in beats.values() if FENCED not in beat.flags}

    def _look_at_eras(self, beats: Mapping[str, Beat]) -> None:
        """See how far everybody has come."""
        self._roll_call.read(beats)
        for sight in self._watch.seen.values():
            self._last[sight.beat.incarnation] = sight.beat
            if LEAVING not in sight.beat.flags:
                self._has_entered(sight.beat.incarnation, sight.beat.digest)
        for beat in beats.values():
            self._take_later(beat, beat.counter)
            for words in beat.before:
                self._take_later(words.beat)

    def _take_later(self, said: Beat, counter: int | None = None) -> None:
        """Take what one that was seen has said since: who has left says no more. Of words that are repeated it is not
        known when they were said (no `counter`), but by what they say."""
        known = self._last.get(said.incarnation)
        if known is None or known is said:
            return
        if counter is not None:
            later = counter > known.counter
        else:
            later = self._era_by(said) > self._era_by(known) or self._is_met_since(said, known)
        if later or LEFT in said.flags:
            self._last[said.incarnation] = said

    def _is_met_since(self, said: Beat, known: Beat) -> bool:
        """Whether who has said both believed in a view with this agent in the first, and did not know it in the second:
        it would have held it dead, had it known it before."""
        before = {*known.members, *known.dead}
        return bool(known.members) and self.incarnation in said.members and self.incarnation not in before

    def entered(self, view: View) -> None:
        """This agent believes in that view from now on."""
        self.base, self.base_view = self.era, self.complete
        self._has_entered(self.incarnation, view.digest if self.me in view.members else NO_VIEW)

    def _has_entered(self, incarnation: str, digest: str) -> None:
        views = self._views.setdefault(incarnation, [])
        if not views or views[-1] != digest:
            views.append(digest)
            del views[:-MOST_VIEWS]

    def _others(self) -> list[Beat]:
        return [sight.beat for sight in self._watch.seen.values()]

    def _shared(self, digest: str) -> bool:
        """Whether somebody who lives, or this agent, was in the view with that digest, or had been when it wrote the
        disk that is here: as was seen, or as lines name the members. Its own lives before do not answer for a view that
        its disk does not know: that is older. Or all of these, but as many as there are copies, have handed on all
        since to a later view that is here."""
        others = self._others()
        lives = [self.incarnation, *(beat.incarnation for beat in others)]
        if any(digest in self._views.get(life, ()) for life in lives):
            return True
        members = self._found.members(digest)
        if not (self._here(others) - self._lives_before(others)).isdisjoint(members):
            return True
        lines = [self._found[life][1] for life in members if life in self._found]
        handed_on = sum(line.complete == digest and self._has_handed_on(line) for line in lines)
        return 0 < handed_on >= len(members) - self._spare

    def _lives_before(self, others: Iterable[Beat]) -> set[str]:
        """The own lives before and, where this agent is a newcomer, those of others: these judge by their disks, which
        may be older than a view, and this agent does when they are lost before that."""
        disks = [] if self.era else [life for beat in others if beat.era for life in beat.carried]
        return {*self.former, *disks}

    def _whose(self, carried: Collection[str]) -> set[str]:
        """The present lives of the others who have the disks of these."""
        return {beat.incarnation for beat in self._others() if not set(beat.carried).isdisjoint(carried)}

    def _has_had_part(self, said: Beat) -> bool:
        """Whether somebody whose disk is here was in the view of these words: or it was to be and never was, so that
        not all can have settled in it."""
        return self._shared(said.digest) or not self._here(self._others()).isdisjoint(said.members)

    def _has_handed_on(self, said: Beat) -> bool:
        """Whether who has said this had handed on all that it held, to a view of which no more are away than there are
        copies: what it knew by earlier views is here. It had left hosts to those who had owned them: whoever of these
        is away has to have settled as well."""
        away = set(said.members) - self._here(self._others())
        few = bool(said.settled) and len(away) < len(said.members) and len(away) <= self._spare
        return few and all(self._had_settled(life, said.settled) for life in away - {said.incarnation})

    def _had_settled(self, life: str, digest: str) -> bool:
        """Whether its last line says that it has settled in that view."""
        found = self._found.get(life)
        lines = (self._last.get(life), found[1] if found is not None else None)
        return any(line is not None and line.settled == digest for line in lines)

    def _here(self, beats: Iterable[Beat]) -> set[str]:
        """The lives whose disks those have who say that, and this agent."""
        here = {self.incarnation, *self.former}
        for beat in beats:
            here.update(beat.carried if LEFT in beat.flags else (beat.incarnation, *beat.carried))
        return here

    # -- who is lost

    def view_ended(self, before: View) -> None:
        """The view `before` has ended: count those who died."""
        for agent, member in before.members.items():
            if agent == self.me:
                continue
            if self._watch.is_dead(member.incarnation):
                self._lost[member.incarnation] = agent
            elif self._watch.leaves(agent):
                self._leavers[member.incarnation] = agent
        self._count()

    def count_leavers(self) -> None:
        """Beats were read: count those who have died on their way out."""
        dead = [incarnation for incarnation in self._leavers if self._watch.is_dead(incarnation)]
        for incarnation in dead:
            self._lost[incarnation] = self._leavers.pop(incarnation)
        if dead:
            self._count()

    def _count(self) -> None:
        others = self._others()
        if not self._was_there and any(NEW not in beat.flags for beat in others):
            self.lossy = self.lossy or len(self._lost) > self._copies
            return  # who has seen all these deaths counts them
        if len(self._lost) > self._copies:
            self.lossy = True
            self.book.record(self._heard(self._lost), self._spare)
        if not self._was_there and not self._leaves_judgement(others):
            newest = max((BEGUN, *(beat.era for beat in others)))
            newest = newest if TORN in self._lost else max(newest, self.era)
            ahead = [incarnation for incarnation in self._lost if self._era_of(incarnation) > newest]
            if ahead:
                self.lossy = True
                self._record_ahead(ahead, self._spare)

    def _record_ahead(self, ahead: Collection[str], spare: int) -> None:
        """These were ahead of all who live: of those who came furthest, and were heard, one at least has to be back."""
        heard = [life for life in ahead if self._watch.was_heard(life)]
        top = max(map(self._era_of, heard), default=0)
        furthest = [life for life in heard if self._era_of(life) == top]
        lost = (*self._heard(furthest), *(self._companions(furthest) if furthest else ()))
        self.book.record(lost, max(0, min(spare, len(lost) - 1)), ahead=True)

    def _companions(self, ahead: Collection[str]) -> tuple[tuple[str, str], ...]:
        """Who was lost as well and was, or was to be, in a view by which these are ahead: if it is back, others than
        these have copies of what they knew, or they were not ahead. So it is with who was dead before, and as far, by
        the same view: others may have come as far without these."""
        said = [beat for one in ahead if (beat := self._last.get(one)) is not None]
        members = {life for beat in said for life in beat.members}
        views = {view for beat in said for view in _views_of(beat)}
        lost = [(name, life) for life, name in self._lost.items() if life in members and life not in ahead]
        top = max(map(self._era_of, ahead))
        eras = self._eras_before(self._others())
        level = {life for life, era in eras.items() if era == top and views & _views_of(self._found[life][1])}
        lost += [(self._found[life][0], life) for life in eras if life in level or life in members]
        return tuple(one for one in dict.fromkeys(lost) if one[1] not in ahead)

    def _eras_before(self, beats: Iterable[Beat]) -> dict[str, int]:
        """How far those had come whose lines stand there, who have not handed on all nor ended the crawl, and whose
        disks those have not who say that."""
        here = self._here(beats)
        ended = {line.digest for _, line in self._found.values() if OVER in line.flags}
        return {
            life: self._era_by(line)
            for life, (_, line) in self._found.items()
            if life not in here and not line.has_left_all and line.digest not in ended
        }

    def _leaves_judgement(self, others: Iterable[Beat]) -> bool:
        """Whether this agent is a newcomer among some who know more: they go on from disks, or were there before."""
        return not self.era and bool(self._elder_eras(others))

    def _elder_eras(self, others: Iterable[Beat]) -> dict[str, int]:
        """Of those who go on from disks, or were there before, how far each had come when this agent found it."""
        eras = {beat.incarnation: self._found.first_era(beat) for beat in others}
        return {life: era for life, era in eras.items() if era or self.had_looked(life)}

    def had_looked(self, incarnation: str) -> bool:
        """Whether this incarnation had looked before this agent looked first: never both of two."""
        return incarnation in (self._elders or ())

    def _era_of(self, incarnation: str) -> int:
        """How far one that is lost can have come in a view without those who live."""
        if incarnation == TORN:
            return self.era
        beat = self._last.get(incarnation)
        return 0 if beat is None else self._era_by(beat)

    def _era_by(self, beat: Beat) -> int:
        """The same, of the one who has said that last."""
        settled = bool(beat.settled) or (NEW not in beat.flags and not self._shared(beat.complete))
        leaves = LEAVING in beat.flags or LEFT in beat.flags
        alone = settled and not leaves and not self._has_had_part(beat)
        if not alone and (self._shared(beat.complete) or self._has_handed_on(beat)):
            return 0
        return max(BEGUN, beat.era) + alone

    @property
    def _spare(self) -> int:
        """How many copies there are beside that of an owner; one whose disk is torn does not come back."""
        return max(0, self._copies - (TORN in self._lost))

    def _heard(self, incarnations: Iterable[str]) -> tuple[tuple[str, str], ...]:
        return tuple((self._lost[one], one) for one in incarnations if self._watch.was_heard(one))

    def leave_alone(self) -> None:
        """This agent leaves with work, and nobody is there who goes on. What it knows is on its disk, and on those of
        the others that are away: of all of them as many may stay away as there are copies, but not all that had settled
        together. Before all have settled for the first time each knows where the crawl begins, and nobody more."""
        self.lossy = True
        if not self.complete:
            return
        away = [
            *self.peers.items(),
            *self._roll_call.absent,
            *((name, life) for life, name in self._lost.items() if life != TORN),
        ]
        away += [(name, life) for life, name in self._leavers.items()]
        others = [(name, life) for name, life in dict.fromkeys(away) if name != self.me and life not in self._relieved]
        me = (self.me, self.incarnation)
        self.book.miss([me, *others], min(self._spare, len(others)))
        settled = [one for one in others if one in self._peers.items()]
        if self.me in self._peers and len(settled) < self._spare:
            self.book.miss([me, *settled], len(settled))

    # -- all have settled

    def released(self, view: View, beats: Collection[Beat]) -> None:
        """Everybody has settled in this view, the present one: every host has all its copies again, those that are
        pending as well. `beats` are those of everybody alive."""
        if not view.members:
            return
        self.book.close()
        self.book.are_safe(life for beat in beats for life in beat.carried)
        if self._roll_call.missed - view.members.keys():
            self.lossy = True  # even one: this disk may be older than theirs
        if not self._was_there:
            self._found.open_views(self._here(beats))
            self._look_for_unheard(beats)
            self._unshared.update(self._lost_with_urls(beats))
        lost = {life: name for life, name in self._lost.items() if life in self._last}
        self._unshared.update({life: name for life, name in lost.items() if BLANK not in self._last[life].flags})
        self._unshared = dict([*self._unshared.items()][-MOST_MEMBERS:])
        if not self._was_there:
            self._miss_those_with_whom_it_was()
        behind = self.era <= BEGUN and any(self._found.first_era(beat) > BEGUN for beat in beats)
        if self._roll_call.absent:
            missed, level = self._missing(view, {life for beat in beats for life in (beat.incarnation, *beat.carried)})
            if behind:  # they miss them, as long as they live
                eras = {beat.incarnation: self._found.first_era(beat) for beat in beats}
                self._leave_judgement({life: era for life, era in eras.items() if era > BEGUN}, missed)
            else:
                self.book.count(level)
                self._miss_all(missed)
        if self._was_there:
            self.book.count((*self._lost, *self._leavers))
        self._was_there = True
        self._found.forget_lines()
        self._roll_call.close()
        for known in (self._lost, self._leavers, self._last):
            known.clear()
        alive = {self.incarnation, *(beat.incarnation for beat in self._others())}
        self._views = {life: views for life, views in self._views.items() if life in alive}
        self.era = max((BEGUN, *(beat.era for beat in beats))) + 1
        self.complete, self._peers = view.digest, {name: member.incarnation for name, member in view.members.items()}

    def _missing(self, view: View, there: Collection[str]) -> tuple[list[GroupLoss], list[str]]:
        """Return who of the last complete view that is known here is not there, as its deaths were not seen, and which
        of these deaths are to be counted. The disks of the incarnations `there` are: what they have said is no sign
        that anybody is ahead."""
        absent, dead = self._roll_call.absent, self._roll_call.dead
        ended = {
            line.digest for line in self._roll_call.lines() if OVER in line.flags
        }  # views in which the crawl was over
        settled_since = self._have_settled_since()
        missed: list[tuple[str, str]] = []
        level: list[str] = []
        strict: list[tuple[str, str]] = []
        witnesses: dict[tuple[tuple[str, str], ...], None] = {}
        for name, incarnation in absent:
            lines = self._roll_call.lines_of(name)
            here = incarnation in there if incarnation else name in view.members
            if name == self.me or here or any(line.digest in ended for line in lines):
                continue
            ahead = [line for line in lines if line.incarnation not in there and self._is_ahead(line)]
            if settled_since and incarnation in dead and not ahead:
                continue
            missed.append((name, incarnation))
            for line in ahead:  # maybe of a later life, whose disk is another
                groups = [self._witnesses(digest) for digest in self._ahead_by(line)]
                if all(groups):
                    witnesses.update(dict.fromkeys(groups))
                else:
                    strict.append((name, line.incarnation))
            level_by = [line for line in lines if line not in ahead and self._is_level(line, incarnation)]
            if any(line.incarnation == incarnation for line in ahead):
                continue
            if level_by or incarnation in dead:
                level.append(incarnation)
            else:
                strict.append((name, incarnation))
        spare = self._spare
        losses = [GroupLoss(tuple(strict), 0)] if strict else []
        losses += [GroupLoss(group, len(group) - 1) for group in witnesses]
        if len(strict) < len(missed) and (len(missed) > spare or not losses):
            losses.append(GroupLoss(tuple(missed), spare))
        # Where they are too many they are a loss that their being counted would hide.
        return losses, level if len(level) <= spare and not witnesses else []

    def _miss_those_with_whom_it_was(self) -> None:
        """Others may have seen all settle in a view in which this agent was before it began again, and that it has not
        seen complete: its disk does not name who was in it, or was written before. Lines tell."""
        lines = [line for _, line in self._found.values() if not line.has_left_all]
        later = self._views_not_seen_complete(lines)
        lives = {line.incarnation for line in lines if line.settled and line.digest in later}
        for line in lines:
            if line.complete in later:
                lives |= {line.incarnation, *self._found.members(line.complete)}
        for life in sorted(lives & self._found.keys()):
            name = self._found[life][0]
            if (name, life) not in self._roll_call.absent:
                self._roll_call.add(name, life, self._found.of_name(name))

    def _views_not_seen_complete(self, lines: Collection[Beat]) -> set[str]:
        """The digests of views since the last one that this agent has seen complete before it began again: its disk
        knows them, its last words name them, or one of its lives was a member."""
        known = self._roll_call.views
        since = known[known.index(self.complete) + 1 :] if self.complete in known else known
        views = {line.digest for line in lines if line.settled}
        views |= {line.complete for line in lines if line.era > self.era}
        unknown = {digest for digest in views if not self._found.members(digest).isdisjoint(self.former)}
        for words in reversed(self.before):
            if words.incarnation in self.former:
                unknown.add(words.digest)
                if NEW not in words.flags:
                    break  # it had seen all settle, and has missed those before itself
        return {*since, *(unknown - {*known, *self.own_views})} - {self.complete, NO_VIEW, ""}

    def _have_settled_since(self) -> bool:
        """Whether all have settled in the last view that this agent was in before it began again: a line tells so, or
        those of all members do that they have."""
        if not self._roll_call.views:
            return False
        last = self._roll_call.views[-1]
        lines = [line for _, line in self._found.values()]
        if any(line.complete == last for line in lines):
            return True
        if any((LEAVING in line.flags or line.has_left_some) and line.settled != last for line in lines):
            return False  # who goes is no member, and may have had what the dead knew, alone
        members = {life for line in lines if line.digest == last for life in line.members}
        settled = {line.incarnation for line in lines if line.settled == last}
        return bool(members) and members <= settled

    def _ahead_by(self, line: Beat) -> list[str]:
        """The digests of the views by which who has said this may be ahead."""
        outdone = line.era <= self.era or self._shared(line.complete) or self._has_handed_on(line)
        later = [] if outdone else [line.complete]
        return [*later, *([line.digest] if line.settled and not self._has_had_part(line) else [])]

    def _witnesses(self, digest: str) -> tuple[tuple[str, str], ...]:
        """Who was in that view, as far as lines tell: whoever of them is back knows what all knew who had settled in
        it, or not all had. Who has handed that on since does not."""
        members = self._found.members(digest) - {*self.former}  # by a view that the own disk knows nobody is ahead
        known = {life: self._found[life] for life in members if life in self._found}
        return tuple(sorted((name, life) for life, (name, line) in known.items() if not line.has_left_all))

    def _look_for_unheard(self, beats: Collection[Beat]) -> None:
        """Say who was dead before this agent came, had come further than all who live, and is not back; or leave that
        to those who know more, as long as they live."""
        unheard = [GroupLoss(lost, max(0, min(self._copies, len(lost) - 1))) for lost in self._unheard(beats)]
        others = self._others()
        self.lossy = self.lossy or (bool(unheard) and not self._leaves_judgement(others))
        if self._leaves_judgement(others):
            self._leave_judgement(self._elder_eras(others), unheard)
        else:
            self._miss_all(unheard)

    def _leave_judgement(self, judges: Mapping[str, int], unjudged: Collection[GroupLoss]) -> None:
        """Leave it to these, with the era of each, whether those are missed."""
        if unjudged:
            self._judges = dict(judges)
            self._unjudged = [*self._unjudged, *unjudged]
            self._judge_in_place_of_the_dead(self._others())

    def _judge_in_place_of_the_dead(self, beats: Iterable[Beat]) -> None:
        """Those to whom the judgement was left may die before they have seen all settle. Who has a disk has judged when
        it sees that; of others all have to, as each but the first has left it to others. When one is back as another
        life it is too late for it: it takes those who have seen that meanwhile for some who know more."""
        if not self._judges:
            return
        lines = [last for beat in beats for last in (beat, *(words.beat for words in beat.before))]
        said = [(last, self._judges[last.incarnation]) for last in lines if last.incarnation in self._judges]
        seen = [(last, era) for last, era in said if NEW not in last.flags or last.era > max(BEGUN, era)]
        judged = self._have_judged(seen)
        if judged or self._judges.keys().isdisjoint(beat.incarnation for beat in self._others()):
            unjudged, self._unjudged = self._unjudged, []
            self._judges.clear()
            self.lossy = self.lossy or not judged
            self._miss_all(() if judged else unjudged)

    def _have_judged(self, seen: Collection[tuple[Beat, int]]) -> bool:
        """Whether one has judged when these judges, with the era of each, have seen all settle. Who goes on from a disk
        of before all had settled has left it to those who came further."""
        began = BEGUN if max(self._judges.values()) > BEGUN else 0
        with_disk = any(era > began and last.carried for last, era in seen)
        return with_disk or {last.incarnation for last, _ in seen} == self._judges.keys()

    def _lost_with_urls(self, beats: Collection[Beat]) -> dict[str, str]:
        """Who was lost before all had settled for it, and has not said that it knew no URL."""
        lost = {life: self._found[life] for life, era in self._eras_before(beats).items() if era <= BEGUN}
        return {life: name for life, (name, line) in lost.items() if BLANK not in line.flags}

    def look_for_urls(self, beats: Collection[Beat]) -> None:
        """These are the beats of everybody alive: where nobody knows a URL each says who was lost, whoever of them is
        the first to see the end. Where somebody knows some it was not for that."""
        if not all(BLANK in beat.flags for beat in beats):
            self.book.lack_urls(())
        elif all(PASSIVE in beat.flags for beat in beats):
            self.end_without_urls()

    def end_without_urls(self) -> None:
        """Nobody who is there knows a URL: who was lost may have known where the crawl begins, and had not told others
        yet, and one of these has to be back. That others have counted its death says nothing of that."""
        here = self._here(self._others())
        self.book.lack_urls(tuple((name, life) for life, name in self._unshared.items() if life not in here))

    def _miss_all(self, groups: Iterable[GroupLoss]) -> None:
        for lost in groups:
            self.book.miss(*lost)

    def _unheard(self, beats: Collection[Beat]) -> tuple[tuple[tuple[str, str], ...], ...]:
        """Who was dead before this agent came, had come further than all who live, and is not back: those who were
        lost together."""
        eras = self._eras_before(beats)
        here = [(self.era, {self.incarnation, *self.former})]
        here += [
            (self._found.first_era(beat), {beat.incarnation, *beat.carried})
            for beat in beats
            if beat.incarnation != self.incarnation
        ]
        further = {life: era for life, era in eras.items() if _went_further(self._found[life][1], era, here)}
        ahead = [life for life, era in further.items() if era == max(further.values())]
        judged = {name for name, _ in self._roll_call.absent} - {
            self.me
        }  # an own life of another disk is looked at here
        groups: dict[tuple[tuple[str, str], ...], None] = {}
        for life in ahead:
            line = self._found[life][1]
            level = {one for one in ahead if _views_of(line) & _views_of(self._found[one][1])} | {life}
            lost = tuple((self._found[one][0], one) for one in eras if one in level or one in line.members)
            doubted = self._lives_before(self._others()) & self._found.members(line.complete)
            lost += tuple((self._found[one][0], one) for one in sorted(self._whose(doubted) & self._found.keys()))
            if not any(map(self._watch.was_heard, level)) and any(name not in judged for name, _ in lost):
                groups[lost] = None  # else they are recorded, with the others, or missed
        return tuple(groups)

    def _is_level(self, line: Beat, incarnation: str) -> bool:
        """Whether who has said this last had that disk, and cannot have seen a view with all copies that this agent
        does not know."""
        known = line.incarnation == incarnation or line.era in (BEGUN, self.era)
        return (known or line.digest == self.complete) and not self._is_ahead(line)

    def _is_ahead(self, line: Beat) -> bool:
        """Whether who said this may have seen such a view."""
        return line.digest != self.complete and bool(self._ahead_by(line))

    # -- lives and disks

    @property
    def peers(self) -> Mapping[str, str]:
        """Who was in the last view in which all had settled (name -> incarnation): whoever begins again from this disk
        misses these. Where this agent has seen no such view, all whom it has heard: they may know what it does not, and
        when they are gone together nobody else may be there to say so."""
        if self.complete:
            return self._peers
        heard = {name: sight.beat.incarnation for name, sight in self._watch.seen.items() if sight.heard}
        return {**self._peers, **heard}

    @property
    def carried(self) -> tuple[str, ...]:
        """The last lives before the present one whose disk this agent has."""
        return tuple(self.former[-MOST_CARRIED:])

    @property
    def missed(self) -> frozenset[str]:
        """The names of those in the last view that the disk knows who have not ended the crawl, until all have settled
        again."""
        return self._roll_call.missed

    @property
    def own_views(self) -> tuple[str, ...]:
        """The digests of the last views in which this agent was."""
        return tuple(self._views.get(self.incarnation, ()))

    @property
    def seen_dead(self) -> dict[str, str]:
        """Who was seen dead since all had settled: incarnation -> name."""
        return {life: name for life, name in (*self._roll_call.dead.items(), *self._lost.items()) if life != TORN}

    def follow(self, last: Beat) -> None:
        """This agent has taken a name whose last line says that: its own lines repeat it."""
        self.before = words_after(last)

    def take_over(self, book: LossBook) -> None:
        """An earlier incarnation of this name had published that: should this agent be alone, nobody else tells."""
        self.book.take_over(book)
        self.lossy = self.lossy or bool(book.losses or book.missed)

    def rejoin(self, incarnation: str) -> None:
        """This agent joins again, as that incarnation."""
        self._views[incarnation] = self._views.pop(self.incarnation, [])
        self.former.append(self.incarnation)
        self.incarnation = incarnation
        self.base, self.base_view = self.era, self.complete
        self._roll_call.begin(self.peers, self.seen_dead, self._views[incarnation])
        self._was_there = False
        self._lost = {TORN: self.me} if TORN in self._lost else {}

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
        self._peers = peers
        views = [*views]
        self._roll_call.begin(peers, lost or {}, [] if torn else views)
        self._roll_call.missed = frozenset(peers)
        self.complete = self.base_view = view
        self.era = self.base = max(BEGUN, era)
        self._views[self.incarnation] = [*views, *self._views.get(self.incarnation, ())][-MOST_VIEWS:]


def _went_further(line: Beat, era: int, here: Iterable[tuple[int, Collection[str]]]) -> bool:
    """Whether who has said this may have come further, with that era, than all who are here, with those eras and disks.
    The era of a disk says nothing of one that went on without it."""
    return era > BEGUN and all(era > known or _went_on_without(line, lives) for known, lives in here)


def _went_on_without(line: Beat, lives: Collection[str]) -> bool:
    """Whether none of these lives was in the view of who has said this last. Where that had too many members to name
    them: whether it held one dead."""
    return set(lives).isdisjoint(line.members) if line.members else not set(lives).isdisjoint(line.dead)


def _views_of(line: Beat) -> set[str]:
    """The views of which who says this last may know what all in them knew."""
    stays = not {LEAVING, LEFT} & {*line.flags}
    present = {line.digest} if line.settled or (NEW not in line.flags and stays) else set()
    return {line.complete, *present} - {""}
