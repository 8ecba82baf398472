"""One big site: pages a second from one host, by how many of its loads may be open at once.

    python benchmarks/one_site.py [--pages 20000] [--latency 50] [--seconds 20] [--quick] [--only NAME;NAME]

The web is one host on loopback, each answer of which takes `--latency` ms. Each way crawls it in processes of its own,
and is measured for `--seconds`, from the moment at which all its agents crawl, or until the pages are used up. What can
be trusted on a shared machine are the ratios to the first row of the same spider, which waits for the web most of the
time, as long as the CPU that a page takes leaves room: a row is bound by it beyond 1000 / that pages a second, or less
where the processor has other work.

Ways: `walk` is an unmodified spider, `short` the short path (UbiSpider). `N loads` is UBI_HOST_CONCURRENCY.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from crawling import reach, start, wait_for_all
from processes import Stage, cpu_seconds
from rounds import save, table
from systems import AGENT, METHOD, SHORT, System

FIRST = 50  # pages before the measure begins: the queue is long then
CONCURRENCY = "UBI_HOST_CONCURRENCY"


def system(processes: int, short: bool, **settings: Any) -> System:
    """So many agents with these settings."""
    ours = {**METHOD, **AGENT, **(SHORT if short else {}), **settings}
    return System(processes, ours, "UBI_REDIS_URL", "short" if short else "walk")


# The first of each spider is what the others are compared with.
WAYS = {
    "walk, 1 load": system(1, False),
    "walk, 8 loads": system(1, False, **{CONCURRENCY: 8}),
    "walk, auto(8)": system(1, False, **{CONCURRENCY: "auto(8)"}),
    "short, 1 load": system(1, True),
    "short, 8 loads": system(1, True, **{CONCURRENCY: 8}),
    "short, 16 loads": system(1, True, **{CONCURRENCY: 16}),
}


def measure(way: System, options: argparse.Namespace) -> dict[str, float]:
    """One crawl: pages a second, and how many were fetched twice."""
    with Stage(1, options.pages, options.latency, None) as stage:
        start(stage, way)
        reach(stage, FIRST)
        wait_for_all(stage, 1 if way.processes == 1 else way.processes)
        begun, before, spent = time.monotonic(), stage.served()["pages"], cpu(stage)
        while time.monotonic() - begun < options.seconds:
            served = stage.served()
            if served["unique"] >= options.pages * 0.95:
                break
            stage.check()
            time.sleep(0.1)
        seconds, served = time.monotonic() - begun, stage.served()
        pages = max(1, served["pages"] - before)
        return {
            "pages_per_second": pages / seconds,
            "seconds": seconds,
            "cpu_ms": 1000 * (cpu(stage) - spent) / pages,
            "fetched_twice": served["pages"] - served["unique"],
        }


def cpu(stage: Stage) -> float:
    """CPU seconds of all agents so far."""
    return sum(cpu_seconds(agent.pid) for agent in stage.agents)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--latency", type=float, default=50.0, help="milliseconds an answer takes")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long each way is measured")
    parser.add_argument("--quick", action="store_true", help="3,000 pages, 6 s")
    parser.add_argument("--only", help="only these ways, semicolons between")
    parser.add_argument("--json", metavar="FILE", help="write the figures there, too")
    options = parser.parse_args()
    if options.quick:
        options.pages, options.seconds = 3000, 6.0
    wanted = [name.strip() for name in options.only.split(";")] if options.only else [*WAYS]
    found: dict[str, dict[str, float]] = {}
    for name in wanted:
        found[name] = measure(WAYS[name], options)
        print(f"{name}: {found[name]['pages_per_second']:.1f} pages a second", flush=True)
    first: dict[str, float] = {}
    for name, row in found.items():
        row["ratio"] = row["pages_per_second"] / first.setdefault(name.split(",")[0], row["pages_per_second"])
    cells = {
        name: [
            f"{row['pages_per_second']:.1f}",
            f"{row['ratio']:.1f}",
            f"{row['cpu_ms']:.1f}",
            f"{row['fetched_twice']:.0f}",
        ]
        for name, row in found.items()
    }
    table("way", ["pages/s", "ratio", "CPU ms a page", "fetched twice"], cells)
    save(options.json, {"pages": options.pages, "latency_ms": options.latency, "ways": found})


if __name__ == "__main__":
    main()
