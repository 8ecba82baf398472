"""Who owns a host: scrapy_ubi's ring beside uhashring, a SortedDict and a plain list of points.

    python benchmarks/ring.py [--rounds 9] [--json FILE]

Look-ups go through the public methods. `cold` asks for hosts that were never asked for before, `met` for the same ones
again. SortedDict and list are what a few lines of Python give: points in order, the owner found by bisecting for the
next one clockwise (the nearest in either direction takes a step more), and no memory of hosts. uhashring makes four
points of each of its vnodes, so it gets a quarter as many; it builds itself anew at every change.
"""

from __future__ import annotations

import gc
from bisect import bisect_right, insort
from collections.abc import Callable
from typing import Any

from mmh3 import hash64
from rounds import Way, options, save, table, take_turns
from sortedcontainers import SortedDict
from uhashring import HashRing

from scrapy_ubi.protocol.ring import Ring, replica_points

SIZES = ((3, 200), (16, 100), (1000, 200))  # agents, replicas
HOSTS = 20_000  # look-ups a round


def hosts_of(turn: int) -> list[str]:
    """Hosts that no other round has."""
    return [f"h{turn}-{i:06d}.example" for i in range(HOSTS)]


def at(host: str) -> int:
    return hash64(host, signed=False)[0]


def lookup_ways(agents: dict[str, int], replicas: int, rounds: int) -> dict[str, Way]:
    hosts = [hosts_of(turn) for turn in range(rounds + 1)]
    ring = Ring.of(agents)
    met = ring.add("newcomer", replicas).remove("newcomer")  # the same ring, with a memory of its own
    met.owners(hosts[0])
    held = {point: agent for agent in agents for point in replica_points(agent, replicas)}
    points = sorted(held)
    holders = [*map(held.__getitem__, points), held[points[0]]]
    tree = SortedDict(held)
    tree_values = tree.values()
    hashring = HashRing(list(agents), vnodes=replicas // 4, hash_fn="ketama")

    def each(find: Callable[[str], Any], only: int | None = None) -> Way:
        def way(turn: int) -> None:
            for host in hosts[turn if only is None else only]:
                find(host)

        return way

    return {
        "Ring.owner, cold": each(ring.owner),
        "Ring.owner, met": each(met.owner, 0),
        "Ring.owners, met": lambda turn: met.owners(hosts[0]),
        "Ring.order, first 2": each(lambda host: ring.order(host, 2)),
        "uhashring get_node": each(hashring.get_node),
        "SortedDict bisect": each(lambda host: tree_values[tree.bisect_right(at(host)) % len(tree)]),
        "list bisect": each(lambda host: holders[bisect_right(points, at(host))]),
        "mmh3.hash64 alone": each(at),
    }


def change_ways(agents: dict[str, int], replicas: int) -> dict[str, Way]:
    """One agent more and gone again: each way does both. Ours keeps the old ring whole besides."""
    ring = Ring.of(agents)
    fresh = replica_points("newcomer", replicas)
    points = sorted(point for agent in agents for point in replica_points(agent, replicas))
    tree = SortedDict.fromkeys(points, "agent")
    hashring = HashRing(list(agents), vnodes=replicas // 4, hash_fn="ketama")

    def in_list(turn: int) -> None:
        for point in fresh:
            insort(points, point)
        for point in fresh:
            del points[bisect_right(points, point) - 1]

    def in_tree(turn: int) -> None:
        for point in fresh:
            tree[point] = "newcomer"
        for point in fresh:
            del tree[point]

    def in_hashring(turn: int) -> None:
        hashring.add_node("newcomer")
        hashring.remove_node("newcomer")

    return {
        "Ring.add, Ring.remove": lambda turn: ring.add("newcomer", replicas).remove("newcomer"),
        "uhashring add_node, remove_node": in_hashring,
        "SortedDict, points only": in_tree,
        "list insort and del, points only": in_list,
    }


def main() -> None:
    args = options(__doc__, rounds=9)
    few = min(args.rounds, 3)
    lookups: dict[str, dict[str, float]] = {}
    changes: dict[str, dict[str, float]] = {}
    for count, replicas in SIZES:
        agents = {f"agent{i}": replicas for i in range(count)}
        size = f"{count} x {replicas}"
        for name, seconds in take_turns(lookup_ways(agents, replicas, args.rounds), HOSTS, args.rounds).items():
            lookups.setdefault(name, {})[size] = 1 / seconds
        for name, seconds in take_turns(change_ways(agents, replicas), 2, few).items():
            changes.setdefault(name, {})[size] = seconds
        gc.collect()
    sizes = [f"{count} x {replicas}" for count, replicas in SIZES]
    wide = [f"{size:>10}" for size in sizes]
    table("look-ups a second", wide, {name: [f"{row[s]:,.0f}" for s in sizes] for name, row in lookups.items()})
    rows = {name: [f"{row[s] * 1e3:.2f}" for s in sizes] for name, row in changes.items()}
    table("ms to add or remove an agent", wide, rows)
    save(args.json, {"lookups_per_second": lookups, "seconds_per_change": changes})


if __name__ == "__main__":
    main()
