"""The agent: events in, effects out (docs/explanation/protocol.md). It puts the parts of the protocol together, and
does what concerns all of them: a change of view, the passing of time, the end.

Rules of this module:

* Events come to the agent (`read`, everybody's beats; `tick(now)`) or to the part that they concern: `discovery` (a URL
  was found), `work` (a request is asked for, or has ended), `inbound` and `outbound` (mail has come). Each only changes
  memory. What is to be done about them is one value, `Effects`: `tick` says what is to be done at once, `drain(now)`
  that and what is to be sent.
* The order of effects is part of the contract: what `drain` returns is made durable first, then letters and answers
  leave, and only then are the inbox entries that were received before it forgotten.
* Everything between two drains is one flush; what an agent writes is numbered by it.
* No part knows the agent, and each uses only those before it: `group` (`Membership`, with `watch`, its `Detector`),
  `view_history`, `outbox`, `journal`; `keeping` (`Keepers`: who keeps a host, and is sent what is known of it),
  `handover`, `closing` (`DoneMarkDelivery`); `discovery` (what is found), `work` (what is fetched), `inbound` and
  `outbound` (mail); `self_status` (what the beat says); `end` (`CrawlEnd`); `talks` (what else is told the others).
* Time is the caller's monotonic clock in seconds, identifiers come from `new_incarnation`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from scrapy_ubi.protocol.beat import BLANK, LEFT, LOSSY, OVER, Beat
from scrapy_ubi.protocol.cancelling import Cancelling
from scrapy_ubi.protocol.config import Config, Counters
from scrapy_ubi.protocol.discovery import Discovery
from scrapy_ubi.protocol.done_mark_delivery import DoneMarkDelivery
from scrapy_ubi.protocol.frontier_contract import Frontier
from scrapy_ubi.protocol.handover import Handover
from scrapy_ubi.protocol.host_policy import FREE, HostPolicy
from scrapy_ubi.protocol.inbound import Inbound
from scrapy_ubi.protocol.journal import Journal
from scrapy_ubi.protocol.keepers import Keepers
from scrapy_ubi.protocol.membership import Membership
from scrapy_ubi.protocol.outbound import Outbound
from scrapy_ubi.protocol.outbox import Outbox
from scrapy_ubi.protocol.quiescence import CrawlEnd, Ending, Quiescence
from scrapy_ubi.protocol.self_status import SelfStatus
from scrapy_ubi.protocol.talks import Talks
from scrapy_ubi.protocol.view import View
from scrapy_ubi.protocol.view_change import ViewHistory
from scrapy_ubi.protocol.work import Work


@dataclass(frozen=True, slots=True)
class Effects:
    """What is to be done. Nothing of it is lost where one value is not looked at: a later one says the same.

    At once: publish `beat`, what the agent says of itself from now on. Cancel the loads under way whenever `cancels`,
    their number so far, has grown. Say of so many more hosts by which `overdue` has grown that they are fetched from
    now on though they were not handed over. `finished`: the crawl is over, tell all. `usurped`: another process lives
    under this agent's identifier, stop.

    After a `drain` only, in this order: make the frontier durable; send `letters` (receiver, stream fields), write
    `answers` ((sender, lane name) -> text) and delete the own answers of the lanes in `forget`.
    """

    beat: Beat
    cancels: int
    overdue: int
    finished: bool
    usurped: bool
    letters: tuple[tuple[str, dict[str, str]], ...] = ()
    answers: Mapping[tuple[str, str], str] = field(default_factory=dict)
    forget: tuple[str, ...] = ()


class Agent:
    """One peer agent's whole protocol state. `store` names the disk or memory in which its lane numbers live.

    `beat` is what it says of itself. For the parts see above.
    """

    beat: Beat

    def __init__(
        self,
        me: str,
        store: str,
        config: Config,
        frontier: Frontier,
        new_incarnation: Callable[[], str],
        now: float,
        policy: HostPolicy = FREE,
    ) -> None:
        self.me = me
        self.config = config
        self.frontier = frontier
        self.counters = Counters()
        self.group = group = Membership(me, config, self.counters, new_incarnation)
        self.view_history = ViewHistory(me, config.replication)
        self.outbox = Outbox(store, config.bounds)
        self.journal = Journal()
        self.quiescence = quiescence = Quiescence()
        self.keeping = keeping = Keepers(
            me, config, self.counters, frontier, group, self.view_history, self.outbox, self.journal
        )
        self.handover = handover = Handover(
            me,
            frontier,
            self.outbox,
            self.view_history,
            keeping.keepers,
            config.failure_timeout,
            config.most_pending,
            group.loads_end,
        )
        self.closing = DoneMarkDelivery(self.outbox, keeping.replicate, handover.closed_work)
        self.discovery = Discovery(keeping, self.closing, quiescence, policy)
        self.work = Work(keeping, self.discovery, self.closing, handover, quiescence, policy)
        self.inbound = Inbound(keeping, self.discovery, handover, quiescence, policy)
        self.outbound = Outbound(keeping, handover, quiescence)
        self.self_status = SelfStatus(keeping, handover, self.closing, self.work, self.inbound, quiescence)
        self.end = CrawlEnd(quiescence)
        self.cancelling = Cancelling(group.lease, now)
        self.talks = Talks(keeping, self.work, self.mail_lost)
        self._overdue = 0  # so far
        self._held_lease = False
        self._enter(group.view(), now)
        self.note_status(now)

    # ------------------------------------------------------------------ who is alive

    @property
    def view(self) -> View:
        """The view believed in."""
        return self.keeping.view

    @property
    def incarnation(self) -> str:
        """The present incarnation."""
        return self.group.incarnation

    @property
    def leaving(self) -> bool:
        """Whether this agent is on its way out."""
        return self.group.leaving

    @property
    def lossy(self) -> bool:
        """Whether more agents were lost at once than there are copies."""
        return self.group.losses.lossy

    @property
    def usurped(self) -> bool:
        """Whether another process was seen to live under this identifier."""
        return self.group.claim.usurped

    def read(
        self, sent: float, received: float, beats: Mapping[str, Beat], memory: str = "", watched: float = 0.0
    ) -> None:
        """One atomic read of all beats, asked for and received at these times, from a Redis with this `memory`
        (`Detector.read`) that is known for so long (s) to have forgotten nothing (`Membership.read`).

        Once the crawl is over nothing changes any more: those who close are no reason to take over their hosts. Nor
        where another process may live under this identifier: a new incarnation of this one would be that one's death.
        """
        for agent, beat in beats.items():
            if OVER in beat.flags and beat.incarnation == self.keeping.view.incarnation(agent):
                self.accept_end(LOSSY in beat.flags)
        if self.end.finished:
            return
        alive = self.group.read(sent, received, beats, memory, watched)
        if self.usurped or self.group.claim.shadowed:
            return
        if self.group.dead:
            self._rejoin()
        self._notice_gaps()
        self.cancelling.read(sent, received, self.group.forgotten)
        self._enter_view_if_new(received)
        self.group.losses.count_leavers()
        self.handover.read(alive)
        own = alive.get(self.me)
        if own is not None and own.incarnation == self.incarnation:
            self._agree(alive, sent)
        self.talks.rates.check_lending(received)

    def _agree(self, alive: Mapping[str, Beat], sent: float) -> None:
        """What follows from everybody's published views, asked for at this time (s)."""
        view, copied = self.keeping.view, self.view_history.released
        if not self.group.awaits and self.view_history.read(alive):
            if self.view_history.released and not copied:
                self.group.losses.released(view, alive.values())
                self.group.make_sure()
            if self.view_history.complete is view:
                self.handover.completed()
            self.frontier.look_again()
        if self.group.mend(alive, view.digest):
            self.view_history.doubt(view)  # Redis may have forgotten this agent, and a newcomer been sure without it
            self.frontier.look_again()
        self.group.losses.look_for_urls(alive.values())
        self.end.seen = self._look_for_end(alive, sent)
        if self.end.seen is not None and not self.end.is_open:
            self.accept_end(self.end.seen.lossy)

    def _look_for_end(self, alive: Mapping[str, Beat], sent: float) -> Ending | None:
        """The end that these beats show, which were asked for at this time (s); None where they show none."""
        if not self.quiescence.read(alive, self.keeping.view.digest, frozenset(alive), sent):
            return None
        # An agent that knows no URL cannot tell that no other agent has work.
        lossy = self.lossy or all(BLANK in beat.flags for beat in alive.values())
        # An agent that comes back to a lossy crawl may have brought work since those beats.
        if not self.group.losses.book.is_published or (lossy and self.work.is_left()):
            return None
        return Ending(self.quiescence.mark, lossy)

    def follow(self, last: Beat) -> None:
        """This agent has taken a name whose last line says that, and has written over it."""
        if LEFT not in last.flags:
            self.group.watch.hold_dead(last.incarnation)
        self.group.losses.follow(last)
        self.beat = replace(self.beat, before=self.group.losses.before)

    def sure(self) -> None:
        """No other agent can be crawling: there is no Redis, or a finished crawl was just cleared from it."""
        self.group.make_sure()

    def _notice_gaps(self) -> None:
        if self.group.notice_gaps():
            self.talks.rates.lose_all()

    def _enter_view_if_new(self, now: float) -> None:
        """Enter the view that follows from what is seen, when it is another one."""
        if self.end.finished:
            return
        before = self.keeping.view
        view = self.group.view(before)
        if view.digest != before.digest:
            self._enter(view, now)

    def _rejoin(self) -> None:
        """Somebody holds this incarnation dead: its heirs may be fetching. Keep what is held, as a newcomer."""
        self.group.rejoin()
        self.cancelling.cancel()
        self.talks.rates.lose_all()
        self.view_history.forget()
        for state in self.frontier.states():
            state.dirty = True

    def _enter(self, view: View, now: float) -> None:
        """Believe in another view."""
        before = self.view_history.entered[-1] if self.view_history.entered else view
        self.quiescence.activity += 1
        self.keeping.enter(view)
        self.view_history.enter(view, now)
        self.group.losses.entered(view)
        self.talks.rates.view_entered()
        some_ended = any(view.incarnation(a) != m.incarnation for a, m in before.members.items())
        thin = self.outbox.take_thin() if some_ended else []
        if some_ended:
            self.discovery.forget()
            self.group.losses.view_ended(before)
        if any(map(self.group.leaves, before.members.keys() - view.members.keys())):
            self.handover.pause(now, self.config.leave_pause)
        gone, entries, states = self.outbox.take_back(view)
        self.handover.gone(gone)
        for record in states:
            self.outbound.lost(record)
        self.handover.rescan()
        # Done marks that have not left go to the keepers of this view, before it is handed over to them: what was spent
        # for them goes first.
        self.keeping.noted.update((state.host, None) for _, state, _ in self.closing.unsent if state.notes.spent)
        for record in (*entries, *thin):
            self.discovery.route(record, "")
        self.frontier.look_again()

    def accept_end(self, lossy: bool) -> None:
        """Word came that the crawl is over. It is, unless that is doubtful and this agent has work left: then the crawl
        goes on here."""
        if not self.end.is_doubtful(lossy) or not self.work.is_left():
            self.end.finished = self.work.stopped = True
            self.group.losses.lossy = self.lossy or (self.end.seen is not None and self.end.seen.lossy)

    def outlive(self) -> None:
        """Word came that the crawl is over, and that those who are there now have begun another one."""
        self.end.finished = self.work.stopped = self.end.outlived = True
        self.cancelling.cancel()

    # ------------------------------------------------------------------ time

    def resume(self, flush: int) -> None:
        """Begin again from a disk (`snapshot.restore`): flushes go on counting, and every copy is to be offered."""
        self.journal.flush = self.keeping.view_flush = flush
        for state in self.frontier.states():
            state.dirty = True

    def stretch(self, round_trip: float) -> None:
        """A word to Redis and back takes so long (s) as far as is known now: mail keeps to bounds that suit it. What
        the group agrees on, leases and failure time-outs, does not depend on it."""
        self.outbox.stretch(self.config.bounds.stretched(round_trip))

    def mail_lost(self, of: Collection[str] | None = None) -> None:
        """Redis has forgotten, or what it had for these agents: send everything under way to them again, and say every
        answer again."""
        self.outbox.hurry(of)
        self.inbound.repeat(of)

    def note_status(self, now: float) -> None:
        """The beat says from now on what is true of this agent."""
        self.beat = self.self_status.beat(now, self.end.start_exhausted, self.end.start_over)

    def tick(self, now: float) -> Effects:
        """Let time pass; what is to be done at once."""
        if self.keeping.noted:
            self.keeping.tell_notes()  # before copies are dropped
        self._notice_gaps()
        self.cancelling.tick(now, self.group.forgotten)
        self._enter_view_if_new(now)
        holds = self.group.lease.holds(now)
        if holds and not self._held_lease:
            self.frontier.look_again()
        self._held_lease = holds
        if self.group.sure:  # of who is there; what was found on disk has waited for this
            for record, hint in self.outbox.due_again(now):
                self.discovery.route(record, hint)
        self.handover.work(self.group.alive, now)
        if self.group.sure:
            self.outbox.close_orphans(self.handover.busy)
        if self.view_history.waits and now - self.view_history.since > self.config.handoff_timeout and holds:
            self.counters.handoff_timeouts += 1
            self.work.count_overdue()
            self.view_history.force()
            self.frontier.look_again()
        self._overdue += self.work.overdue() or 0
        enough = self.keeping.enough(now)
        if enough and not self.group.leaving:  # who leaves keeps no copy but what it has told, as long as it is there
            self.outbox.thin.clear()
        self.closing.send(self.journal.flush, self.config.bounds.size, enough)
        self.inbound.release()
        self.note_status(now)
        self.end.said(self.beat)
        self.talks.rates.check_lending(now)
        return self._effects()

    def _effects(self) -> Effects:
        return Effects(self.beat, self.cancelling.count, self._overdue, self.end.finished, self.usurped)

    def leave(self, now: float) -> None:
        """Go: out of the views, handing on everything, until `may_go`."""
        self.group.leaving = True
        self.end.start_exhausted = True
        self._enter_view_if_new(now)

    def record_leave(self) -> None:
        """This agent is about to say its last, with the crawl not over: note what nobody else goes on with."""
        if not self.end.outlived and not self.view.members and not self.self_status.is_clean(self.end.finished):
            self.group.losses.leave_alone()

    def last_beat(self) -> Beat:
        """What a leaver says last (`SelfStatus.last_beat`)."""
        if self.end.outlived:
            return replace(self.beat, flags=LEFT, settled="", pending=())
        return self.self_status.last_beat(self.beat, self.end.finished)

    def drain(self, now: float) -> Effects:
        """What is to be done about everything since the last drain; this ends the flush."""
        if self.end.outlived:
            return self._effects()
        letters = self.outbound.letters(now)
        answers = {**self.inbound.answers(), **self.talks.messages(now)}
        effects = replace(self._effects(), letters=letters, answers=answers, forget=tuple(self.outbox.forgotten))
        self.outbox.forgotten.clear()
        self.journal.flush += 1
        return effects

    def check_invariants(self) -> None:
        """Assert every invariant of the agent."""
        assert self.view is self.view_history.view is self.view_history.entered[-1]
        assert self.keeping.ring is self.view.ring
        assert self.work.stopped or not self.end.finished
        self.outbox.check_invariants()
        for state in self.frontier.states():
            state.check_invariants()
        assert self.work.out == sum(len(state.out) + len(state.visits.out) for state in self.frontier.states())
