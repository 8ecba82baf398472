"""Memory on real pages of 1 to 5 MB: the peak of an agent, and of plain Scrapy, on documentation that lies here.

    python benchmarks/large_pages.py [--pages 300] [--rounds 3] [--only scrapy,walk,short,fast] [--set NAME=VALUE]

The web is crawl/documentation_web.py: `--hosts` hosts, each of them a real site whose home page leads to its largest
pages. Each system crawls until so many pages were served, in a process of its own and as it is by default: Scrapy with
its 16 requests at once (and with 64), agents with the number that they find by themselves. Reported are the medians,
over all rounds, of the most resident memory, of what the process had before its first page, and of the CPU time a
page, all of it and that of the main thread. In a round every system has one turn.

A second thread beside the loop, told to be used or not, on pages as sites have them:

    python benchmarks/large_pages.py --only lexbor,second --least 30000 --most 400000 --pages 1500 --latency 5
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from crawling import wait_until_opened
from processes import HERE, Stage, cpu_seconds, main_thread_seconds, memory_mb
from rounds import save, table
from systems import AGENT, BREADTH_FIRST, FAST, SHORT, System

LIMIT = 900.0  # s without the pages wanted: something is wrong
WIDE = {"CONCURRENT_REQUESTS": 64}
TOLD = {"EXTENSIONS": {"bench.cores.SecondCoreAsTold": 0}}
LOOP, SECOND = TOLD | {"BENCH_SECOND_CORE": 0}, TOLD | {"BENCH_SECOND_CORE": 1}
SYSTEMS = {
    "scrapy": System(1, BREADTH_FIRST),
    "scrapy64": System(1, BREADTH_FIRST | WIDE),
    "walk": System(1, AGENT, "UBI_REDIS_URL"),
    "walk64": System(1, AGENT | WIDE, "UBI_REDIS_URL"),
    "short": System(1, AGENT | SHORT, "UBI_REDIS_URL", "short"),
    "fast": System(1, AGENT | FAST, "UBI_REDIS_URL", "short"),
    "fast64": System(1, AGENT | FAST | WIDE, "UBI_REDIS_URL", "short"),
    "lexbor": System(1, AGENT | FAST | LOOP, "UBI_REDIS_URL", "lexbor"),
    "second": System(1, AGENT | FAST | SECOND, "UBI_REDIS_URL", "lexbor"),
}
LABELS = {
    "scrapy": "Scrapy, 16 at once",
    "scrapy64": "Scrapy, 64 at once",
    "walk": "unmodified spider, by itself",
    "walk64": "unmodified spider, 64 at once",
    "short": "short path, by itself",
    "fast": "short path, UBI_FAST, by itself",
    "fast64": "short path, UBI_FAST, 64 at once",
    "lexbor": "short path, UBI_FAST, fields by lexbor",
    "second": "the same, with a second thread",
}


def one_run(args: argparse.Namespace, name: str) -> dict[str, float]:
    """One turn of a system."""
    system = SYSTEMS[name]
    options = ["--hosts", "--least", "--most", "--latency"]
    web = [str(HERE / "crawl" / "documentation_web.py")]
    web += [text for option in options for text in (option, str(getattr(args, option[2:])))]
    web += ["--places", *map(str, args.places)] if args.places else []
    with Stage(0, 0, 0, None, web=web) as stage:
        settings: dict[str, Any] = {**system.settings, "BENCH_SEEDS": args.hosts, **dict(args.set)}
        if system.redis:
            settings[system.redis] = f"redis://127.0.0.1:{stage.redis_port}/0"
        if system.is_ours:
            settings |= {"UBI_AGENT_ID": "agent0", "UBI_DIR": str(stage.directory / "agent0")}
        stage.crawl("crawl0", settings, None, system.spider)
        agent = stage.agents[0]
        wait_until_opened(stage)
        first = memory_mb(agent.pid)[0]
        spent, mains, end = cpu_seconds(agent.pid), main_thread_seconds(agent.pid), time.monotonic() + LIMIT
        while (served := stage.served())["pages"] < args.pages:
            stage.check()
            if time.monotonic() > end:
                raise RuntimeError(f"only {served} within {LIMIT:.0f} s")
            time.sleep(0.1)
        row = {
            "peak_mb": memory_mb(agent.pid)[1],
            "now_mb": memory_mb(agent.pid)[0],
            "first_mb": first,
            "main_ms": 1000 * (main_thread_seconds(agent.pid) - mains) / served["pages"],
            "cpu_ms": 1000 * (cpu_seconds(agent.pid) - spent) / served["pages"],
            "pages": served["pages"],
            "large": served["large"],
            "mb_a_page": served["large_bytes"] / max(1, served["large"]) / 1e6,
        }
        if args.keep_logs:
            (args.keep_logs / f"{name}.log").write_bytes((stage.directory / "crawl0.log").read_bytes())
        return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="scrapy,scrapy64,walk,short,fast", help="%(default)s; " + ", ".join(SYSTEMS))
    parser.add_argument("--pages", type=int, default=150, help="(%(default)s)")
    parser.add_argument("--hosts", type=int, default=64, help="(%(default)s)")
    parser.add_argument("--least", type=int, default=1_000_000, help="bytes of a large page (%(default)s)")
    parser.add_argument("--most", type=int, default=5_000_000, help="(%(default)s)")
    parser.add_argument("--latency", type=float, default=50.0, help="ms to an answer (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(%(default)s)")
    parser.add_argument("--places", type=Path, nargs="*", help="directories of documentation (documentation.py)")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="one more Scrapy setting")
    parser.add_argument("--keep-logs", type=Path, metavar="DIR")
    parser.add_argument("--json", metavar="FILE", help="write the figures there, too")
    args = parser.parse_args()
    args.set = [tuple(text.split("=", 1)) for text in args.set]
    names = args.only.split(",")
    rounds: list[dict[str, dict[str, float]]] = []
    for turn in range(args.rounds):
        shift = turn % len(names)
        rounds.append({})
        for name in (*names[shift:], *names[:shift]):
            row = rounds[-1][name] = one_run(args, name)
            print(
                f"round {turn + 1}, {LABELS[name]}:",
                {key: round(value, 1) for key, value in row.items()},
                file=sys.stderr,
            )
    columns = {"first MB": "first_mb", "peak MB": "peak_mb", "CPU ms a page": "cpu_ms", "main thread": "main_ms"}
    rows = {
        LABELS[name]: [f"{statistics.median(each[name][key] for each in rounds):.4g}" for key in columns.values()]
        for name in names
    }
    table("system", list(columns), rows)
    save(args.json, {"options": vars(args) | {"places": None, "keep_logs": None}, "rounds": rounds})


if __name__ == "__main__":
    main()
