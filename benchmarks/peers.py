"""Beside Scrapy and scrapy-redis: CPU a page, pages a second, memory, and what Redis has to do, in real crawls.

    python benchmarks/peers.py [--quick] [--only pages,later,two,hosts,memory,micro] [--rounds 3] [--systems walk1,...]

All systems are `scrapy crawl` of one spider (crawl/) on one web of 100,000 pages (crawl/web.py, links scattered): pages
of 14 kB with 40 links, 10 of them to other hosts; 100 seeds, 32 requests at once, LOG_LEVEL INFO, no cookies, no delay.
The web is their HTTP proxy and answers at once. The parts:

    pages   what a page costs: every system, all crawlers on one core, web and Redis on the other
    later   what a page costs one agent and four when a tenth of a longer crawl is over: fewer links are new
    two     pages a second of two processes that may use both cores, as web and Redis may
    hosts   what a page costs on 100, 1,000 and 10,000 hosts
    memory  the memory of a long crawl, sampled on the way
    micro   operations of ring, normaliser, link extractor, frontier and mail, beside what others do them with

and the systems, as many processes as their number says:

    scrapy, jobdir    plain Scrapy, breadth first, in memory and with JOBDIR
    redis1, redis2    scrapy-redis
    walk1, 2, 4       agents (disk frontier, Redis, UBI_REPLICATION = 1) with the same, unmodified spider
    short1, 2, 4      agents with the spider by the short path (`yield self.links(response)`), UBI_FAST off
    fast1, 2, 4       the same with UBI_FAST = True; walk has it as by default
    fast4t0           four agents with UBI_REPLICATION = 0: what the copies for successors cost
    walk4apart, ...   four of these, each alone in a crawl of its own, of as many pages as one agent's: what sharing the
                      core costs without any mail

In a round every system has one turn, in an order that rotates, so a slow spell of the machine hits all of them; what
counts are the ratios of one round, and their median. CPU is that of the crawlers, all threads, from the moment the web
has served `--warm` pages and every spider is open until it has served `--pages` more. Needs Linux, two cores that do
nothing else, redis-server, `pip install -e '.[bench]'`. What is committed comes from

    python benchmarks/peers.py --json benchmarks/results/peers.json --doc benchmarks/results/peers.md \\
        --plot docs/explanation

A part that is measured replaces that part in the file; --only with nothing behind it only writes tables and plots anew.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import signal
import sys
import time
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import peers_show
from crawling import memory, per_page, reach, snapshot, start, thinned, wait_until_opened
from pages import into_document
from processes import Stage
from systems import LABELS, PEERS

Row = dict[str, Any]
BESIDE = ("scrapy", "walk1", "short1", "fast1")  # where not every system has a turn
ONE_CORE = (0, 1)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# ---------------------------------------------------------------------- runs


def one_run(
    args: argparse.Namespace, name: str, hosts: int, cores: tuple[int, int] | None, span: tuple[int, int] | None = None
) -> Row:
    """One system's turn: what a page has cost, of the pages that `span` says (first, last), else `--warm`, `--pages`.

    Crawls apart go as far as one does, each: early pages cost more.
    """
    system = PEERS[name]
    first, last = span or (args.warm, args.warm + args.pages)
    with Stage(hosts, args.web, 0.0, cores if args.pin else None, "scattered") as stage:
        start(stage, system)
        reach(stage, first * system.crawls)
        wait_until_opened(stage)
        before = snapshot(stage)
        reach(stage, before["served"]["pages"] + (last - first) * system.crawls)
        after = snapshot(stage)
        return {**per_page(before, after), "memory_mb": memory(stage)[1]}


def in_turns(args: argparse.Namespace, names: list[str], run: Callable[[str], Row]) -> list[dict[str, Row]]:
    """Every system once a round, the order rotating."""
    found = []
    for turn in range(args.rounds):
        shift = turn % len(names)
        rows = {}
        for name in (*names[shift:], *names[:shift]):
            begun = time.monotonic()
            rows[name] = run(name)
            say(f"[{time.monotonic() - begun:.0f} s] round {turn + 1}, {LABELS[name]}: {describe(rows[name])}")
        found.append(rows)
    return found


def describe(row: Row) -> str:
    if "cpu_ms" not in row:
        return ", ".join(f"{hosts} hosts {describe(each)}" for hosts, each in row.items())
    return f"{row['cpu_ms']:.2f} ms CPU a page, Redis {row['redis_cpu_ms']:.2f}, {row['pages_per_second']:.0f} pages/s"


def chosen(args: argparse.Namespace, names: Iterable[str]) -> list[str]:
    return [name for name in names if name in args.systems]


# ---------------------------------------------------------------------- parts


def measure_pages(args: argparse.Namespace) -> Row:
    return {"rounds": in_turns(args, chosen(args, PEERS), lambda name: one_run(args, name, args.hosts, ONE_CORE))}


def measure_later(args: argparse.Namespace) -> Row:
    span = (args.long // 10, args.long)
    names = chosen(args, (name for name, system in PEERS.items() if system.is_ours and not system.apart))
    names = [name for name in names if PEERS[name].processes != 2]
    rounds = in_turns(args, names, lambda name: one_run(args, name, args.hosts, ONE_CORE, span))
    return {"rounds": rounds}


def measure_two(args: argparse.Namespace) -> Row:
    names = chosen(args, (name for name, system in PEERS.items() if system.processes == 2))
    return {"rounds": in_turns(args, names, lambda name: one_run(args, name, args.hosts, None))}


def measure_hosts(args: argparse.Namespace) -> Row:
    def run(name: str) -> Row:
        return {str(hosts): one_run(args, name, hosts, ONE_CORE) for hosts in args.sizes}

    return {"rounds": in_turns(args, chosen(args, BESIDE), run)}


def measure_memory(args: argparse.Namespace) -> Row:
    """A long crawl of each: (pages, MB now, MB at most so far), of the largest process."""
    runs = {}
    for name in chosen(args, (*BESIDE, "jobdir", "redis2")):
        begun = time.monotonic()
        with Stage(args.hosts, args.web, 0.0, ONE_CORE if args.pin else None, "scattered") as stage:
            samples: list[tuple[int, float, float]] = []
            start(stage, PEERS[name])
            reach(stage, args.long, lambda pages, to=samples, stage=stage: to.append((pages, *memory(stage))))
        thin = {pages for pages, _ in thinned([(pages, now) for pages, now, _ in samples], 150)}
        kept = [sample for sample in samples if sample[0] in thin or sample is samples[-1]]
        runs[name] = {"samples": [(pages, round(now, 1), round(most, 1)) for pages, now, most in kept]}
        say(f"[{time.monotonic() - begun:.0f} s] memory, {LABELS[name]}: {samples[-1][2]:.0f} MB")
    return {"runs": runs}


def measure_micro(args: argparse.Namespace) -> Row:
    import micro  # it loads all that it compares, and takes its time for that

    return {"seconds": micro.measure(args.rounds, say)}


PARTS = {
    "pages": measure_pages,
    "later": measure_later,
    "two": measure_two,
    "hosts": measure_hosts,
    "memory": measure_memory,
    "micro": measure_micro,
}
SETTINGS = ("pages", "warm", "rounds", "hosts", "sizes", "web", "long", "pin", "quick")


# ---------------------------------------------------------------------- the whole


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS), metavar="PARTS", help="parts to run (%(default)s)")
    parser.add_argument("--systems", default=",".join(PEERS), help="systems to run (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds, of which the median counts (%(default)s)")
    parser.add_argument("--pages", type=int, default=4500, help="pages measured in a run (%(default)s)")
    parser.add_argument("--warm", type=int, default=500, help="pages before that (%(default)s)")
    parser.add_argument("--long", type=int, default=20_000, help="pages of the parts later and memory (%(default)s)")
    parser.add_argument(
        "--hosts", type=int, default=1000, help="hosts of the web, but for the part hosts (%(default)s)"
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1000, 10_000], help="hosts of the part hosts")
    parser.add_argument("--web", type=int, default=100_000, help="pages of the web (%(default)s)")
    parser.add_argument("--no-pin", dest="pin", action="store_false", help="let the machine choose the cores")
    parser.add_argument("--quick", action="store_true", help="two short rounds: is it in order?")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the figures there, too; other parts are kept")
    parser.add_argument("--doc", metavar="FILE", help="put the tables there, too, between the marks for them")
    parser.add_argument("--plot", metavar="DIR", type=Path, help="draw the plots into this folder (SVG)")
    args = parser.parse_args()
    args.only = [name for name in args.only.split(",") if name]
    args.systems = [name for name in args.systems.split(",") if name]
    if args.quick:
        args.rounds, args.pages, args.warm, args.long = min(args.rounds, 2), 400, 100, 1000
    refuse(parser, args)
    return args


def refuse(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """End with a sentence when what is asked for does not exist or is not installed."""
    for kind, asked, known in (("part", args.only, PARTS), ("system", args.systems, PEERS)):
        if unknown := set(asked) - set(known):
            parser.error(f"no {kind} {', '.join(sorted(unknown))}: there are {', '.join(known)}")
    scrapy_redis = [name for name in args.systems if PEERS[name].redis == "REDIS_URL"]
    if scrapy_redis and set(args.only) - {"micro"} and find_spec("scrapy_redis") is None:
        names = ", ".join(scrapy_redis)
        parser.error(f"{names}: scrapy-redis is not installed: pip install -e '.[bench]', or name other --systems")
    if args.plot and find_spec("matplotlib") is None:
        parser.error("--plot: matplotlib is not installed: pip install -e '.[bench]'")
    if args.only and args.pin and (os.cpu_count() or 1) < 2:
        parser.error("this machine has one core: crawlers and web would share it; --no-pin if that is what you want")


def measure(args: argparse.Namespace, figures: Row) -> None:
    """Run what is asked for; every part is written as soon as it is there."""
    for part in args.only:
        say(f"part {part}")
        load = os.getloadavg()[0]
        found = PARTS[part](args)
        taken = {"taken": time.strftime("%Y-%m-%d"), "load": [round(each, 1) for each in (load, os.getloadavg()[0])]}
        where = {"python": platform.python_version(), "machine": platform.machine(), "cores": os.cpu_count()}
        settings = {name: getattr(args, name) for name in SETTINGS}
        figures[part] = {**where, **taken, "settings": settings, **found}
        if args.json:
            write(args.json, figures)
        if args.doc:
            into_document(args.doc, peers_show.BEGIN, peers_show.tables(figures))


def write(path: Path, figures: Row) -> None:
    """As JSON, a list of numbers on one line."""
    text = re.sub(r"\[[^][{}]*\]", lambda found: " ".join(found[0].split()), json.dumps(figures, indent=1))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")


def main() -> None:
    args = options()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # whoever ends us, nothing is left running
        signal.signal(number, signal.default_int_handler)
    figures: Row = {}
    if args.json and args.json.exists():
        figures = json.loads(args.json.read_text(encoding="utf-8"))
    try:
        measure(args, figures)
    except KeyboardInterrupt:
        sys.exit(130)
    peers_show.show(figures, args.doc, args.plot)


if __name__ == "__main__":
    main()
