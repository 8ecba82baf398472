"""The crawl view for all viewers: read once in `EVERY` seconds while somebody looks, and sent to each.

Rules of this module:

* Without a viewer nothing is read. However many look, or ask at once, the crawl is read once.
* A viewer has room for one message: what it does not read in time is replaced by the next. Who has not read for
  `PATIENCE` is closed.
* What lies in directories does not change, and is read seldom: reading keeps its agents from starting.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from scrapy.settings import BaseSettings

from scrapy_ubi.commands.stopped_status import read_figures
from scrapy_ubi.web.crawl_events import CrawlEvents
from scrapy_ubi.web.crawl_view import view
from scrapy_ubi.web.problem import Problem
from scrapy_ubi.web.reader import CrawlReader
from scrapy_ubi.web.seen_history import SeenHistory

logger = logging.getLogger("scrapy_ubi.web")

EVERY = 2.0  # s
SELDOM = 60.0  # s, of directories
MOST_VIEWERS = 32
PATIENCE = 10.0  # s for a viewer to read
FAULTS = {"error": {"status": 500, "kind": "fault", "message": "The crawl could not be shown; the log says why."}}


class LiveStream:
    """The messages of one crawl. `history` is what was seen of it."""

    def __init__(self, reader: CrawlReader) -> None:
        self._reader = reader
        self._events = CrawlEvents()
        self.history = SeenHistory()
        self.agents = 0  # how many there are
        self._reading = asyncio.Lock()
        self._document, self._read_at, self._lives = "", float("-inf"), True
        self._viewers: set[asyncio.Queue[str | None]] = set()
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
        async with self._reading:
            fresh = EVERY if self._lives else SELDOM
            if time.monotonic() - self._read_at >= fresh - 0.1:
                self._document = await self._reader.run(self._look)
                self._read_at = time.monotonic()
            return self._document

    def _look(self, settings: BaseSettings, opts: argparse.Namespace) -> str:
        """Read it; in a thread, as making the text of a thousand agents takes milliseconds."""
        status, here = read_figures(settings, opts)
        self._reader.crawl, self._lives, self.agents = status.crawl, not here, len(status.agents)
        self._events.look(status)
        made = view(status, not here, self._events.kept)
        self.history.look(made)
        return json.dumps(made)

    @asynccontextmanager
    async def viewer(self) -> AsyncIterator[asyncio.Queue[str | None]]:
        """The messages for one viewer, the first at once; None: it is over. Raises Problem where too many look."""
        if self._closed or len(self._viewers) >= MOST_VIEWERS:
            raise Problem(503, "busy", f"{MOST_VIEWERS} look already: try again later.", {"Retry-After": "10"})
        queue: asyncio.Queue[str | None] = asyncio.Queue(1)
        self._viewers.add(queue)
        try:
            queue.put_nowait(await self._message())
            if self._beat is None:
                self._beat = asyncio.create_task(self._go_on())
            yield queue
        finally:
            self._viewers.discard(queue)

    async def _go_on(self) -> None:
        """As long as somebody looks."""
        try:
            while self._viewers:
                await asyncio.sleep(EVERY)
                if self._viewers:
                    text = await self._message()
                    for queue in self._viewers:
                        _put(queue, text)
        finally:
            self._beat = None

    async def _message(self) -> str:
        self._number += 1
        try:
            event, data = "crawl", await self.document()
        except Problem as problem:
            event, data = "trouble", json.dumps(problem.document())
        except Exception:
            logger.exception("The crawl could not be shown.")
            event, data = "trouble", json.dumps(FAULTS)
        return f"id: {self._number}\nevent: {event}\ndata: {data}\n\n"

    async def close(self) -> None:
        """Send all viewers away."""
        self._closed = True
        for queue in self._viewers:
            _put(queue, None)
        if self._beat is not None:
            self._beat.cancel()
            with suppress(asyncio.CancelledError):
                await self._beat


def _put(queue: asyncio.Queue[str | None], text: str | None) -> None:
    """The newest message, in place of one that was not read."""
    if queue.full():
        queue.get_nowait()
    queue.put_nowait(text)
