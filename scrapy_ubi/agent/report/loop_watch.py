"""Who holds the event loop: a thread that looks once a second whether the loop turns, and names the code that keeps it
from turning.

Rules of this module:

* The thread only looks, and ends with the agent, or with the loop. Nothing of it is on the way of a page.
* What is named is the innermost function of the stack that is neither Scrapy's, nor Twisted's, nor Python's own, nor
  ours: the user's, most likely. Where there is none, the innermost of all.
* The log hears of it after `HELD` seconds, and then each time that it has lasted twice as long.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import sysconfig
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType

logger = logging.getLogger("scrapy_ubi")

EVERY = 1.0  # s
HELD = 5.0  # s that a loop is held until people should know
OURS = (str(Path(__file__).parents[2]), *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib")))


class LoopWatch:
    """Watches the loop of the thread that calls `start`. `late` says for how long it has not turned (s); from any
    thread."""

    def __init__(self, late: Callable[[], float]) -> None:
        self._late = late
        self._end = threading.Event()
        self._thread: threading.Thread | None = None
        self.held = ""  # what was named last
        self._next = HELD

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Watch this loop, from its own thread, until `stop` or until it is closed."""
        arguments = loop, threading.get_ident()
        self._thread = threading.Thread(target=self._run, args=arguments, name="ubi-loop-watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Watch no longer."""
        self._end.set()

    def _run(self, loop: asyncio.AbstractEventLoop, thread: int) -> None:
        while not self._end.wait(EVERY) and not loop.is_closed():
            self.check_loop(sys._current_frames().get(thread))

    def check_loop(self, frame: FrameType | None) -> None:
        """Look once; `frame` is the innermost of the loop's thread."""
        late = self._late()
        if late < HELD:
            self._next = HELD
            return
        if late < self._next or frame is None:
            return
        self._next = 2 * late
        self.held = holder(frame)
        logger.info("Nothing is fetched: the event loop has been held for %.0f s by %s.", late, self.held)


def holder(frame: FrameType) -> str:
    """The function that holds the loop, with file and line."""
    innermost: FrameType | None = frame
    one: FrameType | None = frame
    while one is not None:
        if not _is_library(one.f_code.co_filename):
            innermost = one
            break
        one = one.f_back
    assert innermost is not None
    code = innermost.f_code
    return f"{code.co_qualname} ({Path(code.co_filename).name}:{innermost.f_lineno})"


def _is_library(filename: str) -> bool:
    if filename.startswith("<"):
        return True
    parts = Path(filename).parts
    return any(filename.startswith(path) for path in OURS) or any(
        name in parts for name in ("site-packages", "dist-packages")
    )
