"""The link graph: what the store costs a page, and what merging and ranking take in time and memory.

    python benchmarks/graph.py                    # all: three minutes
    python benchmarks/graph.py --only store       # what is done for a page, in the loop and in the writer's thread
    python benchmarks/graph.py --only merge --arcs 10000000
    python benchmarks/graph.py --only rank --rank-arcs 1000000

*store*: CPU of pages with 40 links, of which one in ten is news to this agent. Shown is what the loop does (noting
links while they are taken, handing over) and what the thread does: milliseconds to add to a page.

*merge*: pages with 40 links of a web whose pages are linked to by a power law, in the files of three agents, one in
twenty in two of them; then `collect graph --hosts` in a process of its own, with its time and its peak memory.

*rank*: the files of a graph of such a web, of as many arcs; then `rank` in a process of its own: read, iterated until
ranks change by less than 10^-6, written.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from rounds import Way, save, table, take_turns
from scrapy import Request
from scrapy.http import Response
from scrapy.settings import Settings

from scrapy_ubi.adapter.requests.inflight import FoundLinks
from scrapy_ubi.outputs.collector import Collector, find_outputs
from scrapy_ubi.outputs.graph import files, pagerank
from scrapy_ubi.outputs.graph.collected_graph import CollectedGraph
from scrapy_ubi.outputs.graph.graph_store import ENDING, GraphPayload, GraphStore
from scrapy_ubi.outputs.graph.numbered import Numbered
from scrapy_ubi.outputs.part_files import INDEX, OUT, write_record
from scrapy_ubi.outputs.part_writer import Bundle, Part
from scrapy_ubi.outputs.stores import Page
from scrapy_ubi.urls import url_key

LINKS = 40
PAGES = 2_000  # a round


def pages_of(turn: int, count: int) -> list[list[str]]:
    """The page and its links, in normal form; one in ten was not met before."""
    draws = random.Random(turn)
    known = [f"http://h{i % 97}.example/d{i % 7}/p{i}.html" for i in range(5_000)]
    return [
        [f"http://h{number % 97}.example/own/{turn}-{number}.html"]
        + [
            f"http://h{link}.example/new/{turn}-{number}-{link}.html" if link % 10 == 0 else draws.choice(known)
            for link in range(LINKS)
        ]
        for number in range(count)
    ]


def parts_of(place: Path, turn: int, store: GraphStore, name: str) -> Part:
    return Part(place, store, f"{name}{turn}", 0.0)


def store_ways(place: Path, rounds: int) -> dict[str, Way]:
    webs = [pages_of(turn, PAGES) for turn in range(rounds + 1)]
    request, store = Request("http://h.example/"), GraphStore({}, Settings())
    came = Response("http://h.example/")

    def loop(turn: int) -> None:
        for own, *links in webs[turn]:
            noted = FoundLinks()
            forms = noted.forms
            for link in links:
                if forms is not None:
                    forms.append(link)
            page = Page("n", 0, "ok", request, own, 1, None, came, came, 1.0, 2.0, {}, [*noted.forms], [])
            store.page(page)

    def without(turn: int) -> None:
        forms = None
        for _own, *links in webs[turn]:
            for _ in links:
                if forms is not None:
                    forms.append(1)

    payloads = [[GraphPayload(forms, bytes(LINKS), 200, 1, 1e9) for forms in web] for web in webs]

    def fresh(forms: list[str]) -> list[str]:
        """As the loop has made them just now: what lies in memory for long takes long to read."""
        return [form[:9] + form[9:] for form in forms]

    def only_fresh(turn: int) -> None:
        for payload in payloads[turn]:
            payload._replace(forms=fresh(payload.forms))

    def write(turn: int) -> None:
        part = parts_of(place, turn, store, "p")
        for payload in payloads[turn]:
            store.write(payload._replace(forms=fresh(payload.forms)), part)
            part.index(Bundle(store, "0123456789abcdef", 0, "ok", payload, 1))
        part.write()
        part.close()

    def yardstick(turn: int) -> None:
        for payload in payloads[turn]:
            for form in payload.forms:
                url_key("GET", form)

    return {"loop": loop, "nothing": without, "write": write, "fresh": only_fresh, "yardstick": yardstick}


def measure_store(rounds: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as place:
        found = take_turns(store_ways(Path(place), rounds), PAGES, rounds)
    loop, write = found["loop"] - found["nothing"], found["write"] - found["fresh"]
    rows = {"in the loop": loop, "in the writer's thread": write, "together": loop + write}
    rows["beside: the keys of its URLs, by url_key"] = found["yardstick"]
    table("graph, a page of 40 links", ["ms CPU"], {name: [f"{value * 1e3:.4f}"] for name, value in rows.items()})
    return rows


# -- merging


def make(place: Path, arcs: int) -> list[Path]:
    """The directories of three agents, with so many arcs in all."""
    draws = random.Random(7)
    count = arcs // LINKS
    nodes = count * 5
    stores = [GraphStore({}, Settings()) for _ in range(3)]
    parts: list[Part] = []
    dirs = []
    for agent, store in enumerate(stores):
        out = place / f"a{agent}" / OUT
        out.mkdir(parents=True)
        write_record(out, {"crawl": "bench", "agent": f"a{agent}", "run": "run", "began": 1.0})
        parts.append(Part(out, store, f"bench-a{agent}-0", 0.0))
        dirs.append(out.parent)
    forms = _Forms(nodes)
    for number in range(count):
        links = [forms[int(nodes * draws.random() ** 3)] for _ in range(LINKS)]
        payload = GraphPayload([forms[number], *links], bytes(LINKS), 200, 1 if number else 0, 1e9 + number)
        name = f"{url_key('GET', payload.forms[0]):016x}"
        for agent in {number % 3, (number + (number % 20 == 0)) % 3}:
            stores[agent].write(payload, parts[agent])
            parts[agent].index(Bundle(stores[agent], name, 0, "ok", payload, 1))
            parts[agent].write(all_of_it=number % 1000 == 0)
    for part in parts:
        part.write()
        part.seal()
    return dirs


class _Forms:
    """URLs by number: 100 pages a host."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __getitem__(self, number: int) -> str:
        return f"http://www.host{number // 100}.example/section/page{number}.html"


def merge(dirs: list[Path], name: str) -> dict[str, Any]:
    """In a process of its own: its seconds and its peak memory."""
    began, cpu = time.perf_counter(), time.process_time()
    with tempfile.TemporaryDirectory(dir=Path(name).parent) as place:
        numbered = Numbered(Collector(find_outputs(dirs), "graph", ENDING, Path(place)), Path(place))
        written = files.write(numbered, name, with_hosts=True)
    return {
        "seconds": time.perf_counter() - began,
        "cpu": time.process_time() - cpu,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "arcs": written.arcs,
        "nodes": numbered.found.nodes,
        "hosts": written.hosts,
    }


def measure_merge(arcs: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as place:
        dirs = make(Path(place), arcs)
        size = sum(path.stat().st_size for one in dirs for path in one.rglob("*") if path.suffix != f".{INDEX}")
        command = [sys.executable, __file__, "--merge-here", *map(str, dirs), "--name", os.path.join(place, "web")]
        found: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    found["read_mb"] = size / 1e6
    rows = {name: [f"{value:,.0f}"] for name, value in found.items()}
    table("merge", ["       value"], rows)
    return found


# -- ranking


def make_graph(name: str, arcs: int) -> None:
    """The files of a collected graph: five nodes a page, as of a crawl that has fetched a fifth of what it knows."""
    draws = np.random.default_rng(7)
    nodes = arcs // LINKS * 5
    froms = np.repeat(np.arange(0, nodes, 5, dtype=np.int64), LINKS)
    both = np.unique(froms << 32 | (nodes * draws.random(len(froms)) ** 3).astype(np.int64))
    forms = _Forms(nodes)
    with gzip.open(f"{name}{files.URLS}", "wt", 1) as file:
        file.writelines(f"{forms[number]}\n" for number in range(nodes))
    with gzip.open(f"{name}{files.ARCS}", "wt", 1) as file:
        file.writelines(f"{arc >> 32}\t{arc & 0xFFFFFFFF}\n" for arc in both.tolist())


def ranked(name: str) -> dict[str, Any]:
    """In a process of its own: its seconds and its peak memory."""
    steps = [time.process_time()]
    with tempfile.TemporaryDirectory(dir=Path(name).parent) as place:
        graph = CollectedGraph(name, Path(place))
        steps.append(time.process_time())
        ranks = pagerank.pagerank(graph)
        steps.append(time.process_time())
        pagerank.write_scores(graph, pagerank.scores(ranks.values), f"{name}.scores.gz")
        steps.append(time.process_time())
    read, iterated, written = (end - begin for begin, end in pairwise(steps))
    return {
        "cpu": steps[-1] - steps[0], "read": read, "iterated": iterated, "written": written,
        "iterations": ranks.iterations, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "arcs": graph.arcs, "nodes": graph.nodes,
    }  # fmt: skip


def measure_rank(arcs: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as place:
        name = os.path.join(place, "web")
        make_graph(name, arcs)
        command = [sys.executable, __file__, "--rank-here", name]
        found: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    table("rank", ["       value"], {name: [f"{value:,.1f}"] for name, value in found.items()})
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("store", "merge", "rank"), help="one of the three")
    parser.add_argument("--rounds", type=int, default=9, help="rounds, of which the median counts (%(default)s)")
    parser.add_argument("--arcs", type=int, default=10_000_000, help="arcs to merge (%(default)s)")
    parser.add_argument("--rank-arcs", type=int, default=1_000_000, help="arcs to rank by (%(default)s)")
    parser.add_argument("--rank-here", help=argparse.SUPPRESS)
    parser.add_argument("--json", metavar="FILE", help="write the figures there, too")
    parser.add_argument("--merge-here", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--name", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.merge_here:
        print(json.dumps(merge([Path(path) for path in args.merge_here], args.name)))
        return
    if args.rank_here:
        print(json.dumps(ranked(args.rank_here)))
        return
    figures: dict[str, Any] = {}
    if args.only in (None, "store"):
        figures["store_seconds_a_page"] = measure_store(args.rounds)
    if args.only in (None, "merge"):
        figures["merge"] = measure_merge(args.arcs)
    if args.only in (None, "rank"):
        figures["rank"] = measure_rank(args.rank_arcs)
    save(args.json, figures)


if __name__ == "__main__":
    main()
