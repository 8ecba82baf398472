"""How many requests of a host are handed out at once, for hosts of which more than one may be (UBI_HOST_CONCURRENCY).

Rules of this module:

* A frontier without these hands out one request of a host at a time; so does one that has them, of hosts whose limit
  is 0.
* A request counts from when it is handed out until its load has ended. What it leads to, its callback, say, does not.
* Where the limit falls below what is handed out, nothing is handed out until as many loads have ended.
* The delay of such a host counts between the starts of its loads, and the start is the gate's matter: the frontier puts
  off nothing when a load ends.
"""

from __future__ import annotations

from collections.abc import Callable

Limit = Callable[[str], int]
"""How many loads of this host may be open at once, now; 0 for a host that is loaded one page at a time."""


class HostLoads:
    """The requests handed out, by host."""

    def __init__(self, limit: Limit) -> None:
        self._limit = limit
        self._open: dict[str, int] = {}

    def handed_out(self, host: str) -> bool:
        """One more request of this host was handed out; whether another one may be, beside it."""
        limit = self._limit(host)
        if not limit:
            return False
        count = self._open[host] = self._open.get(host, 0) + 1
        return count < limit

    def freed(self, host: str) -> bool | None:
        """One of their loads has ended; whether another request may be handed out. None: one page at a time."""
        limit = self._limit(host)
        if not limit:
            return None
        count = self._open.pop(host, 1) - 1
        if count > 0:
            self._open[host] = count
        return count < limit

    def open(self, host: str) -> int:
        """How many are handed out."""
        return self._open.get(host, 0)
