"""What distribution costs: CPU a page with and without copies, with one agent and with four, and Redis's memory.

    python benchmarks/cost.py [--quick] [--rounds 5] [--pages 3000] [--json FILE]

Every system is `scrapy crawl` of one ordinary spider (crawl/) on one web (crawl/web.py), with a Redis of its own:

    one     one agent                       four0   four agents, UBI_REPLICATION = 0
    alone   one agent without Redis         four1   four agents, UBI_REPLICATION = 1
    scrapy  plain Scrapy, one process       apart   four agents without Redis, a quarter of the hosts for each

In a round every system has one turn, in an order that rotates, so a slow spell of the machine hits all of them; what
counts are the ratios of one round, and their median. CPU is that of the crawlers alone, from the moment the web has
served `--warm` pages until it has served `--pages` more: neither the start nor the end. All crawlers share one core,
and web and Redis the other, so that one agent and four have the same machine. (Four on one core flush four times as
often a page as four with a core each: this is the worse case for us.)

Then a long crawl of `--long` pages by four agents, and one by four processes of scrapy-redis, with the memory of Redis
sampled on the way. Needs Linux, two cores, redis-server, and `pip install -e '.[bench]'` for scrapy-redis and the plot;
forty minutes on a quiet machine. What is committed comes from

    python benchmarks/cost.py --json benchmarks/results/cost.json --doc benchmarks/results/cost.md \\
        --plot docs/explanation/cost-memory.svg
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import signal
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from crawling import per_page, reach, snapshot, start, thinned, wait_for_all
from pages import into_document, spread
from processes import Stage, cpu_seconds
from rounds import save, table
from systems import AGENT, BREADTH_FIRST, SCRAPY_REDIS, System

BEGIN = "<!-- tables of cost.py -->"
SYSTEMS = {
    "scrapy": System(1, BREADTH_FIRST),
    "alone": System(1, AGENT),
    "apart": System(4, AGENT),
    "one": System(1, AGENT, "UBI_REDIS_URL"),
    "four0": System(4, {**AGENT, "UBI_REPLICATION": 0}, "UBI_REDIS_URL"),
    "four1": System(4, {**AGENT, "UBI_REPLICATION": 1}, "UBI_REDIS_URL"),
    "scrapy-redis": System(4, SCRAPY_REDIS, "REDIS_URL"),
}
RATIOS = {
    "t=1 against t=0, 4 agents": ("four1", "four0"),
    "4 agents against 1, t=0": ("four0", "one"),
    "4 agents against 1, t=1": ("four1", "one"),
    "4 agents, t=1, against 4 apart": ("four1", "apart"),
    "4 agents apart against 1": ("apart", "one"),
    "1 agent against plain Scrapy": ("one", "scrapy"),
}


def one_run(args: argparse.Namespace, name: str, environment: Mapping[str, str] | None = None) -> dict[str, float]:
    """One system's turn: what a page has cost."""
    system = SYSTEMS[name]
    with Stage(args.hosts, args.web, args.latency, (0, 1) if args.pin else None) as stage:
        start(stage, system, environment)
        reach(stage, args.warm)
        if "ADDONS" in system.settings and system.redis:
            wait_for_all(stage, system.processes)
        before = snapshot(stage)
        reach(stage, before["served"]["pages"] + args.pages)
        return per_page(before, snapshot(stage))


# ---------------------------------------------------------------------- memory


def memory(args: argparse.Namespace, name: str) -> dict[str, Any]:
    """A long crawl with the server's memory sampled: rows of pages, megabytes used beyond the empty server's."""
    system = SYSTEMS[name]
    with Stage(args.hosts, args.web, args.latency, (0, 1) if args.pin else None) as stage:
        empty = stage.client.info("memory")["used_memory"]
        samples: list[tuple[int, float]] = []

        def sample(pages: int) -> None:
            samples.append((pages, (stage.client.info("memory")["used_memory"] - empty) / 2**20))

        start(stage, system)
        begun = time.monotonic()
        reach(stage, args.long, sample)
        seconds = time.monotonic() - begun
        last = stage.client.info("memory")["used_memory"] - empty
        known = sum(stage.client.scard(key) for key in stage.client.scan_iter("*dupefilter*"))
        spent = sum(cpu_seconds(agent.pid) for agent in stage.agents)
        return {
            "samples": [(pages, round(used, 3)) for pages, used in thinned(samples, 400)],
            "most_mb": max(used for _, used in samples),
            "median_mb": statistics.median(used for _, used in samples),
            "last_mb": last / 2**20,
            "bytes_a_known_url": last / known if known else 0.0,
            "pages": args.long,
            "seconds": seconds,
            "cpu_ms": 1000 * spent / args.long,
        }


def plot(path: str, runs: Mapping[str, Mapping[str, Any]]) -> None:
    """Redis's memory over the pages crawled, as SVG."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "cost"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 3.6), layout="constrained")
    for name, label in (("scrapy-redis", "scrapy-redis, 4 processes"), ("four1", "scrapy_ubi, 4 agents, t = 1")):
        if name in runs:
            pages, used = zip(*runs[name]["samples"], strict=True)
            axes.plot(pages, used, label=label)
    axes.axhline(10, color="grey", linewidth=0.8, linestyle="--", label="10 MB, the bound of P7")
    axes.set_xlabel("pages crawled")
    axes.set_ylabel("memory of Redis, MB")
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    axes.legend(frameon=False)
    figure.savefig(path, metadata={"Date": None})


# ---------------------------------------------------------------------- the whole


def rounds_of(args: argparse.Namespace) -> list[dict[str, dict[str, float]]]:
    """Every system once a round, the order rotating."""
    found = []
    for turn in range(args.rounds):
        shift = turn % len(args.systems)
        rows = {}
        for name in (*args.systems[shift:], *args.systems[:shift]):
            rows[name] = one_run(args, name)
            print(f"round {turn + 1}: {name:8} {describe(rows[name])}", file=sys.stderr, flush=True)
        found.append(rows)
    return found


def describe(row: Mapping[str, float]) -> str:
    return f"{row['cpu_ms']:.2f} ms CPU a page, Redis {row['redis_cpu_ms']:.2f}, {row['pages_per_second']:.0f} pages/s"


def report(rounds: Sequence[Mapping[str, Mapping[str, float]]], systems: Sequence[str]) -> dict[str, Any]:
    columns = {
        "ms CPU": "cpu_ms",
        "ms CPU, Redis": "redis_cpu_ms",
        "ms CPU, web": "web_cpu_ms",
        "Redis commands": "redis_commands",
        "bytes to and from Redis": "redis_bytes",
    }
    rows = {
        name: [
            spread([each[name][key] for each in rounds], "{:.0f}" if "bytes" in key else "{:.2f}")
            for key in columns.values()
        ]
        for name in systems
    }
    table("a page, median (least-most)", [f"{title:>20}" for title in columns], rows)
    sent = ("links", "suppressed", "forwarded", "replicated", "letters_sent", "bytes_sent")
    rows = {
        name: [f"{statistics.median(each[name].get(key, 0.0) for each in rounds):.3g}" for key in sent]
        for name in systems
        if "forwarded" in rounds[0][name]
    }
    table("a page, as the agents count", [f"{title:>12}" for title in sent], rows)
    ratios = {
        title: [each[above]["cpu_ms"] / each[below]["cpu_ms"] for each in rounds]
        for title, (above, below) in RATIOS.items()
        if above in systems and below in systems
    }
    table("CPU a page, ratio of paired runs", ["median (least-most)"], {t: [spread(r)] for t, r in ratios.items()})
    return {title: {"median": statistics.median(r), "all": r} for title, r in ratios.items()}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="rounds, of which the median counts (%(default)s)")
    parser.add_argument("--pages", type=int, default=2500, help="pages measured in a run (%(default)s)")
    parser.add_argument("--warm", type=int, default=1000, help="pages before that (%(default)s)")
    parser.add_argument(
        "--long", type=int, default=20_000, help="pages of the crawls with memory; 0: none (%(default)s)"
    )
    parser.add_argument("--systems", default="scrapy,one,apart,four0,four1", help="which (%(default)s)")
    parser.add_argument("--hosts", type=int, default=300)
    parser.add_argument("--web", type=int, default=100_000, help="pages of the web (%(default)s)")
    parser.add_argument("--latency", type=float, default=10.0, help="ms an answer of the web takes (%(default)s)")
    parser.add_argument("--no-pin", dest="pin", action="store_false", help="let the machine choose the cores")
    parser.add_argument(
        "--quick", action="store_true", help="two short rounds, 3,000 pages with memory: is it in order?"
    )
    parser.add_argument("--json", metavar="FILE", help="write the figures there, too")
    parser.add_argument("--doc", metavar="FILE", help="put the tables there, too, between the marks for them")
    parser.add_argument("--plot", metavar="FILE", help="draw Redis's memory (SVG; needs matplotlib)")
    args = parser.parse_args()
    if args.quick:
        args.rounds, args.pages, args.warm, args.long = 2, 800, 300, 3000 if args.long else 0
    args.systems = [name for name in args.systems.split(",") if name]
    if unknown := set(args.systems) - SYSTEMS.keys():
        parser.error(f"no system {', '.join(sorted(unknown))}: there are {', '.join(SYSTEMS)}")
    return args


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """All that is asked for; prints the tables."""
    figures: dict[str, Any] = {"settings": {k: v for k, v in vars(args).items() if k not in ("json", "plot", "doc")}}
    if args.rounds:
        figures["load"] = [os.getloadavg()[0]]
        print(f"\n{args.rounds} rounds of {args.pages:,} pages each, after {args.warm:,} that do not count.", end=" ")
        figures["rounds"] = rounds_of(args)
        figures["load"].append(os.getloadavg()[0])
        print("Load average of the machine: {:.1f} before, {:.1f} at the end.".format(*figures["load"]))
        figures["ratios"] = report(figures["rounds"], args.systems)
    if args.long:
        peers = ["scrapy-redis"] if find_spec("scrapy_redis") else []
        figures["memory"] = {name: memory(args, name) for name in ("four1", *peers)}
        columns = {
            "most, MB": "most_mb",
            "median, MB": "median_mb",
            "at the end, MB": "last_mb",
            "bytes a known URL": "bytes_a_known_url",
        }
        rows = {name: [f"{run[key]:.2f}" for key in columns.values()] for name, run in figures["memory"].items()}
        table(f"memory of Redis, {args.long:,} pages", [f"{title:>10}" for title in columns], rows)
    return figures


def main() -> None:
    args = options()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # whoever ends us, nothing is left running
        signal.signal(number, signal.default_int_handler)
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            figures = measure(args)
    except KeyboardInterrupt:
        sys.exit(130)
    print(printed.getvalue())
    save(args.json, figures)
    if args.doc:
        into_document(args.doc, BEGIN, printed.getvalue())
    if args.plot and "memory" in figures:
        plot(args.plot, figures["memory"])


if __name__ == "__main__":
    main()
