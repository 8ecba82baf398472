"""A host that resets connections: it reads a request and answers with a TCP reset. It tells when it was asked.

with Resetting(lambda path, number: path == "/3" and number == 1) as host:
    ...              # host.url; connections are kept after good answers
assert min(host.gaps()) >= delay
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from time import monotonic
from types import TracebackType
from typing import NamedTuple

LIMIT = 60.0  # seconds in which the thread must start or end
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nok"


class Asked(NamedTuple):
    """One request: when it had come, and when its answer or its reset was about to leave (s)."""

    path: str
    came: float
    left: float


class Resetting:
    """The host, in a thread, on a free port of loopback. `resets(path, number)` says whether a request is answered with
    a reset; `number` counts the requests for this path from 1."""

    def __init__(self, resets: Callable[[str, int], bool]) -> None:
        self.asked: list[Asked] = []
        self._resets = resets
        self._numbers: Counter[str] = Counter()
        self._port = 0
        self._loop = asyncio.new_event_loop()
        self._ready, self._over = threading.Event(), asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._main(),), daemon=True)
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def gaps(self) -> list[float]:
        """Seconds from the end of each request to the beginning of the next."""
        return [later.came - earlier.left for earlier, later in pairwise(self.asked)]

    def paths(self) -> list[str]:
        """What was asked for, in its order."""
        return [asked.path for asked in self.asked]

    async def _main(self) -> None:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._over.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            while True:
                path = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].decode()
                came = monotonic()
                self._numbers[path] += 1
                resets = self._resets(path, self._numbers[path])
                left = monotonic()  # before the client can know
                if not resets:
                    writer.write(ANSWER)
                    await writer.drain()
                self.asked.append(Asked(path, came, left))
                if resets:
                    sock = writer.get_extra_info("socket")
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    writer.transport.abort()
                    return
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            writer.close()

    def __enter__(self) -> Resetting:
        self._thread.start()
        assert self._ready.wait(LIMIT), "the host did not start"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(LIMIT)
        assert not self._thread.is_alive(), "the host did not end"
        self._loop.close()
