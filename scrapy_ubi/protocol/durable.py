"""What of an agent is durable beside its host states, and how an agent begins again from it (DESIGN 2.3, 2.5, P8).

Rules of this module:

* One flush is one atomic write of two things: the host states that changed (the frontier's own matter: the entries
  known, the keys done) and what stands in `Saved`. Nothing of a drain may leave before the flush that follows it.
* A flush may also be written between two drains, at any moment between two events: what it holds has happened.
* An agent that begins again is a newcomer: another incarnation, which has seen no view complete and whose copies are
  offered to their keepers. So nothing of views, leases and beats is durable, and of mail only what is still *owed*:
  outlinks, done marks, and the numbers that no letter may have again.
* Mail for the predecessor that still lies in Redis is thrown away before the first beat (`node/joining.py`); the
  letters under way to it are sent anew, for its incarnation is gone.
* Restored outlinks are routed when the agent is *sure* of who is there. Alone and unsure it would take itself for
  everybody's owner, and its done marks would run ahead of the links they stand for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from .agent import Agent
from .config import Config
from .host import Entry, Frontier
from .mail import DISCOVERY, LaneIn, Outcome, Record


class Unsent(NamedTuple):
    """A page that is done, in that flush, and whose done mark has not left yet."""

    flush: int
    host: str
    entry: Entry


class SavedLane(NamedTuple):
    """The receiver's end of a lane: the letters of `sender` from `floor` on whose outcome is decided."""

    sender: str
    floor: int
    outcomes: Mapping[int, Outcome]


@dataclass(frozen=True, slots=True)
class Saved:
    """What is durable beside the host states. A value: nothing in it changes when the agent goes on.

    `store` names the disk; `flush` is the last flush begun; `numbers` gives the next number of every lane that was ever
    used (lane name -> number); `discovered` are the entries told to their owners and not acknowledged; `told` the
    flushes and hosts of entries told to successors and not acknowledged (the entries are in the host states);
    `unsent` the done marks that wait for them; `lanes_in` what became of letters received; `lossy` and `peers` what
    is known of the group: whether more agents were lost than there are copies, and who was in the last view that was
    complete.
    """

    store: str
    flush: int = 1
    numbers: Mapping[str, int] = field(default_factory=dict)
    discovered: tuple[Record, ...] = ()
    told: tuple[tuple[int, str], ...] = ()
    unsent: tuple[Unsent, ...] = ()
    lanes_in: Mapping[str, SavedLane] = field(default_factory=dict)
    lossy: bool = False
    peers: frozenset[str] = frozenset()


def save(agent: Agent) -> Saved:
    """What is to be durable of the agent at this moment."""
    outbox = agent.outbox
    discovered = [record for _, record, _ in outbox.returned]
    told = list(outbox.orphans)
    for (_, kind), lane in outbox.lanes.items():
        links = [record for record in lane.records() if record.entry is not None]
        if kind == DISCOVERY:
            discovered += links
        else:
            told += [(record.flush, record.host) for record in links if record.flush]
    return Saved(
        store=outbox.store,
        flush=agent.flush,
        numbers=outbox.numbers(),
        discovered=tuple(discovered),
        told=tuple(dict.fromkeys(told)),
        unsent=tuple(Unsent(flush, state.host, state.closing[key]) for flush, state, key in agent.closing.unsent),
        lanes_in={name: _lane_in(lane) for name, lane in agent.reception.lanes.items()},
        lossy=agent.lossy,
        peers=agent.group.peers,
    )


def _lane_in(lane: LaneIn) -> SavedLane:
    decided = {seq: outcome for seq, outcome in lane.outcomes.items() if outcome is not None}
    return SavedLane(lane.sender, lane.floor, decided)


def restore(
    me: str, saved: Saved, config: Config, frontier: Frontier, new_incarnation: Callable[[], str], now: float
) -> Agent:
    """The agent that begins again from a disk, at this time (s, its clock).

    `frontier` holds what the disk does: the entries that are known and not done wait, those that were out when the
    process ended included.
    """
    agent = Agent(me, saved.store, config, frontier, new_incarnation, now)
    agent.resume(saved.flush + 1)
    agent.group.resume(saved.lossy, saved.peers)
    agent.outbox.resume(saved.numbers, saved.discovered, saved.told)
    for flush, host, entry in saved.unsent:
        agent.closing.resume(flush, frontier.add(host, ())[0], entry)
    for name, lane in saved.lanes_in.items():
        agent.reception.remember(name, lane.sender, lane.floor, lane.outcomes)
    return agent
