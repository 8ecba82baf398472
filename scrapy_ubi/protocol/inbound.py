"""Inbound: what an agent does with the letters it receives (docs/explanation/protocol.md#mail).

Rules of this module:

* Every record is idempotent, so a letter that comes again is merged again where its outcome is not remembered any more.
* A discovery letter: hosts that are not this agent's are refused, with the name of who owns them in its view; the
  rest is merged and held in custody until the successors have it.
* A state letter is never refused. What it brings is *covered* when its sender tells every keeper itself: it has the
  same view, or is the host's owner, in the life in which it wrote. What is not covered soils the copy: handover brings
  it to the keepers. A letter of the owner's former life, which knew what the present one does not, is not covered.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping
from operator import itemgetter

from scrapy_ubi.protocol.answer import Outcome
from scrapy_ubi.protocol.custody import Custody, Held
from scrapy_ubi.protocol.discovery import Discovery
from scrapy_ubi.protocol.handover import Handover
from scrapy_ubi.protocol.host import Entry, HostState
from scrapy_ubi.protocol.host_policy import HostPolicy, refuses_none
from scrapy_ubi.protocol.keepers import Keepers
from scrapy_ubi.protocol.lane import DISCOVERY, MOST_LANES_IN, LaneIn
from scrapy_ubi.protocol.quiescence import Quiescence
from scrapy_ubi.protocol.received import Delta, Received
from scrapy_ubi.protocol.records import Record, done_mark

# Answers remembered a lane: far above any window. A sender that never raises its floor gets no further ones.
MOST_OUTCOMES = 1024
_request = itemgetter(4)  # of an entry
MOST_ANSWER = 20  # times as many characters as a letter may have: a third of what a transport takes


class Inbound:
    """The receiving end of one agent: lanes in, custody, and the answers to give."""

    def __init__(
        self, keeping: Keepers, discovery: Discovery, handover: Handover, quiescence: Quiescence, policy: HostPolicy
    ) -> None:
        self._me = keeping.me
        self._keeping = keeping
        self._frontier = keeping.frontier
        self._journal = keeping.journal
        self._discovery = discovery
        self._handover = handover
        self._quiescence = quiescence
        self._on_notes, self._visit_told = policy.on_notes, policy.visit_told
        self._answers: dict[str, None] = {}  # lanes to answer, in the order in which that became clear
        self._touched: dict[str, None] = {}  # lanes of which more is decided than was told to the disk
        self.lanes: OrderedDict[str, LaneIn] = OrderedDict()
        self.custody = Custody(keeping.me, self.lanes)

    @property
    def idle(self) -> bool:
        """Whether nothing received waits for anything, and every answer is given."""
        return not len(self.custody) and not self._answers

    def receive(self, letter: Received) -> None:
        """A letter arrived; it may have arrived before."""
        lane = self._lane(letter.lane, letter.sender)
        lane.raise_floor(letter.floor)
        if letter.seq < lane.floor or len(lane.outcomes) >= MOST_OUTCOMES:
            return
        if letter.seq in lane.outcomes:
            if lane.outcomes[letter.seq] is not None:
                self._answers[letter.lane] = None  # once more
            return
        self._quiescence.activity += 1
        if letter.kind == DISCOVERY:
            lane.outcomes[letter.seq] = None
            self._receive_discovery(letter)
        else:
            lane.outcomes[letter.seq] = self._state(letter)
            self._decided(letter.lane)

    def refuse_whole(self, sender: str, name: str, seq: int) -> None:
        """A letter that is set aside as unreadable is still answered: sent again it would be no better."""
        lane = self._lane(name, sender)
        if len(lane.outcomes) < MOST_OUTCOMES and seq >= lane.floor:
            lane.outcomes[seq] = Outcome({}, ())
            self._decided(name)

    def _decided(self, name: str) -> None:
        self._answers[name] = self._touched[name] = None

    def take_touched(self) -> list[str]:
        """The lanes of which more is decided than at the last call, those forgotten since included."""
        touched, self._touched = self._touched, {}
        return list(touched)

    def _lane(self, name: str, sender: str) -> LaneIn:
        lane = self.lanes.get(name)
        if lane is None:
            lane = self.lanes[name] = LaneIn(sender)
            if len(self.lanes) > MOST_LANES_IN:
                self._touched[self.lanes.popitem(last=False)[0]] = None
        self.lanes.move_to_end(name)
        return lane

    def _receive_discovery(self, letter: Received) -> None:
        keeping, flush, hosts, refused = self._keeping, self._journal.flush, [], {}
        need: dict[str, int] = {}
        for delta in letter.deltas:
            keepers = keeping.keepers_of(delta.host)
            if keepers[:1] != (self._me,):
                refused[delta.host] = keepers[0] if keepers else ""
                keeping.counters.refused += len(delta.discovered)
                continue
            hosts.append(delta.host)
            for successor in keepers[1:]:
                need[successor] = flush
            keeping.counters.received += len(delta.discovered)
            state, news = self._frontier.add(delta.host, self._unknown(delta))
            keeping.found(state, news, flush)
        self.custody.hold(Held(letter.lane, letter.seq, hosts, refused, need, keeping.view_no))

    def _unknown(self, delta: Delta) -> tuple[Entry, ...]:
        """What several agents find is news once: not again when another's text would come first in a merge."""
        state, refuses = self._frontier.find(delta.host), self._discovery.refuses
        if state is None:
            return delta.discovered
        holds = state.holds
        news = tuple([e for e in delta.discovered if not holds(e[0], e[2], e[3])])
        self._discovery.announce(state, news)
        return news if refuses is refuses_none else tuple([e for e in news if not refuses(state, e)])

    def _state(self, letter: Received) -> Outcome:
        want = []
        same_view = letter.view == self._keeping.view.digest
        for delta in letter.deltas:
            state = self._merge(letter, delta)
            if delta.offer is not None and (state is None or state.summary() != delta.offer):
                want.append(delta.host)
            if state is not None and not same_view:
                self._handover.stay(state)
        return Outcome({}, tuple(want))

    def _merge(self, letter: Received, delta: Delta) -> HostState | None:
        """Merge what is said of a host; its state, None where there is none."""
        host, discovered, marks, _, redos, notes, visited = delta
        frontier = self._frontier
        if not any((discovered, marks, visited, redos, notes)):
            return frontier.find(host)
        if any(map(_request, discovered)) and self._keeping.owns(host):
            self._discovery.announce(frontier.find(host), discovered)
        state, news = frontier.add(host, discovered)
        for redo in redos:
            state.keep_redo(redo)
        done = frontier.add_done(state, marks, letter.sender) if marks else []
        done += self._visited(state, delta, letter.sender) if visited else []
        noted = notes is not None and frontier.note(state, notes)
        if noted:
            self._on_notes(state)
        if news or done or noted:
            self._tell_keepers(letter, state, news, done, noted)
        return state

    def _visited(self, state: HostState, delta: Delta, sender: str) -> list[int]:
        """Merge visit rows: the keys of which that was news."""
        news = []
        for row in delta.visited:
            done = self._frontier.add_done(state, (row.key,), sender)
            if self._frontier.keep_row(state, self._visit_told(row)) or done:
                news.append(row.key)
        return news

    def _tell_keepers(
        self, letter: Received, state: HostState, news: list[Entry], done: list[int], noted: bool
    ) -> None:
        """This letter has brought something of a host: see to it that every other keeper comes to know it."""
        keeping = self._keeping
        keepers = keeping.keepers(state)
        if self._me not in keepers or not self._is_covered(letter, keepers[0]):
            self._handover.mark_dirty(state)
        elif keepers[0] == self._me and keeping.view_history.released:
            # What an earlier owner still brings; while the view is not released that one tells every keeper itself.
            flush, sender = self._journal.flush, letter.sender
            keeping.found(state, news, flush, but=sender)
            for key in done:
                state.open_work += keeping.replicate(state, done_mark(state, key, flush), but=sender)
            if noted:
                keeping.replicate(state, Record(state.host, flush, notes=state.notes), but=sender)
        elif letter.sender not in keeping.view.members:
            sight = keeping.group.watch.seen.get(letter.sender)
            self._handover.tells(letter.sender, sight.beat.incarnation if sight is not None else "", state)

    def _is_covered(self, letter: Received, owner: str) -> bool:
        """Whether the sender of this letter, in which state of a host came, tells every keeper of that host itself."""
        if letter.view == self._keeping.view.digest:
            return True
        return owner == letter.sender and not self._keeping.view_history.is_former(owner, letter.view)

    def remember(self, name: str, sender: str, floor: int, outcomes: Mapping[int, Outcome]) -> None:
        """What a disk holds of a lane: its letters need not be merged again."""
        lane = self._lane(name, sender)
        lane.floor = floor
        lane.outcomes.update(outcomes)

    def release(self) -> None:
        """Answer the letters in custody that may be answered now: none before it is sure who the successors are and,
        where they are too few, before everybody knows that (`Outbox.thin`).
        """
        keeping = self._keeping
        if not keeping.group.sure or keeping.view_history.few_unheard:
            return
        answered = self.custody.release(
            keeping.outbox, keeping.keepers_of, self._handover.busy, self._journal.flush, keeping.view_no
        )
        for name in answered:
            self._decided(name)

    def repeat(self, to: Collection[str] | None = None) -> None:
        """Say every answer again, or those to these agents."""
        self._answers.update({name: None for name, lane in self.lanes.items() if to is None or lane.sender in to})

    def answers(self) -> dict[tuple[str, str], str]:
        """The answers to give now: (sender, lane name) -> text."""
        lanes = {name: self.lanes[name] for name in self._answers if name in self.lanes}
        self._answers.clear()
        most = MOST_ANSWER * self._keeping.config.bounds.size
        return {(lane.sender, name): lane.text(most) for name, lane in lanes.items()}
