"""Whole agents without Scrapy: a production node on a production frontier, keeper and post, each in an event loop of
its own. Time is the world's, so nothing real is waited for: a process that is killed is a loop that turns no more, one
that is paused a loop that turns later. Only what lies below is simulated: the disk, which reads and writes as slowly as
`World.io` says, the way to Redis, the web.
"""

from __future__ import annotations

import asyncio
import heapq
import threading
import time
from asyncio import events
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from sortedcontainers import SortedDict

from scrapy_ubi.adapter.requests.identity import RequestKeys
from scrapy_ubi.agent import Node, NodeEvents, Start, Visit, build_node
from scrapy_ubi.agent.crawl.disk import AgentDisk
from scrapy_ubi.frontier import ledger, restore
from scrapy_ubi.frontier.store import StoreFull
from scrapy_ubi.policy.ranking import read_rank
from scrapy_ubi.protocol.host import retried, retries_of
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.transport import Incoming, Outgoing, TransportDown, TransportFull
from scrapy_ubi.transport.in_process import MemoryHub, MemoryTransport
from tests.frontier.frontiers import DictKind, DictSeen
from tests.simulation.process import entry, host_of
from tests.simulation.world import Web
from tests.support.memory_store import MemoryStore


class World(Protocol):
    """What a process finds around it. Times in seconds."""

    now: float
    settings: UbiSettings
    hub: MemoryHub
    web: Web
    seeds: list[str]
    rows: int  # that may be in memory, and
    head: int  # of one host
    concurrency: int
    max_letters: int

    def io(self) -> float: ...
    def lag(self) -> float: ...
    def load_time(self) -> float: ...
    def draws(self, chance: float) -> bool: ...
    def load(self, process: Process, url: str) -> Any: ...
    def has_loaded(self, process: Process, url: str) -> None: ...
    def has_left(self, process: Process) -> None: ...
    def is_refused(self, process: Process) -> None: ...


class Loop(asyncio.BaseEventLoop):
    """An event loop that turns when `step` is called, at the world's time."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world, self._selector, self._errors = world, self, list[BaseException]()
        self._thread_id = threading.get_ident()
        self.set_exception_handler(
            lambda loop, context: self._errors.append(context.get("exception") or AssertionError(context["message"]))
        )

    def time(self) -> float:
        return self._world.now

    def select(self, timeout: float | None) -> list[Any]:
        return []

    def _process_events(self, event_list: list[Any]) -> None: ...

    def _write_to_self(self) -> None: ...

    def due(self) -> float | None:
        """When it has something to do; None when it has nothing, whatever the time."""
        if self._ready:
            return self._world.now
        while self._scheduled and self._scheduled[0].cancelled():
            heapq.heappop(self._scheduled)._scheduled = False
            self._timer_cancelled_count -= 1
        return max(self._world.now, self._scheduled[0].when()) if self._scheduled else None

    @contextmanager
    def running(self) -> Iterator[None]:
        events._set_running_loop(self)
        try:
            yield
        finally:
            events._set_running_loop(None)

    def step(self) -> None:
        """Turn once. What nobody has caught is raised."""
        with self.running():
            self._run_once()
        if self._errors:
            raise self._errors[0]


class Files:
    """What outlives a process."""

    def __init__(self) -> None:
        self.rows = SortedDict()
        self.seen: DictSeen | None = None
        self.incarnation: str | None = None
        self.full = False

    def store(self) -> MemoryStore:
        def refuse(number: int) -> None:
            if self.full:
                raise StoreFull("No room.")

        return MemoryStore(self.rows, before_write=refuse)


class SlowKeeper(AgentDisk):
    """The keeper of such files, without threads."""

    def __init__(self, world: World, files: Files, clock: Callable[[], float]) -> None:
        super().__init__(Path("disk"), world.settings, clock)
        self.history = None  # there are no threads
        self._world, self._files = world, files

    def _apart(self, call: Callable[..., Any], *arguments: Any) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()

        def run() -> None:
            try:
                loop.call_later(self._world.io(), give, future.set_result, call(*arguments))
            except Exception as error:  # noqa: BLE001 - it is the future's, whatever it is
                give(future.set_exception, error)

        def give(to: Callable[[Any], None], what: Any) -> None:
            if not future.done():
                to(what)

        loop.call_later(self._world.io(), run)
        return future

    def _open(self) -> None:
        delay, unix = self._settings.host_delay, time.time()
        left = DictKind(self._files.seen)
        self.frontier = restore.restore(
            self._files.store(),
            Path("seen"),
            delay=delay,
            offset=unix - self._clock(),
            earliest=unix + delay,
            kind=left,
        )
        self._files.seen = self.frontier.seen
        window, head = self.frontier.window, self._world.head
        window.most, window.head, window.grown = self._world.rows, head, 2 * head
        self.frontier.check_invariants()
        self.saved, self.facts = ledger.load(self.frontier.store), ledger.load_crawl(self.frontier.store)

    async def start(self) -> None:
        await self._apart(self._open)


class SlowTransport(MemoryTransport):
    """The way to the hub takes its time; `cut`: it leads nowhere."""

    cut = False
    world: World

    async def _trip(self) -> None:
        await asyncio.sleep(self.world.lag())
        if self._hub.down or self.cut:
            raise TransportDown("It is away.")

    async def exchange(self, out: Outgoing) -> Incoming:
        incoming = await super().exchange(out)
        await self._trip()
        return incoming

    def _write_beat(self, agent: str, line: str) -> bool:
        return not self.cut and super()._write_beat(agent, line)

    def _look(self, agent: str) -> dict[str, str] | None:
        return None if self.cut else super()._look(agent)

    def now(self) -> float:
        return self.world.now


class Told(NodeEvents):
    """What the node of this process tells."""

    def __init__(self, process: Process) -> None:
        self.process = process

    def wake(self) -> None:
        self.process._wake.set()

    def cancel(self) -> None:
        self.process._cancel()

    def fatal(self, sentence: str) -> None:
        raise AssertionError(f"{self.process.name}: {sentence}")

    def incarnation(self, incarnation: str) -> None:
        self.process.files.incarnation = incarnation


class Process:
    """A crawler, on these files; `up` until it has ended, and `node` is None before it has begun. `excused`: it has
    kept what it knows, and said so.
    """

    def __init__(self, world: World, name: str, files: Files, offset: float) -> None:
        self.world, self.name, self.files, self._offset = world, name, files, offset
        self.up, self.paused, self.stopping, self.excused = True, False, False, False
        self.node: Node | None = None
        self.transport = SlowTransport(world.hub, name, world.settings.crawl, max_letters=world.max_letters)
        self.transport.world = world
        self._visits: set[asyncio.Task[None]] = set()
        self._wake = asyncio.Event()
        self.loop = Loop(world)
        with self.loop.running():
            self.task = self.loop.create_task(self._run())

    def clock(self) -> float:
        return self.world.now + self._offset

    def step(self) -> None:
        self.loop.step()
        if self.task.done():
            self.up = False
            self.task.result()

    async def _begin(self) -> Node:
        started = self.clock()
        world, files, keeper = self.world, self.files, SlowKeeper(self.world, self.files, self.clock)
        await keeper.start()
        node = build_node(
            world.settings,
            self.transport,
            Start(self.name, "test", predecessor=files.incarnation, started=started),
            lambda request: None,
            RequestKeys(world.settings),
            Told(self),
            self.clock,
            keeper,
        )
        if node.iterations is not None and world.settings.rank is not None:
            node.iterations.ranker = read_rank(world.settings.rank)
        return node

    async def _run(self) -> None:
        world, node = self.world, await self._begin()
        try:
            await node.open()
        except TransportFull:
            world.is_refused(self)
            return
        self.node = node
        for url in world.seeds:
            node.discover(host_of(url), entry(url, 0), seed=True)
        node.agent.end.start_exhausted = True
        while not node.over and not self.stopping:
            while len(self._visits) < world.concurrency and (visit := node.next_visit()) is not None:
                task = asyncio.ensure_future(self._visit(node, visit))
                self._visits.add(task)
                task.add_done_callback(self._visited)
            self._wake.clear()
            await self._wake.wait()
        if node.over:
            self._cancel()
        await asyncio.gather(*self._visits, return_exceptions=True)
        await node.leave("test")
        world.has_left(self)

    def _visited(self, task: asyncio.Task[None]) -> None:
        self._visits.discard(task)
        self._wake.set()
        if not task.cancelled():
            task.result()

    def stop(self) -> None:
        """SIGTERM: no new fetches, hand over, go."""
        self.stopping = True
        self._wake.set()

    def _cancel(self) -> None:
        for task in self._visits:
            task.cancel()

    async def _visit(self, node: Node, visit: Visit) -> None:
        url, world = visit.entry.url, self.world
        try:
            if not await node.access.permit(visit.host, visit):
                node.put_back(visit)
                return
            again = retries_of(visit.entry.request) < 2 and world.draws(0.05)
            try:
                with world.load(self, url):
                    await asyncio.sleep(world.load_time())
            finally:
                node.access.release(visit.host, visit)
        except asyncio.CancelledError:
            node.put_back(visit)
            raise
        if again:
            node.retry(visit, retried(visit.entry, visit.entry))
        else:
            world.has_loaded(self, url)
            for link in world.web.links(url):
                node.discover(host_of(link), entry(link, visit.entry.depth + 1), page=visit)
        node.end_visit(visit)
