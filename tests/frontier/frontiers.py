"""Every frontier there is, as tests make it: with a politeness delay (s), and all else it needs brought along."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from shutil import rmtree
from typing import Protocol

from scrapy_ubi.frontier import restore as opening
from scrapy_ubi.frontier.disk_frontier import DiskFrontier
from scrapy_ubi.frontier.memory import MemoryFrontier
from scrapy_ubi.frontier.seen import SeenDamaged, Totals
from scrapy_ubi.frontier.store import Store
from scrapy_ubi.protocol.frontier_contract import Frontier
from scrapy_ubi.protocol.host import Entry, HostState
from tests.support.memory_store import MemoryStore


class Checked(Frontier, Protocol):
    """What every frontier has beside the protocol's needs: for the node, and for tests."""

    def next_ready(self) -> float | None: ...

    def check_invariants(self) -> None: ...


Make = Callable[[float], Checked]


class DictSeen:
    """A seen table that is a dict."""

    def __init__(self, path: Path, keys: dict[int, int], flush: int) -> None:
        self.path, self.keys, self.flush, self.written = path, keys, flush, 0
        self.memory = 0
        self.rebuilt = 0

    def status(self, key: int) -> int:
        return self.keys.get(key, 0)

    def apply(self, changes: Mapping[int, int]) -> None:
        for key, status in changes.items():
            self.keys[key] = max(status, self.keys.get(key, 0))

    def totals(self) -> Totals | None:
        known = known_xor = done = done_xor = 0
        for key, status in self.keys.items():
            known, known_xor = known + 1, known_xor ^ key
            if status == 2:
                done, done_xor = done + 1, done_xor ^ key
        return Totals(known, known_xor, done, done_xor)

    def rebuild(self, changes: Iterable[tuple[int, int]], flush: int) -> None:
        self.keys = {}
        for key, status in changes:
            self.apply({key: status})
        self.flush = flush
        self.rebuilt += 1

    def sync(self) -> None: ...

    def close(self) -> None: ...


class DictKind:
    """The file of a `DictSeen`: `left` is what the last process left, None where there is no file."""

    def __init__(self, left: DictSeen | None = None, damaged: bool = False) -> None:
        self.left, self.damaged = left, damaged

    def open(self, path: Path) -> DictSeen:
        if self.damaged:
            raise SeenDamaged(path, "was damaged by the test")
        if self.left is None:
            raise FileNotFoundError(path)
        return DictSeen(path, dict(self.left.keys), self.left.flush)

    def create(self, path: Path) -> DictSeen:
        return DictSeen(path, {}, 0)


class Reading(DiskFrontier):
    """A frontier on disk that reads what it needs when it is asked. `eager`: it flushes before."""

    eager = False

    def is_full_at(self, now: float) -> bool:
        """Whether memory is full of rows of hosts that are busy or have to wait: others are read when there is room."""
        busy = self.workbench.is_busy
        rows = [len(state.head) for state in self._states.values() if busy(state) or state.next_at > now]
        return sum(rows) >= self.window.most

    def pop(self, now: float, allowed: Callable[[HostState], bool]) -> tuple[HostState, Entry] | None:
        if self.eager:
            self.flush()
        while (found := super().pop(now, allowed)) is None and self.load(now, allowed):
            pass
        return found

    def next_ready(self) -> float | None:
        self.load(-self.window._ahead, lambda state: True)
        read = self.window._now if self.window._late else None  # those being read
        times = (super().next_ready(), self.window.resting.next_ready(), read)
        return min((time for time in times if time is not None), default=None)


class Tight(Reading):
    """One row of a queue is in memory at a time, of two hosts; everything is flushed and read again and again."""

    eager = True

    def __init__(self, store: Store, seen: DictSeen, saved: Mapping[str, int], **others: float) -> None:
        super().__init__(store, seen, saved, **others)  # type: ignore[arg-type]
        self.window.head, self.window.grown, self.window.most = 1, 1, 2


def in_memory_store(kind: type[DiskFrontier] = Reading) -> Make:
    """A frontier on disk, its store and seen table in memory."""

    def make(delay: float) -> Checked:
        return reopened(MemoryStore(), DictKind(), delay, kind)

    return make


def reopened(store: Store, seen: DictKind, delay: float = 0.0, kind: type[DiskFrontier] = Reading) -> Reading:
    """The frontier that a process finds in a store."""
    frontier = opening.restore(store, Path("seen"), delay=delay, kind=seen, made=kind)
    assert isinstance(frontier, Reading)
    return frontier


def resting(kind: type[Reading] = Reading, keys: int = 3) -> tuple[Reading, HostState]:
    """A frontier just opened, with one host whose entries, at depth 5, are all on disk."""
    store = MemoryStore()
    first = reopened(store, DictKind(), kind=kind)
    first.add("h", [Entry(key, f"http://h/{key}", 5) for key in range(1, keys + 1)])
    first.flush()
    frontier = reopened(store, DictKind(first.seen), kind=kind)
    state = frontier.find("h")
    assert state is not None
    assert frontier.rests(state)
    return frontier, state


def popped(frontier: Reading) -> list[int]:
    """The keys that come, one after the other."""
    found = []
    while (one := frontier.pop(1e9, lambda state: True)) is not None:
        found.append(one[1].key)
        frontier.finish(one[0], one[1].key)
        frontier.free(one[0], 0.0)
        frontier.check_invariants()
    return found


def on_disk(delay: float) -> Checked:
    """A frontier with RocksDB and a seen table in a directory of its own."""
    directory = tempfile.mkdtemp(prefix="frontier-")
    frontier = opening.open_frontier(Path(directory), delay=delay, memory=32 << 20, made=Reading)
    weakref.finalize(frontier, _remove, directory, frontier.store, frontier.seen)
    return frontier


def _remove(directory: str, store: Store, seen: object) -> None:
    seen.close()
    store.close()
    rmtree(directory, ignore_errors=True)


FRONTIERS: dict[str, Make] = {
    "memory": MemoryFrontier,
    "disk": in_memory_store(),
    "tight": in_memory_store(Tight),
    "rocks": on_disk,
}
