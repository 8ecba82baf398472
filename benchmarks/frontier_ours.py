"""scrapy_ubi's frontiers in the frontier benchmark: in memory, on disk with the exact seen table, on disk with filters.

An offer is what the protocol does with a link to a host of its own: it asks whether the host's state holds the key, and
where it does not, adds an entry. A pop is followed, some pops later, by what ends a load: done, and the host is free
for the next one after its delay.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from frontier_load import Links, host_name, mixed, text

from scrapy_ubi.frontier.disk_frontier import DiskFrontier
from scrapy_ubi.frontier.memory import MemoryFrontier
from scrapy_ubi.frontier.restore import open_frontier
from scrapy_ubi.protocol.host import Entry, HostState

DELAY = 1.0  # s between two loads of a host, by a clock that leaps to the next host that is ready
FLUSH = 5000  # records: what comes together in 200 ms at 250,000 offers/s
DRAWN = 100_000  # keys that are looked for after a kill
Offer = tuple[str, int, int, str]  # host, key, depth, URL


class InMemory:
    """`frontier.memory`, as agents without a disk have it."""

    frontier: Any

    def __init__(self, name: str, directory: Path, redis_port: int | None) -> None:
        self.now = 0.0
        self.frontier = MemoryFrontier(DELAY)

    @classmethod
    def rehearse(cls, links: Links) -> None:
        """What the benchmark needs for itself is in memory afterwards."""
        cls.prepare(links)

    @staticmethod
    def prepare(links: Links) -> list[Offer]:
        """What is at hand before an offer; texts of host names are new ones for every link, as in a crawl."""
        return [
            (host_name(host), key, depth, text(host, bits) if new else "")
            for host, key, depth, bits, new in zip(
                links.hosts, links.keys, links.depths, links.bits, links.news, strict=True
            )
        ]

    def make(self, offers: list[Offer]) -> list[Offer]:
        """Nothing is made of a link before it is known to be new."""
        return offers

    def offer(self, offers: list[Offer]) -> int:
        """Offer all; how many were taken for new."""
        find, add = self.frontier.find, self.frontier.add
        news = 0
        for host, key, depth, url in offers:
            state = find(host)
            if state is None or not state.holds(key, depth, 0):
                news += len(add(host, (Entry(key, url, depth),))[1])
        return news

    def pop(self, most: int) -> list[tuple[HostState, Entry]]:
        """The next entries, of as many hosts; fewer when no more hosts have any."""
        found = []
        while len(found) < most:
            one = self.frontier.pop(self.now, _allowed)
            if one is not None:
                found.append(one)
            elif not self._wait():
                break
        return found

    def _wait(self) -> bool:
        """The clock leaps to the next host that is ready; False when there is none."""
        ready = self.frontier.next_ready()
        if ready is None:
            return False
        self.now = max(self.now, ready)
        return True

    def finish(self, popped: list[tuple[HostState, Entry]]) -> None:
        """All of these are done, their hosts free after the delay."""
        finish, free, now = self.frontier.finish, self.frontier.free, self.now
        for state, entry in popped:
            finish(state, entry.key)
            free(state, now)

    def settle(self) -> None:
        """Write what there is to be written."""


class OnDisk(InMemory):
    """`frontier.disk`: flushed, and synced, every 5,000 records; heads of queues are read when they are needed."""

    def __init__(self, name: str, directory: Path, redis_port: int | None) -> None:
        self.now = 0.0
        self.frontier = opened(name, directory)
        self._pending = 0

    def offer(self, offers: list[Offer]) -> int:
        """Offer all; how many were taken for new."""
        news = super().offer(offers)
        self._changed(news)
        return news

    def _wait(self) -> bool:
        return self.frontier.load(self.now, _allowed) or super()._wait()

    def finish(self, popped: list[tuple[HostState, Entry]]) -> None:
        """All of these are done, their hosts free after the delay."""
        super().finish(popped)
        self._changed(len(popped))

    def _changed(self, records: int) -> None:
        self._pending += records
        if self._pending >= FLUSH:
            self.settle()

    def settle(self) -> None:
        """Write what there is to be written."""
        self.frontier.flush()
        self._pending = 0


def opened(name: str, directory: Path) -> DiskFrontier:
    """The frontier on disk in this directory, with the memory that an agent has by default."""
    where = {"disk": ("seen", "SeenTable"), "bloom": ("bloom", "SeenBloom")}
    module, kind = where[name]
    found = getattr(importlib.import_module(f"scrapy_ubi.frontier.{module}"), kind)
    return open_frontier(directory, delay=DELAY, kind=found)


def reopen(spec: Mapping[str, Any]) -> dict[str, Any]:
    """What a killed process left, opened by this one: how long it takes, and whether it knows what was known."""
    from frontier_run import memory

    directory = Path(spec["directory"])
    before, cpu, wall = memory(), time.process_time(), time.monotonic()
    frontier = opened(spec["system"], directory)
    row = {"cpu": time.process_time() - cpu, "wall": time.monotonic() - wall}
    later = 1e9  # all hosts may be fetched by then
    frontier.load(later, _allowed)
    assert frontier.pop(later, _allowed) is not None
    row["first_pop"] = time.monotonic() - wall
    row["memory"] = memory()["VmRSS"] - before["VmRSS"]
    known = np.load(directory.with_suffix(".known.npy"))
    draw = np.random.default_rng(spec["seed"])
    hosts = draw.integers(0, len(known), DRAWN)
    numbers = (draw.random(DRAWN) * known[hosts]).astype(np.int64)
    row["missing"] = DRAWN - _held(frontier, hosts, numbers)
    row["taken_for_known"] = _held(frontier, hosts, known[hosts] + 1 + numbers)
    return row


def _held(frontier: DiskFrontier, hosts: Any, numbers: Any) -> int:
    """How many of these URLs the frontier knows."""
    keys = mixed(mixed(hosts.astype(np.uint64) << np.uint64(32) | numbers.astype(np.uint64)))
    states = (frontier.find(host_name(host)) for host in hosts.tolist())
    return sum(state is not None and state.is_known(key) for state, key in zip(states, keys.tolist(), strict=True))


def _allowed(state: HostState) -> bool:
    return True
