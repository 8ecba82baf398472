"""The gate: a request leaves for the network only while the right to fetch its host holds.

A transfer starts in one turn of the loop and is written in a later one: its connection is made first, and Twisted
gives bytes to the kernel a turn after it was given them. A process that is stopped in between (SIGSTOP, a machine that
sleeps), or whose loop a callback blocks for seconds, would write when its lease has long ended, beside its heir. So the
right is asked for once more where the bytes leave. Rules of this module:

* The right is a function that the task of the transfer sets (`may_write`); where none is set, nothing is asked.
* Without the right the connection is aborted, and nothing of the request is written.
* It works for Scrapy's HTTP/1.1 handler on Twisted, the default one, with proxies and TLS. Ours (`http`) asks itself.
  Other handlers have their right compared when the transfer's task starts, not at the write.
* A kept connection may end when a request is written to it. A handler would send the request again immediately, below
  the delay of its host. Under a right to `OneTransfer` it says so instead, and the guard sends it again, later.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextvars import ContextVar
from typing import Any

from scrapy.exceptions import DownloadFailedError
from twisted.internet.defer import Deferred, fail
from twisted.internet.error import ConnectionAborted
from twisted.protocols.policies import ProtocolWrapper
from twisted.web.client import HTTPConnectionPool

Right = Callable[[], bool]


class NoRight(Exception):
    """The right ended before a request was written."""


class OneTransfer:
    """The right to write one request to a host once. `may_start(host)` says whether it holds.

    `lapsed`: it has ended when it was asked for. `broken`: the connection ended without an answer, and the request may
    be sent again: by whoever has given the right, not by who carries the request. `repeats`: how often it was before.
    A kept connection holds this for minutes: it knows nothing of the request.
    """

    __slots__ = ("_host", "_may_start", "broken", "lapsed", "repeats")

    def __init__(self, may_start: Callable[[str], bool], host: str, repeats: int = 0) -> None:
        self._may_start, self._host, self.repeats = may_start, host, repeats
        self.lapsed = self.broken = False

    def __call__(self) -> bool:
        self.lapsed = self.lapsed or not self._may_start(self._host)
        return not self.lapsed


may_write: ContextVar[Right | None] = ContextVar("scrapy_ubi_may_write", default=None)


def gate(pool: HTTPConnectionPool, transport_of: Callable[[Any], Any]) -> None:
    """Ask for the right of the task that wants a connection of this pool whenever something is written to it. A second
    call does nothing. `transport_of(connection)` gives the transport of what the pool hands out."""
    original = pool.getConnection
    if getattr(original, "gated", False):
        return

    def get_connection(key: Hashable, endpoint: Any) -> Deferred[Any]:
        right = may_write.get()
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
        self.dialed = True

        def gated(protocol: Any) -> Any:
            _hold(protocol.transport, self._right)
            return protocol

        deferred: Deferred[Any] = self._endpoint.connect(factory)
        return deferred.addCallback(gated)


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
