"""Several nodes in one event loop, over the in-memory transport: the crawl without Scrapy."""

from __future__ import annotations

import asyncio
import dataclasses
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest

from scrapy_ubi.errors import UbiRefused
from scrapy_ubi.node import Node
from scrapy_ubi.protocol.host import Entry
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.transport.memory import MemoryHub, MemoryTransport
from scrapy_ubi.urls import normal_form, partition_key, url_key

SETTINGS = UbiSettings(
    crawl="test",
    heartbeat_interval=0.05,
    lease_timeout=0.6,
    failure_timeout=1.0,
    flush_interval=0.02,
    resend_timeout=0.5,
    leave_timeout=5.0,
)
LIMIT = 20.0  # s; a condition that has not come true by then never will


def entry(url: str, depth: int = 0) -> tuple[str, Entry]:
    host, normal = partition_key(url, "host"), normal_form(url)
    assert host is not None and normal is not None
    return host, Entry(url_key("GET", normal, b""), url, depth)


def links(url: str) -> list[str]:
    host, page = int(url[8 : url.index(".")]), int(url.rsplit("/", 1)[1])
    return [f"http://h{(host + step) % 8}.example/{(page * 3 + step) % 20}" for step in (0, 1, 3)]


class Crawler:
    """Fetches what its node hands out, one load at a time per permit, and discovers the links."""

    def __init__(self, hub: MemoryHub, name: str, log: Log, settings: UbiSettings = SETTINGS) -> None:
        self.log, self.name = log, name
        self.wake = asyncio.Event()
        self.node = Node(
            settings,
            MemoryTransport(hub, name, settings.crawl),
            agent_id=name,
            spider="test",
            check=lambda request: None,
            on_wake=self.wake.set,
            on_fatal=log.fatal.append,
        )

    async def run(self, seeds: list[str]) -> None:
        await self.node.open()
        for url in seeds:
            self.node.discover(*entry(url))
        self.node.start_exhausted()
        loads: set[asyncio.Task[None]] = set()
        while not self.node.over:
            while (visit := self.node.next()) is not None:
                task = asyncio.ensure_future(self.fetch(visit))
                loads.add(task)
                task.add_done_callback(loads.discard)
            self.wake.clear()
            await asyncio.wait_for(self.wake.wait(), LIMIT)
        await self.node.leave("finished")

    async def fetch(self, visit) -> None:
        if not await self.node.permit(visit.host, visit):
            self.node.put_back(visit)
            return
        with self.log.load(visit.host, visit.entry.url):
            await asyncio.sleep(0.001)
        self.node.release(visit.host, visit)
        for url in links(visit.entry.url):
            self.node.discover(*entry(url, visit.entry.depth + 1))
        self.node.ended(visit)


class Log:
    """The web's side: fetches, and whether two were at one host."""

    def __init__(self) -> None:
        self.fetched: Counter[str] = Counter()
        self.busy: set[str] = set()
        self.fatal: list[str] = []

    def load(self, host: str, url: str):
        import contextlib

        @contextlib.contextmanager
        def loading():
            assert host not in self.busy, f"two loads of {host} at once"
            self.busy.add(host)
            self.fetched[url] += 1
            yield
            self.busy.discard(host)

        return loading()

    def judge(self, seeds: list[str]) -> None:
        want, todo = set(seeds), list(seeds)
        for url in todo:
            new = set(links(url)) - want
            want |= new
            todo += new
        assert self.fetched.keys() == want
        assert max(self.fetched.values()) == 1


def crawl(what: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(what(), 3 * LIMIT))


@pytest.mark.parametrize("agents", [1, 3])
def test_nodes_fetch_every_page_once_and_all_end(agents: int) -> None:
    async def run() -> None:
        hub, log, seeds = MemoryHub(), Log(), ["http://h0.example/1", "http://h5.example/2"]
        crawlers = [Crawler(hub, f"a{i}", log) for i in range(agents)]
        await asyncio.gather(*(crawler.run(seeds) for crawler in crawlers))
        log.judge(seeds)

    crawl(run)


def test_seeds_of_one_agent_only_are_enough() -> None:
    async def run() -> None:
        hub, log, seeds = MemoryHub(), Log(), ["http://h0.example/1"]
        crawlers = [Crawler(hub, f"a{i}", log) for i in range(3)]
        await asyncio.gather(*(c.run(seeds if c is crawlers[0] else []) for c in crawlers))
        log.judge(seeds)

    crawl(run)


def test_second_process_with_one_identifier_is_refused() -> None:
    async def run() -> None:
        hub, log = MemoryHub(), Log()
        first, second = Crawler(hub, "a", log), Crawler(hub, "a", log)
        await first.node.open()
        with pytest.raises(UbiRefused, match="UBI_AGENT_ID"):
            await second.node.open()
        await first.node.leave("test")

    crawl(run)


def test_agent_that_differs_in_partition_is_refused() -> None:
    async def run() -> None:
        hub, log = MemoryHub(), Log()
        first = Crawler(hub, "a", log)
        second = Crawler(hub, "b", log, dataclasses.replace(SETTINGS, partition="domain"))
        await first.node.open()
        while not await second.node.transport.profiles():
            await asyncio.sleep(0)
        with pytest.raises(UbiRefused, match="UBI_PARTITION"):
            await second.node.open()
        await first.node.leave("test")

    crawl(run)


def test_start_under_the_name_of_a_finished_crawl_begins_a_new_one() -> None:
    async def run() -> None:
        hub, seeds = MemoryHub(), ["http://h0.example/1"]
        for _ in range(2):
            log = Log()
            await Crawler(hub, "a", log).run(seeds)
            log.judge(seeds)

    crawl(run)
