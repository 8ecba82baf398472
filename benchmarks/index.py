"""The search index: the rate of a crawl with the store `index` beside the same crawl without it, and text a page.

    python benchmarks/index.py [--rounds 5] [--pages 2000] [--json FILE]

*crawls*: real crawls of one agent (crawl/, cost.py's web), in turns; the aim is at least 0.85 of the pages a second.
Both ways of a round run one after the other, in an order that changes, and what counts is the median of their ratios.
CPU is that of the agent, its writer's thread included: on one core it is the rate.

*text*: CPU of reading the text off a made page and packing it, which is all that the store does in its thread.
"""

from __future__ import annotations

import argparse
import statistics
from typing import Any

from crawling import per_page, reach, snapshot, start
from links import made_page, response
from processes import Stage
from rounds import save, table, take_turns
from systems import AGENT, METHOD, SHORT, System

from scrapy_ubi.outputs.index.index_record import IndexRecord, packed
from scrapy_ubi.outputs.page_text import text_of

STORE = {"UBI_STORES": "index"}
WAYS = {
    "unmodified": ({**METHOD, **AGENT}, "walk"),
    "short": ({**METHOD, **AGENT, **SHORT}, "short"),
}
SIZES = ((2_000, 20), (10_000, 40), (50_000, 200))


def one(args: argparse.Namespace, way: str, stored: bool) -> dict[str, float]:
    """What a page has cost in one crawl."""
    settings, spider = WAYS[way]
    system = System(1, settings | (STORE if stored else {}), "UBI_REDIS_URL", spider)
    with Stage(args.hosts, args.web, 0.0, (0, 1) if args.pin else None) as stage:
        start(stage, system)
        reach(stage, args.warm)
        before = snapshot(stage)
        reach(stage, before["served"]["pages"] + args.pages)
        return per_page(before, snapshot(stage))


def crawls(args: argparse.Namespace, way: str) -> dict[str, float]:
    """Ratios of pairs: pages a second, and the inverse of CPU a page."""
    rates, costs, added = [], [], []
    for turn in range(args.rounds):
        pair = {stored: one(args, way, stored) for stored in ((False, True), (True, False))[turn % 2]}
        rates.append(pair[True]["pages_per_second"] / pair[False]["pages_per_second"])
        costs.append(pair[False]["cpu_ms"] / pair[True]["cpu_ms"])
        added.append(pair[True]["cpu_ms"] - pair[False]["cpu_ms"])
        print(f"{way}, round {turn + 1}: rate {rates[-1]:.3f}, CPU {costs[-1]:.3f}, +{added[-1]:.3f} ms", flush=True)
    return {"rate": statistics.median(rates), "cpu": statistics.median(costs), "added": statistics.median(added)}


def texts(rounds: int) -> dict[str, float]:
    """CPU seconds a page, by its size in kB."""

    def way(size: int, links: int) -> Any:
        body = made_page(size, links)

        def read(turn: int) -> None:
            for _ in range(100):
                title, text, language = text_of(response(body))
                packed(IndexRecord("0123456789abcdef", "http://h.example/", title, text, language, 200, "", ""))

        return read

    return take_turns({f"{size // 1000} kB": way(size, links) for size, links in SIZES}, 100, rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--rounds", type=int, default=5, help="pairs of crawls, of which the median counts (%(default)s)"
    )
    parser.add_argument("--pages", type=int, default=2000, help="pages of a crawl that count (%(default)s)")
    parser.add_argument("--warm", type=int, default=300, help="pages before them (%(default)s)")
    parser.add_argument("--hosts", type=int, default=300, help="hosts of the web (%(default)s)")
    parser.add_argument("--web", type=int, default=100_000, help="its pages (%(default)s)")
    parser.add_argument("--pin", action="store_true", help="the agent on one core, web and Redis on the other")
    parser.add_argument("--only", choices=WAYS, help="one of the ways to crawl")
    parser.add_argument("--json", metavar="FILE", help="write the figures there, too")
    args = parser.parse_args()
    found = texts(5)
    table("text of a page", ["ms CPU"], {name: [f"{value * 1e3:.3f}"] for name, value in found.items()})
    ways = {way: crawls(args, way) for way in WAYS if args.only in (None, way)}
    rows = {way: [f"{each['rate']:.3f}", f"{each['cpu']:.3f}", f"{each['added']:.3f}"] for way, each in ways.items()}
    table("with the index, of without", ["pages a second", "CPU", "ms CPU added"], rows)
    save(args.json, {"text_seconds_a_page": found, "crawls": ways})


if __name__ == "__main__":
    main()
