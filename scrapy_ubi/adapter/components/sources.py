"""Whether requests may still come to an agent from outside of its queues; its node is told.

They come from `start()`, from callbacks of requests that belong to no host, from handlers of the user's that hold the
spider open at idle, and from seeds, where the crawl waits for some. The crawl is not over before all of these are.
"""

from __future__ import annotations

from scrapy_ubi.adapter.scheduling.hostless import Hostless
from scrapy_ubi.adapter.scheduling.seeds import Seeds
from scrapy_ubi.agent import Node


class Sources:
    """The sources of one agent, whose local requests are in `local`."""

    def __init__(self, node: Node, local: Hostless, seeds: Seeds) -> None:
        self._node = node
        self.local = local
        self._seeds = seeds
        self._start_over = False
        self._held = True  # open by the user's handlers at idle, until they say otherwise

    def end_start(self) -> None:
        """The spider's `start()` has yielded its last."""
        self._start_over = True
        self._seeds.running = False
        self.tell()

    def idle(self, held: bool) -> bool:
        """The engine is idle. Return whether a handler of the user's holds the spider open. True when it has to stay
        open."""
        self._held = held
        self.tell()
        return not self._node.over

    def tell(self) -> None:
        """Tell the node whether more may come."""
        serves = self._node.seeds.serves
        agent = self._node.agent
        agent.end.start_over = self._start_over and self.local.over
        agent.end.start_exhausted = agent.end.start_over and not (self._held or serves)
