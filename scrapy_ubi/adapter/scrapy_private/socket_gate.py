"""The gate: a request leaves for the network only while the right to fetch its host holds.

A transfer starts in one turn of the loop and is written in a later one: its connection is made first, and Twisted
gives bytes to the kernel a turn after it was given them. A process that is stopped in between (SIGSTOP, a machine that
sleeps), or whose loop a callback blocks for seconds, would write when its lease has long ended, beside its heir. So the
right is asked for once more where the bytes leave. Rules of this module:

* The right is a function that the task of the transfer sets (`may_write`); where none is set, nothing is asked.
* Without the right the connection is aborted, and nothing of the request is written.
* A connection to a host itself, not to a proxy, is made only to an address that is allowed (`reach`). That is asked
  when the address is connected, before TLS and before anything is written; so it is the address that is used.
* It works for Scrapy's HTTP/1.1 handler on Twisted, the default one, with proxies and TLS. Ours (`fast.http`) asks
  itself. Other handlers, and classes derived from these (`asking`), may write elsewhere: their right is compared when
  the transfer starts, not at the write.
* The right is asked for before a new connection is made as well: else a host that is another agent's would see one.
* A kept connection may end when a request is written to it. A handler would send the request again immediately, below
  the delay of its host. Under a right to `OneTransfer` it says so instead, and the gate sends it again, later.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from contextvars import ContextVar
from functools import partial
from typing import Any, NoReturn, Protocol

from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.exceptions import DownloadFailedError
from scrapy.http import Response
from scrapy.utils.defer import deferred_from_coro
from twisted.internet.defer import Deferred, fail
from twisted.internet.error import ConnectionAborted
from twisted.internet.interfaces import IProtocolFactory
from twisted.protocols.policies import ProtocolWrapper
from twisted.python.failure import Failure
from twisted.web.client import HTTPConnectionPool
from zope.interface import implementer  # type: ignore[import-untyped]

Right = Callable[[], bool]


class NoRight(Exception):
    """The right ended before a request was written."""


class OneTransfer:
    """The right to write one request to a host once. `may_start(host)` says whether it holds.

    `lapsed`: it has ended when it was asked for. `broken`: the connection ended without an answer, and the request may
    be sent again: by the gate that gave the right, not by the handler. `repeats`: how often it was before.
    A kept connection holds this for minutes: it knows nothing of the request.
    """

    __slots__ = ("_host", "_may_start", "broken", "lapsed", "repeats")

    def __init__(self, may_start: Callable[[str], bool], host: str, repeats: int = 0) -> None:
        self._may_start = may_start
        self._host = host
        self.repeats = repeats
        self.lapsed = self.broken = False

    def __call__(self) -> bool:
        self.lapsed = self.lapsed or not self._may_start(self._host)
        return not self.lapsed


may_write: ContextVar[Right | None] = ContextVar("scrapy_ubi_may_write", default=None)


class Asking(partial[Awaitable[Response]]):
    """A download by a handler that asks for the right before it connects and when it writes."""


def asking(handler: object, download: Callable[..., Awaitable[Response]]) -> Callable[..., Awaitable[Response]]:
    """This download by this handler, as `Asking` where the handler is known to ask."""
    kind = type(handler)
    asks = kind is HTTP11DownloadHandler or bool(vars(kind).get("asks_for_right"))
    return Asking(download) if asks else download


class Reaches(Protocol):
    """Which addresses hosts may be connected to (`scrapy_ubi.adapter.downloads.reach`)."""

    def permits(self, host: str, address: str) -> bool:
        """Whether this host may be connected to at this address, as far as is known."""

    def refuse(self, host: str, address: str) -> NoReturn:
        """Raise the error that says that this host may not be connected to at this address."""

    async def is_intranet(self) -> bool:
        """Whether the crawl is one of private addresses, as far as that can be found out now (`Reach.is_intranet`)."""


def gate(pool: HTTPConnectionPool, transport_of: Callable[[Any], Any], reach: Reaches | None = None) -> None:
    """Ask for the right of the task that wants a connection of this pool whenever something is written to it, and
    `reach` for each address. A second call does nothing. `transport_of(connection)` gives the transport of what the
    pool hands out."""
    original = pool.getConnection
    if getattr(original, "gated", False):
        return

    def get_connection(key: Hashable, endpoint: Any) -> Deferred[Any]:
        right = may_write.get()
        if reach is not None and (host := direct_host(key)):
            endpoint = _Reached(endpoint, host, reach)
        if right is None:
            return original(key, endpoint)

        def gated(connection: Any) -> Any:
            _hold(transport_of(connection), right)
            return connection

        own: Any = _Endpoint(endpoint, right)
        found = original(key, own)
        own.kept = not own.dialed
        return found.addCallback(gated)

    get_connection.gated = True  # type: ignore[attr-defined]
    pool.getConnection = get_connection  # type: ignore[method-assign]


def direct_host(key: Any) -> str:
    """The host that a connection with this key of Scrapy's pool goes to; "" where it goes to a proxy.

    Such a key is (scheme, host, port, local address); one of a tunnel has the proxy's in it as well, and that of a
    proxy begins with `http-proxy`.
    """
    direct = isinstance(key, tuple) and len(key) in (3, 4) and key[0] in (b"http", b"https")
    return key[1].decode("ascii", "replace") if direct else ""


class _Endpoint:
    """An endpoint whose connections are gated: also those by which Twisted tries again when a `kept` one was closed."""

    def __init__(self, endpoint: Any, right: Right) -> None:
        self._endpoint = endpoint
        self._right = right
        self.dialed = self.kept = False

    def connect(self, factory: Any) -> Deferred[Any]:
        if self.kept and isinstance(self._right, OneTransfer):
            self._right.broken = True
            return fail(DownloadFailedError("The kept connection was closed"))
        if not self._right():
            return fail(NoRight("The right to fetch this host has ended"))
        self.dialed = True

        def gated(protocol: Any) -> Any:
            _hold(protocol.transport, self._right)
            return protocol

        deferred: Deferred[Any] = self._endpoint.connect(factory)
        return deferred.addCallback(gated)


class _Reached:
    """An endpoint of a host that connects to the addresses only that are allowed."""

    def __init__(self, endpoint: Any, host: str, reach: Reaches) -> None:
        self._endpoint = endpoint
        self._host = host
        self._reach = reach

    def connect(self, factory: Any) -> Deferred[Any]:
        refused: list[str] = []

        def attempt() -> Deferred[Any]:
            connected: Deferred[Any] = self._endpoint.connect(_Looking(factory, self._host, self._reach, refused))
            return connected

        def try_again(failure: Failure) -> Any:
            if not refused:  # of several addresses the last one's error is told: it may be another one
                return failure
            return deferred_from_coro(self._reach.is_intranet()).addCallback(once_more)

        def once_more(_: bool) -> Any:
            if self._reach.permits(self._host, refused[0]):
                return attempt()
            return self._reach.refuse(self._host, refused[0])

        return attempt().addErrback(try_again)


@implementer(IProtocolFactory)
class _Looking:
    """A factory that makes no protocol for an address that is not allowed; these are noted in `refused`."""

    def __init__(self, factory: Any, host: str, reach: Reaches, refused: list[str]) -> None:
        self._factory = factory
        self._host = host
        self._reach = reach
        self._refused = refused

    def doStart(self) -> None:
        self._factory.doStart()

    def doStop(self) -> None:
        self._factory.doStop()

    def buildProtocol(self, address: Any) -> Any:
        host = getattr(address, "host", "")
        if not self._reach.permits(self._host, host):
            self._refused.append(host)
            raise NoRight(f"{self._host} may not be connected to at {host}")  # Twisted closes it; None would hang TLS
        return self._factory.buildProtocol(address)


class _Gate:
    """Stands for the `doWrite` of one connection, with the right of the request that uses it now."""

    def __init__(self, write: Callable[[], Any], right: Right) -> None:
        self._write = write
        self.right = right

    def __call__(self) -> Any:
        return self._write() if self.right() else ConnectionAborted()


def _hold(transport: Any, right: Right) -> None:
    while isinstance(transport, ProtocolWrapper):  # TLS
        transport = transport.transport
    write = getattr(transport, "doWrite", None)
    if isinstance(write, _Gate):
        write.right = right
    elif write is not None:
        transport.doWrite = _Gate(write, right)
