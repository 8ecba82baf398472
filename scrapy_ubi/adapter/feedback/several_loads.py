"""What follows for a host with several loads at once, when one of them says that it is to rest, or to slow down.

Rules of this module:

* Loads that began before the host was put off say the same as the one that has put it off. They are *late*: they count
  neither for its health nor as asked once more, and their pages go back to the queue with all their retries. Else eight
  time-outs at once would be eight in a row, and the end of the host.
* Every response, and every load without one, goes to `auto(n)` (`HostConcurrency`).
* Of a host that is loaded one page at a time nothing is kept: none of its loads can be late.
* At most `MOST_HOSTS` hosts are remembered; the one put off longest ago is forgotten: those loads have ended.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from time import monotonic

from scrapy_ubi.adapter.requests.inflight import Flight
from scrapy_ubi.agent.hosts.host_concurrency import HostConcurrency

MOST_HOSTS = 10_000
SLOW_DOWN = (429, 503)  # these ask for fewer loads at once, with a Retry-After or without


class SeveralLoads:
    """The loads of one agent's hosts that have several at once; none without `concurrency`."""

    def __init__(self, concurrency: HostConcurrency | None, clock: Callable[[], float] = monotonic) -> None:
        self._concurrency = concurrency
        self._clock = clock
        self._put_off_at: OrderedDict[str, float] = OrderedDict()

    def responded(self, host: str, began: float, status: int, seconds: float) -> None:
        """A load that began then (s, the clock's) has ended with this status."""
        if self._concurrency is None:
            return
        if status in SLOW_DOWN:
            self._concurrency.slow_down(host, began, self._clock())
        else:
            self._concurrency.answered(host, seconds, began)

    def failed(self, host: str, began: float) -> None:
        """It has ended without a response."""
        if self._concurrency is not None:
            self._concurrency.slow_down(host, began, self._clock())

    def put_off(self, host: str) -> None:
        """The host is left alone for some time from now on."""
        if self._concurrency is not None and self._concurrency.limit(host):
            self._put_off_at[host] = self._clock()
            self._put_off_at.move_to_end(host)
            if len(self._put_off_at) > MOST_HOSTS:
                self._put_off_at.popitem(last=False)

    def is_late(self, flight: Flight) -> bool:
        """Whether this load began before its host was put off."""
        return flight.host is not None and flight.began < self._put_off_at.get(flight.host, 0.0)
