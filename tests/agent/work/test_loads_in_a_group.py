"""A host with several loads at once changes its owner while they are open: never more than allowed, by its log."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from scrapy_ubi.agent import Visit
from scrapy_ubi.settings.loads_at_once import read_loads
from scrapy_ubi.transport.in_process import MemoryHub
from tests.agent.crawler import LIMIT, SETTINGS, Crawler, Log, crawl, entry

HOST, PAGES, MOST = "h0.example", 400, 3
SEED = f"http://{HOST}/0"


class Counting(Log):
    """Counts the loads of each host, and asserts that they are no more than are allowed; each takes a while."""

    def __init__(self, most: int = MOST) -> None:
        super().__init__()
        self.most, self.now, self.reached = most, Counter[str](), Counter[str]()
        self.by: set[str] = set()

    @contextmanager
    def load(self, host: str, url: str) -> Iterator[None]:
        self.now[host] += 1
        self.reached[host] = max(self.reached[host], self.now[host])
        assert self.now[host] <= self.most, f"{self.now[host]} loads of {host} at once"
        try:
            yield
            self.fetched[url] += 1
        finally:
            self.now[host] -= 1

    async def answer(self) -> None:
        await asyncio.sleep(0.02)


class Big(Crawler):
    """Its first page leads to all pages of one host."""

    def read(self, visit: Visit) -> None:
        if visit.entry.url == SEED:
            for number in range(PAGES):
                self.node.discover(*entry(f"http://{HOST}/{number}", 1), page=visit)
        assert isinstance(self.log, Counting)
        self.log.by.add(self.name)
        self.node.end_visit(visit)


async def until(log: Log, pages: int) -> None:
    async with asyncio.timeout(LIMIT):
        while len(log.fetched) < pages:
            await asyncio.sleep(0.005)


def owner(group: list[Big]) -> Big:
    return next(one for one in group if not one.task.done() and one.node.agent.keeping.owns(HOST))


def test_through_joins_a_leave_and_a_kill_no_more_are_open_at_once() -> None:
    async def run() -> None:
        hub, log = MemoryHub(), Counting()
        settings = replace(SETTINGS, host_concurrency=read_loads(MOST))
        group = [Big(hub, "a0", log, settings)]
        group[0].start([SEED])
        await until(log, 20)
        for number in range(1, 5):  # until one of them is the owner
            group.append(Big(hub, f"a{number}", log, settings))
            group[-1].start([])
            await until(log, 20 + 30 * number)
        owner(group).stop()  # it hands over while loads are open
        await until(log, 220)
        heir = owner(group)
        await heir.crash()
        log.now.clear()  # its connections are closed
        rest = [one for one in group if one is not heir]
        await asyncio.gather(*(one.task for one in rest))
        assert log.fetched.keys() == {f"http://{HOST}/{number}" for number in range(PAGES)}
        assert log.reached[HOST] == MOST
        assert len(log.by) > 1
        again = sum(count - 1 for count in log.fetched.values())
        assert again <= MOST + 20, "what the lost one had not told of"

    crawl(run)
