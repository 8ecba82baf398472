"""How many requests of a host are handed out at once, for hosts of which more than one may be (UBI_HOST_CONCURRENCY).

Rules of this module:

* A frontier without these hands out one request of a host at a time; so does one that has them, of hosts whose limit
  is 0.
* A request counts from when it is handed out until its load has ended. What it leads to, its callback, say, does not.
* Where the limit falls below what is handed out, nothing is handed out until as many loads have ended.
* The delay of such a host counts between the starts of its loads, and the start is the gate's matter: the frontier puts
  off nothing when a load ends. But while one is handed out the next is so a delay later: they would wait at the gate.
"""

from __future__ import annotations

from collections.abc import Callable

Limit = Callable[[str], int]
"""How many loads of this host may be open at once, now; 0 for a host that is loaded one page at a time."""


def one_page_at_a_time(host: str) -> int:
    """The limit where no host may have several loads."""
    return 0


class HostLoads:
    """The requests handed out, by host."""

    def __init__(self, limit: Limit) -> None:
        self._limit = limit
        self._open: dict[str, tuple[int, float]] = {}  # how many, and when the next one has its turn

    def handed_out(self, host: str, next_at: float) -> bool:
        """One more request of this host was handed out. Return whether another one may be, beside it, from that time
        on."""
        limit = self._limit(host)
        if not limit:
            return False
        count = self.count_open(host) + 1
        self._open[host] = count, next_at
        return count < limit

    def next_at(self, host: str) -> float:
        """The time before which none is handed out beside those that are; 0.0 where none is."""
        return self._open[host][1] if host in self._open else 0.0

    def freed(self, host: str) -> bool | None:
        """One of their loads has ended; whether another request may be handed out. None: one page at a time."""
        limit = self._limit(host)
        if not limit:
            return None
        count, next_at = self._open.pop(host, (1, 0.0))
        if count > 1:
            self._open[host] = count - 1, next_at
        return count <= limit

    def count_open(self, host: str) -> int:
        """How many are handed out."""
        return self._open[host][0] if host in self._open else 0
