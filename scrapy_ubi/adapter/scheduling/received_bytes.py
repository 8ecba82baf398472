"""Bytes of bodies as they come, counted for limits of hosts and of the crawl."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.http import Response

from scrapy_ubi.adapter.requests.inflight import Flight
from scrapy_ubi.adapter.requests.observers import PageObserver

if TYPE_CHECKING:
    from scrapy_ubi.agent import Node


class ReceivedBytes(PageObserver):
    """Tells a node what each load has cost: pages, robots.txt, files. A page that goes back to its queue, as its host
    asks for a pause, costs nothing."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def received(self, flight: Flight, response: Response) -> None:
        """Count the body, as it is on the line."""
        node, size = self._node, len(response.body)
        node.crawl.tally.body_bytes += size
        state = node.frontier.find(flight.host) if flight.host is not None else None
        if state is not None:
            node.limits.received(state, size)
