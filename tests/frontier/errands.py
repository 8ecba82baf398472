"""A crawl that can be told again: the same flushes, made by the same changes, each time. For tests of crashes.

`python -m tests.frontier.errands DIRECTORY COUNT ENGINE` makes that many flushes in a directory and prints each when it
is durable.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import cast

from scrapy_ubi.frontier import restore
from scrapy_ubi.frontier.disk_frontier import DiskFrontier
from scrapy_ubi.frontier.engines import Engine
from scrapy_ubi.protocol.host import Entry, Failure, HostState
from tests.frontier.frontiers import DictKind, Reading, reopened
from tests.support.memory_store import MemoryStore

Told = dict[str, tuple[dict[int, Entry], frozenset[int]]]


def errand(frontier: Reading, number: int) -> None:
    """What happens before flush `number`."""
    draw = random.Random(number)
    now = float(number)
    for _ in range(40):
        host = f"h{draw.randrange(12)}.example"
        key = draw.getrandbits(64)
        frontier.add(host, [Entry(key, f"https://{host}/{key:x}/{'x' * draw.randrange(40)}", draw.randrange(4))])
    for _ in range(25):
        found = frontier.pop(now, lambda state: True)
        if found is not None:
            _end(frontier, *found, draw.random(), now)
    if number % 5 == 0 and frontier.find("h3.example") is not None and not frontier.find("h3.example").out:
        frontier.drop("h3.example")
    for state in frontier.states():
        waiting = [entry.key for entry in state.undone() if entry.key not in state.out]
        frontier.add_done(state, [key for key in waiting if key % 17 == number % 17])


def _end(frontier: Reading, state: HostState, entry: Entry, chance: float, now: float) -> None:
    if chance < 0.7:
        frontier.finish(state, entry.key)
    elif chance < 0.8:
        frontier.put_back(state, entry.key)
    elif chance < 0.9:
        frontier.finish(state, entry.key)
        frontier.fail(Failure(state.host, entry, "http/404", now))
    else:
        return  # it stays out
    frontier.free(state, now)


def told(frontier: DiskFrontier) -> Told:
    """All that a frontier holds."""
    return {
        state.host: ({entry.key: entry for entry in state.undone()}, frozenset(state.told_done()))
        for state in frontier.states()
    }


def expected(flushes: int) -> list[tuple[Told, list[Failure]]]:
    """What a process finds that begins after flush 0, 1, 2 and so on."""
    frontier = reopened(MemoryStore(), DictKind())
    found = []
    for number in range(flushes + 1):
        if number:
            errand(frontier, number)
            frontier.flush([(b"mtest", b"%d" % number)])
        left = reopened(MemoryStore(frontier.store.rows.copy()), DictKind(frontier.seen))
        found.append((told(left), sorted(left.failures())))
    return found


def run(directory: Path, flushes: int, engine: Engine) -> None:
    """Make the flushes."""
    frontier = restore.open_frontier(directory, memory=32 << 20, engine=engine, made=Reading)
    assert isinstance(frontier, Reading)
    for number in range(1, flushes + 1):
        errand(frontier, number)
        frontier.flush([(b"mtest", b"%d" % number)])
        print(number, flush=True)


if __name__ == "__main__":
    run(Path(sys.argv[1]), int(sys.argv[2]), cast(Engine, sys.argv[3]))
