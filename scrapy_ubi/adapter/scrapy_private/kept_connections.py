"""Scrapy's own HTTP/1.1 handler keeps idle connections only as far as the process may open files.

Twisted keeps the connections of each host for four minutes, however many hosts there are. A wide crawl has thousands
of them, where a process may have 1,024 files open by default; then no host can be connected to any more, and the disk
and Redis cannot be reached either. What Twisted notes of a host whose connections are gone is let go here as well.

Private names of Twisted's pool: `_putConnection`, `_removeConnection`, `_connections`, `_timeouts`.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import islice
from typing import Any

from twisted.web.client import HTTPConnectionPool

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None  # type: ignore[assignment]

_NAMES = ("_putConnection", "_removeConnection", "_connections", "_timeouts")
MOST = 2000  # of one pool: 20 kB each
SHARE = 3  # http and https have a pool each: a third of the files is left for the rest
SPARE = 1000  # hosts without a connection that are noted, before they are looked for


def most_kept() -> int:
    """How many idle connections one pool of this process may keep."""
    if not hasattr(resource, "getrlimit"):
        return MOST
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if files == resource.RLIM_INFINITY else min(MOST, files // SHARE)


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
