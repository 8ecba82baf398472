"""Which keys are known: scrapy_ubi's exact table and its filter with errors, beside a Python set.

    python benchmarks/seen.py [--known 100000,1000000,10000000] [--peers] [--rounds 3] [--json FILE]

Each is filled with random keys (a set of ints for Python, which says known only). Then, in turns of 100,000 keys each:
look-ups of known and of unknown keys, one at a time as the frontier makes them; changes of 1,000 new keys, and of 1,000
keys that are done now, as a flush makes them. Rates are those of CPU time, and so is `pause`, the longest that one
change of 1,000 keys took: what the loop waits for on a machine that does nothing else. Bytes are those of the file and
of its part in use; of the set those that the process grew by. `open` reads the whole file (warm) and checks it.

With `--peers` RocksDB with filters of 10 bits a key (the process's memory is not bounded) and sqlite do the same,
neither of them waiting for the disk.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import rocksdict
from rounds import save, table

from scrapy_ubi.frontier.bloom import SeenBloom, error_rate
from scrapy_ubi.frontier.seen import SeenTable
from scrapy_ubi.frontier.shards import Shards

TURN = 100_000
CHANGE = 1000
COLUMNS = ("known/s", "unknown/s", "new/s", "done/s", "pause ms", "B file", "B used", "fill/s", "open ms")


def draw(seed: int, number: int) -> list[int]:
    """Random keys; no two seeds have one in common, but by chance."""
    return np.random.default_rng(seed).integers(0, 1 << 64, number, np.uint64, False).tolist()


def rate(call: Callable[[], object], number: int) -> float:
    """So many operations a CPU second."""
    start = time.process_time()
    call()
    return number / (time.process_time() - start)


def asked(status: Callable[[int], object], keys: list[int]) -> Callable[[], None]:
    def ask() -> None:
        for key in keys:
            status(key)

    return ask


class Changes:
    """Keys told in pieces, with the longest pause."""

    def __init__(self, apply: Callable[[dict[int, int]], object], keys: list[int], status: int) -> None:
        self.apply = apply
        self.changes = [dict.fromkeys(keys[at : at + CHANGE], status) for at in range(0, len(keys), CHANGE)]
        self.pause = 0.0

    def __call__(self) -> None:
        for change in self.changes:
            start = time.process_time()
            self.apply(change)
            self.pause = max(self.pause, time.process_time() - start)


def a_turn(seen: Any, status: Callable[[int], object], known: list[int], turn: int, done: bool) -> dict[str, float]:
    """Each kind of operation once."""
    some = random.Random(turn).sample(known, min(TURN, len(known)))
    new = draw(1000 + turn, min(TURN, len(known) // 10))
    told = Changes(seen.apply if done else seen.update, new, 1)
    figures = {
        "known/s": rate(asked(status, some), len(some)),
        "unknown/s": rate(asked(status, draw(2000 + turn, TURN)), TURN),
        "new/s": rate(told, len(new)),
    }
    known.extend(new)
    if done:
        marks = Changes(seen.apply, some, 2)
        figures |= {"done/s": rate(marks, len(some)), "pause ms": 1000 * max(told.pause, marks.pause)}
    return figures


def of_table(kind: type[Shards], number: int, rounds: int, path: Path) -> dict[str, float]:
    """All figures of a kind of ours."""
    known = draw(1, number)
    seen = kind.create(path)
    fill = rate(lambda: seen.rebuild(((key, 1) for key in known), 1), number)
    turns = [a_turn(seen, seen.status, known, turn, True) for turn in range(rounds)]
    seen.check()
    seen.close()
    start = time.perf_counter()
    seen = kind.open(path)
    opened = 1000 * (time.perf_counter() - start)
    sizes = {"B file": os.stat(path).st_size / len(known), "B used": seen.memory / len(known)}
    seen.close()
    return middle(turns) | sizes | {"fill/s": fill, "open ms": opened}


def of_set(number: int, rounds: int) -> dict[str, float]:
    """All figures of a set of ints, keys included."""
    known = draw(1, number)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seen: set[int] = set()
    fill = rate(lambda: seen.update(int.from_bytes(key.to_bytes(8, "big"), "big") for key in known), number)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    turns = [a_turn(seen, seen.__contains__, known, turn, False) for turn in range(rounds)]
    return middle(turns) | {"B used": grown / number, "fill/s": fill}


class Rocks:
    """Keys as rows of a RocksDB, each with its status."""

    def __init__(self, path: Path) -> None:
        options, tables = rocksdict.Options(raw_mode=True), rocksdict.BlockBasedOptions()
        tables.set_bloom_filter(10, False)
        options.set_block_based_table_factory(tables)
        self.rows = rocksdict.Rdict(str(path), options)
        self.path = path

    def status(self, key: int) -> int:
        return int(self.rows.get(key.to_bytes(8, "big")) or 0)

    def apply(self, changes: dict[int, int]) -> None:
        batch = rocksdict.WriteBatch(raw_mode=True)
        for key, status in changes.items():
            batch.put(key.to_bytes(8, "big"), b"%d" % status)
        self.rows.write(batch)

    def settle(self) -> None:
        self.rows.flush()


class Sqlite:
    """Keys as rows of a sqlite table."""

    def __init__(self, path: Path) -> None:
        self.rows = sqlite3.connect(path)
        self.rows.execute("pragma journal_mode = wal")
        self.rows.execute("pragma synchronous = off")
        self.rows.execute("create table seen (key integer primary key, status integer) without rowid")
        self.path = path

    def status(self, key: int) -> int:
        row = self.rows.execute("select status from seen where key = ?", (key - (1 << 63),)).fetchone()
        return row[0] if row else 0

    def apply(self, changes: dict[int, int]) -> None:
        rows = [(key - (1 << 63), status) for key, status in changes.items()]
        self.rows.executemany("insert or replace into seen values (?, ?)", rows)
        self.rows.commit()

    def settle(self) -> None:
        self.rows.execute("pragma wal_checkpoint(truncate)")


def of_peer(kind: type[Rocks] | type[Sqlite], number: int, rounds: int, path: Path) -> dict[str, float]:
    """All figures of a store of rows."""
    known = draw(1, number)
    seen = kind(path)
    fill = rate(Changes(seen.apply, known, 1), number)
    turns = [a_turn(seen, seen.status, known, turn, True) for turn in range(rounds)]
    seen.settle()
    files = [file for file in (path, *path.glob("*")) if file.is_file()]
    return middle(turns) | {"B file": sum(file.stat().st_size for file in files) / len(known), "fill/s": fill}


def middle(turns: list[dict[str, float]]) -> dict[str, float]:
    """The median of each figure; of pauses the longest."""
    figures = {name: float(np.median([turn[name] for turn in turns])) for name in turns[0]}
    if "pause ms" in figures:
        figures["pause ms"] = max(turn["pause ms"] for turn in turns)
    return figures


def apart(work: Callable[[], dict[str, float]]) -> dict[str, float]:
    """Do it in a process of its own, so that memory is its own."""
    reader, writer = os.pipe()
    if not (child := os.fork()):
        with os.fdopen(writer, "w") as out:
            json.dump(work(), out)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as out:
        figures: dict[str, float] = json.load(out)
    os.waitpid(child, 0)
    return figures


def systems(number: int, rounds: int, peers: bool, directory: Path) -> Iterator[tuple[str, dict[str, float]]]:
    """Each way's name and figures."""
    yield "exact", apart(lambda: of_table(SeenTable, number, rounds, directory / "exact"))
    yield "bloom", apart(lambda: of_table(SeenBloom, number, rounds, directory / "bloom"))
    yield "set of ints", apart(lambda: of_set(number, rounds))
    if peers:
        yield "RocksDB", apart(lambda: of_peer(Rocks, number, rounds, directory / "rocks"))
        yield "sqlite", apart(lambda: of_peer(Sqlite, number, rounds, directory / "sqlite"))


def shown(name: str, value: float | None) -> str:
    """A figure for people."""
    if value is None:
        return "-"
    return f"{value / 1e6:.2f} M" if name.endswith("/s") else f"{value:.1f}"


def main() -> None:
    """Run, print and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--known", default="100000,1000000,10000000", help="how many keys (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="turns, of which the median counts (%(default)s)")
    parser.add_argument("--peers", action="store_true", help="RocksDB and sqlite, too")
    parser.add_argument("--json", metavar="FILE", help="write the figures there, too")
    arguments = parser.parse_args()
    figures: dict[str, dict[str, dict[str, float]]] = {}
    if arguments.json and Path(arguments.json).exists():  # sizes can be run one by one
        figures = json.loads(Path(arguments.json).read_text())["known"]
    for number in map(int, arguments.known.split(",")):
        with TemporaryDirectory(prefix="ubi-seen-") as directory:
            rows = dict(systems(number, arguments.rounds, arguments.peers, Path(directory)))
        figures[str(number)] = rows
        cells = {way: [shown(name, row.get(name)) for name in COLUMNS] for way, row in rows.items()}
        table(f"{number:,} known", [f"{name:>9}" for name in COLUMNS], cells)
        print(f"\nbloom errs on one unknown key in {1 / error_rate(number):,.0f}")
    save(arguments.json, {"known": figures})


if __name__ == "__main__":
    main()
