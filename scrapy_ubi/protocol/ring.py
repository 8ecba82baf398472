"""Who owns a host, and who comes next: identifier-seeded consistent hashing.

The assignment of UbiCrawler (Boldi, Codenotti, Santini, Vigna: technical report, 2002, sections 4.1 to 4.3):

* The *ring* is the circle of 64-bit numbers. An agent stands on it at its *replicas*: as many points as its capacity
  gives (`settings.replicas_for`), drawn from a Mersenne Twister seeded with nothing but the agent's identifier (4.3).
  So an agent that knows the identifiers of a group knows the whole assignment: no table travels, no agent is asked.
* A host stands at one point, a hash of its partition key. Its *owner* is the agent of the nearest replica, **in either
  direction**; who comes next is found going on outward, skipping agents already met. Not the clockwise successor of
  most consistent hashing: docs/decisions/0001-nearest-replica.md has the figures that tell them apart.
* *Balance* (4.1): shares of the circle follow capacity. *Contravariance* (4.2): in a smaller group an agent owns all
  that it owned in the larger one. It holds as the order of all agents for a host, by the distance of their nearest
  replica, does not depend on who is there: leaving agents out of a list does not reorder the others.

Rules of this module:

* `Ring` is a value. Its agents never change; `add` and `remove` return another ring and share nothing mutable with this
  one. What it remembers of hosts only saves it from working that out again.
* `random.Random` is used here, and nowhere else in the protocol, with a seed always: as a pure function from an
  identifier to its points. Nothing here depends on the machine, the process, or the order in which agents were added.
* Moving one point of one agent moves hosts in every crawl under way: the golden values in tests/protocol/test_ring.py
  fail loudly if a Python or a library ever does that.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from types import MappingProxyType
from typing import NamedTuple

from mmh3 import hash128

from scrapy_ubi.protocol.ring_index import SIZE, Circle

HOST_SEED = 0x756269  # "ubi": host points are independent of the URL keys of urls/, which hash with another seed

OWNERS_KEPT = 1 << 17  # hosts whose owner a ring remembers, about 15 MB; beyond that all are forgotten and found again

FEW = 9  # an owner and as many successors as UBI_REPLICATION allows
ORDERS_KEPT = 1 << 15  # hosts whose first few agents a ring remembers, about 8 MB

_LOW = SIZE - 1


class RingCollision(ValueError):
    """Two agents have a replica at one point, so they cannot both live: one of them needs another identifier.

    With 64-bit points this does not happen by chance: the identifiers are equal, or differ in leading NULs only.
    """

    def __init__(self, first: str, second: str, at: int) -> None:
        self.agents = (min(first, second), max(first, second))
        self.at = at
        super().__init__(
            f"agents {self.agents[0]!r} and {self.agents[1]!r} both have a replica at ring point {at:016x}"
        )


class Arc(NamedTuple):
    """The points `first` to `last` of the circle, both included, that one owner loses to another (None: no agent)."""

    first: int
    last: int
    old_owner: str | None
    new_owner: str | None

    @property
    def share(self) -> float:
        """Its part of the circle, 0 to 1."""
        return (self.last - self.first + 1) / SIZE


def point(host: str) -> int:
    """The point of a host (any text is one), unsigned 64 bits: the first half of MurmurHash3 x64 128 of its UTF-8.

    That is mmh3.hash64(host, HOST_SEED, signed=False)[0], by a faster way. A lone surrogate is no UTF-8, and mmh3 5.3
    crashes the process on a str that holds one: letters come from outside, so it never gets such a text.
    """
    return hash128(host if host.isascii() else host.encode("utf-8", "surrogatepass"), HOST_SEED) & _LOW


def replica_points(agent: str, replicas: int) -> list[int]:
    """The points of an agent in the order drawn, all different: those for fewer replicas are the beginning of it.

    The generator is seeded with the identifier's UTF-8 bytes taken as one big-endian number (section 4.3).
    """
    draw = Random(int.from_bytes(agent.encode("utf-8", "surrogatepass"), "big")).getrandbits
    points: dict[int, None] = {}
    while len(points) < replicas:
        points[draw(64)] = None
    return list(points)


class Ring:
    """Some agents with their numbers of replicas, and who owns what among them. A value: equal when its agents are.

    Time, for P points in all: `owner` O(1) on the average; `order` O(log P + n) for the first few; `add` and `remove`
    O(P), but as copies in C: milliseconds for 200,000 points; `of` O(P log P); `shares` and `difference` O(P).
    A ring has room for 65,535 agents; ValueError beyond.
    """

    __slots__ = ("_agents", "_circle", "_orders", "_owners")

    def __init__(self, agents: Mapping[str, int], circle: Circle) -> None:
        """For this module only: use `of`, `add` and `remove`."""
        self._agents = dict(sorted(agents.items()))
        self._circle = circle
        self._owners: dict[str, str] = {}  # host -> owner, of hosts asked for
        self._orders: dict[tuple[str, int], tuple[str, ...]] = {}  # (host, how many) -> the first agents, likewise

    # ---- making rings

    @classmethod
    def of(cls, replicas: Mapping[str, int]) -> Ring:
        """The ring of these agents, each with so many replicas.

        Raises RingCollision; ValueError for less than one replica.
        """
        held: dict[int, str] = {}
        for agent in sorted(replicas):
            for at in _drawn(agent, replicas[agent]):
                if at in held:
                    raise RingCollision(held[at], agent, at)
                held[at] = agent
        points = array("Q", sorted(held))
        return cls(replicas, Circle.from_points(points, [held[at] for at in points]))

    def add(self, agent: str, replicas: int) -> Ring:
        """This ring and one agent more. Raises RingCollision; ValueError if it is there already, or replicas < 1."""
        if agent in self._agents:
            raise ValueError(f"agent {agent!r} is on the ring already")
        drawn = _drawn(agent, replicas)
        points, holders = self._circle.points, self._circle.holders
        for at in drawn:
            place = bisect_left(points, at)
            if place < len(points) and points[place] == at:
                raise RingCollision(holders[place], agent, at)
        return Ring({**self._agents, agent: replicas}, self._circle.with_points(drawn, agent))

    def remove(self, agent: str) -> Ring:
        """This ring without an agent. Raises ValueError if it is not there."""
        if agent not in self._agents:
            raise ValueError(f"agent {agent!r} is not on the ring")
        circle = self._circle.without_points(_drawn(agent, self._agents[agent]))
        return Ring({a: n for a, n in self._agents.items() if a != agent}, circle)

    # ---- asking

    @property
    def agents(self) -> Mapping[str, int]:
        """Agent -> number of replicas, in the order of their names; read-only."""
        return MappingProxyType(self._agents)

    def owner(self, host: str) -> str:
        """The agent that owns this host (partition key). Raises LookupError on an empty ring."""
        owner = self._owners.get(host)
        if owner is None:
            if not self._agents:
                raise LookupError("a ring without agents has no owners")
            # `point` is written out: a call costs a tenth of all this
            owner = self._circle.nearest(hash128(host, HOST_SEED) & _LOW if host.isascii() else point(host))
            if len(self._owners) >= OWNERS_KEPT:
                self._owners.clear()
            self._owners[host] = owner
        return owner

    def owners(self, hosts: Sequence[str]) -> list[str]:
        """`owner` of each, in half the time for hosts asked for before: those of a page's links mostly are."""
        found = map(self._owners.get, hosts)
        return [agent or self.owner(host) for agent, host in zip(found, hosts, strict=True)]

    def order(self, host: str, n: int | None = None) -> tuple[str, ...]:
        """The first `n` agents for this host, or all: its owner, then who comes next. () on an empty ring.

        The first few are remembered: owner and successors of a host are asked for with every letter about it.
        """
        if n is None or n > FEW:
            return self._circle.outward(point(host), len(self._agents) if n is None else min(n, len(self._agents)))
        order = self._orders.get((host, n))
        if order is None:
            order = self._circle.outward(point(host), min(n, len(self._agents)))
            if len(self._orders) >= ORDERS_KEPT:
                self._orders.clear()
            self._orders[host, n] = order
        return order

    def shares(self) -> dict[str, float]:
        """Agent -> the part of the circle it owns, 0 to 1: what its part of very many hosts comes to."""
        sizes = dict.fromkeys(self._agents, 0)
        before = -1
        for last, agent in self._circle.arcs():
            if agent is not None:
                sizes[agent] += last - before
            before = last
        return {agent: size / SIZE for agent, size in sizes.items()}

    def difference(self, new: Ring) -> list[Arc]:
        """What changes hands between this ring and a new one: `Ring.difference(old, new)`.

        Arcs in ascending order, none wrapping around zero; neighbours with the same two owners are one. The sum of
        their shares is the part of all hosts that moves. When one agent is added, everything moves to it (4.2).
        """
        arcs: list[Arc] = []
        first = 0
        for last, old_owner, new_owner in _side_by_side(self._circle.arcs(), new._circle.arcs()):
            if old_owner != new_owner:
                before = arcs[-1] if arcs else None
                if before and (before.last + 1, *before[2:]) == (first, old_owner, new_owner):
                    arcs[-1] = before._replace(last=last)
                else:
                    arcs.append(Arc(first, last, old_owner, new_owner))
            first = last + 1
        return arcs

    def __eq__(self, other: object) -> bool:
        return self._agents == other._agents if isinstance(other, Ring) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self._agents.items()))

    def __repr__(self) -> str:
        return f"Ring.of({self._agents!r})"

    def check_invariants(self) -> None:
        """Assert the invariants: the points are those of the agents, and what is remembered is what would be found."""
        self._circle.check_invariants()
        held = dict(zip(self._circle.points, self._circle.holders, strict=True))
        assert held == {at: a for a, n in self._agents.items() for at in replica_points(a, n)}, self
        assert len(held) == sum(self._agents.values()), self
        assert list(self._agents) == sorted(self._agents), self
        assert len(self._owners) <= OWNERS_KEPT, self
        assert all((owner,) == self._circle.outward(point(host), 1) for host, owner in self._owners.items()), self
        assert len(self._orders) <= ORDERS_KEPT, self
        assert all(order == self.order(host)[:n] for (host, n), order in self._orders.items()), self


def _drawn(agent: str, replicas: int) -> list[int]:
    """The points of an agent, ascending."""
    if replicas < 1:
        raise ValueError(f"agent {agent!r} has {replicas} replicas: at least one is needed")
    return sorted(replica_points(agent, replicas))


def _side_by_side(
    old: Iterator[tuple[int, str | None]], new: Iterator[tuple[int, str | None]]
) -> Iterator[tuple[int, str | None, str | None]]:
    """(last point, old owner, new owner) of each arc on which neither changes."""
    (old_last, old_owner), (new_last, new_owner) = next(old), next(new)
    while True:
        last = min(old_last, new_last)
        yield last, old_owner, new_owner
        if last == SIZE - 1:
            return
        if old_last == last:
            old_last, old_owner = next(old)
        if new_last == last:
            new_last, new_owner = next(new)
