"""Who owns what among many agents, and what moves when one comes or goes: the part of `scale.py` about the ring.

Everything is asked of the production `Ring`, host by host; nothing is estimated but where a figure says "exact", which
is the circle itself (very many hosts). No clock is involved: the figures are the same on every machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import mean

from scrapy_ubi.protocol.ring import Ring
from scrapy_ubi.settings import replicas_for

REPLICAS = 200  # of an agent of capacity 1
MOST = 2  # successors asked for: figures for replication 0, 1 and 2


def agents(count: int, mixed: bool = False) -> dict[str, int]:
    """So many agents with their replicas; `mixed`: every other one has capacity 2, not 1."""
    return {f"crawler-{i}": replicas_for(REPLICAS, 2 if mixed and i % 2 else 1) for i in range(count)}


def host(number: int) -> str:
    """The name of a host."""
    return f"www.site-{number}.example"


def spread(counts: Mapping[str, int], weights: Mapping[str, int]) -> dict[str, float]:
    """How evenly hosts lie on agents: the largest and the least share over the fair one, and the mean absolute
    deviation from it in per cent. The fair share of an agent follows its weight (replicas)."""
    total, weight = sum(counts.values()), sum(weights.values())
    ratios = [counts.get(agent, 0) * weight / (weights[agent] * total) for agent in weights]
    return {
        "max_over_fair": max(ratios),
        "min_over_fair": min(ratios),
        "deviation_per_cent": 100 * mean(abs(ratio - 1) for ratio in ratios),
    }


@dataclass
class Moves:
    """What one change of the group moves: of all hosts, how many changed owner, how many have a keeper they had not."""

    agent: str
    hosts: int = 0
    owner: int = 0
    needless: int = 0  # changed owner though neither the old nor the new one is the agent that came or went
    copies: list[int] = field(default_factory=lambda: [0] * (MOST + 1))  # by replication: copies to be made
    keepers: list[int] = field(default_factory=lambda: [0] * (MOST + 1))  # by replication: hosts with new keepers

    def add(self, before: tuple[str, ...], after: tuple[str, ...]) -> None:
        """Count one host, whose order of agents was and is this."""
        self.hosts += 1
        if before == after:
            return
        if before[0] != after[0]:
            self.owner += 1
            self.needless += self.agent not in (before[0], after[0])
        for replication in range(MOST + 1):
            new = len(set(after[: replication + 1]) - set(before[: replication + 1]))
            self.copies[replication] += new
            self.keepers[replication] += bool(new)

    def figures(self, fair: float) -> dict[str, object]:
        """Shares of all hosts, beside the least that any assignment must move: `fair`, the agent's part of all."""
        return {
            "owner_changed": self.owner / self.hosts,
            "least": fair,
            "times_least": self.owner / self.hosts / fair,
            "needless": self.needless,
            "hosts_with_new_keepers": {str(t): n / self.hosts for t, n in enumerate(self.keepers)},
            "copies_made": {str(t): n / self.hosts for t, n in enumerate(self.copies)},
            "copies_least": {str(t): (t + 1) * fair for t in range(MOST + 1)},
        }


def measure(count: int, hosts: int, mixed: bool = False) -> dict[str, object]:
    """Balance, and what one join and one crash move, for so many agents and hosts.

    A clean leave ends with the same assignment as a crash: it moves the same hosts, only earlier and by their owner.
    """
    group = agents(count, mixed)
    comes, goes = "newcomer", f"crawler-{count // 2}"
    ring = Ring.of(group)
    joined, crashed = ring.add(comes, REPLICAS), ring.remove(goes)
    join, crash = Moves(comes), Moves(goes)
    owned: Counter[str] = Counter()
    wanted = MOST + 1
    for number in range(hosts):
        name = host(number)
        order = ring.order(name, wanted)
        owned[order[0]] += 1
        join.add(order, joined.order(name, wanted))
        crash.add(order, crashed.order(name, wanted))
    weight = sum(group.values())
    return {
        "agents": count,
        "hosts": hosts,
        "capacities": "1 and 2" if mixed else "1",
        "balance": spread(owned, group),
        "join": join.figures(REPLICAS / (weight + REPLICAS)),
        "crash_or_leave": crash.figures(group[goes] / weight),
        "exact": exact(ring, group),
    }


def exact(ring: Ring, group: Mapping[str, int], most: int = 25) -> dict[str, object]:
    """The same of the circle itself, for up to `most` different agents that come or go, one at a time."""
    weight = sum(group.values())
    some = list(group)[:: max(1, len(group) // most)][:most]
    shares = ring.shares()
    leaves = [share_moved(ring, ring.remove(agent)) * weight / group[agent] for agent in some]
    joins = [
        share_moved(ring, ring.add(f"newcomer-{i}", REPLICAS)) * (weight + REPLICAS) / REPLICAS
        for i in range(len(some))
    ]
    return {
        "deviation_per_cent": 100 * mean(abs(shares[a] * weight / n - 1) for a, n in group.items()),
        "crash_times_least": extent(leaves),
        "join_times_least": extent(joins),
    }


def share_moved(old: Ring, new: Ring) -> float:
    """The part of the circle that has another owner in the new ring."""
    return sum(arc.share for arc in old.difference(new))


def extent(values: Iterable[float]) -> dict[str, float]:
    """Mean, least and most."""
    each = list(values)
    return {"mean": mean(each), "min": min(each), "max": max(each), "of": len(each)}
