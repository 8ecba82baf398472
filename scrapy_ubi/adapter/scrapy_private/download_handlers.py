"""Scrapy's own download handlers: that of HTTP/1.1 keeps idle connections only as far as the process may open files;
that on aiohttp sends a request once.

Twisted keeps the connections of each host for four minutes, however many hosts there are. A wide crawl has thousands
of them, where a process may have 1,024 files open by default; then no host can be connected to any more, and the disk
and Redis cannot be reached either. What Twisted notes of a host whose connections are gone is let go here as well.

aiohttp, which a project without a Twisted reactor may have, by itself sends a request again, immediately, when the
connection has ended without an answer, kept or new: below the delay of the host. Rules:

* That is switched off at the first transfer of each handler.
* Where aiohttp would have sent it again, the right of the transfer is told so (`OneTransfer.broken`), once for each
  request: the gate sends it again when the delay has passed. A transfer without such a right is not repeated.
* Nothing here imports aiohttp before there is such a handler: a project may be without it.

| name | used for |
| --- | --- |
| `HTTPConnectionPool`: `_putConnection`, `_removeConnection`, `_connections`, `_timeouts` | idle connections, bounded |
| `ClientSession._retry_connection` of aiohttp | not to send a request again |
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from itertools import islice
from typing import Any

from scrapy import Request
from scrapy.exceptions import DownloadFailedError
from scrapy.http import Response
from twisted.web.client import HTTPConnectionPool

from scrapy_ubi.adapter.scrapy_private import socket_gate
from scrapy_ubi.ground.open_files import may_open

_NAMES = ("_putConnection", "_removeConnection", "_connections", "_timeouts")
MOST = 2000  # of one pool: 20 kB each
SHARE = 3  # http and https have a pool each: a third of the files is left for the rest
SPARE = 1000  # hosts without a connection that are noted, before they are looked for


def most_kept() -> int:
    """How many idle connections one pool of this process may keep."""
    return min(MOST, may_open() // SHARE)


def bound(pool: HTTPConnectionPool, most: int) -> None:
    """Keep at most so many idle connections in this pool, of all hosts: who was idle for longest goes first. A second
    call does nothing."""
    if not all(hasattr(pool, name) for name in _NAMES):
        return  # `left_out` says so
    original = pool._putConnection
    if getattr(original, "bound", False):
        return

    def put(key: Hashable, connection: Any) -> None:
        original(key, connection)  # type: ignore[no-untyped-call]
        timers = pool._timeouts  # in the order in which they became idle
        for timer in list(islice(timers.values(), max(0, len(timers) - most))):
            host, oldest = timer.args
            timer.cancel()
            pool._removeConnection(host, oldest)  # type: ignore[no-untyped-call]
        if len(pool._connections) > 2 * len(timers) + SPARE:
            for empty in [each for each, kept in pool._connections.items() if not kept]:
                del pool._connections[empty]

    put.bound = True  # type: ignore[attr-defined]
    pool._putConnection = put  # type: ignore[method-assign]


# What aiohttp sends again (`IDEMPOTENT_METHODS` of its client).
REPEATABLE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})


def sends_again(handler: object) -> bool:
    """Whether a download handler has a session of aiohttp that sends requests again."""
    return getattr(_session(handler), "_retry_connection", False) is True


def send_once(handler: object) -> None:
    """Let this handler send each request once."""
    session = _session(handler)
    session._retry_connection = False


def telling(download: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """`download`, which tells the right of its transfer when the request is to be sent again."""

    async def download_request_async(request: Request) -> Response:
        try:
            return await download(request)
        except DownloadFailedError as error:
            right = socket_gate.may_write.get()
            if isinstance(right, socket_gate.OneTransfer) and not right.repeats and request.method in REPEATABLE:
                right.broken = _is_cut_off(error.__cause__)
            raise

    return download_request_async


def _session(handler: object) -> Any:
    return getattr(handler, "_session", None)


def _is_cut_off(error: BaseException | None) -> bool:
    """Whether aiohttp says that a connection has ended without an answer."""
    import aiohttp  # the handler has it

    return isinstance(error, aiohttp.ServerDisconnectedError | aiohttp.ClientOSError)
