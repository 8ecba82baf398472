"""The first words with a proxy: CONNECT, and its answer. After them the connection is the host's.

Only 200 opens a tunnel. Anything else is a `TunnelError`, as with Scrapy's handler, which Scrapy tries again.
"""

from __future__ import annotations

import asyncio
import re
from typing import cast

from scrapy_ubi.fast.http import scrapys
from scrapy_ubi.fast.http.no_transport import NOT_CONNECTED
from scrapy_ubi.fast.http.request_head import connect_head
from scrapy_ubi.fast.http.route import Route

MOST_ANSWER = 64 * 1024
SHOWN = 1000  # bytes of a wrong answer that are shown

_STATUS = re.compile(rb"HTTP/1\.. (\d{3})([^\r\n]*)")


class Tunnel(asyncio.Protocol):
    """A connection to a proxy that shall become a tunnel."""

    def __init__(self, route: Route) -> None:
        self._route = route
        self._answer = b""
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._transport = NOT_CONNECTED

    async def open_tunnel(self) -> None:
        """Ask for the tunnel. Raises TunnelError, ConnectionError."""
        assert self._route.tunnel is not None
        host, port = self._route.tunnel
        name = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._transport.write(connect_head(name.encode("ascii"), self._route.authorization))
        await self._opened

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._answer += data
        head, end, _ = self._answer.partition(b"\r\n\r\n")
        if self._opened.done() or (not end and len(self._answer) < MOST_ANSWER):
            return
        status = _STATUS.match(head)
        if end and status is not None and status[1] == b"200":
            self._transport.pause_reading()  # what comes from now on is TLS
            self._opened.set_result(None)
            return
        told = {"status": int(status[1]), "reason": status[2].strip()} if status else self._answer[:SHOWN]
        host, port = self._route.host, self._route.port
        self._opened.set_exception(
            scrapys.no_tunnel(f"Could not open CONNECT tunnel with proxy {host}:{port} [{told!r}]")
        )

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._opened.done():
            self._opened.set_exception(exc or ConnectionResetError("The proxy closed the connection"))
