"""A TCP proxy that can be cut: the network between one agent and its Redis.

    with Cable(server.port) as cable:
        ...                # the agent's Redis is at cable.url
        cable.cut()        # nothing passes any more, in neither direction; nobody is told, connections stay open
        cable.heal()       # what was on its way arrives, late, also from connections given up since; then all is well

This is what a broken network does, where a server that dies would at least reset its connections.
"""

from __future__ import annotations

import asyncio
import threading
from types import TracebackType

LIMIT = 60.0  # seconds in which the thread must start or end
CHUNK = 65_536


class Cable:
    """The proxy, in a thread, on a free port of loopback."""

    def __init__(self, target: int) -> None:
        self.port = 0
        self._target = target
        self._loop = asyncio.new_event_loop()
        self._whole = asyncio.Event()
        self._whole.set()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._main(),), daemon=True)
        self._over = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def cut(self) -> None:
        """From now on nothing passes."""
        self._loop.call_soon_threadsafe(self._whole.clear)

    def heal(self) -> None:
        """Everything passes again, first what was held."""
        self._loop.call_soon_threadsafe(self._whole.set)

    def __enter__(self) -> Cable:
        self._thread.start()
        assert self._ready.wait(LIMIT), "the proxy did not start"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(LIMIT)
        assert not self._thread.is_alive(), "the proxy did not end"
        self._loop.close()

    async def _main(self) -> None:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._over.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            await self._whole.wait()
            there, back = await asyncio.open_connection("127.0.0.1", self._target)
            try:
                await asyncio.gather(self._pass(reader, back), self._pass(there, writer))
            finally:
                back.close()
        except (OSError, asyncio.CancelledError):  # a peer is gone, or the test is over
            pass
        finally:
            writer.close()

    async def _pass(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        """Bytes, and the end of them."""
        while data := await source.read(CHUNK):
            await self._whole.wait()
            target.write(data)
            await target.drain()
        await self._whole.wait()
        if not target.is_closing():
            target.write_eof()
