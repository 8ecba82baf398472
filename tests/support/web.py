"""The demo web in a thread, for tests that crawl it.

    with DemoWeb(Graph(seed=3, hosts=10, pages=60), latency=0.01) as web:
        ...                                     # http_proxy=web.proxy for the crawl
        assert web.fetched() == web.graph.reachable([web.graph.home(0)])

Stats are asked over HTTP, so they are consistent: the thread is the only one that touches the record.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from demo.graph import Graph
from demo.web import Web, ask, serve

LIMIT = 60.0  # seconds in which the thread must start or end
HELD = 120.0  # seconds after which a web that is held answers anyway, so that a broken test ends


class DemoWeb:
    """A running web. `latency`: mean seconds an answer takes."""

    def __init__(self, graph: Graph, latency: float = 0.0) -> None:
        self.graph = graph
        self.port = 0
        self._is_held = False
        self._web = Web(graph, latency)
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()), name="demo-web", daemon=True)

    @property
    def proxy(self) -> str:
        """What http_proxy must be for a client of this web."""
        return f"http://127.0.0.1:{self.port}"

    def stats(self) -> dict[str, Any]:
        """See demo.record.Record.stats."""
        if self._is_held:  # what asks now explains a failure, and is not to wait
            return {"held": True}
        found: dict[str, Any] = ask(self.port, "stats")
        return found

    def visits(self) -> dict[str, int]:
        """URL -> how often it was fetched."""
        found: dict[str, int] = ask(self.port, "visits")
        return found

    def fetched(self) -> set[str]:
        return set(self.visits())

    def log(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = ask(self.port, "log")
        return found

    def count(self) -> int:
        """Requests so far."""
        found: int = ask(self.port, "count")
        return found

    def reset(self) -> None:
        ask(self.port, "reset")

    def hurry(self, latency: float = 0.0) -> None:
        """From now on an answer takes so many seconds in the mean."""
        self._web.latency = latency

    @contextmanager
    def held(self) -> Iterator[None]:
        """Within this block nothing is answered, no question about the web either; at the latest after `HELD`."""
        assert self._loop is not None
        go = threading.Event()
        self._loop.call_soon_threadsafe(go.wait, HELD)
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False
            go.set()

    def __enter__(self) -> DemoWeb:
        self._thread.start()
        assert self._ready.wait(LIMIT), "the demo web did not start"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._loop is not None and self._task is not None
        self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(LIMIT)
        assert not self._thread.is_alive(), "the demo web did not end"

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.ensure_future(serve(self._web, 0, self._started))
        try:
            await self._task
        except asyncio.CancelledError:
            pass

    def _started(self, port: int) -> None:
        self.port = port
        self._ready.set()
