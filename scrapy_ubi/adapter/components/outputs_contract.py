"""What an agent's outputs are to its scheduler.

`outputs` is loaded by name where UBI_STORES or UBI_DUPLICATES ask for it (`scheduler_builder`). This is all that the
scheduler and its parts use of it; `outputs.setup` has the class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from scrapy import Request

from scrapy_ubi.adapter.requests.inflight import Flights
from scrapy_ubi.adapter.requests.observers import PageObserver
from scrapy_ubi.adapter.scheduling.stat_buffer import StatBuffer
from scrapy_ubi.agent import Visit
from scrapy_ubi.agent.crawl.disk_contract import KeptOutputs

Write = Callable[[Any, Any], None]


class OutputsWriter(KeptOutputs, Protocol):
    """Writes what is kept of pages, in a thread of its own. `most`: bytes that may wait for it."""

    most: int

    @property
    def waiting(self) -> int:
        """Bytes that wait."""

    def on_room(self, on_room: Callable[[], None]) -> None:
        """Call this, in the loop, when there is room again."""


class AgentOutputs(Protocol):
    """The stores of an agent, their writer, and what follows its pages."""

    @property
    def names(self) -> Sequence[str]:
        """What is kept of pages: the names of the stores."""

    @property
    def keeps_pages(self) -> bool:
        """Whether a store keeps something of pages themselves, beside their items."""

    @property
    def keeps_requisites_of(self) -> Callable[[Request], bool] | None:
        """Whether what a page needs to be shown is kept with it; None where it is of no page."""

    @property
    def writer(self) -> OutputsWriter:
        """The agent's."""

    def observers(
        self,
        flights: Flights,
        normal: Callable[[str], str | None],
        named: Callable[[Visit, Request], str],
        stats: StatBuffer,
        note: Callable[[str, str], None],
    ) -> Sequence[PageObserver]:
        """Make what looks at pages, in the order in which it hears. `normal` gives the normal form of a URL, `named`
        the name of a page; `note` is told of events of a host."""

    def measure(self, around: Callable[[str, Write], Write]) -> None:
        """Let each store write by what `around` makes of its name and of how it writes."""

    async def close(self) -> None:
        """All is sealed: wait until it is sent, and say where it is."""
