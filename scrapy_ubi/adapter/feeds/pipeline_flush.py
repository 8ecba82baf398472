"""Pipelines that write items in batches: what they hold is written before the flush that says that its pages are done
(P9 for a user's own database).

Rules of this module:

* A pipeline with a method `ubi_flush_items()` is one of these. It is called when a flush of the agent's disk was
  collected and items have passed the pipelines since the last call, and the flush waits for it in the disk's thread
  (`KeptOutputs`): nothing that was collected with it is written, or leaves, before.
* All calls are made in the loop, one after the other, as Scrapy calls `process_item`: a pipeline needs no locks, and no
  connection that may change threads. What a coroutine function, or a Deferred, waits for does not hold up the crawl.
* A call that raises, or does not end within `LONGEST_CALL`, fails the flush as a full disk does: the pages stay undone,
  nothing is fetched meanwhile, and it is tried again. A coroutine that does not end is cancelled, and a call that
  outlives even that is waited for: there are never two of one pipeline.
* Items that a pipeline has dropped, or failed with, count too: another one may have them in its batch.
* After the last item, before pipelines are closed, there is a last call (`close`), tried for `LONGEST_CALL`. What has
  not succeeded then cannot any more: the pages stay undone on the disk, and are fetched again.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_ubi.adapter.scrapy_private.scraper import HOOK, before_pipelines_close, pipelines
from scrapy_ubi.errors import UbiRefused
from scrapy_ubi.frontier.store import Store, StoreHeldBack

logger = logging.getLogger("scrapy_ubi")

LONGEST_CALL = 60.0  # s
PAUSE = 1.0  # s between two of the last tries, and between two looks whether the loop still runs
HELD_LOOP = 1.0  # s in which a method that does not wait holds up the whole agent: said once
SILENCE = 5.0  # s of the last call without a word
QUIET = 60.0  # s between two lines about the same trouble

Row = tuple[bytes, bytes | None]

WRONG = (
    "{}.{} wants arguments, and is called without any: write it as `async def {}(self)`, or `def {}(self)` "
    "(docs/how-to/items-into-a-database.md)."
)
FAILED = "{} has failed: {}. The pages of these items stay undone, and it is called again."
ENDED = "The crawl of this process has ended before {} had succeeded: the pages of its items are fetched again."
SLOW = (
    "%s has held up this agent for %.1f s: what waits for a database should be awaited (`async def`, and "
    "`await asyncio.to_thread(...)` for a driver that blocks)."
)
WAITS = "The agent ends, and waits for pipelines to write their last items (%s)."
LEFT = "The items of the last batch are not written, so their pages are not done: the next start fetches them again."


class Mark:
    """A place in the order of items: where a flush was collected. `items` had passed the pipelines by then."""

    def __init__(self, items: int) -> None:
        self.items = items
        self.error = ""  # why it could not be reached
        self.ready = threading.Event()


class PipelineFlush:
    """The calls of pipelines with the hook; `hooks` are their methods by name. `count` counts in the stats. Methods
    belong to the loop where nothing else is said."""

    kept = keeps_elsewhere = False

    def __init__(
        self,
        hooks: dict[str, Callable[[], Any]],
        count: Callable[[str], None],
        longest: float,
    ) -> None:
        self._hooks = hooks
        self._count = count
        self._longest = longest
        self._loop = asyncio.get_running_loop()
        self._passed = self._durable = 0  # items: through the pipelines, and of these written for certain
        self._turn = asyncio.Lock()  # one call at a time
        self._unended: dict[str, asyncio.Future[None]] = {}  # calls that have outlived their time
        self._tasks: set[asyncio.Future[None]] = set()
        self._marks: set[Mark] = set()  # not reached, and not failed
        self._said: dict[str, float] = {}  # what was said of a pipeline, when
        self._closed = False

    @classmethod
    def connect(cls, crawler: Crawler, count: Callable[[str], None]) -> PipelineFlush | None:
        """What follows the pipelines of this crawl; None where none has the hook. Raises UbiRefused."""
        hooks = find_hooks(pipelines(crawler))
        if not hooks:
            return None
        made = cls(hooks, count, LONGEST_CALL)
        for signal in (signals.item_scraped, signals.item_dropped, signals.item_error):
            crawler.signals.connect(made.passed, signal)
        before_pipelines_close(crawler, made.close)
        return made

    def passed(self) -> None:
        """An item is through the pipelines, in whatever way."""
        self._passed += 1

    # -- as `KeptOutputs`

    @property
    def changed(self) -> bool:
        """Whether items may wait in a batch."""
        return self._passed > self._durable

    def recover(self, rows: Store) -> None:
        """What a database has is its own matter."""

    def mark(self, run: str) -> Mark:
        """A flush is collected: have everything written that waits."""
        mark = Mark(self._passed)
        self._begin(mark)
        return mark

    def rows(self, mark: Mark) -> list[Row]:
        """In the disk's thread: wait until that is done. Raises `StoreHeldBack`; then it may be asked again."""
        if mark.error:
            mark.error = ""
            mark.ready.clear()
            try:
                self._loop.call_soon_threadsafe(self._begin, mark)
            except RuntimeError as error:
                raise StoreHeldBack(ENDED.format(HOOK)) from error
        while not mark.ready.wait(PAUSE):
            if not self._loop.is_running():  # the process ends, and must not wait for this thread
                raise StoreHeldBack(ENDED.format(HOOK))
        if mark.error:
            raise StoreHeldBack(mark.error)
        return []

    def settled(self, mark: Mark) -> None:
        """Do nothing: what a pipeline has written needs no seal."""

    def finish(self, rows: Store) -> None:
        """In the disk's thread: what waits for a call waits no longer."""
        for mark in list(self._marks):
            mark.error = ENDED.format(HOOK)
            mark.ready.set()

    # -- the calls

    def _begin(self, mark: Mark) -> None:
        self._marks.add(mark)
        if self._durable >= mark.items:
            self._end(mark, "")
        elif self._closed:
            self._end(mark, LEFT)
        else:
            task = asyncio.ensure_future(self._reach(mark))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _reach(self, mark: Mark) -> None:
        error = ENDED.format(HOOK)
        try:
            error = await self._write(mark.items)
        finally:
            self._end(mark, error)

    def _end(self, mark: Mark, error: str) -> None:
        self._marks.discard(mark)
        mark.error = error
        mark.ready.set()

    async def _write(self, items: int) -> str:
        """Call the hooks, unless so many items are written already. Why that has failed; empty when all are written."""
        async with self._turn:
            if self._durable >= items:
                return ""
            begun = self._passed
            for name, hook in self._hooks.items():
                if error := await self._call(name, hook):
                    self._count("ubi/pipelines/flush_failed")
                    return FAILED.format(name, error)
            self._count("ubi/pipelines/flushed")
            self._durable = max(self._durable, begun)
            return ""

    async def _call(self, name: str, hook: Callable[[], Any]) -> str:
        """Call one, and wait for it. Why that has failed; empty when it has succeeded."""
        if (former := self._unended.get(name)) is not None:
            await asyncio.wait([former], timeout=self._longest)
            if not former.done():
                return f"a call of before has not ended after {self._longest:g} s more"
            del self._unended[name]
        task = asyncio.ensure_future(self._awaited(name, hook))
        try:
            await asyncio.wait([task], timeout=self._longest)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if not task.done():
            task.cancel()
            self._unended[name] = task
            task.add_done_callback(_hear)
            return f"it has not ended after {self._longest:g} s"
        if task.cancelled():
            return "it was cancelled"
        if (error := task.exception()) is None:
            return ""
        if self._may_say(name):
            logger.warning("%s has raised.", name, exc_info=error)
        return f"{type(error).__name__}: {error}"

    async def _awaited(self, name: str, hook: Callable[[], Any]) -> None:
        begun = time.monotonic()
        result = hook()
        if (took := time.monotonic() - begun) > HELD_LOOP and self._may_say(f"slow {name}", once=True):
            logger.warning(SLOW, name, took)
        if isinstance(result, Deferred):
            await maybe_deferred_to_future(result)
        elif inspect.isawaitable(result):
            await result

    def _may_say(self, what: str, once: bool = False) -> bool:
        now = time.monotonic()
        if what in self._said and (once or now < self._said[what] + QUIET):
            return False
        self._said[what] = now
        return True

    # -- the end

    async def close(self) -> None:
        """No item follows, and the pipelines are closed next: call the hooks a last time, for as long as one call may
        take if they fail."""
        if self._closed:
            return
        end, said = time.monotonic() + self._longest, False
        waits = self._loop.call_later(SILENCE, logger.info, WAITS, HOOK)
        while error := await self._write(self._passed):
            if not said:
                said = True
                logger.warning("%s The agent ends: it is tried for %g s more.", error, self._longest)
            if time.monotonic() + PAUSE > end:
                logger.error("%s %s", error, LEFT)
                break
            await asyncio.sleep(PAUSE)
        waits.cancel()
        self._closed = True


def find_hooks(found: Iterable[Any]) -> dict[str, Callable[[], Any]]:
    """The hooks of these pipelines, by their names. Raises UbiRefused where one cannot be called."""
    hooks: dict[str, Callable[[], Any]] = {}
    for pipeline in found:
        hook = getattr(pipeline, HOOK, None)
        if not callable(hook):
            continue
        kind = f"{type(pipeline).__module__}.{type(pipeline).__qualname__}"
        try:
            inspect.signature(hook).bind()
        except TypeError as error:
            raise UbiRefused(WRONG.format(kind, HOOK, HOOK, HOOK)) from error
        except ValueError:  # a function without a signature to be seen
            pass
        name = f"{kind}.{HOOK}"
        hooks[name if name not in hooks else f"{name} ({len(hooks)})"] = hook
    return hooks


def _hear(task: asyncio.Future[None]) -> None:
    """What comes of a call that has outlived its time does not count."""
    if not task.cancelled():
        task.exception()
