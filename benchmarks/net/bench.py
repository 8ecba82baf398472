"""The real net on one machine: pages a second, CPU a page, memory, and what dead hosts take, over TLS and DNS.

    python benchmarks/net/bench.py [--quick] [--systems scrapy128,fast,...] [--rounds 3] [--seconds 20]

The testbed (serve.py): 3,000 hosts with addresses of their own in 127.0.0.0/8, TLS 1.3 with a chain of three
certificates, gzip, br and zstd, 20 to 400 ms to each answer, a DNS server that takes its time; 2 % of the hosts hang,
3 % reset, 5 % are names that lead nowhere; sizes of pages by the quantiles of the Web Almanac (33 kB in the median).
All of it is drawn from `--seed`. In a round every system has one turn, in an order that rotates; what counts is CPU, of
the crawler alone, from the moment the web has served `--warm` pages until `--seconds` are over or `--most` more pages
are served. `--dead` has every system run once more on a web on which all hosts answer: what the others' rate loses by
the rest is the column "taken".

It runs in a network of its own, without a way out, where the system allows that (namespace.py); Crawlee needs that.
What is compared with (scrapy-redis, Crawlee) may be installed for another Python: `--peers-python`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import namespace
from net_systems import SYSTEMS, USUAL
from serve import add_population
from stage import Stage

Row = dict[str, float]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def one_run(args: argparse.Namespace, name: str, healthy: bool = False) -> Row:
    """One turn of a system."""
    with Stage(args, SYSTEMS[name], healthy) as stage:
        tried = namespace.refused()
        stage.reach(args.warm)
        before = stage.snapshot()
        stage.reach(before["counts"]["pages"] + args.most, before["at"] + args.seconds)
        after = stage.snapshot()
        row = difference(before, after)
        states = stage.states(before["at"], after["at"])
        row["late_ms"] = max((state["late"][0] for state in states), default=0.0)
        row["busy_ms"] = max((state["late"][1] for state in states), default=0.0)
        row["limit"] = states[-1]["limit"] if states else SYSTEMS[name].concurrency
        row["under_way"] = statistics.mean(state["active"] for state in states) if states else 0.0
        row["peak_mb"] = stage.peak_mb()
        row["strays"] = namespace.refused() - tried + after["counts"]["foreign"] + after["counts"]["unknown_names"]
        return row


def difference(before: dict[str, Any], after: dict[str, Any]) -> Row:
    """What was done between two snapshots, a page."""
    counts = {name: number - before["counts"][name] for name, number in after["counts"].items()}
    pages, seconds = max(1, counts["pages"]), after["at"] - before["at"]
    return {
        "pages": pages,
        "seconds": seconds,
        "rate": pages / seconds,
        "cpu_ms": 1000 * (after["cpu"] - before["cpu"]) / pages,
        "cpu_share": (after["cpu"] - before["cpu"]) / seconds,
        "web_ms": 1000 * (after["web"] - before["web"]) / pages,
        "web_share": (after["web"] - before["web"]) / seconds,
        "kb": counts["bytes"] / pages / 1000,
        "unpacked_kb": counts["unpacked"] / pages / 1000,
        "handshakes": counts["handshakes"] / pages,
        "resumed": counts["resumed"] / max(1, counts["handshakes"]),
        "unresumable": counts["unresumable"] / max(1, counts["handshakes"]),
        "queries": counts["queries"] / pages,
        "again": after["counts"]["again"],
    }


def measure(args: argparse.Namespace) -> dict[str, Any]:
    rounds: list[dict[str, Row]] = []
    for turn in range(args.rounds):
        shift = turn % len(args.systems)
        rows: dict[str, Row] = {}
        for name in (*args.systems[shift:], *args.systems[:shift]):
            begun = time.monotonic()
            row = one_run(args, name)
            if args.dead:
                row["taken"] = 1 - row["rate"] / one_run(args, name, healthy=True)["rate"]
            rows[name] = row
            say(f"[{time.monotonic() - begun:.0f} s] round {turn + 1}, {SYSTEMS[name].label}: {described(row)}")
        rounds.append(rows)
    return {"rounds": rounds}


def described(row: Row) -> str:
    taken = f", dead hosts take {row['taken']:.1%}" if "taken" in row else ""
    return (
        f"{row['rate']:.0f} pages/s, {row['cpu_ms']:.2f} ms CPU a page ({row['cpu_share']:.0%} of a core), "
        f"{row['peak_mb']:.0f} MB, longest block {row['busy_ms']:.0f} ms busy, {row['late_ms']:.0f} ms by the clock, "
        f"limit {row['limit']:.0f}, {row['under_way']:.0f} under way, {row['handshakes']:.2f} handshakes a page, "
        f"{row['resumed']:.0%} resumed, {row['unresumable']:.0%} with hosts that had answered nothing yet, "
        f"{row['kb']:.0f} kB, web {row['web_ms']:.2f} ms ({row['web_share']:.0%})"
        f"{taken}, strays {row['strays']:.0f}"
    )


COLUMNS = (
    ("pages/s", "rate", "{:.0f}"),
    ("CPU ms a page", "cpu_ms", "{:.2f}"),
    ("peak MB", "peak_mb", "{:.0f}"),
    ("at once", "limit", "{:.0f}"),
    ("longest block, ms busy", "busy_ms", "{:.0f}"),
    ("taken by dead hosts", "taken", "{:.1%}"),
    ("web's share of a core", "web_share", "{:.0%}"),
)


def table(figures: dict[str, Any], systems: list[str]) -> str:
    """The medians of all rounds, with the range of the CPU a page; ratios to the first system in its rounds."""
    rounds = figures["rounds"]
    columns = [column for column in COLUMNS if any(column[1] in row for rows in rounds for row in rows.values())]
    lines = [
        "| system | " + " | ".join(title for title, _, _ in columns) + " | CPU, ratio |",
        "| --- |" + " ---: |" * (len(columns) + 1),
    ]
    for name in systems:
        rows = [each[name] for each in rounds if name in each]
        cells = [text.format(statistics.median(row[key] for row in rows)) for _, key, text in columns]
        ratio = statistics.median(each[name]["cpu_ms"] / each[systems[0]]["cpu_ms"] for each in rounds if name in each)
        span = f"{min(row['cpu_ms'] for row in rows):.2f} to {max(row['cpu_ms'] for row in rows):.2f}"
        cells[1] += f" ({span})"
        lines.append(f"| {SYSTEMS[name].label} | " + " | ".join(cells) + f" | {ratio:.2f} |")
    return "\n".join(lines) + "\n"


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systems", default=",".join(USUAL), help="%(default)s; there are: " + ", ".join(SYSTEMS))
    parser.add_argument("--rounds", type=int, default=3, help="(%(default)s)")
    parser.add_argument("--warm", type=int, default=500, help="pages before what is measured (%(default)s)")
    parser.add_argument("--most", type=int, default=10_000, help="pages that are measured, at most (%(default)s)")
    parser.add_argument("--seconds", type=float, default=20.0, help="that a measurement takes, at most (%(default)s)")
    parser.add_argument("--seeds", type=int, default=1000, help="hosts at whose home pages it begins (%(default)s)")
    add_population(parser)
    parser.add_argument("--web-processes", type=int, default=1, help="(%(default)s)")
    parser.add_argument("--dead", action="store_true", help="also without dead hosts: what do these take?")
    parser.add_argument("--no-pin", dest="pin", action="store_false", help="let the machine choose the cores")
    parser.add_argument("--no-dns-servers", dest="dns_servers", action="store_false", help="no UBI_DNS_SERVERS")
    parser.add_argument("--peers-python", default=sys.executable, help="the Python that has Crawlee, scrapy-redis")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="one more Scrapy setting")
    parser.add_argument("--keep-logs", type=Path, metavar="DIR")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    parser.add_argument("--quick", action="store_true", help="300 hosts, 400 pages, one round: is it in order?")
    args = parser.parse_args()
    args.systems = [name for name in args.systems.split(",") if name]
    if unknown := set(args.systems) - set(SYSTEMS):
        parser.error(f"no system {', '.join(sorted(unknown))}: there are {', '.join(SYSTEMS)}")
    args.set = [tuple(text.split("=", 1)) for text in args.set]
    if args.quick:
        args.rounds, args.warm, args.most, args.hosts, args.pages, args.seeds = 1, 100, 400, 300, 30_000, 100
    if args.pin and (os.cpu_count() or 1) < 2:
        args.pin = False
    return args


def main() -> None:
    args = options()
    with tempfile.NamedTemporaryFile(prefix="ubi-resolv-", delete=False) as resolv:
        namespace.enter(Path(resolv.name))
    Path(resolv.name).unlink()
    if not namespace.is_inside():
        say("no network namespace here: ports that are free, and strays are counted by the servers only")
    figures = measure(args)
    print(table(figures, args.systems))
    if args.json:
        text = json.dumps({"options": vars(args), **figures}, indent=1, default=str)
        args.json.write_text(text + "\n", encoding="utf-8")
    if strays := sum(row["strays"] for rows in figures["rounds"] for row in rows.values()):
        sys.exit(f"{strays:.0f} times someone wanted to leave the testbed")


if __name__ == "__main__":
    main()
