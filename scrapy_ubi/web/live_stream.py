"""The crawl view for all viewers: read once in `EVERY` seconds while somebody looks, and sent to each.

Rules of this module:

* Without a viewer nothing is read. However many look, or ask at once, the crawl is read once: a reading is a task of
  its own, which goes on where the one that has asked for it leaves. What it has found is told for `EVERY`; a failure,
  to all that wait for it.
* A viewer has room for one message: what it does not read in time is replaced by the next. Who has not read for
  `PATIENCE` is closed.
* Places are few, so who has left holds none: at the latest when all are taken and one more comes, viewers whose
  connection has ended are let go. Where none has, the one that has looked longest makes room, if that is longer than
  `LONGEST`; its page comes back by itself.
* What lies in directories does not change, and is read seldom: reading keeps its agents from starting.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from scrapy.settings import BaseSettings

from scrapy_ubi.cli.commands.stopped_status import read_figures
from scrapy_ubi.cli.monitor.document import Document
from scrapy_ubi.web.crawl_view import CrawlEvents, view
from scrapy_ubi.web.page_history import SeenHistory
from scrapy_ubi.web.problem import Problem
from scrapy_ubi.web.reader import CrawlReader

logger = logging.getLogger("scrapy_ubi.web")

EVERY = 2.0  # s
SELDOM = 60.0  # s, of directories
MOST_VIEWERS = 32
PATIENCE = 10.0  # s for a viewer to read
LONGEST = 600.0  # s that a viewer keeps its place while others wait for one
FAULT = "The crawl could not be shown; the log says why."


class Viewer:
    """Who looks. `messages`: those not read yet, one at most; None there: it is over."""

    def __init__(self, gone: Callable[[], bool]) -> None:
        self.messages: asyncio.Queue[str | None] = asyncio.Queue(1)
        self.gone = gone
        self.since = time.monotonic()

    def tell(self, text: str | None) -> None:
        """The newest message, in place of one that was not read."""
        if self.messages.full():
            self.messages.get_nowait()
        self.messages.put_nowait(text)


class LiveStream:
    """The messages of one crawl. `history` is what was seen of it."""

    def __init__(self, reader: CrawlReader) -> None:
        self._reader = reader
        self._events = CrawlEvents()
        self.history = SeenHistory()
        self.agents = 0  # how many there are
        self._reading: asyncio.Task[None] | None = None
        self._found: str | Problem = ""
        self._read_at = float("-inf")
        self._lives = True
        self._viewers: dict[Viewer, None] = {}  # who has looked longest comes first
        self._beat: asyncio.Task[None] | None = None
        self._number = 0
        self._closed = False

    @property
    def viewers(self) -> int:
        """How many look now."""
        return len(self._viewers)

    @property
    def resting(self) -> bool:
        """Whether nothing is read by itself, as no viewer is there."""
        return self._beat is None

    async def document(self) -> str:
        """The document of now, as JSON on one line. Raises Problem."""
        fresh = EVERY if self._lives else SELDOM
        if self._reading is None and time.monotonic() - self._read_at >= fresh - 0.1:
            self._reading = asyncio.create_task(self._read())
        if self._reading is not None:
            await asyncio.shield(self._reading)
        if isinstance(self._found, Problem):
            raise self._found.with_traceback(None)
        return self._found

    async def _read(self) -> None:
        """Look once, and keep what that gives."""
        try:
            text, made, self.agents, self._lives = await self._reader.run(self._look)
            self.history.look(made)  # here, as it is read here, while the next look may be under way
            self._found, self._read_at = text, time.monotonic()
        except Problem as problem:
            if problem.kind == "unavailable":
                self._events.away(time.time())
            self._found, self._read_at, self._lives = problem, float("-inf"), True
        except Exception:
            logger.exception("The crawl could not be shown.")
            fault = Problem(500, "fault", FAULT)
            self._found, self._read_at, self._lives = fault, float("-inf"), True
        finally:
            self._reading = None

    def _look(self, settings: BaseSettings, opts: argparse.Namespace) -> tuple[str, Document, int, bool]:
        """Read it; in a thread, as making the text of a thousand agents takes milliseconds. One at a time."""
        status, here = read_figures(settings, opts)
        self._reader.crawl = status.crawl
        self._events.look(status)
        made = view(status, not here, self._events.kept)
        return json.dumps(made), made, len(status.agents), not here

    @asynccontextmanager
    async def viewer(self, gone: Callable[[], bool] = lambda: False) -> AsyncIterator[asyncio.Queue[str | None]]:
        """The messages for one viewer, the first at once; None: it is over. `gone`: whether its connection has ended.
        Raises Problem where too many look."""
        if not self._closed and len(self._viewers) >= MOST_VIEWERS:
            self._make_room()
        if self._closed or len(self._viewers) >= MOST_VIEWERS:
            raise Problem(503, "busy", f"{MOST_VIEWERS} look already: try again later.", {"Retry-After": "10"})
        one = Viewer(gone)
        self._viewers[one] = None
        try:
            text = await self._message()
            if one.messages.empty():  # else the beat has been faster, or this ends
                one.messages.put_nowait(text)
            if self._beat is None and not self._closed:
                self._beat = asyncio.create_task(self._go_on())
            yield one.messages
        finally:
            self._viewers.pop(one, None)

    def _make_room(self) -> None:
        """Let viewers go that have left; else the one that has looked longest, and long."""
        left = [one for one in self._viewers if one.gone()]
        oldest = next(iter(self._viewers))
        if not left and time.monotonic() - oldest.since > LONGEST:
            left = [oldest]
        for one in left:
            del self._viewers[one]
            one.tell(None)

    async def _go_on(self) -> None:
        """As long as somebody looks."""
        try:
            while self._viewers:
                await asyncio.sleep(EVERY)
                if self._viewers:
                    text = await self._message()
                    for one in self._viewers:
                        one.tell(text)
        finally:
            self._beat = None

    async def _message(self) -> str:
        self._number += 1
        try:
            event, data = "crawl", await self.document()
        except Problem as problem:
            event, data = "trouble", json.dumps(problem.document())
        return f"id: {self._number}\nevent: {event}\ndata: {data}\n\n"

    async def close(self) -> None:
        """Send all viewers away."""
        self._closed = True
        for one in self._viewers:
            one.tell(None)
        for task in (self._beat, self._reading):
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
