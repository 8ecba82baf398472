"""The writer: one thread of the agent that writes what the stores keep of pages (P9).

Rules of this module:

* The loop hands over bundles and marks, in order; the thread alone touches files. A bundle is what one store keeps of
  one page. A mark stands where a flush of the agent's disk was collected.
* The flush waits (in the disk's thread) until all that stands before its mark is on the disk, synced as the flush is,
  and holds the lengths that the files had there (`rows`). So a page that is done on the disk has its outputs, once:
  what was written beyond is cut off at the next start (`part_files.repair`).
* Before the mark is reached, stores that give items to a receiver have given them (`delivering`); where that one takes
  none, the mark is not reached.
* A full part is sealed after the flush with its last length was written (`settled`): what is sealed is of done pages.
* What could not be written, as the disk is full, waits, and the flush with it: it is tried again with the flush. What
  waits is counted (`waiting`): the agent takes no request while that is too much.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue

from scrapy_ubi.frontier.rows import META, damaged
from scrapy_ubi.frontier.store import Store as Rows
from scrapy_ubi.frontier.store import StoreError, StoreFull, StoreHeldBack
from scrapy_ubi.ground.clock import unix
from scrapy_ubi.outputs import part_files
from scrapy_ubi.outputs.delivery.delivering import DeliveringStore, NotTaken
from scrapy_ubi.outputs.part_files import OUT, Positions
from scrapy_ubi.outputs.part_writer import Bundle, Part, PartStore

logger = logging.getLogger("scrapy_ubi")

ROW = META + b"outputs"  # of the agent's store
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
Row = tuple[bytes, bytes | None]


@dataclass(slots=True, eq=False)
class Mark:
    """A place in the order of bundles: where a flush was collected."""

    run: str = ""
    positions: Positions | None = None
    error: Exception | None = None
    sealing: list[Part] = field(default_factory=list)
    ready: threading.Event = field(default_factory=threading.Event)


class _Naming:
    """The names of an agent's parts in `out`, and the record there of the run that they are of."""

    def __init__(self, out: Path, crawl: str, agent: str, started: float) -> None:
        self._out = out
        self._crawl = crawl
        self._agent = agent
        self._started = started
        self._serial = 0
        self.run = ""  # as the record says it; empty where that is not known yet

    def next_stem(self) -> str:
        """The name of another part."""
        self._serial += 1
        return part_files.stem(self._crawl, self._agent, self._started, self._serial)

    def say_run(self, run: str) -> None:
        """Have the record name this run, if it is known. Raises OSError."""
        if run and run != self.run:
            began = part_files.read_record(self._out).get("began")
            since = began if isinstance(began, float) else self._started
            part_files.write_record(self._out, {"crawl": self._crawl, "agent": self._agent, "run": run, "began": since})
            self.run = run


class Writer:
    """The writer of one agent, in its `directory`. `most` bytes may wait. `on_room` is called, in the writer's thread,
    when that was asked for (`tell_of_room`) and what waits has fallen below the half of it."""

    def __init__(
        self,
        directory: Path,
        crawl: str,
        agent: str,
        most: int,
        on_room: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = unix,
    ) -> None:
        self._directory = directory
        self._out = directory / OUT
        self._naming = _Naming(self._out, crawl, agent, clock())
        self._clock = clock
        self.most = most
        self._on_room = on_room
        self._queue: SimpleQueue[Bundle | Mark | Callable[[], None]] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._put = self._written = self._taken = 0  # bytes, since the start
        self._was_full = False
        self._unmarked = False  # bundles came since the last mark, or something is to be told of
        self._parts: dict[PartStore, Part] = {}
        self._full: list[Part] = []  # written no longer, not sealed yet
        self._late: list[Bundle] = []  # no file could be made for them
        self._behind: list[Bundle] = []  # came after a mark that could not be reached
        self._blocked: Mark | None = None
        self.delivering: list[DeliveringStore] = []
        self.failed = 0  # pages that a store could not keep
        self._kept = False
        self.repaired = part_files.Repair()
        self.recovered: Callable[[Path], None] = _nothing  # called, in the disk's thread, when the files are in line

    # -- in the loop

    @property
    def waiting(self) -> int:
        """Bytes that were handed over and are not written."""
        return self._put - self._written

    def tell_of_room(self) -> None:
        """Call `on_room` once less than the half of `most` waits."""
        self._was_full = True

    def on_room(self, on_room: Callable[[], None]) -> None:
        """From now on call `on_room` in the loop that runs."""
        loop = asyncio.get_running_loop()

        def tell() -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(on_room)

        self._on_room = tell

    def put(self, bundles: Iterable[Bundle]) -> None:
        """Have these written."""
        for bundle in bundles:
            self._put += bundle.size
            self._unmarked = True
            self._hand_over(bundle)

    @property
    def changed(self) -> bool:
        """Whether a flush has something to say of the outputs."""
        return self._unmarked or self._to_deliver

    keeps_elsewhere = True

    @property
    def kept(self) -> bool:
        """Whether there were outputs of this crawl at the start."""
        return self._kept

    @property
    def _to_deliver(self) -> bool:
        """Whether a receiver is to be looked at, though no item has come."""
        return any(store.due for store in self.delivering)

    def mark(self, run: str) -> Mark:
        """A flush is collected, of the run with this name (empty: not known yet)."""
        self._unmarked = bool(self._full)
        mark = Mark(run)
        self._hand_over(mark)
        return mark

    def settled(self, mark: Mark) -> None:
        """The flush with this mark is on the disk."""
        if mark.sealing:
            self._unmarked = True
            self._hand_over(lambda: self._seal(mark.sealing))

    # -- in the disk's thread

    def rows(self, mark: Mark) -> list[Row]:
        """Wait until what stands before the mark is written; the rows that the flush is to hold. Raises `StoreFull`,
        `StoreError`; then it may be asked again."""
        if mark.error is not None:
            mark.error = None
            mark.ready.clear()
            self._hand_over(mark)
        mark.ready.wait()
        self._raise(mark)
        assert mark.positions is not None
        return [(ROW, mark.positions.text())]

    def _raise(self, mark: Mark) -> None:
        if (error := mark.error) is None:
            return
        if isinstance(error, NotTaken):
            raise StoreHeldBack(str(error))
        if not isinstance(error, OSError):
            logger.error("A mistake in a store, or in scrapy_ubi:", exc_info=error)
            raise StoreError(f"The outputs in {self._out} cannot be written ({type(error).__name__}: {error}).")
        what = f"The outputs in {self._out} cannot be written ({error.strerror or error})"
        if error.errno in FULL:
            raise StoreFull(f"{what}: make room, and the crawl goes on.")
        raise StoreError(f"{what}.")

    def recover(self, rows: Rows) -> None:
        """The agent's store was opened: bring the files in line with it. Raises UbiDirectoryError, OSError."""
        text = rows.get(ROW)
        if text is None:
            if (aside := part_files.put_aside(self._directory)) is not None:
                logger.info("The outputs of an earlier crawl are kept in %s.", aside)
        else:
            try:
                positions = Positions.read(text)
            except ValueError as error:
                raise damaged(ROW, error) from error
            self.repaired = part_files.repair(self._out, positions)
            self._unmarked = self._kept = True
            self._naming.run = str(part_files.read_record(self._out).get("run") or "")
            if self.repaired.cut or self.repaired.deleted:
                logger.info(
                    "Outputs of pages that were not done when the last process ended: %d bytes of %d files cut off, %d "
                    "files deleted; the pages are fetched again.",
                    self.repaired.cut, self.repaired.files, self.repaired.deleted,
                )  # fmt: skip
        self._out.mkdir(parents=True, exist_ok=True)
        for store in self.delivering:
            store.begin()
        self.recovered(self._out)

    def finish(self, rows: Rows) -> None:
        """The agent's store is about to be closed: write all, seal all, and say so there. What cannot be written is
        left as it is, for the next start."""
        if self._thread is None and not self._to_deliver:
            return
        mark = self.mark(self._naming.run)
        mark.ready.wait()
        if mark.error is None and mark.positions is not None:
            with suppress(StoreError):
                _write(rows, mark.positions)
                self._call(self._seal_all)
                _write(rows, Positions())
        self._call(self._let_go)
        self._hand_over(_end)
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        for store in self.delivering:
            store.close()

    def _call(self, function: Callable[[], None]) -> None:
        done = threading.Event()

        def call() -> None:
            try:
                function()
            finally:
                done.set()

        self._hand_over(call)
        done.wait()

    # -- the thread

    def _hand_over(self, work: Bundle | Mark | Callable[[], None]) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="ubi-outputs", daemon=True)
            self._thread.start()
        self._queue.put(work)

    def _work(self) -> None:
        while True:
            work = self._queue.get()
            if work is _end:
                return
            if isinstance(work, Mark):
                self._reach(work)
            elif not isinstance(work, Bundle):
                self._do(work)
            elif self._blocked is not None:
                self._behind.append(work)
            else:
                self._append(work)
            self._look_for_room()

    @staticmethod
    def _do(call: Callable[[], None]) -> None:
        try:
            call()
        except OSError as error:  # a file that cannot be renamed: the next start does it
            logger.warning("Outputs cannot be sealed (%s).", error)

    def _append(self, bundle: Bundle) -> None:
        """Take in a bundle; one for which no file can be made waits for the next mark."""
        try:
            self._put_down(bundle)
        except OSError as error:
            logger.debug("Outputs cannot be written: %s", error)
            self._late.append(bundle)

    def _put_down(self, bundle: Bundle) -> None:
        """Append a bundle to its part, whole or not at all. Raises OSError."""
        part = self._part(bundle.store)
        try:
            bundle.store.write(bundle.payload, part)
            part.index(bundle)
        except OSError:
            part.undo()
            raise
        except Exception:  # of a store, which may be the user's: the page is lost to it, and the others go on
            part.undo()
            self.failed += 1
            logger.exception("The store %s cannot keep page %s.", bundle.store.name, bundle.name)
        self._taken += bundle.size
        if part.size >= bundle.store.size or self._clock() - part.opened >= bundle.store.seconds:
            self._full.append(self._parts.pop(bundle.store))
        with suppress(OSError):  # the next mark meets it as well, and says it
            part.write(all_of_it=False)

    def _part(self, store: PartStore) -> Part:
        part = self._parts.get(store)
        if part is None:
            part = self._parts[store] = Part(self._out, store, self._naming.next_stem(), self._clock())
        return part

    def _reach(self, mark: Mark) -> None:
        """Write everything that stands before the mark; what comes behind waits until that is done."""
        self._blocked = mark
        try:
            while self._late:
                self._put_down(self._late[0])
                del self._late[0]
            if mark.positions is None:
                self._measure(mark)
            self._naming.say_run(mark.run)
            for part in (*self._full, *self._parts.values()):
                part.write()
                part.sync()
            for store in self.delivering if self._naming.run else ():  # before it is known, no page is done
                store.deliver(self._out, self._naming.run)
        except Exception as error:  # noqa: BLE001 -- of a store, too: without this thread the agent would wait for ever
            mark.error = error
        else:
            self._written, self._blocked = self._taken, None
            behind, self._behind = self._behind, []
            for bundle in behind:
                self._append(bundle)
        finally:
            mark.ready.set()

    def _measure(self, mark: Mark) -> None:
        now = self._clock()
        for store, part in list(self._parts.items()):
            if now - part.opened >= store.seconds:
                self._full.append(self._parts.pop(store))
        mark.sealing = list(self._full)
        files = {name: end for part in (*self._full, *self._parts.values()) for name, end in part.ends().items()}
        mark.positions = Positions(files, frozenset(name for part in self._full for name in part.ends()))

    def _seal(self, parts: list[Part]) -> None:
        for part in parts:
            if part in self._full:
                part.seal()
                self._full.remove(part)

    def _seal_all(self) -> None:
        self._full += self._parts.values()
        self._parts = {}
        self._seal(list(self._full))

    def _let_go(self) -> None:
        for part in (*self._full, *self._parts.values()):
            part.close()
        self._full, self._parts = [], {}

    def _look_for_room(self) -> None:
        if self._was_full and self.waiting < self.most // 2:
            self._was_full = False
            self._on_room()


def _write(rows: Rows, positions: Positions) -> None:
    batch = rows.batch()
    batch.put(ROW, positions.text())
    rows.write(batch)


def _nothing(out: Path) -> None:
    """What is there is not read."""


def _end() -> None:
    """Work that ends the thread."""
