"""Where a page's CPU time goes, by component.

    python benchmarks/page_profile.py [--agents 1] [--short] [--fast] [-s NAME=VALUE] [--top 20]    (or: make profile)

Crawls the benchmark's web with `--agents` agents (0: plain Scrapy) and a Redis, every agent sampling itself
(crawl/bench/sampling.py says how), and prints the milliseconds of CPU that a page has cost in each component: a sample
belongs to the innermost frame whose file is one of a component's, so what a component has the standard library do is
its own. Threads beside the main one are told by name. With `--top N` the N costliest functions follow, by themselves
(without what they call outside their file's component) and with all they call.

All agents share one core, web and Redis have the other. Sampling costs about a hundredth; on a busy machine the parts
are to be trusted, less the sum.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from components import DISTRIBUTION, component, owner_of
from processes import Stage
from rounds import save, table
from systems import AGENT, BREADTH_FIRST, FAST, METHOD, SHORT

MOST = 0.7
LIMIT = 1800.0  # s without an end


class Sums:
    """Milliseconds a page, summed over the agents."""

    def __init__(self, runs: list[dict[str, Any]]) -> None:
        self.pages = sum(run["pages"] for run in runs)
        self.components: defaultdict[str, float] = defaultdict(float)
        self.threads: defaultdict[str, float] = defaultdict(float)
        self.own: defaultdict[str, float] = defaultdict(float)
        self.whole: defaultdict[str, float] = defaultdict(float)
        self.process = self._ms(sum(run["process"] for run in runs))
        self.main = self._ms(sum(run["main"] for run in runs))
        self.samples = sum(len(run["stacks"]) for run in runs)
        for run in runs:
            self._add(run)

    def _ms(self, seconds: float) -> float:
        return 1000 * seconds / self.pages

    def _add(self, run: dict[str, Any]) -> None:
        self.components["garbage collection"] += self._ms(run["collections"])
        for name, seconds in run["threads"].items():
            self.threads[name.rstrip("-_0123456789")] += self._ms(seconds)
        for weight, stack in run["stacks"]:
            spent = self._ms(weight)
            self.components[owner_of(stack)] += spent
            # By itself: down to the first frame that is a component's, so that json.dumps counts for its caller.
            self.own[next((place for place in stack if component(place)), stack[0])] += spent
            for place in set(stack):
                self.whole[place] += spent


def crawl(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Every agent's samples."""
    processes = max(1, args.agents)
    settings: dict[str, Any] = {**METHOD, **(AGENT if args.agents else BREADTH_FIRST)}
    if args.agents:
        settings |= {"UBI_REPLICATION": args.replication}
    if args.short or args.fast:
        settings |= FAST if args.fast else SHORT
    settings |= dict(text.partition("=")[::2] for text in args.set)
    with Stage(args.hosts, args.web, 0.0, (0, 1) if args.pin else None, "scattered") as stage:
        files = []
        for number in range(processes):
            files.append(stage.directory / f"samples{number}")
            more = {
                "EXTENSIONS": {"bench.sampling.Sampling": 0},
                "BENCH_SAMPLING": f"{files[-1]} {args.warm // processes} {args.pages // processes}",
            }
            if args.agents:
                more |= {"UBI_AGENT_ID": f"agent{number}", "UBI_DIR": str(stage.directory / f"agent{number}")}
                if not args.alone:
                    more |= {"UBI_REDIS_URL": f"redis://127.0.0.1:{stage.redis_port}/0"}
            spider = "short" if args.short or args.fast else "walk"
            stage.crawl(f"crawl{number}", {**settings, **more}, spider=spider)
        wait(stage, files)
        return [json.loads(file.read_text(encoding="utf-8")) for file in files]


def wait(stage: Stage, files: list[Path]) -> None:
    end, said = time.monotonic() + LIMIT, 0.0
    while not all(file.exists() for file in files):
        stage.check()
        if time.monotonic() > end:
            raise RuntimeError(f"no end within {LIMIT:.0f} s")
        if time.monotonic() > said + 5:
            said = time.monotonic()
            print(f"{stage.served()['pages']:,} pages served", file=sys.stderr, flush=True)
        time.sleep(0.2)  # the condition is looked at again, not awaited blindly


def show(sums: Sums, top: int) -> None:
    def rows(found: Mapping[str, float], most: int | None = None) -> dict[str, list[str]]:
        ranked = sorted(found.items(), key=lambda each: -each[1])[:most]
        return {name: [f"{spent:.3f}", f"{spent / sums.process:.1%}"] for name, spent in ranked if spent >= 0.0005}

    print(
        f"{sums.process:.2f} ms of CPU a page: {sums.main:.2f} in the main thread, {sums.samples:,} different stacks."
    )
    ours = sum(ms for name, ms in sums.components.items() if name in DISTRIBUTION)
    threads = sum(sums.threads.values())
    print(f"Scheduler, middlewares, frontier, protocol and mail: {ours:.2f} of them, and {threads:.2f} in threads.")
    columns = ["ms a page", "of all"]
    table("main thread", columns, rows(sums.components))
    table("other threads", columns, rows(sums.threads))
    if top:
        table("functions by themselves", columns, rows(tidy(sums.own), top))
        # Not those in which nearly everything happens: they say nothing.
        frames = {p: ms for p, ms in sums.whole.items() if component(p) and ms < MOST * sums.process}
        table("functions with all they call", columns, rows(tidy(frames), top))


def tidy(found: Mapping[str, float]) -> dict[str, float]:
    """Files from their package on."""
    named: defaultdict[str, float] = defaultdict(float)
    for place, spent in found.items():
        file, _, function = place.rpartition(":")
        parts = Path(file).parts
        named["/".join(parts[-2:]) + ":" + function] += spent
    return named


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=1, help="how many; 0: plain Scrapy (%(default)s)")
    parser.add_argument("--alone", action="store_true", help="agents without Redis")
    parser.add_argument("--replication", type=int, default=1, help="UBI_REPLICATION (%(default)s)")
    parser.add_argument("--short", action="store_true", help="the spider hands over its links as one object")
    parser.add_argument("--fast", action="store_true", help="that, and UBI_FAST")
    parser.add_argument("-s", dest="set", metavar="NAME=VALUE", action="append", default=[], help="a setting more")
    parser.add_argument("--pages", type=int, default=3000, help="pages sampled, of all agents (%(default)s)")
    parser.add_argument("--warm", type=int, default=1000, help="pages before that (%(default)s)")
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--web", type=int, default=100_000, help="pages of the web (%(default)s)")
    parser.add_argument("--no-pin", dest="pin", action="store_false", help="let the machine choose the cores")
    parser.add_argument("--top", type=int, default=0, metavar="N", help="the N costliest functions, too")
    parser.add_argument("--json", metavar="FILE", help="write the figures there, too")
    return parser.parse_args()


def main() -> None:
    args = options()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # whoever ends us, nothing is left running
        signal.signal(number, signal.default_int_handler)
    try:
        sums = Sums(crawl(args))
    except KeyboardInterrupt:
        sys.exit(130)
    show(sums, args.top)
    save(args.json, {"settings": vars(args), "components": dict(sums.components), "threads": dict(sums.threads)})


if __name__ == "__main__":
    main()
