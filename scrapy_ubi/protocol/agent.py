"""The agent: events in, effects out. It composes view, tenure, outbox, custody, handover and quiescence (DESIGN part
2).

Rules of this module:

* Events: `read` (everybody's beats), `discover`, `next`, `ended`, `retry`, `put_back`, `freed` (the crawl), `receive`
  and `answered` (mail), `tick(now)`. Each only changes memory. `drain(now)` says what is to be done about it.
* The order of effects is part of the contract: what `drain` returns is made durable first, then letters and answers
  leave, and only then are the inbox entries that were received before it forgotten.
* Everything between two drains is one flush; what an agent writes is numbered by it.
* The lease is compared at every dispatch (`may_fetch`), not only here and there.
* Time is the caller's monotonic clock in seconds, identifiers come from `new_incarnation`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from .closing import Closing, Outlinks
from .config import Config, Counters
from .handover import Handover
from .host import MOST_NOTES, Entry, Frontier, HostState, Notes, Redo
from .journal import Journal
from .mail import DISCOVERY, STATE, Record, weight
from .membership import Membership
from .notes import MOST_VERSION
from .outbox import REFUSED_PAUSE, Outbox
from .quiescence import Quiescence
from .reception import Reception
from .ring import Ring
from .tenure import Tenure, point
from .view import BLANK, FENCED, LEAVING, LEFT, LOSSY, NEW, OVER, PASSIVE, Beat, View
from .wire import Received, encode, read_answer


@dataclass(frozen=True, slots=True)
class Effects:
    """What is to be done, in this order: make the frontier durable; send `letters` (receiver, stream fields), write
    `answers` ((sender, lane name) -> text) and delete the own answers of the lanes in `forget`; then the rest in any
    order.

    What cannot wait for a drain stands in attributes of the agent: `beat` (what it says of itself from now on),
    `cancel` (loads under way are to be cancelled; whoever does it sets it back), `finished` (the crawl is over: say
    so to all), `usurped` (another process lives under this agent's identifier), `overdue` (so many hosts that wait are
    fetched from now on though nobody has handed them over; whoever says so sets it back).
    """

    letters: tuple[tuple[str, dict[str, str]], ...] = ()
    answers: Mapping[tuple[str, str], str] = field(default_factory=dict)
    forget: tuple[str, ...] = ()


class Agent:
    """One peer agent's whole protocol state. `store` names the disk or memory in which its lane numbers live; `view` is
    the one believed in, and `ring` the assignment under it.
    """

    view: View
    ring: Ring

    def __init__(
        self, me: str, store: str, config: Config, frontier: Frontier, new_incarnation: Callable[[], str], now: float
    ) -> None:
        self.me = me
        self.config = config
        self.frontier = frontier
        self.counters = Counters()
        self.group = Membership(me, config, self.counters, new_incarnation)
        self.lease, self.watch = self.group.lease, self.group.watch
        self.tenure = Tenure(me, config.replication)
        self.outbox = Outbox(store, config.bounds)
        self.handover = Handover(me, frontier, self.outbox, self.tenure, self.keepers, config.failure_timeout)
        self.reception = Reception(self)
        self.start_exhausted = False
        self.finished = False
        self.flush = 1
        self.view_no = 0
        self.out = 0
        self.activity = 0
        self._view_flush = 0
        self._quiescence = Quiescence()
        self.journal = Journal()
        self.closing = Closing(self.outbox, self.replicate, self._closed_work)
        self._forwarded: dict[int, int] = {}
        self._noted: dict[str, None] = {}  # hosts of which something was noted here and not told yet
        self.refuses: Callable[[HostState | None, Entry], bool] = lambda state, entry: False  # a URL of an own host
        self.on_turn: Callable[[HostState, float], None] = lambda state, now: None  # may put a host off
        self.on_notes: Callable[[HostState], None] = lambda state: None  # told when notes come from elsewhere
        self.cancel = False
        self.overdue: int | None = None
        self._held_lease = False
        self._lost = True
        self._losses = 0
        self._enter(self.group.view(), now)
        self.beat = self._beat(now)

    # ------------------------------------------------------------------ who is alive

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
        return self.group.lossy

    @property
    def usurped(self) -> bool:
        """Whether another process was seen to live under this identifier."""
        return self.group.usurped

    def read(self, sent: float, received: float, beats: Mapping[str, Beat], memory: str = "") -> None:
        """One atomic read of all beats, asked for and received at these times, from a Redis with this `memory`
        (`Watch.read`).

        Once the crawl is over nothing changes any more: those who close are no reason to take over their hosts.
        """
        for agent, beat in beats.items():
            if OVER in beat.flags and beat.incarnation == self.view.incarnation(agent):
                self.accept_end(LOSSY in beat.flags)
        if self.finished:
            return
        alive = self.group.read(sent, received, beats, memory)
        if self.group.dead:
            self._rejoin()
        self._notice_gaps()
        self._look(received)
        self.handover.read(alive)
        own = alive.get(self.me)
        if own is not None and own.incarnation == self.incarnation:
            self._agree(alive)

    def _agree(self, alive: Mapping[str, Beat]) -> None:
        """What follows from everybody's published views."""
        if self.tenure.read(alive):
            if self.tenure.complete is self.view:
                self.group.completed(self.view)
                self.handover.completed()
            self.frontier.look_again()
        if self.group.mend(alive, self.view.digest):
            self.tenure.doubt(self.view)  # Redis may have forgotten this agent, and a newcomer been sure without it
            self.frontier.look_again()
        if self._quiescence.read(alive, self.view.digest, frozenset(alive)):
            if all(BLANK in beat.flags for beat in alive.values()):
                self.group.lossy = True  # who knows of no URL cannot tell that nobody else has work
            self.accept_end(self.lossy)  # whoever comes back to a lossy crawl may have brought work since those beats

    def sure(self) -> None:
        """Nobody else can be crawling: there is no Redis, or a finished crawl was just cleared from it."""
        self.group.sure = True

    def _notice_gaps(self) -> None:
        self.group.notice_gaps()
        if self.lease.losses != self._losses:
            self._losses = self.lease.losses
            self.cancel = True

    def _look(self, now: float) -> None:
        """Enter the view that follows from what is seen, when it is another one."""
        if self.finished:
            return
        view = self.group.view(self.view)
        if view.digest != self.view.digest:
            self._enter(view, now)

    def _rejoin(self) -> None:
        """Somebody holds this incarnation dead: its heirs may be fetching. Keep what is held, as a newcomer."""
        self.group.rejoin()
        self.cancel = True
        self.tenure.forget()
        for state in self.frontier.states():
            state.dirty = True

    def _enter(self, view: View, now: float) -> None:
        """Believe in another view."""
        before = self.tenure.entered[-1] if self.tenure.entered else None
        self.view_no += 1
        self._view_flush = self.flush
        self.activity += 1
        self.view, self.ring = view, view.ring
        self.tenure.enter(view, now)
        if before is not None and any(view.incarnation(a) != m.incarnation for a, m in before.members.items()):
            self._forwarded.clear()  # what the dead knew may have to be told again
            self.group.count_lost(before, self.tenure.complete is None)
        gone, entries, states = self.outbox.take_back(view)
        self.handover.gone(gone)
        for record in states:
            self.outbox.orphan(record)
            self._told(record, lost=True)
        self.handover.enter()
        for record in entries:
            self._route(record, "")
        self.frontier.look_again()

    def accept_end(self, lossy: bool) -> None:
        """Word came that the crawl is over. It is, unless those who say so had lost agents, and this one has work left:
        then the crawl goes on here."""
        if not lossy or not any(self._has_work(state) for state in self.frontier.states()):
            self.finished = True

    def _has_work(self, state: HostState) -> bool:
        """Whether something waits in this copy, and it is not one that is to be dropped, for others keep the host."""
        if not state.waiting and not state.out:
            return False
        return self.tenure.complete is not self.view or self.me in self.keepers(state)

    def keepers(self, state: HostState) -> tuple[str, ...]:
        """Owner and successors of a host held, under the present view."""
        if state.keepers_at != self.view_no:
            if state.keepers_at < 0:  # met for the first time: whose was it until now?
                alone = self.group.sure and len(self.view.members) == 1
                state.trusted = alone or self.tenure.complete is self.view
            state.keepers = self.keepers_of(state.host)
            state.keepers_at = self.view_no
        return state.keepers

    def keepers_of(self, host: str) -> tuple[str, ...]:
        """Owner and successors of any host, under the present view; empty when nobody is left in it."""
        return self.ring.order(host, self.config.replication + 1) if self.view.members else ()

    # ------------------------------------------------------------------ the crawl

    def met(self, host: str, key: int, depth: int, priority: int) -> bool:
        """Whether a URL that was found is known, here or by its owner, as far as is known here; counted if so.

        Most links of a page are such. It is asked before an entry is made of a link, which costs ten times as much.
        A stray (see `discover`) is never met: it belongs into the redo of every page that has it.
        """
        if key in self.closing.strays or not self._known(host, self._owner(host), key, depth, priority):
            return False
        self.counters.links += 1
        return True

    def _known(self, host: str, owner: str, key: int, depth: int, priority: int) -> bool:
        if owner == self.me:
            state = self.frontier.find(host)
            return state is not None and state.holds(key, depth, priority)
        known = self._forwarded.get(key)
        if known is None or known > depth:
            return False
        self.counters.suppressed += 1
        return True

    def _owner(self, host: str) -> str:
        return self.ring.owner(host) if self.view.members else self.me

    def discover(self, host: str, entry: Entry, outlinks: Outlinks | None = None) -> bool:
        """A URL was found: queue it here, tell its owner, or let it be. True when it was news, as far as is known
        here. `outlinks` gathers what was learned from one page; without it the URL comes from nowhere (a seed).
        """
        self.counters.links += 1
        news = self._discover(host, entry)
        if outlinks is None:
            if news:
                self.closing.stray(entry.key, self.flush)
        elif news or entry.key in self.closing.strays:
            outlinks.append((host, entry))
        return news

    def _discover(self, host: str, entry: Entry) -> bool:
        owner = self._owner(host)
        if self._known(host, owner, entry.key, entry.depth, entry.priority):
            return False
        if owner == self.me:
            if self.refuses(self.frontier.find(host), entry):
                return False
            return self._keep(host, entry, self.flush)
        if weight(entry) > self.config.bounds.size:
            self.counters.untravelled += 1
            return False
        if len(self._forwarded) >= self.config.suppressed_keys:
            self._forwarded.clear()
        self._forwarded[entry.key] = entry.depth
        self.activity += 1
        self.counters.forwarded += 1
        record = Record(host, self.flush, entry=entry)
        self.outbox.put(owner, DISCOVERY, record, self.view)
        self.journal.discovered(record)
        return True

    def _keep(self, host: str, entry: Entry, flush: int) -> bool:
        """Merge an entry of an own host, and tell its successors what is news."""
        state, news = self.frontier.add(host, (entry,))
        for item in news:
            self.activity += 1
            self.replicate(state, Record(host, flush, entry=item))
        return bool(news)

    def replicate(self, state: HostState, record: Record, but: str = "") -> int:
        """Tell the other keepers of a host, but one; how many they are."""
        others = [keeper for keeper in self.keepers(state) if keeper not in (self.me, but)]
        if record.entry is not None and weight(record.entry) > self.config.bounds.size:
            self.counters.untravelled += 1
            return 0
        if others and record.entry is not None and record.flush:
            self.journal.told(record.flush, record.host)
        for keeper in others:
            self.outbox.put(keeper, STATE, record, self.view)
        self.counters.replicated += len(others)
        return len(others)

    def note(self, state: HostState, text: str) -> bool:
        """Note this of a host, in the place of all that was noted of it: a JSON object as `notes.canonical` writes it.
        The host's other keepers are told at the next tick, of the last of several notes only. True when that was news;
        of a host that is not held any more nothing is noted. Raises ValueError when it is too long.
        """
        if len(text) > MOST_NOTES:
            raise ValueError(f"notes of {len(text)} characters, more than {MOST_NOTES}")
        before = state.notes
        if text == before.text or before.version >= MOST_VERSION or self.frontier.find(state.host) is not state:
            return False
        self.frontier.note(state, Notes(before.version + 1, text))
        self._noted[state.host] = None
        return True

    def _tell_notes(self) -> None:
        noted, self._noted = self._noted, {}
        for host in noted:
            state = self.frontier.find(host)
            if state is not None:
                self.replicate(state, Record(host, self.flush, notes=state.notes))

    def owns(self, host: str) -> bool:
        """Whether this agent is the host's owner in its view."""
        return self.keepers_of(host)[:1] == (self.me,)

    def may_fetch(self, state: HostState, now: float) -> bool:
        """Whether a fetch of this host may start at this moment: asked last, at the dispatch itself."""
        return (
            self.keepers(state)[:1] == (self.me,)
            and self.group.may_act(now)
            and not self.finished
            and self.tenure.free(state.host, self.group.alive)
        )

    def borrow(self, host: str) -> HostState:
        """A load of this host begins that is not in its queue (robots.txt, media): it counts as work open here."""
        state, _ = self.frontier.add(host, ())
        state.open_work += 1
        self.activity += 1
        return state

    def give_back(self, state: HostState, now: float) -> None:
        """Such a load has ended."""
        self.frontier.defer(state, now)
        self._closed_work(state)

    def next(self, now: float) -> tuple[HostState, Entry] | None:
        """Hand out the next request, None when nothing may be fetched now."""
        if not self.lease.holds(now) or len(self.outbox) > self.config.outbox_records:
            return None
        while True:
            found = self.frontier.pop(now, lambda state: self.may_fetch(state, now) and self._polite(state, now))
            if found is None:
                return None
            state, entry = found
            self.out += 1
            self.activity += 1
            state.open_work += 1
            if not state.redo or not self._redone(state, entry):
                return found
            self.frontier.free(state, now)

    def _redone(self, state: HostState, entry: Entry) -> bool:
        """The host's last owner is dead: where it had fetched this page, and told its outlinks, the page is done
        without a fetch. True when that is so.
        """
        told = state.redo.pop(entry.key, None)
        redo = state.still(told) if told is not None else None
        if redo is None:
            return False
        for host, link in redo.outlinks:
            self.discover(host, link, [])
        self.out -= 1
        self._finish(state, entry, redo)
        self.counters.redone += 1
        return True

    def _polite(self, state: HostState, now: float) -> bool:
        """Where another agent may have fetched this host a moment ago, its delay begins now (the frontier looks)."""
        if not state.trusted:
            state.trusted = True
            self.frontier.defer(state, now)
        if state.next_at <= now:
            self.on_turn(state, now)
        return True

    def freed(self, state: HostState, now: float) -> None:
        """The load of this host has ended: it may be fetched again after its delay."""
        self.frontier.free(state, now)

    def ended(self, state: HostState, key: int, outlinks: Outlinks | None = None) -> None:
        """A request handed out is done: everything that followed from it was discovered before, or it failed for
        good. `outlinks` is what `discover` gathered of it, None when that may not be all.
        """
        self.out -= 1
        self.activity += 1
        redo = Redo.of(state.host, key, outlinks) if outlinks is not None else None
        self.counters.done += self._finish(state, state.out[key], redo)

    def _finish(self, state: HostState, entry: Entry, redo: Redo | None) -> bool:
        """A page is done, here; False when it was before."""
        if not self.frontier.finish(state, entry.key):
            self._closed_work(state)
            return False
        self.closing.add(self.flush, state, entry, redo)
        self.journal.done(self.flush, state.host, entry)
        return True

    def also_done(self, state: HostState, entry: Entry) -> None:
        """Another key of this host is done with a page that ended right before, and may be told no earlier: a mark that
        never waits. Were its owner lost meanwhile, `entry` is what an heir would fetch for it.
        """
        if state.is_known(entry.key):
            return
        self.frontier.add_done(state, (entry.key,))
        self.activity += 1
        self.counters.done += 1
        state.open_work += 1
        self.closing.add(self.flush, state, entry, None)
        self.journal.done(self.flush, state.host, entry)

    def put_back(self, state: HostState, key: int, entry: Entry | None = None) -> None:
        """A request handed out was not fetched, or is to be fetched again (as `entry`)."""
        self.out -= 1
        self.activity += 1
        self.frontier.put_back(state, key, entry)
        if entry is not None:  # an heir is not to begin with its retries anew
            self.replicate(state, Record(state.host, self.flush, entry=entry))
        self._closed_work(state)

    def _closed_work(self, state: HostState) -> None:
        state.open_work -= 1
        if not state.open_work:
            self.handover.calm(state)

    # ------------------------------------------------------------------ mail

    def receive(self, letter: Received) -> None:
        """A letter arrived; it may have arrived before."""
        self.reception.receive(letter)

    def answered(self, lane_name: str, text: str, now: float) -> None:
        """The answers that stand in the own acks hash for a lane. Raises Malformed when the text is none."""
        lane = self.outbox.by_name.get(lane_name)
        if lane is None or text == lane.answered:
            return
        lane.answered = text
        for seq, outcome in read_answer(text).items():
            letter = lane.settle(seq)
            if letter is None:
                continue
            self.activity += 1
            refused = outcome.refused if lane.kind == DISCOVERY else {}  # state is never refused, whoever says so
            back = [record for record in letter.records if record.host in refused]
            for record in letter.records:
                if record.host not in refused:
                    self.outbox.close(record)
                    self._told(record)
                if record.offer is not None:
                    self.handover.answered(lane.receiver, record, record.host in outcome.want, self.view)
            for record in back:
                self.outbox.hold_back((record,), now + REFUSED_PAUSE, refused[record.host])
            self.handover.sweep(letter.syncs)

    def _told(self, record: Record, lost: bool = False) -> None:
        """A record was acknowledged, or its receiver is gone (`lost`)."""
        state = self.frontier.find(record.host)
        if state is None or not record.flush:
            return
        if lost:
            state.dirty = True
        if record.done is not None:
            self._closed_work(state)

    def _route(self, record: Record, hint: str) -> None:
        """A discovered entry needs another receiver. `hint`: the owner in the view of the one that refused it."""
        if record.entry is None:
            return
        owner = self._owner(record.host)
        if hint in self.view.members and hint != self.me:
            owner = hint
        self.outbox.close(record)
        if owner == self.me:
            self._keep(record.host, record.entry, record.flush)
        else:
            self.outbox.put(owner, DISCOVERY, record, self.view)

    def resume(self, flush: int) -> None:
        """Begin again from a disk (`durable.restore`): flushes go on counting, and every copy is to be offered."""
        self.flush = self._view_flush = flush
        for state in self.frontier.states():
            state.dirty = True

    def mail_lost(self) -> None:
        """Redis has forgotten: send everything under way again, and say every answer again."""
        self.outbox.hurry()
        self.reception.repeat()

    # ------------------------------------------------------------------ time

    def tick(self, now: float) -> None:
        """Let time pass."""
        if self._noted:
            self._tell_notes()  # before copies are dropped
        self._notice_gaps()
        self._look(now)
        holds = self.lease.holds(now)
        if holds and not self._held_lease:
            self.frontier.look_again()
        lost = self.lease.lost(now)
        if lost and not self._lost:
            self.cancel = True
        self._held_lease, self._lost = holds, lost
        if self.group.sure:  # of who is there; what was found on disk has waited for this
            for record, hint in self.outbox.due_again(now):
                self._route(record, hint)
        self.handover.work(self.group.alive, now)
        if self.group.sure:
            self.outbox.close_orphans(self.handover.busy)
        if self.tenure.waits and now - self.tenure.since > self.config.handoff_timeout and holds:
            self.counters.handoff_timeouts += 1
            self.overdue = self._held_hosts()
            self.tenure.force()
            self.frontier.look_again()
        # Who is fenced may be held dead: what was acknowledged since has as many copies as there are agents without it.
        self.closing.send(self.flush, self.config.bounds.size, holds and self.tenure.enough)
        self.reception.release()
        self.beat = self._beat(now)

    def _held_hosts(self) -> int:
        """Own hosts with requests that wait for their handover."""
        return sum(
            bool(state.waiting)
            and self.keepers(state)[:1] == (self.me,)
            and not self.tenure.free(state.host, self.group.alive)
            for state in self.frontier.states()
        )

    def leave(self, now: float) -> None:
        """Go: out of the views, handing on everything, until `may_go`."""
        self.group.leaving = True
        self.start_exhausted = True
        self._look(now)

    def may_go(self) -> bool:
        """Whether a leaving agent has handed on all it holds, and nobody counts on its copies any more: everybody has
        published *settled* for the view without it.
        """
        quiet = self.handover.settled and not self.handover.pending and not self.closing and self.reception.idle
        relieved = self.tenure.released or not self.view.members
        return self.leaving and quiet and relieved and not len(self.outbox) and not self.out

    def last_beat(self) -> Beat:
        """What a leaver says last: that it has left and, where it could not hand on what it holds, that this may be
        lost.
        """
        undone = any(state.waiting or state.out for state in self.frontier.states())
        clean = self.finished or (self.may_go() and (bool(self.view.members) or not undone))
        flags = LEFT + (LOSSY if self.lossy or not clean else "") + (OVER if self.finished else "")
        return replace(self.beat, flags=flags, settled="", pending=())

    @property
    def settled(self) -> bool:
        """Whether this agent has handed on all it holds under the present view, but for the pending hosts."""
        if not self.group.sure or not self.handover.settled or self.outbox.orphans:
            return False
        return all(
            oldest is None or oldest > self._view_flush
            for oldest in (lane.oldest() for (_, kind), lane in self.outbox.lanes.items() if kind == STATE)
        )

    def passive(self, now: float) -> bool:
        """Whether nothing is left to do here (P6)."""
        return (
            self.start_exhausted
            and not self.leaving
            and not self.out
            and not self.closing
            and not len(self.outbox)
            and self.reception.idle
            and self.lease.holds(now)
            and self.settled
            and not self.frontier.waits(lambda state: self.keepers(state)[:1] == (self.me,))
        )

    def _beat(self, now: float) -> Beat:
        flags = LEAVING if self.leaving else ""
        if self.passive(now):
            flags += PASSIVE if len(self.frontier) else PASSIVE + BLANK
        flags += "" if self.lease.holds(now) else FENCED
        flags += LOSSY if self.lossy else ""
        flags += NEW if self.tenure.complete is None else ""
        settled = self.view.digest if self.settled else ""
        pending = tuple(point(host) for host in self.handover.pending) if settled else ()
        dead = tuple(incarnation for incarnation in self.watch.dead if incarnation != self.incarnation)
        return Beat(
            incarnation=self.incarnation,
            epoch=self.group.epoch,
            replicas=self.config.replicas,
            digest=self.view.digest,
            settled=settled,
            flags=flags,
            activity=self.activity,
            pending=pending,
            dead=dead,
        )

    def drain(self, now: float) -> Effects:
        """What is to be done about everything since the last drain; this ends the flush."""
        letters = []
        for lane, letter, again in self.outbox.post(now, self.view.digest):
            fields = encode(self.me, lane, self.outbox.store, letter)
            letters.append((lane.receiver, fields))
            self.counters.letters_sent += 1
            self.counters.resent += again
            self.counters.bytes_sent += len(fields["body"])
        answers = self.reception.answers()
        effects = Effects(tuple(letters), answers, tuple(self.outbox.forgotten))
        self.outbox.forgotten.clear()
        self.flush += 1
        return effects

    def _check(self) -> None:
        """Assert every invariant of the agent."""
        assert self.view is self.tenure.view is self.tenure.entered[-1]
        assert self.ring is self.view.ring
        self.outbox._check()
        for state in self.frontier.states():
            state._check()
        assert self.out == sum(len(state.out) for state in self.frontier.states())
