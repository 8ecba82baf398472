"""Connections that are kept between requests.

Rules of this module:

* A connection is here only while nothing is under way on it; who takes it owns it, and puts it back or closes it.
* The youngest of a route is taken first: the others grow old and are closed.
* So many are kept per route, and in all pools of a crawl (each scheme has a handler, and so a pool); the one that was
  idle for longest goes first.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

from scrapy_ubi.fast.http.route import Route
from scrapy_ubi.ground import open_files

if TYPE_CHECKING:
    from scrapy_ubi.fast.http.connection import Connection

# A process may have 1,024 files open by default, and connections under way, disks and Redis need theirs: idle ones have
# a third of the files, and these in any case where the process may ask for more. With TLS each takes some 40 kB.
MOST_IDLE = 400
WANTED_FILES = 8192  # that a process asks for where the user has turned UBI_FAST on
IDLE_SECONDS = 240.0  # as Twisted's; most servers close sooner


def most_idle(asks: bool) -> int:
    """How many idle connections a process may keep; no more than of `WANTED_FILES`, as each takes memory. `asks`: it
    may ask the system for these files, and so change itself."""
    if asks:
        return max(MOST_IDLE, min(WANTED_FILES, open_files.ask_for(WANTED_FILES)) // 3)
    return min(WANTED_FILES, open_files.may_open()) // 3


class Pool:
    """The idle connections of one handler. `most_per_route`: of a host; `most_by_proxy`: of a proxy; `idle`: those of
    all pools of the crawl, each with the time since when, longest idle first; it is kept up here."""

    def __init__(
        self, most_per_route: int, most_by_proxy: int, idle: dict[Connection, float] | None = None, asks: bool = False
    ) -> None:
        self._most_per_route = most_per_route
        self._most_by_proxy = most_by_proxy
        self._routes: dict[Route, list[Connection]] = {}
        self._since = {} if idle is None else idle
        self._timer: asyncio.TimerHandle | None = None
        self.most_idle = most_idle(asks)
        self.closed = False
        self.counts: Counter[str] = Counter()  # what happened, for the stats

    def __len__(self) -> int:
        return sum(map(len, self._routes.values()))

    def take_connection(self, route: Route) -> Connection | None:
        """An idle connection of this route, None where there is none."""
        while idle := self._routes.get(route):
            connection = idle[-1]
            self.forget(connection)
            if connection.is_open():
                self.counts["reused"] += 1
                return connection
        return None

    def put(self, connection: Connection) -> None:
        """Keep a connection on which nothing is under way."""
        route = connection.route
        idle = self._routes.setdefault(route, [])
        idle.append(connection)
        loop = asyncio.get_running_loop()
        self._since[connection] = loop.time()
        if len(idle) > (self._most_by_proxy if route.by_proxy else self._most_per_route):
            idle[0].abort()
        elif len(self._since) > self.most_idle:
            next(iter(self._since)).abort()
        if self._timer is None:
            self._timer = loop.call_later(IDLE_SECONDS, self._tick)

    def forget(self, connection: Connection) -> None:
        """A connection of this pool's has closed, or is taken. One that is not here is ignored."""
        if self._since.pop(connection, None) is not None:
            idle = self._routes[connection.route]
            if idle[-1] is connection:
                idle.pop()
            else:
                idle.remove(connection)
            if not idle:
                del self._routes[connection.route]

    def close(self) -> None:
        """Close all that are here. None is taken from then on."""
        self.closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for connection in [each for idle in self._routes.values() for each in idle]:
            connection.abort()

    def _tick(self) -> None:
        self._timer = None
        loop = asyncio.get_running_loop()
        now = loop.time()
        for connection, since in list(self._since.items()):
            if since + IDLE_SECONDS > now:
                self._timer = loop.call_at(since + IDLE_SECONDS, self._tick)
                return
            connection.abort()
