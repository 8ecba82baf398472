"""A view: the agents that one of them believes alive and not leaving, and the ring that assigns hosts under it.

Rules of this module:

* A view is a function of its members: equal members, equal digest and equal ring, however the ring was come by.
* A fence that ends raises the agent's *epoch*, which is part of every view: a fenced agent goes on only when every
  living agent has published the digest of a view that holds the new epoch, and so has seen a beat sent after the
  fence began.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import mmh3

from scrapy_ubi.protocol.ring import Ring, RingCollision

EDITS = 8  # points of a ring that are drawn and sorted again in the time one is added to it, of hundreds of agents


class Member(NamedTuple):
    """An agent as it stands in a view."""

    incarnation: str
    epoch: int
    replicas: int


@dataclass(frozen=True, slots=True)
class View:
    """The set of agents believed alive and not leaving; `digest` names it, `ring` assigns hosts under it."""

    members: Mapping[str, Member]
    digest: str
    ring: Ring

    @classmethod
    def of(cls, members: Mapping[str, Member], near: View | None = None) -> View:
        """The view of these members; `near` is an earlier one whose ring is edited where that is cheaper. Where nothing
        has changed it is `near` itself."""
        if near is not None and near.members == members:
            return near
        return cls(dict(members), digest_of(members), _ring({a: m.replicas for a, m in members.items()}, near))

    @property
    def lives(self) -> Iterator[str]:
        """The incarnations in it."""
        return (member.incarnation for member in self.members.values())

    def incarnation(self, agent: str) -> str:
        """The incarnation of an agent in this view, '' for none."""
        member = self.members.get(agent)
        return member.incarnation if member else ""


def digest_of(members: Mapping[str, Member]) -> str:
    """The digest of the view of these members."""
    text = "\n".join(f"{a} {m.incarnation}.{m.epoch} {m.replicas}" for a, m in sorted(members.items()))
    return f"{mmh3.hash64(text, 0, signed=False)[0]:016x}"


def _ring(replicas: dict[str, int], near: View | None) -> Ring:
    ring = near.ring if near is not None else Ring.of({})
    if sum(points for _, points in ring.agents.items() ^ replicas.items()) * EDITS > sum(replicas.values()):
        try:
            return Ring.of(replicas)
        except RingCollision:
            pass
    for agent, count in list(ring.agents.items()):
        if replicas.get(agent) != count:
            ring = ring.remove(agent)
    for agent in sorted(replicas):
        if agent not in ring.agents:
            try:
                ring = ring.add(agent, replicas[agent])
            except RingCollision:
                # Refused when an agent joins; of two that join at once the later name has no points, for everybody
                # alike.
                continue
    return ring
