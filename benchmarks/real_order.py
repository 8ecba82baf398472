"""The order of a crawl on real documentation: the indegree area of rankers beside breadth first, site by site.

    python benchmarks/real_order.py [--loads 500] [--sites 7] [--json FILE] [DIRECTORY ...]

The sites are found on this machine (documentation.py says where), or in the directories given; the largest `--sites`
of them are taken. A page has the links that it really has. Whole crawls in this process, by one agent, LT 4, as
survey.py makes them. *area* is the mean, over the first `--loads` loads of a site, of the share of all links inside it
that lead to pages fetched until then; links of a page to itself, and a second one to the same page, do not count. The
aim is 1.1 times that of breadth first on average. Figures depend on nothing but the pages.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import survey
from documentation import Site, default_places, find_sites
from rounds import save, table

RANKERS: dict[str, str | None] = {"breadth first": None, "backlinks": "backlinks", "opic": "opic"}
TAKE = 4


class RealWeb:
    """One site, as survey.py crawls it."""

    hosts = 1

    def __init__(self, site: Site) -> None:
        self.links = site.links
        self.latency = random.Random(0)
        self._indegree = Counter(to for at, links in enumerate(site.links) for to in {*links} - {at})

    def found(self, taken: Sequence[int], seconds: float) -> survey.Found:
        so_far = np.cumsum([self._indegree[number] for number in taken]) / self._indegree.total()
        return survey.Found(0.0, 0.0, float(so_far.mean()), seconds)


def areas(site: Site, loads: int, rankers: Sequence[str]) -> dict[str, float]:
    survey.web = RealWeb(site)  # type: ignore[assignment]
    return {name: survey.measured(loads, RANKERS[name], TAKE, 1).area for name in rankers}


def _row(of: dict[str, Any], names: Sequence[str]) -> list[str]:
    areas, beside = of["area"], of["beside"]
    return [str(of["pages"]), *(f"{areas[name]:.3f}" for name in names), *(f"{beside[name]:.2f}" for name in names[1:])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directories", type=Path, nargs="*", metavar="DIRECTORY", help="where sites are looked for")
    parser.add_argument("--loads", type=int, default=500, help="pages that are fetched of a site (%(default)s)")
    parser.add_argument("--sites", type=int, default=7, help="how many, the largest (%(default)s)")
    parser.add_argument("--rankers", nargs="*", choices=RANKERS, default=[*RANKERS], help="beside breadth first")
    parser.add_argument("--json", metavar="FILE", help="write the figures there, too")
    args = parser.parse_args()
    found = find_sites(args.directories or default_places())
    sites = {name: Site(root) for name, root in found.items()}
    largest = sorted(sites, key=lambda name: (-len(sites[name].paths), name))[: args.sites]
    large = [name for name in largest if len(sites[name].paths) > args.loads]
    if not large:
        sys.exit("There is no documentation of more pages than --loads here: name directories of HTML.")
    names = ["breadth first", *(name for name in args.rankers if name != "breadth first")]
    figures: dict[str, Any] = {}
    for name in large:
        made = areas(sites[name], args.loads, names)
        beside = {ranker: area / made["breadth first"] for ranker, area in made.items()}
        figures[name] = {"pages": len(sites[name].paths), "area": made, "beside": beside}
        print(f"{name}: {beside}", flush=True)
    rows = {name: _row(each, names) for name, each in figures.items()}
    means = {ranker: statistics.mean(each["beside"][ranker] for each in figures.values()) for ranker in names[1:]}
    rows["mean"] = ["", *("" for _ in names), *(f"{mean:.2f}" for mean in means.values())]
    heads = ["pages", *names, *(f"{ranker}, beside" for ranker in names[1:])]
    table(f"area of the first {args.loads} loads", heads, rows)
    save(args.json, {"loads": args.loads, "sites": figures, "mean": means})


if __name__ == "__main__":
    main()
