"""What is known at this agent of the host of a request: its state, whose it is, and whether the request is a page.

Rules of this module:

* A *page* is a request of the queue. What bypasses the scheduler, and what never leaves this agent, is none.
* Nothing is counted or logged here.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from scrapy import Request

from scrapy_ubi.adapter.requests.inflight import Flights
from scrapy_ubi.adapter.requests.named_hosts import HostNames
from scrapy_ubi.agent.waits import wait_briefly
from scrapy_ubi.settings import UbiSettings

if TYPE_CHECKING:
    from scrapy_ubi.agent import Node
    from scrapy_ubi.protocol.host import HostState


class RequestHosts:
    """The hosts of one agent's requests."""

    def __init__(self, node: Node, settings: UbiSettings, flights: Flights) -> None:
        self._node = node
        self._flights = flights
        names = HostNames(settings)
        self.of_url = names.of_url
        self.of_request = names.of_request
        self._closes = asyncio.Event()

    def is_page(self, request: Request) -> bool:
        """Whether this is a page."""
        flight = self._flights.get(request)
        return flight is not None and flight.visit is not None

    def state_of(self, request: Request) -> HostState | None:
        """The state of the host of a page, None for what is none."""
        flight = self._flights.get(request)
        return None if flight is None or flight.visit is None else flight.visit.state

    def name_of(self, request: Request) -> str:
        """The host of a page, empty for what is none."""
        state = self.state_of(request)
        return "" if state is None else state.host

    def key_for(self, request: Request) -> str:
        """Under which host a robots.txt is loaded for this request: that of the page, or of what bypasses the
        scheduler; empty for what has none."""
        return self.name_of(request) or self.of_request(request) or ""

    def own_state(self, request: Request) -> HostState | None:
        """The state of the host of any request, None where this agent may not load from it now."""
        host = self.of_request(request)
        return self._node.frontier.find(host) if host is not None and self._node.access.may_fetch(host) else None

    def want_abroad(self, request: Request, source: str, seconds: float) -> None:
        """This source wants a delay (s, 0: none) of the host of this request, where that is another agent's."""
        host = self.of_request(request)
        if host is not None and not self._node.access.is_own(host):
            self._node.access.foreign.want(host, source, seconds)

    async def rest(self, seconds: float) -> bool:
        """Wait for so long, but not while the spider is being closed. Returns whether it has waited."""
        await wait_briefly(self._closes, seconds)
        return not self._closes.is_set()

    def close(self) -> None:
        """The spider is being closed."""
        self._closes.set()
