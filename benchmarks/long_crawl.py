"""Does a crawl get dearer as it gets longer? CPU time a page and memory of two agents, by tenths of a long crawl.

    python benchmarks/long_crawl.py --pages 200000      # two minutes on a quiet machine

Two agents with the short path and UBI_FAST crawl the web of crawl/web.py, with a copy of each record (UBI_REPLICATION
1), until they have fetched `--pages`. After each tenth is noted what both have spent and the larger one's resident
memory. What counts are the ratios of the last tenth to the second one, as the first has the start in it: at most 1.1 is
wanted for each. CPU time of a shared machine is noisy: the median of the last three tenths to that of the second to
the fourth is told as well.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from dataclasses import replace

from crawling import reach, snapshot, start, wait_for_all
from processes import Stage, memory_mb
from rounds import save, table
from systems import PEERS

TENTHS = 10


def tenths(args: argparse.Namespace) -> list[dict[str, float]]:
    """What each tenth has cost."""
    found: list[dict[str, float]] = []
    system = replace(PEERS["fast2"], settings={**PEERS["fast2"].settings, **dict(args.set)})
    with Stage(args.hosts, 4 * args.pages, args.latency, None) as stage:
        start(stage, system)
        reach(stage, 1)
        wait_for_all(stage, system.processes)
        before, begun = snapshot(stage), time.monotonic()
        for tenth in range(1, TENTHS + 1):
            reach(stage, before["served"]["pages"] + max(1, args.pages * tenth // TENTHS - sum_of(found)))
            after = snapshot(stage)
            pages = after["served"]["pages"] - before["served"]["pages"]
            spent = sum(late - early for early, late in zip(before["agents"], after["agents"], strict=True))
            row = {
                "pages": pages,
                "cpu_ms": 1000 * spent / pages,
                "memory_mb": max(memory_mb(agent.pid)[0] for agent in stage.agents),
                "redis_mb": stage.client.info()["used_memory"] / 1e6,
                "twice": after["served"]["pages"] - after["served"]["unique"],
            }
            found.append(row)
            told = {name: round(value, 2) for name, value in row.items()}
            print(f"[{time.monotonic() - begun:.0f} s] tenth {tenth}:", told, file=sys.stderr, flush=True)
            before = after
    return found


def sum_of(rows: list[dict[str, float]]) -> int:
    return int(sum(row["pages"] for row in rows))


def ratios(rows: list[dict[str, float]]) -> dict[str, list[str]]:
    """Of the last tenth to the second, and of three to three."""
    found = {}
    for name, key in {"CPU a page": "cpu_ms", "memory": "memory_mb"}.items():
        values = [row[key] for row in rows]
        three = statistics.median(values[-3:]) / statistics.median(values[1:4])
        found[name] = [f"{values[1]:.2f}", f"{values[-1]:.2f}", f"{values[-1] / values[1]:.2f}", f"{three:.2f}"]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=20_000, help="(%(default)s)")
    parser.add_argument("--hosts", type=int, default=2000, help="(%(default)s)")
    parser.add_argument("--latency", type=float, default=10.0, help="ms to an answer (%(default)s)")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="one more Scrapy setting")
    parser.add_argument("--json", metavar="FILE", help="write the figures there, too")
    args = parser.parse_args()
    args.set = [tuple(text.split("=", 1)) for text in args.set]
    rows = tenths(args)
    table("two agents", ["2nd tenth", "last tenth", "last to 2nd", "last 3 to 2nd-4th"], ratios(rows))
    save(args.json, {"options": vars(args), "tenths": rows})


if __name__ == "__main__":
    main()
