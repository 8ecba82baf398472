"""The I/O thread: a thread with an event loop of its own in which the transport's coroutines run.

Scrapy's loop is busy with pages, and one turn of it lasts as long as all that is ready: up to a second when sixteen
pages are parsed at once (measured: decision 0004). A round trip of several turns took seconds, and every
acknowledgement several of them. So the mail's I/O has a loop of its own; the protocol stays in Scrapy's, and gives and
takes mail in between two requests.

A transport in memory has nothing to wait for: its coroutines run where they are called (`own_thread` false).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class IoThread:
    """Runs coroutines elsewhere. `start` and `stop` bracket its use; all methods belong to the caller's loop."""

    def __init__(self, own_thread: bool) -> None:
        self._own_thread = own_thread
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Begin."""
        if self._own_thread:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="ubi-mail", daemon=True)
            self._thread.start()

    async def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and wait for what comes of it."""
        if self._loop is None:
            return await coroutine
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, self._loop))

    def send(self, coroutine: Coroutine[Any, Any, T], arrived: Callable[[], None]) -> Future[T]:
        """Run a coroutine; `arrived` is called in the caller's loop, some time after the future is done."""
        if self._loop is None:
            return self._send_here(coroutine, arrived)
        home = asyncio.get_running_loop()
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        future.add_done_callback(lambda _: _call_in(home, arrived))
        return future

    def _send_here(self, coroutine: Coroutine[Any, Any, T], arrived: Callable[[], None]) -> Future[T]:
        future: Future[T] = Future()

        async def run() -> None:
            try:
                future.set_result(await coroutine)
            except Exception as error:  # noqa: BLE001 - it is the future's, whatever it is
                future.set_exception(error)
            arrived()

        task = asyncio.ensure_future(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return future

    async def stop(self) -> None:
        """End the thread; what still runs there is abandoned."""
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            await asyncio.to_thread(self._thread.join, 5.0)
            if not self._thread.is_alive():
                self._loop.close()
            self._loop = None


def _call_in(loop: asyncio.AbstractEventLoop, what: Callable[[], None]) -> None:
    try:
        loop.call_soon_threadsafe(what)
    except RuntimeError:  # that loop is closed: the process ends, and nothing waits any longer
        pass
