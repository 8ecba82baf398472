"""What of an agent is durable beside its host states, and how an agent begins again from it
(docs/explanation/protocol.md#flush-and-restart, P8).

Rules of this module:

* One flush is one atomic write of two things: the host states that changed (the frontier's own matter: the entries
  known, the keys done) and the `Changes` of this module. Nothing of a drain may leave before the flush that follows it.
* A flush may also be written between two drains, at any moment between two events: what it holds has happened.
* Changes say what is new since the last ones, so that a flush costs what has happened in it, however much waits.
* An agent that begins again is a newcomer: another incarnation, which has seen no view complete and whose copies are
  offered to their keepers. So nothing of views, leases and beats is durable, and of mail only what is still *owed*:
  outlinks, done marks, and the numbers that no letter may have again.
* A disk that is *torn*, of which the last flushes are lost, counts as one lost with its agent, for copies that others
  count on are gone. The name of its lanes is another one then: numbers were given that it knows nothing of.
* Mail for the predecessor that still lies in Redis is thrown away before the first beat (`agent/group/join.py`);
  the letters under way to it are sent again, for its incarnation is gone.
* Restored outlinks are routed when the agent is *sure* of who is there. Alone and unsure it would take itself for
  everybody's owner, and its done marks would run ahead of the links they stand for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.protocol.answer import Outcome
from scrapy_ubi.protocol.config import Config
from scrapy_ubi.protocol.frontier_contract import Frontier
from scrapy_ubi.protocol.host import Entry, VisitRow
from scrapy_ubi.protocol.host_policy import FREE, HostPolicy
from scrapy_ubi.protocol.journal import JournalPart
from scrapy_ubi.protocol.lane import LaneIn
from scrapy_ubi.protocol.records import Record


class Unsent(NamedTuple):
    """A page that is done, in that flush, and whose done mark has not left yet."""

    flush: int
    host: str
    entry: Entry


class UnsentVisit(NamedTuple):
    """A page that was visited again, in that flush, and whose row has not left yet; others know the one `before`."""

    flush: int
    host: str
    before: VisitRow


class SavedLane(NamedTuple):
    """The receiver's end of a lane: the letters of `sender` from `floor` on whose outcome is decided."""

    sender: str
    floor: int
    outcomes: Mapping[int, Outcome]


class GroupState(NamedTuple):
    """`store` names the disk; `flush` is the last flush begun; the rest is what is known of the group: whether more
    agents were lost than there are copies (`lossy`); of the last view in which all had settled who was in it (`peers`:
    name -> incarnation, '' where that is not known; before there was one, who was heard), its digest (`view`), and how
    many there were by then (`era`); who
    was seen dead since (`lost`: incarnation -> name), and the digests of the last views in which this agent was
    (`views`).
    """

    store: str
    flush: int
    lossy: bool
    peers: Mapping[str, str]
    view: str = ""
    era: int = 0
    lost: Mapping[str, str] = {}
    views: tuple[str, ...] = ()


class Changes(NamedTuple):
    """What is to be written beside the host states: `numbers` and `lanes_in` (None: forgotten) replace those of the
    same lanes, `parts` are added, and all parts of the blocks in `settled` (flush, how many) deleted.
    """

    group: GroupState
    numbers: Mapping[str, int]
    lanes_in: Mapping[str, SavedLane | None]
    parts: tuple[JournalPart, ...]
    settled: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Saved:
    """All changes ever written, together: what is durable beside the host states.

    `numbers` gives the next number of every lane that was ever used (lane name -> number); `lanes_in` what became of
    letters received; `parts` what was not settled of the flushes. `torn`: the disk has lost its last flushes, and with
    them copies that others count on.
    """

    group: GroupState
    numbers: Mapping[str, int] = field(default_factory=dict)
    lanes_in: Mapping[str, SavedLane] = field(default_factory=dict)
    parts: tuple[JournalPart, ...] = ()
    torn: bool = False

    @property
    def discovered(self) -> list[Record]:
        """The entries told to their owners, which may not have arrived."""
        return [record for part in self.parts for record in part.discovered]

    @property
    def told(self) -> list[tuple[int, str]]:
        """The flushes and hosts of entries told to successors (the entries are in the host states)."""
        return list(dict.fromkeys((part.flush, host) for part in self.parts for host in part.told))

    @property
    def unsent(self) -> list[Unsent]:
        """The pages done whose done marks may not have left, oldest first."""
        return [Unsent(part.flush, host, entry) for part in self.parts for host, entry in part.done]

    @property
    def unsent_visits(self) -> list[UnsentVisit]:
        """The pages visited again whose rows may not have left, oldest first."""
        return [UnsentVisit(part.flush, host, before) for part in self.parts for host, before in part.visited]


def changes(agent: Agent) -> Changes:
    """What is to be durable of the agent at this moment, and was not at the last call."""
    flush, losses = agent.journal.flush, agent.group.losses
    oldest = min((f for f in (agent.outbox.oldest(), agent.closing.oldest()) if f is not None), default=flush + 1)
    return Changes(
        group=GroupState(
            agent.outbox.store,
            flush,
            agent.lossy,
            losses.peers,
            losses.complete,
            losses.era,
            losses.seen_dead,
            losses.own_views,
        ),
        numbers=agent.outbox.new_numbers(),
        lanes_in={
            name: _lane_in(agent.inbound.lanes[name]) if name in agent.inbound.lanes else None
            for name in agent.inbound.take_touched()
        },
        parts=tuple(agent.journal.parts(oldest)),
        settled=tuple(agent.journal.settled(oldest)),
    )


def _lane_in(lane: LaneIn) -> SavedLane:
    decided = {seq: outcome for seq, outcome in lane.outcomes.items() if outcome is not None}
    return SavedLane(lane.sender, lane.floor, decided)


def written(parts: Iterable[JournalPart]) -> dict[int, int]:
    """How many parts of each flush's block there are (one more than the highest number, should one be missing)."""
    count: Counter[int] = Counter()
    for part in parts:
        count[part.flush] = max(count[part.flush], part.number + 1)
    return dict(count)


def restore(
    me: str,
    saved: Saved,
    config: Config,
    frontier: Frontier,
    new_incarnation: Callable[[], str],
    now: float,
    policy: HostPolicy = FREE,
) -> Agent:
    """The agent that begins again from a disk, at this time (s, its clock).

    `frontier` holds what the disk does: the entries that are known and not done wait, those that were out when the
    process ended included.
    """
    agent = Agent(me, saved.group.store, config, frontier, new_incarnation, now, policy)
    agent.resume(saved.group.flush + 1)
    group = saved.group
    agent.group.losses.resume(group.lossy, group.peers, saved.torn, group.view, group.era, group.lost, group.views)
    agent.outbox.resume(saved.numbers, saved.discovered, saved.told)
    agent.journal.resume(written(saved.parts))
    unsents: list[Unsent | UnsentVisit] = [*saved.unsent, *saved.unsent_visits]
    for unsent in sorted(unsents, key=lambda unsent: unsent.flush):
        state = frontier.add(unsent.host, ())[0]
        if isinstance(unsent, Unsent):
            agent.closing.resume(unsent.flush, state, unsent.entry)
        elif state.is_done(unsent.before.key):
            agent.closing.resume_visit(unsent.flush, state, unsent.before.key, unsent.before)
    for name, lane in saved.lanes_in.items():
        agent.inbound.remember(name, lane.sender, lane.floor, lane.outcomes)
    agent.note_status(now)  # its first line says how far its disk has come
    return agent
