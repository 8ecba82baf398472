"""Balance by the nearest replica in either direction and by the next one clockwise: UbiCrawler's Figure 1, both ways.

    python benchmarks/balance.py [--rounds 40] [--json FILE]

Prints the mean absolute deviation from perfect balance, per cent: what agents have too much or too little of the circle
(so of very many hosts), on the average. Each figure is the mean over several groups of agents, with the least and the
most a group had: `--rounds` groups of up to 32 agents, fewer of more. No clock is involved: the same on every machine.
"""

from __future__ import annotations

from itertools import pairwise
from statistics import mean

from rounds import options, save, table

from scrapy_ubi.protocol.ring import Ring, replica_points

AGENTS = (4, 8, 16, 32, 64, 128, 256)
REPLICAS = (100, 200)


def clockwise_shares(agents: dict[str, int]) -> dict[str, float]:
    held = sorted((point, agent) for agent, replicas in agents.items() for point in replica_points(agent, replicas))
    shares = dict.fromkeys(agents, 0.0)
    for (before, _), (at, agent) in pairwise([held[-1], *held]):
        shares[agent] += (at - before) % (1 << 64) / (1 << 64)
    return shares


def deviation(shares: dict[str, float]) -> float:
    """Mean absolute deviation from 1 / agents, in per cent of it."""
    return 100 * mean(abs(share * len(shares) - 1) for share in shares.values())


def main() -> None:
    args = options(__doc__, rounds=40)
    figures: dict[str, dict[str, list[float]]] = {}
    for replicas in REPLICAS:
        for count in AGENTS:
            for group in range(max(4, min(args.rounds, args.rounds * 32 // count))):
                agents = {f"crawler-{count}-{group}-{i}": replicas for i in range(count)}
                for rule, shares in (("nearest", Ring.of(agents).shares()), ("clockwise", clockwise_shares(agents))):
                    figures.setdefault(f"{rule}, k={replicas}", {}).setdefault(str(count), []).append(deviation(shares))
    rows = {
        rule: [f"{mean(each):.1f} ({min(each):.1f}-{max(each):.1f})" for each in by_agents.values()]
        for rule, by_agents in figures.items()
    }
    table("deviation, % (least-most)", [f"{count:>8} agents" for count in AGENTS], rows)
    save(args.json, {"deviation_per_cent": figures})


if __name__ == "__main__":
    main()
