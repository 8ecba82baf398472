"""Requests that Scrapy holds: from the moment it takes one to the moment it lets go of it.

A *flight* is one request object on its way through the downloader, the callback and the pipelines. Flights of requests
that the scheduler handed out belong to a visit of the node; robots.txt and media downloads bypass the scheduler and
have none. Rules:

* A request is known by its object: meta marks are copied to retries and redirects, identity is not.
* A visit has one flight at a time; of a key, the latest flight counts.
* Where a flight stands at the gate (`adapter.downloads.gate`) is one value, `transfer`; `move` refuses what the table
  of `Transfer` does not allow.
* A flight that is *withdrawn* was not fetched, by no fault of the page: its visit goes back to the queue.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.http import Response

from scrapy_ubi.adapter.requests.transfer_states import ALLOWED, HOLDING, Transfer, WrongTransition

if TYPE_CHECKING:
    from scrapy_ubi.agent import Visit


class FoundLinks:
    """Where a page leads to, as far as its callback and the downloader middlewares say: the normal forms of links where
    they are known, else their URLs; and the URLs of redirects."""

    __slots__ = ("forms", "moved", "urls")

    def __init__(self) -> None:
        self.forms: list[str] = []
        self.urls: list[str] = []
        self.moved: list[str] = []


@dataclass(slots=True, eq=False)
class Flight:
    """One request that Scrapy holds.

    `host`: its partition key, None when it has none (not http). `visit`: what the node handed out, None for what
    bypasses the scheduler and for what never leaves this agent. `local`: of the latter kind.
    """

    request: Request
    host: str | None
    visit: Visit | None = None
    local: bool = False
    transfer: Transfer = Transfer.UNASKED  # changed by `move` only
    began: float = 0.0  # when its transfer began (s, time.monotonic), or was permitted to
    fetched: bool = False  # a transfer of it ended with a response
    status: int = 0  # of the page's response
    content: int | None = None  # what the learned forms compare pages by
    failed: str | None = None  # why the page has failed, after all retries
    task: asyncio.Task[Any] | None = None  # the one that waits for permit or transfer, and may be cancelled
    told: Response | Exception | None = None  # how it ends without a transfer, where `abort` ends its wait
    waited: bool = False  # it waits, or has waited, for a time that its host has asked for
    links: FoundLinks | None = None  # where an observer wants them
    unchanged: bool = False  # its page is as it was when it was visited before
    nonces: int = 0  # requests to be fetched anyway that its callback has yielded

    def move(self, to: Transfer) -> None:
        """Change the state of its transfer. Raises `WrongTransition` where the table does not allow that."""
        if to not in ALLOWED[self.transfer]:
            raise WrongTransition(f"{self.request}: {self.transfer.name} does not lead to {to.name}")
        self.transfer = to

    @property
    def held(self) -> bool:
        """Whether it holds the permit of its host."""
        return self.transfer in HOLDING

    @property
    def withdrawn(self) -> bool:
        """Whether it was not fetched, or its transfer is being cancelled, by no fault of the page."""
        return self.transfer in (Transfer.WITHDRAWN, Transfer.ABORTING)


class Flights:
    """All flights, by request object and by key."""

    def __init__(self) -> None:
        self._by_request: dict[Request | None, Flight] = {}  # None is no key of it, but may be asked for
        self._by_key: dict[int, Flight] = {}
        self.keys = self._by_key.keys()  # the keys of all visits that are out, now and later
        # Asked for every link, so each is one call: the flight of a request object (of none: none), or of a key.
        self.get: Callable[[Request | None], Flight | None] = self._by_request.get
        self.of_key: Callable[[int], Flight | None] = self._by_key.get
        self.keep_links = False  # whether an observer wants to know where pages lead to (`adapter.requests.observers`)

    def add(self, flight: Flight) -> Flight:
        self._by_request[flight.request] = flight
        if flight.visit is not None:
            self._by_key[flight.visit.entry.key] = flight
        return flight

    def remove(self, request: Request) -> Flight | None:
        flight = self._by_request.pop(request, None)
        if flight is not None and flight.visit is not None and self._by_key.get(flight.visit.entry.key) is flight:
            del self._by_key[flight.visit.entry.key]
        return flight

    def __iter__(self) -> Iterator[Flight]:
        return iter(list(self._by_request.values()))

    def __len__(self) -> int:
        return len(self._by_request)
