"""The gate of a crawl with rates that the group keeps (UBI_RATES): no transfer starts without them.

Rules of this module:

* A request is under the rates of its host, of its proxy (`meta["proxy"]`), and of the names in `meta["ubi_rate"]`.
* Everything that the gate lets through counts: pages, robots.txt, media, redirects, what is made again. It counts from
  when it may start until a window after its end.
* A page that has to wait for a rate goes back to its queue, and its host is put off: it keeps no place of the
  downloader. What bypasses the scheduler waits here, and gives its place to pages meanwhile.
* Where the share has ended before the bytes leave, nothing is written (`socket_gate`), and it waits again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cached_property
from typing import NoReturn
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.http import Response

from scrapy_ubi.adapter.downloads.abort import Aborted, abortable
from scrapy_ubi.adapter.downloads.gate import Gate
from scrapy_ubi.adapter.requests.inflight import Flight
from scrapy_ubi.agent.hosts.rated_hosts import RatedHosts
from scrapy_ubi.settings.rates import PROXY

META = "ubi_rate"
MOST_LABELS = 16  # of a request
UNKNOWN = f"meta['{META}'] names {{!r:.100}}, which UBI_RATES does not: it has no rate."
BAD_LABELS = (
    f"meta['{META}'] is {{!r:.100}}, and no text, or list of at most {MOST_LABELS} texts: what is none has no effect."
)
LOOK = 1.0  # s: what waits here looks this often whether the spider is being closed


class RatedGate(Gate):
    """As `Gate`, for a node with `RatedHosts`."""

    @cached_property
    def _rated(self) -> RatedHosts:
        assert isinstance(self._node.rates, RatedHosts)
        return self._node.rates

    @cached_property
    def _taken(self) -> dict[Flight, tuple[str, ...]]:
        """The rates of what was let through, until it ends."""
        return {}

    def names_of(self, flight: Flight) -> tuple[str, ...]:
        """The rates that this is under."""
        request, named = flight.request, self._rated.named
        names = dict.fromkeys(self._rated.of_host(flight.host or ""))
        parts = urlsplit(request.url)
        names |= dict.fromkeys((parts.netloc.rpartition("@")[2].lower(), (parts.hostname or "").lower()))
        if isinstance(proxy := request.meta.get("proxy"), str):
            there = urlsplit(proxy if "//" in proxy else f"//{proxy}").netloc
            names[PROXY + there.rpartition("@")[2].lower()] = None
        for label in self._labels(request.meta.get(META)):
            if label not in named:
                self._notices.once(f"rate {label:.100}", UNKNOWN.format(label))
            names[label] = None
        return tuple(name for name in names if name in named)

    def _labels(self, said: object) -> list[str]:
        """The names in the meta of a request."""
        labels = [said] if isinstance(said, str) else said if isinstance(said, list | tuple | set | frozenset) else []
        read = [label.strip().lower() for label in labels if isinstance(label, str)]
        if said is not None and (len(read) != len(labels) or not labels or len(read) > MOST_LABELS):
            self._notices.once("rate labels", BAD_LABELS.format(said))
        return read[:MOST_LABELS]

    async def _permit(self, flight: Flight, again: bool = False) -> None:
        """Wait for the permit, then for room in the rates."""
        await super()._permit(flight, again)
        names = self.names_of(flight)
        if not names:
            return
        assert flight.host is not None
        while wait := self._rated.start_load(names, flight.host):
            if flight.visit is not None:
                self._rated.put_off(flight.visit.state, names, wait)
                self._give_up(flight)
            self._rated.note(flight.host, names, wait)
            try:
                with self.places.left(flight.request):
                    await abortable(flight, asyncio.sleep(min(wait, LOOK)))
            except Aborted:
                self._give_up(flight)
            if self._ends(flight):
                self._give_up(flight)
        self._taken[flight] = names

    def _give_up(self, flight: Flight) -> NoReturn:
        self._crawler.stats.inc_value("ubi/guard/rate_waits")
        self._withdraw(flight)

    def _right(self, flight: Flight) -> Callable[[str], bool]:
        """The check of the gate before a write, and that the shares of the rates hold."""
        may, names = super()._right(flight), self._taken.get(flight, ())
        return lambda host: may(host) and self._rated.holds(names)

    def _end(self, flight: Flight | None) -> None:
        if flight is not None and (names := self._taken.pop(flight, None)) is not None:
            self._rated.end_load(names)

    def responded(self, request: Request, response: Response) -> None:
        """Give back the load, then do what the gate does at a response."""
        self._end(self._flights.get(request))
        super().responded(request, response)

    def failed(self, request: Request, error: Exception) -> None:
        """Give back the load, then do what the gate does at an error."""
        self._end(self._flights.get(request))
        super().failed(request, error)

    def release(self, flight: Flight, again: bool = False) -> None:
        """Give back the load, if there was one, then the permit."""
        self._end(flight)
        super().release(flight, again)
