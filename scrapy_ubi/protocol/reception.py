"""Reception: what an agent does with the letters it receives (DESIGN 2.3).

Rules of this module:

* Every record is idempotent, so a letter that comes again is merged again where its outcome is not remembered any more.
* A discovery letter: hosts that are not this agent's are refused, with the name of who owns them in its view; the
  rest is merged and held in custody until the successors have it.
* A state letter is never refused. What it brings is *covered* when its sender tells every keeper itself: it has the
  same view, or is the host's owner. What is not covered soils the copy: handover brings it to the keepers.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING

from .custody import Custody, Held
from .host import Entry
from .mail import DISCOVERY, MOST_LANES_IN, LaneIn, Outcome, Record
from .wire import Delta, Received

if TYPE_CHECKING:
    from .agent import Agent

MOST_OUTCOMES = (
    1024  # answers remembered a lane: far above any window; a sender that never raises its floor gets no more
)


class Reception:
    """The receiving end of one agent: lanes in, custody, and the answers to give."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._answers: dict[str, None] = {}  # lanes to answer, in the order in which that became clear
        self._touched: dict[str, None] = {}  # lanes of which more is decided than was told to the disk
        self.lanes: OrderedDict[str, LaneIn] = OrderedDict()
        self.custody = Custody(agent.me, self.lanes)

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
        self._agent.activity += 1
        if letter.kind == DISCOVERY:
            lane.outcomes[letter.seq] = None
            self._discovery(letter)
        else:
            lane.outcomes[letter.seq] = self._state(letter)
            self._decided(letter.lane)

    def refuse_whole(self, sender: str, name: str, seq: int) -> None:
        """A letter that is set aside as unreadable is answered all the same: sent again it would be no better."""
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

    def _discovery(self, letter: Received) -> None:
        agent, hosts, refused = self._agent, [], {}
        for delta in letter.deltas:
            keepers = agent.keepers_of(delta.host)
            if keepers[:1] != (agent.me,):
                refused[delta.host] = keepers[0] if keepers else ""
                agent.counters.refused += len(delta.discovered)
                continue
            hosts.append(delta.host)
            agent.counters.received += len(delta.discovered)
            state, news = agent.frontier.add(delta.host, self._unknown(delta))
            for entry in news:
                agent.replicate(state, Record(delta.host, agent.flush, entry=entry))
        held = Held(letter.lane, letter.seq, hosts, refused, {}, agent.view_no)
        self.custody.hold(held, agent.keepers_of, agent.flush, agent.view_no)

    def _unknown(self, delta: Delta) -> tuple[Entry, ...]:
        """What several agents find is news once: not again when another's text would come first in a merge."""
        state, refuses = self._agent.frontier.find(delta.host), self._agent.refuses
        if state is None:
            return delta.discovered
        news = (e for e in delta.discovered if not state.holds(e.key, e.depth, e.priority))
        return tuple(e for e in news if not refuses(state, e))

    def _state(self, letter: Received) -> Outcome:
        want = []
        for delta in letter.deltas:
            self._merge(letter, delta)
            state = self._agent.frontier.find(delta.host)
            if delta.offer is not None and (state is None or state.summary() != delta.offer):
                want.append(delta.host)
            if state is not None and letter.view != self._agent.view.digest:
                self._agent.handover.stay(state)
        return Outcome({}, tuple(want))

    def _merge(self, letter: Received, delta: Delta) -> None:
        if not delta.discovered and not delta.done and not delta.redo and delta.notes is None:
            return
        agent = self._agent
        state, news = agent.frontier.add(delta.host, delta.discovered)
        for redo in delta.redo:
            state.keep_redo(redo)
        done = agent.frontier.add_done(state, delta.done)
        noted = delta.notes is not None and agent.frontier.note(state, delta.notes)
        if noted:
            agent.on_notes(state)
        if not news and not done and not noted:
            return
        keepers = agent.keepers(state)
        covered = letter.view == agent.view.digest or keepers[:1] == (letter.sender,)
        if agent.me not in keepers or not covered:
            agent.handover.soil(state)
        elif keepers[0] == agent.me and agent.tenure.released:
            # What an earlier owner still brings; while the view is not released that one tells every keeper itself.
            for entry in news:
                agent.replicate(state, Record(state.host, agent.flush, entry=entry), but=letter.sender)
            for key in done:
                state.open_work += agent.replicate(state, Record(state.host, agent.flush, done=key), but=letter.sender)
            if noted:
                agent.replicate(state, Record(state.host, agent.flush, notes=state.notes), but=letter.sender)

    def remember(self, name: str, sender: str, floor: int, outcomes: Mapping[int, Outcome]) -> None:
        """What a disk holds of a lane: its letters need not be merged again."""
        lane = self._lane(name, sender)
        lane.floor = floor
        lane.outcomes.update(outcomes)

    def release(self) -> None:
        """Answer the letters in custody that may be answered now: none before it is sure who the successors are."""
        agent = self._agent
        if not agent.group.sure:
            return
        answered = self.custody.release(agent.outbox, agent.keepers_of, agent.handover.busy, agent.flush, agent.view_no)
        for name in answered:
            self._decided(name)

    def repeat(self) -> None:
        """Say every answer again."""
        self._answers.update(dict.fromkeys(self.lanes))

    def answers(self) -> dict[tuple[str, str], str]:
        """The answers to give now: (sender, lane name) -> text."""
        lanes = {name: self.lanes[name] for name in self._answers if name in self.lanes}
        self._answers.clear()
        return {(lane.sender, name): lane.text() for name, lane in lanes.items()}
