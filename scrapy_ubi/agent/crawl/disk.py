"""An agent's disk, as its node uses it (docs/explanation/protocol.md#flush-and-restart, P8).

Rules of this module:

* One directory an agent: `store/` (the rows of frontier and ledger) and `seen` (the table of known keys), beside what
  `identity` keeps there.
* The loop collects a flush, the I/O thread writes it, and the loop hears of it: the loop never waits for the
  disk. The same for what is read of the queues of hosts whose turn has come.
* A store that is damaged is set aside under another name, and no new one is begun silently: the start is refused with a
  sentence that says what was found and where it is now, and the next start goes on without it. One that turns out to be
  damaged in mid-crawl stops the agent, and is set aside when it is closed.
* A store that has lost its last flushes, as its log is torn, is gone on with, by a warning (`frontier.restore`).
* After a restart no host is fetched before its delay has passed: it is not known what was under
  way when a process was killed.
* What is kept of the crawl beside the protocol's matter: the *run* it belongs to, whether that is finished, the
  settings that may not change while URLs wait (`pinned_settings`), and the counters.
* What pages leave behind beside the store (`KeptOutputs`: files, a user's database) is written before the flush that
  says of them that they are done, and the lengths of the files stand in that flush (P9).
* `NoDisk` stands in where nothing is to be kept (a look at a page or two).
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from scrapy_ubi.agent.crawl.disk_contract import Allowed, KeptOutputs
from scrapy_ubi.agent.crawl.revisits import recrawl_of
from scrapy_ubi.agent.crawl.store_files import clean, delete, set_aside
from scrapy_ubi.errors import UbiDirectoryError
from scrapy_ubi.frontier import ledger
from scrapy_ubi.frontier.bloom import SeenBloom
from scrapy_ubi.frontier.disk_frontier import DiskFrontier
from scrapy_ubi.frontier.flush import Flush
from scrapy_ubi.frontier.memory import MemoryFrontier
from scrapy_ubi.frontier.restore import SeenKind, open_frontier
from scrapy_ubi.frontier.scan import Result
from scrapy_ubi.frontier.seen import SeenDamaged, SeenTable
from scrapy_ubi.frontier.store import StoreDamaged, StoreError
from scrapy_ubi.ground.clock import is_ahead, unix
from scrapy_ubi.ground.untrusted.checks import is_number
from scrapy_ubi.protocol.snapshot import Changes, GroupState, Saved
from scrapy_ubi.settings import UbiSettings

logger = logging.getLogger("scrapy_ubi")

KINDS: dict[str, SeenKind] = {"exact": SeenTable, "bloom": SeenBloom}  # by UBI_SEEN
SUPPRESSED_BYTES = 9  # of a foreign URL that is remembered as known to its owner
FACTS_EVERY = 1.0  # s between two writes of the counters

T = TypeVar("T")


class NoDisk:
    """Everything in memory, nothing kept."""

    def __init__(self, delay: float) -> None:
        self._delay = delay
        self.frontier = MemoryFrontier(delay)
        self.history: Path | None = None
        self.saved: Saved | None = None
        self.facts: dict[str, Any] = {}
        self.ahead = 0
        self.trouble: Callable[[StoreError], None] = _raise

    @property
    def holds_outputs(self) -> bool:
        """Whether outputs are kept here: never."""
        return False

    @property
    def due(self) -> bool:
        """Whether a flush is due: never."""
        return False

    def collect(self, changes: Changes, facts: Mapping[str, Any] | None) -> None:
        """Nothing."""

    async def write(self) -> None:
        """Nothing."""

    def settle(self) -> None:
        """Nothing."""

    def read_ahead(self, now: float, allowed: Allowed, arrived: Callable[[], None]) -> None:
        """Nothing."""

    async def erase(self) -> None:
        """There is nothing to forget."""

    def mark_corrupt(self, error: StoreDamaged) -> None:
        """Nothing can be."""

    async def close(self) -> None:
        """Nothing."""


class AgentDisk:
    """An agent's disk. `frontier`, `saved` and `facts` are what was found on it; `erase` replaces them.

    `trouble` is called in the loop, once, when a file turns out to be damaged while the crawl runs.
    """

    frontier: DiskFrontier
    saved: Saved | None
    facts: dict[str, Any]

    def __init__(
        self, path: Path, settings: UbiSettings, clock: Callable[[], float], beside: Sequence[KeptOutputs] = ()
    ) -> None:
        self.path = path
        self.history: Path | None = path
        self._beside = beside
        self._marks: list[Any] = []  # of these, of the flush that was collected last
        self._run = ""
        self._settings = settings
        self._clock = clock
        self._flush: Flush | None = None
        self._written = False
        self._group: GroupState | None = None  # as it was collected last, without the number of that flush
        self._read: asyncio.Future[list[Result]] | None = None
        self.trouble: Callable[[StoreError], None] = _raise
        self.ahead = 0
        self._closed = False
        self._damage: StoreDamaged | None = None
        self._gate = threading.Lock()  # held by the thread that writes or closes
        # Threads of its own, to write and to read: in asyncio's it would wait behind the names of hosts that are looked
        # up there, when Twisted's reactor is off, and behind what spiders do there.
        self._threads = ThreadPoolExecutor(2, "ubi-disk")

    @classmethod
    async def open(
        cls, path: Path, settings: UbiSettings, clock: Callable[[], float], beside: Sequence[KeptOutputs] = ()
    ) -> AgentDisk:
        """Open the disk in that directory, in another thread; `beside` is what has to be there before each flush.

        Raises `UbiDirectoryError` when it is damaged (then it was set aside) or cannot be used.
        """
        disk = cls(path, settings, clock, beside)
        await disk._usable(disk._open)
        return disk

    async def _usable(self, make: Callable[[], None]) -> None:
        """Have the files opened, or made again, in another thread. Raises as `open` does."""
        path = self.path
        try:
            await self._apart(make)
        except StoreDamaged as error:
            raise UbiDirectoryError(set_aside(path, error)) from error
        except StoreError as error:
            raise UbiDirectoryError(str(error)) from error
        except OSError as error:
            raise UbiDirectoryError(
                f"The disk of {path} cannot be used ({error.strerror or error}): see that this user may write there, "
                "or set UBI_DIR to a directory where it may."
            ) from error

    def _open(self) -> None:
        settings, now = self._settings, unix()
        clean(self.path)
        self.frontier = open_frontier(
            self.path,
            delay=settings.host_delay,
            memory=memory_for_disk(settings),
            offset=now - self._clock(),
            earliest=now + settings.host_delay if settings.host_delay else 0.0,
            kind=KINDS[settings.seen],
            engine=settings.store_engine,
            report=logger.warning,
        )
        try:
            saved = ledger.load(self.frontier.store)
            self.saved = replace(saved, torn=self.frontier.lost > 0) if saved is not None else None
            self.facts = ledger.load_crawl(self.frontier.store)
            self._judge_visits(now)
            if any(one.keeps_elsewhere for one in self._beside):
                self.frontier.know_outputs()
            for one in self._beside:
                one.recover(self.frontier.store)
        except BaseException:
            self.frontier.close()
            raise

    def _judge_visits(self, now: float) -> None:
        """Where the last write is of a clock that was ahead, pages are due too late."""
        at, recrawl = self.facts.get("at"), recrawl_of(self._settings, unix)
        if recrawl.visits_again and is_number(at, math.inf) and is_ahead(at, now, 0.0):
            self.frontier.visits.judge(recrawl.believed_row, int(now))
            self.ahead = recrawl.ahead

    @property
    def holds_outputs(self) -> bool:
        """Whether pages of the crawl that was found have left outputs here."""
        return any(one.kept for one in self._beside)

    # -- writing

    def collect(self, changes: Changes, facts: Mapping[str, Any] | None) -> None:
        """Take in what is new; only when nothing is `due`."""
        rows = list(ledger.rows(changes))
        group = changes.group._replace(flush=0)
        news = self.frontier.changed or facts is not None or any(one.changed for one in self._beside)
        if len(rows) == 1 and group == self._group and not news:
            return
        self._group = group
        if facts is not None:
            rows.append(ledger.crawl_row(facts))
            self._run = str(facts["run"])
        self._flush, self._written = self.frontier.collect(rows), False
        self._marks = [one.mark(self._run) for one in self._beside]

    @property
    def due(self) -> bool:
        """Whether what was collected is not settled yet."""
        return self._flush is not None

    def _apart(self, call: Callable[..., T], *arguments: Any) -> asyncio.Future[T]:
        """Have something done in another thread."""
        return asyncio.get_running_loop().run_in_executor(self._threads, call, *arguments)

    async def write(self) -> None:
        """Write what was collected."""
        flush = self._flush
        if flush is not None and not self._written:
            await self._apart(self._write, flush)
            self._written = True

    def _write(self, flush: Flush) -> None:
        # P9: before the done marks of their pages
        flush.beside = [row for one, mark in self._with_marks() for row in one.rows(mark)]
        with self._gate:
            flush.write(self.frontier.store)
            self.frontier.seen.written = flush.number  # before anything of it leaves

    def settle(self) -> None:
        """Hear of what was written. Raises `StoreFull` when the seen table cannot grow: call it again."""
        if self._flush is None or not self._written:
            return
        try:
            self.frontier.written(self._flush)
        except SeenDamaged as error:
            raise StoreError(str(error)) from error
        except OSError as error:
            why = error.strerror or error
            raise StoreError(f"The index of known URLs in {self.path} cannot be used ({why}).") from error
        self._flush = None
        for one, mark in self._with_marks():
            one.settled(mark)

    def _with_marks(self) -> list[tuple[KeptOutputs, Any]]:
        return list(zip(self._beside, self._marks, strict=True))

    # -- reading

    def read_ahead(self, now: float, allowed: Allowed, arrived: Callable[[], None]) -> None:
        """Read what hosts need whose turn has come, unless it is being read already."""
        if self._read is not None or self._closed:
            return
        scans = self.frontier.needs(now, allowed)
        if scans:
            self._read = self._apart(self.frontier.read, scans)
            self._read.add_done_callback(lambda future: self._arrived(future, arrived))

    def _arrived(self, future: asyncio.Future[list[Result]], arrived: Callable[[], None]) -> None:
        self._read = None
        if future.cancelled() or self._closed:
            return
        try:
            self.frontier.take(future.result())
        except StoreError as error:
            self.trouble(error)
            return
        arrived()

    # -- beginning again, and the end

    async def erase(self) -> None:
        """Throw everything away and begin with nothing. Raises as `open` does."""
        await self._let_go()
        self._closed = False
        self._flush = None
        self._group = None
        await self._usable(self._make_anew)

    def _make_anew(self) -> None:
        delete(self.path)
        self._open()

    def mark_corrupt(self, error: StoreDamaged) -> None:
        """A file turned out to be damaged: when it is closed, all is set aside."""
        self._damage = error

    async def close(self) -> None:
        """Let go of the files; what was collected and not written is lost."""
        if self._closed:
            return
        await self._let_go()
        if self._damage is not None:
            logger.error(await self._apart(set_aside, self.path, self._damage))
        self._threads.shutdown(wait=False)

    async def _let_go(self) -> None:
        self._closed = True
        if self._read is not None:
            await asyncio.wait([self._read])
        await self._apart(self._shut)

    def _shut(self) -> None:
        with self._gate:  # not while an abandoned exchange still writes
            for one in self._beside:
                one.finish(self.frontier.store)
            self.frontier.close()


def memory_for_disk(settings: UbiSettings) -> int:
    """Bytes for the caches of the disk: UBI_MEMORY_MB, less what may be remembered of foreign URLs."""
    memory = settings.memory_mb << 20
    suppressed = settings.suppressed_keys * SUPPRESSED_BYTES if settings.redis_url is not None else 0
    return max(memory - suppressed, memory // 4)


def _raise(error: StoreError) -> None:
    raise error
