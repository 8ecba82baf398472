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
a quarter of an hour on a quiet machine. What is committed comes from

    python benchmarks/cost.py --json benchmarks/results/cost.json --doc docs/explanation/cost.md \\
        --plot docs/explanation/cost-memory.svg
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import signal
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from processes import Stage, cpu_seconds
from rounds import save, table

BEGIN, END = "<!-- tables of cost.py -->", "<!-- end of tables -->"
SEEDS = 100
LIMIT = 1800.0  # s without the pages wanted: something is wrong
UBI = {
    "ADDONS": {"scrapy_ubi.Addon": 500},
    "UBI_HOST_DELAY": 0,
    # The first page waits for a lease, which nobody needs to watch sixty times; nothing else depends on these here.
    "UBI_LEASE_TIMEOUT": 3,
    "UBI_FAILURE_TIMEOUT": 6,
}
SCRAPY_REDIS = {
    "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
    "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
    "SCHEDULER_PERSIST": True,  # else the first process to end empties the queue of all
}
BREADTH_FIRST = {
    "DEPTH_PRIORITY": 1,
    "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
    "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue",
}
COUNTERS = ("pages", "links", "forwarded", "suppressed", "replicated", "letters_sent", "bytes_sent")


@dataclass(frozen=True)
class System:
    """How many processes, with which settings; `redis`: the setting that names the server."""

    processes: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    redis: str = ""


SYSTEMS = {
    "scrapy": System(1, BREADTH_FIRST),
    "alone": System(1, UBI),
    "apart": System(4, UBI),
    "one": System(1, UBI, "UBI_REDIS_URL"),
    "four0": System(4, {**UBI, "UBI_REPLICATION": 0}, "UBI_REDIS_URL"),
    "four1": System(4, {**UBI, "UBI_REPLICATION": 1}, "UBI_REDIS_URL"),
    "scrapy-redis": System(4, SCRAPY_REDIS, "REDIS_URL"),
}
RATIOS = {
    "t=1 against t=0, 4 agents": ("four1", "four0"),
    "4 agents against 1, t=0": ("four0", "one"),
    "4 agents against 1, t=1": ("four1", "one"),
    "1 agent against plain Scrapy": ("one", "scrapy"),
}


def start(stage: Stage, system: System, environment: Mapping[str, str]) -> None:
    """Start the crawlers of a system, all at once."""
    for number in range(system.processes):
        settings = {**system.settings, "BENCH_SEEDS": SEEDS}
        if system.processes > 1 and not system.redis:
            settings["BENCH_PART"] = f"{number} {system.processes}"
        if system.redis:
            settings[system.redis] = f"redis://127.0.0.1:{stage.redis_port}/0"
        if "ADDONS" in settings:
            settings |= {"UBI_AGENT_ID": f"agent{number}", "UBI_DIR": str(stage.directory / f"agent{number}")}
        stage.crawl(f"crawl{number}", settings, environment)


def snapshot(stage: Stage) -> dict[str, Any]:
    """Pages served and what all that has cost so far."""
    info = stage.client.info()
    return {
        "served": stage.served(),
        "agents": [cpu_seconds(agent.pid) for agent in stage.agents],
        "web": cpu_seconds(stage.web.pid),
        "redis": cpu_seconds(stage.server.pid),
        "commands": info["total_commands_processed"],
        "redis_bytes": info["total_net_input_bytes"] + info["total_net_output_bytes"],
        "counters": counters(stage),
        "at": time.monotonic(),
    }


def counters(stage: Stage) -> dict[str, dict[str, int]]:
    """What the agents say of themselves: each as of one moment, within the last seconds."""
    if stage.client.type("ubi:bench:walk:agents") != "hash":
        return {}
    profiles = [json.loads(text) for text in stage.client.hgetall("ubi:bench:walk:agents").values()]
    return {p["agent"]: {name: p["counters"][name] for name in COUNTERS} for p in profiles if "counters" in p}


def reach(stage: Stage, pages: int, each: Callable[[int], object] = lambda pages: None) -> None:
    """Wait until so many pages were served; `each` sees how many, on the way."""
    end = time.monotonic() + LIMIT
    while (count := stage.served()["pages"]) < pages:
        each(count)
        stage.check()
        if time.monotonic() > end:
            raise RuntimeError(f"only {count} of {pages} pages within {LIMIT:.0f} s")
        time.sleep(0.1)  # the condition is looked at again, not awaited blindly
    each(count)


def one_run(args: argparse.Namespace, name: str, environment: Mapping[str, str] | None = None) -> dict[str, float]:
    """One system's turn: what a page has cost."""
    system = SYSTEMS[name]
    with Stage(args.hosts, args.web, args.latency, (0, 1) if args.pin else None) as stage:
        start(stage, system, environment or {})
        reach(stage, args.warm)
        if "ADDONS" in system.settings and system.redis:
            wait_for_all(stage, system)
        before = snapshot(stage)
        reach(stage, before["served"]["pages"] + args.pages)
        return per_page(before, snapshot(stage))


def wait_for_all(stage: Stage, system: System) -> None:
    """Until every agent crawls: a machine that is busy may start them one after the other."""
    end = time.monotonic() + LIMIT
    while sum(each["pages"] > 0 for each in counters(stage).values()) < system.processes:
        stage.check()
        if time.monotonic() > end:
            raise RuntimeError("not all agents have begun to crawl")
        time.sleep(0.1)


def per_page(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, float]:
    """The differences of two snapshots, a page."""
    pages = after["served"]["pages"] - before["served"]["pages"]
    spent = [late - early for early, late in zip(before["agents"], after["agents"], strict=True)]
    row = {
        "cpu_ms": 1000 * sum(spent) / pages,
        "web_cpu_ms": 1000 * (after["web"] - before["web"]) / pages,
        "redis_cpu_ms": 1000 * (after["redis"] - before["redis"]) / pages,
        "redis_commands": (after["commands"] - before["commands"]) / pages,
        "redis_bytes": (after["redis_bytes"] - before["redis_bytes"]) / pages,
        "pages_per_second": pages / (after["at"] - before["at"]),
        "fetched_twice": after["served"]["pages"] - after["served"]["unique"],
    }
    sums = {
        name: sum(after["counters"][agent][name] - each[name] for agent, each in before["counters"].items())
        for name in COUNTERS
    }
    if sums["pages"]:
        row |= {name: sums[name] / sums["pages"] for name in COUNTERS if name != "pages"}
    return row


# ---------------------------------------------------------------------- memory


def memory(args: argparse.Namespace, name: str) -> dict[str, Any]:
    """A long crawl with the server's memory sampled: rows of pages, megabytes used beyond the empty server's."""
    system = SYSTEMS[name]
    with Stage(args.hosts, args.web, args.latency, (0, 1) if args.pin else None) as stage:
        empty = stage.client.info("memory")["used_memory"]
        samples: list[tuple[int, float]] = []

        def sample(pages: int) -> None:
            samples.append((pages, (stage.client.info("memory")["used_memory"] - empty) / 2**20))

        start(stage, system, {})
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


def thinned(samples: Sequence[tuple[int, float]], most: int) -> list[tuple[int, float]]:
    """About so many of the samples, and among them the largest."""
    step = -(-len(samples) // most)
    return [max(samples[at : at + step], key=lambda sample: sample[1]) for at in range(0, len(samples), step)]


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


def spread(values: Sequence[float], form: str = "{:.2f}") -> str:
    """Median (least-most)."""
    return f"{form.format(statistics.median(values))} ({form.format(min(values))}-{form.format(max(values))})"


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
    parser.add_argument("--systems", default="scrapy,one,four0,four1", help="which (%(default)s)")
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


def into_document(path: str, tables: str) -> None:
    """Put the tables where a document has room for them, between two marks."""
    document = Path(path)
    before, begin, rest = document.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{path} has no room for tables: no {BEGIN} and {END}")
    document.write_text(f"{before}{begin}\n{tables}\n{end}{after}", encoding="utf-8")


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
        into_document(args.doc, printed.getvalue())
    if args.plot and "memory" in figures:
        plot(args.plot, figures["memory"])


if __name__ == "__main__":
    main()
