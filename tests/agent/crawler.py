"""A crawl without Scrapy: crawlers that drive a node as the adapters do, a small web, and its log, which judges."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from scrapy_ubi.adapter.requests.identity import RequestKeys
from scrapy_ubi.agent import NodeEvents, Start, Visit, build_node
from scrapy_ubi.agent.crawl.disk import NoDisk
from scrapy_ubi.agent.group.beats import Beats
from scrapy_ubi.agent.mail.exchange_loop import ExchangeLoop
from scrapy_ubi.protocol.host import Entry
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.transport.in_process import MemoryHub, MemoryTransport
from scrapy_ubi.urls import normal_form, partition_key, url_key

SETTINGS = UbiSettings(
    crawl="test",
    heartbeat_interval=0.05,
    lease_timeout=0.6,
    failure_timeout=1.0,
    flush_interval=0.02,
    resend_timeout=0.5,
    leave_timeout=5.0,
    redis_wait=0.1,
)
LIMIT = 60.0  # s; a condition that has not come true by then never will


def crawl(what: Callable[[], Awaitable[None]]) -> None:
    """Run a test."""
    asyncio.run(asyncio.wait_for(what(), 3 * LIMIT))


def entry(url: str, depth: int = 0) -> tuple[str, Entry]:
    """Host and entry of a page."""
    host, normal = partition_key(url, "host"), normal_form(url)
    assert host is not None
    assert normal is not None
    return host, Entry(url_key("GET", normal, b""), url, depth)


def links(url: str) -> list[str]:
    """The links of a page: 8 hosts of 20 pages in all."""
    host, page = int(url[8 : url.index(".")]), int(url.rsplit("/", 1)[1])
    return [f"http://h{(host + step) % 8}.example/{(page * 3 + step) % 20}" for step in (0, 1, 3)]


def reachable(seeds: list[str]) -> set[str]:
    """Every page that can be reached."""
    want, todo = set(seeds), list(seeds)
    for url in todo:
        new = set(links(url)) - want
        want |= new
        todo += new
    return want


class Log:
    """The web's side: fetches, and that no two were at one host. With `hold_after` it stops answering after so many,
    `held` tells, and goes on when `go` is set.
    """

    def __init__(self, hold_after: int | None = None) -> None:
        self.fetched: Counter[str] = Counter()
        self.busy: set[str] = set()
        self.fatal: list[str] = []
        self.hold_after = hold_after
        self.held = asyncio.Event()
        self.go = asyncio.Event()

    @contextmanager
    def load(self, host: str, url: str) -> Iterator[None]:
        """A request is here until the end of the block."""
        assert host not in self.busy, f"two loads of {host} at once"
        self.busy.add(host)
        try:
            yield
            self.fetched[url] += 1
        finally:
            self.busy.discard(host)

    async def answer(self) -> None:
        """Wait as long as an answer takes."""
        if self.hold_after is not None and sum(self.fetched.values()) >= self.hold_after:
            self.held.set()
            await self.go.wait()
        await asyncio.sleep(0.001)

    def judge(self, seeds: list[str], most: int = 1) -> None:
        """Every page was fetched, none more often than that."""
        assert self.fetched.keys() == reachable(seeds)
        assert max(self.fetched.values()) <= most


class Told(NodeEvents):
    """What the node of this crawler tells."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler

    def wake(self) -> None:
        self.crawler.wake.set()

    def cancel(self) -> None:
        self.crawler.cancel()

    def fatal(self, sentence: str) -> None:
        self.crawler.log.fatal.append(sentence)

    def given_up(self, reason: str) -> None:
        self.crawler.given_up.append(reason)

    def drain(self) -> None:
        self.crawler.drain()

    def limit(self, reason: str, sentence: str) -> None:
        self.crawler.limited.append((reason, sentence))

    def incarnation(self, incarnation: str) -> None:
        self.crawler.incarnations.append(incarnation)


class Crawler:
    """Fetches what its node hands out, one load at a time per permit, and discovers the links."""

    def __init__(self, hub: MemoryHub, name: str, log: Log, settings: UbiSettings = SETTINGS) -> None:
        self.log, self.name = log, name
        self.wake = asyncio.Event()
        self.stopping = False
        self.cancels = 0
        self.given_up: list[str] = []
        self.limited: list[tuple[str, str]] = []
        self.incarnations: list[str] = []  # as they were noted
        self.disk = NoDisk(settings.host_delay)
        self.loads: set[asyncio.Task[None]] = set()
        self.refused: str | None = None  # what `check` says of a request
        self.transport = MemoryTransport(hub, name, settings.crawl)
        self.node = build_node(
            settings,
            self.transport,
            Start(name, "test"),
            lambda request: self.refused,
            RequestKeys(settings),
            Told(self),
            disk=self.disk,
        )

    @property
    def beats(self) -> Beats:
        """The part of its node that reads and publishes beats."""
        return self.node.lifecycle.beats

    @property
    def exchanges(self) -> ExchangeLoop:
        """The part of its node that carries mail."""
        return self.node.lifecycle.exchanges

    def started_earlier(self, seconds: float) -> None:
        """Its process has been there for longer than it was."""
        self.node.lifecycle.join._started -= seconds

    def start(self, seeds: list[str]) -> asyncio.Task[None]:
        """Run beside the test."""
        self.task = asyncio.ensure_future(self.run(seeds))
        return self.task

    async def run(self, seeds: list[str]) -> None:
        await self.node.open()
        for url in seeds:
            self.node.discover(*entry(url))
        self.node.agent.end.start_exhausted = True
        while not self.node.over and not self.stopping:
            while (visit := self.node.next_visit()) is not None:
                task = asyncio.ensure_future(self.fetch(visit))
                self.loads.add(task)
                task.add_done_callback(self.loads.discard)
            self.wake.clear()
            async with asyncio.timeout(LIMIT):  # not wait_for, which in Python 3.11 may swallow a crash
                await self.wake.wait()
        self.cancel()
        await asyncio.gather(*self.loads, return_exceptions=True)
        await self.node.leave("test")

    def stop(self) -> None:
        """SIGTERM: no new fetches, hand over, go."""
        self.stopping = True
        self.wake.set()

    async def crash(self) -> None:
        """kill -9. An exchange under way may still reach Redis, but nobody hears what it brings."""
        self.exchanges.detach()
        self.node.lifecycle.ticker.stop()
        await self.transport.stop_beating(None)
        self.task.cancel()
        for load in self.loads:
            load.cancel()
        await asyncio.gather(self.task, *self.loads, return_exceptions=True)

    def drain(self) -> None:
        """A person wants it to leave."""
        self.stop()

    def cancel(self) -> None:
        """Abort all loads."""
        self.cancels += 1
        for load in self.loads:
            load.cancel()

    async def fetch(self, visit: Visit) -> None:
        try:
            if not await self.node.access.permit(visit.host, visit):
                self.node.put_back(visit)
                return
            try:
                with self.log.load(visit.host, visit.entry.url):
                    await self.log.answer()
            finally:
                self.node.access.release(visit.host, visit)
        except asyncio.CancelledError:
            self.node.put_back(visit)
            raise
        self.read(visit)

    def read(self, visit: Visit) -> None:
        """What becomes of a page that was loaded."""
        for url in links(visit.entry.url):
            self.node.discover(*entry(url, visit.entry.depth + 1), page=visit)
        self.node.end_visit(visit)
