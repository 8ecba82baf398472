"""New connections: addresses one after the other, TLS, and tunnels through proxies.

Rules of this module:

* A host with several addresses is dialed as RFC 8305 has it: the next address follows a moment after the one before,
  and the first that answers is taken; the others are let go.
* What goes wrong ends with the exceptions of Scrapy's handler, of which some are Twisted's (no route to a host). A
  connection that no request waits for any longer is closed at once.
* The addresses of a host, but for a proxy's, are those that its request may lead to
  (`scrapy_ubi.adapter.downloads.reach`).
* Of a proxy only 200 opens a tunnel. Anything else is a `TunnelError`, as with Scrapy's handler, which Scrapy tries
  again.
* TLS is that of Scrapy's handler (`scrapys.TlsMaker`), also within a tunnel.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import cast

from OpenSSL import SSL
from scrapy.crawler import Crawler
from scrapy.exceptions import CannotResolveHostError, DownloadFailedError

from scrapy_ubi.adapter.downloads.reach import Reach
from scrapy_ubi.adapter.downloads.resolver import Resolver
from scrapy_ubi.adapter.scrapy_private.socket_gate import NoRight, Right
from scrapy_ubi.fast.http import scrapys
from scrapy_ubi.fast.http.connection import Connection
from scrapy_ubi.fast.http.no_transport import NOT_CONNECTED
from scrapy_ubi.fast.http.pool import Pool
from scrapy_ubi.fast.http.request_head import connect_head
from scrapy_ubi.fast.http.route import Route
from scrapy_ubi.fast.http.tls import SessionRefused, TlsClient

STAGGER = 0.25  # seconds between two addresses (RFC 8305, 5)
MOST_ANSWER = 64 * 1024  # bytes of what a proxy says to CONNECT
SHOWN = 1000  # bytes of a wrong answer that are shown

_STATUS = re.compile(rb"HTTP/1\.. (\d{3})([^\r\n]*)")


class _Unconnected(Exception):
    """An address could not be connected to; the argument is the system's error."""


class Dialer:
    """Makes connections."""

    def __init__(
        self, crawler: Crawler, pool: Pool, names: Resolver, reach: Callable[[], Reach | None] = lambda: None
    ) -> None:
        """`reach()` says which addresses hosts may be connected to; None: any."""
        self._reach = reach
        self._names = names
        self._pool = pool
        self._tls = TlsClient(scrapys.TlsMaker(crawler), pool.counts)
        self._tells_tls = crawler.settings.getbool("DOWNLOADER_CLIENT_TLS_VERBOSE_LOGGING")

    async def dial(self, route: Route, right: Right | None) -> Connection:
        """A new connection of this route. Raises Scrapy's exceptions, TunnelError, Twisted's ConnectError, `NoRight`,
        `PrivateHost`, `Unverifiable`."""
        addresses = await self._names.addresses(route.host)
        if not route.by_proxy and route.tunnel is None and (reach := self._reach()) is not None:
            addresses = await reach.reachable(route.host, addresses)
        if right is not None and not right():
            raise NoRight("The right to fetch this host has ended")
        try:
            connection = await self._first(route, addresses, right)
        except _Unconnected as error:
            raise scrapys.not_connected(error.args[0]) from error
        except (OSError, SSL.Error) as error:
            raise DownloadFailedError(str(error) or "The connection was closed during the TLS handshake") from error
        if self._tells_tls and route.secure:
            name = route.tunnel[0] if route.tunnel else route.host
            scrapys.tell_tls(name, connection.transport.get_extra_info("tls"))
        return connection

    async def _first(self, route: Route, addresses: list[str], right: Right | None) -> Connection:
        """A connection with the first address that answers. Raises the error of the last one where none does."""
        if len(addresses) == 1:
            return await self._connect(route, addresses[0], right)
        attempts: set[asyncio.Task[Connection]] = set()
        error: BaseException | None = None
        try:
            waiting = list(addresses)
            while waiting or attempts:
                if waiting:
                    attempts.add(asyncio.create_task(self._connect(route, waiting.pop(0), right)))
                done, attempts = await asyncio.wait(
                    attempts, timeout=STAGGER if waiting else None, return_when=asyncio.FIRST_COMPLETED
                )
                for attempt in done:
                    error = attempt.exception()
                    if error is None:
                        attempts |= done - {attempt}
                        return attempt.result()
        finally:
            for attempt in attempts:
                attempt.add_done_callback(_let_go)
                attempt.cancel()
        assert error is not None
        raise error

    async def _connect(self, route: Route, address: str, right: Right | None) -> Connection:
        try:
            return await self._attempt(route, address, right)
        except SessionRefused:
            self._pool.counts["sessions_refused"] += 1
            if right is not None and not right():
                raise NoRight("The right to fetch this host has ended") from None
            return await self._attempt(route, address, right, anew=True)

    async def _attempt(self, route: Route, address: str, right: Right | None, *, anew: bool = False) -> Connection:
        """A connection; `anew`: without a session of TLS. Raises SessionRefused."""
        if route.tunnel is not None:
            return await self._through(route, address, right, anew=anew)
        connection = Connection(route, self._pool)
        if not (route.secure or route.secure_proxy):
            await _open(lambda: connection, address, route)
            return connection
        tls = self._tls.transport(_tls_name(route.host), route.port, connection, anew=anew)
        try:
            await _open(lambda: tls, address, route)
            await tls.ready
        except BaseException:
            tls.abort()
            raise
        return connection

    async def _through(self, route: Route, address: str, right: Right | None, *, anew: bool) -> Connection:
        """A connection to the tunnel's end."""
        assert route.tunnel is not None
        connection = Connection(route, self._pool)
        tls = self._tls.transport(_tls_name(route.tunnel[0]), route.tunnel[1], connection, anew=anew)
        tunnel = _Tunnel(route)
        transport = await _open(lambda: tunnel, address, route)
        try:
            if right is not None and not right():
                raise NoRight("The right to fetch this host has ended")
            await tunnel.open_tunnel()
            transport.set_protocol(tls)
            tls.connection_made(transport)
            transport.resume_reading()
            await tls.ready
        except BaseException:
            transport.abort()
            raise
        return connection


class _Tunnel(asyncio.Protocol):
    """A connection to a proxy that shall become a tunnel: CONNECT, and its answer. After them it is the host's."""

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


async def _open(protocol: Callable[[], asyncio.Protocol], address: str, route: Route) -> asyncio.Transport:
    """A connection to this address. Raises `_Unconnected`: what goes wrong later is another error of Scrapy's."""
    loop = asyncio.get_running_loop()
    try:
        transport, _ = await loop.create_connection(protocol, address, route.port, local_addr=route.local)
    except OSError as error:
        raise _Unconnected(error) from error
    return transport


def _tls_name(host: str) -> str:
    """The name of a host as TLS has it. Raises `CannotResolveHostError` for what is none: a tunnel's is not looked up
    here, and asyncio would fail with it in the middle of the handshake."""
    name = host.rstrip(".")
    try:
        if name.encode("idna"):
            return name
    except UnicodeError as error:
        raise CannotResolveHostError(f"{host!r} is no name of a host: {error}") from error
    raise CannotResolveHostError(f"{host!r} is no name of a host")


def _let_go(attempt: asyncio.Task[Connection]) -> None:
    """An attempt that was not needed: close what it may have come to."""
    if not attempt.cancelled() and attempt.exception() is None:
        attempt.result().abort()
