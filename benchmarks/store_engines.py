"""The two engines of an agent's store, RocksDB and SQLite, beside each other: a million URLs in, popped, done.

    python benchmarks/store_engines.py [--urls 1000000] [--rounds 3] [--json FILE]

Each run is a process of its own, the engines take turns, and a frontier is driven as the other benchmark of frontiers
does it (frontier_load.py: pages of 40 links, 4 of them new; flushed and synced every 5,000 records). Figures of a run:

* links in: pages whose links are offered a second, until so many URLs are known;
* popped and done: URLs a second, until none is left;
* pages: what both together take for a page.

All are of the frontier alone, which is a small part of what a page costs an agent, and written in the same thread: what
a crawl sees of the difference is less. Afterwards the process is killed, and the store opened again. The ratio is the
median of those of the rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from frontier_load import LINKS, NEW, Web
from frontier_ours import OnDisk

from scrapy_ubi.frontier.restore import open_frontier

ENGINES = ("rocksdb", "sqlite")
HOSTS = 100  # URLs of a host, on the average
CHUNK = 500  # pages offered at once
WAVE = 32  # loads under way at a time
MIB = 1 << 20


class OnEngine(OnDisk):
    """The frontier on disk, by this engine."""

    def __init__(self, engine: str, directory: Path) -> None:
        self.now = 0.0
        self.frontier = open_frontier(directory, delay=1.0, engine=engine)
        self._pending = 0


def one(engine: str, directory: Path, urls: int) -> dict[str, float]:
    """A run, in this process; the store is left as kill -9 leaves it."""
    web, it = Web(max(urls // HOSTS, 10)), OnEngine(engine, directory)
    known, spent, cpu = 0, 0.0, 0.0
    for links in web.seeds(CHUNK * LINKS):
        known += it.offer(it.prepare(links))
    seeds = known
    while known < urls:
        offers = it.prepare(web.pages(CHUNK))
        wall, before = time.monotonic(), time.process_time()
        known += it.offer(offers)
        spent, cpu = spent + time.monotonic() - wall, cpu + time.process_time() - before
    wall = time.monotonic()
    it.settle()
    spent += time.monotonic() - wall
    row = {"in": (known - seeds) / NEW / spent, "in_cpu": cpu, "size_in": size(directory)}
    wall, before, popped = time.monotonic(), time.process_time(), 0
    while wave := it.pop(WAVE):
        popped += len(wave)
        it.finish(wave)
    it.settle()
    assert popped == known, (popped, known)
    row |= {"out": popped / (time.monotonic() - wall), "out_cpu": time.process_time() - before}
    row["page"] = 1 / (1 / row["in"] + 1 / row["out"])
    row |= {"size": size(directory), "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}
    return {**row, "urls": known}


def reopened(engine: str, directory: Path, urls: int) -> dict[str, float]:
    """How long it takes to open what a killed process left; all of it is there."""
    wall = time.monotonic()
    frontier = open_frontier(directory, engine=engine)
    spent = time.monotonic() - wall
    assert sum(state.done_count for state in frontier.states()) == urls
    frontier.close()
    return {"reopen": spent}


def size(directory: Path) -> float:
    """Megabytes in its files."""
    return sum(file.stat().st_size for file in (directory / "store").iterdir()) / MIB


def in_a_process(what: str, engine: str, directory: Path, urls: int) -> dict[str, float]:
    """One of these two, in a process of its own, which ends as if it were killed."""
    command = [sys.executable, __file__, "--one", what, engine, str(directory), str(urls)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=7200)
    if done.returncode:
        raise SystemExit(done.stderr)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def rounds(urls: int, count: int, place: Path) -> list[dict[str, dict[str, float]]]:
    """So many rounds of both engines."""
    found = []
    for number in range(count):
        row: dict[str, dict[str, float]] = {}
        for engine in ENGINES if number % 2 == 0 else ENGINES[::-1]:
            with tempfile.TemporaryDirectory(dir=place) as directory:
                row[engine] = in_a_process("run", engine, Path(directory), urls)
                row[engine] |= in_a_process("reopen", engine, Path(directory), int(row[engine]["urls"]))
            print(f"{engine}: " + ", ".join(f"{k} {v:.4g}" for k, v in row[engine].items()), file=sys.stderr)
        found.append(row)
    return found


FIGURES = {
    "page": "pages/s",
    "in": "links in, pages/s",
    "out": "popped and done, pages/s",
    "in_cpu": "CPU s, in",
    "out_cpu": "CPU s, out",
    "size_in": "MB, all waiting",
    "size": "MB, all done",
    "memory": "most memory, MB",
    "reopen": "opened after a kill, s",
}


def table(found: list[dict[str, dict[str, float]]]) -> str:
    """As Markdown: medians, and the median of the rounds' ratios."""
    lines = ["| | RocksDB | SQLite | SQLite / RocksDB |", "| --- | --- | --- | --- |"]
    for name, title in FIGURES.items():
        values = [[row[engine][name] for row in found] for engine in ENGINES]
        ratio = statistics.median(other / own for own, other in zip(*values, strict=True))
        shown = " | ".join(f"{statistics.median(of):,.4g}" for of in values)
        lines.append(f"| {title} | {shown} | {ratio:.2f} |")
    return "\n".join(lines)


def main() -> None:
    """Run, and show."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--urls", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--place", type=Path, help="a directory on the disk to be measured")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    opts = parser.parse_args()
    if opts.one:
        what, engine, directory, urls = opts.one
        call: Any = one if what == "run" else reopened
        print(json.dumps(call(engine, Path(directory), int(urls))), flush=True)
        os._exit(0)
    found = rounds(opts.urls, opts.rounds, opts.place)
    print(f"{opts.urls:,} URLs, {opts.rounds} rounds\n\n{table(found)}")
    if opts.json:
        opts.json.write_text(json.dumps({"urls": opts.urls, "rounds": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
