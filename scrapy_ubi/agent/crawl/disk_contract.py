"""What a node needs of its disk, what of the frontier on it, and what stands beside that: promises, no code.

`disk` keeps them; tests put others in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from scrapy_ubi.frontier.host_loads import HostLoads
from scrapy_ubi.frontier.scan import Priorities
from scrapy_ubi.frontier.store import Store, StoreDamaged, StoreError
from scrapy_ubi.frontier.visit_pace import NoPace
from scrapy_ubi.protocol.frontier_contract import Frontier
from scrapy_ubi.protocol.host import HostState
from scrapy_ubi.protocol.snapshot import Changes, Saved

Allowed = Callable[[HostState], bool]


class NodeFrontier(Frontier, Protocol):
    """A frontier as the node drives it. Times are seconds of the agent's clock. `loads`: of hosts of which several
    requests may be handed out at once, None where there are none. `pace`: of visits, where it has a bound.
    `looks_on`: the last `pop` or reading has not looked at all hosts whose time has come, so that it is to be asked
    again; who asks sets it back before.
    """

    loads: HostLoads | None
    pace: NoPace
    looks_on: bool

    def next_ready(self) -> float | None:
        """When the first host with something in memory is ready; None when none is."""

    def next_read(self) -> float | None:
        """When there is something to be read; None when there is nothing."""

    def look_at(self, state: HostState, /) -> None:
        """If this host may not be fetched when its time comes, it is asked again whether it may."""

    def reorder(self, state: HostState, priorities: Priorities, done: Callable[[], None], /) -> None:
        """Give the first entries of this host's queue new priorities; then `done` is called, at once or later. It is
        not called if the host is forgotten before."""


class Disk(Protocol):
    """What a node needs of its disk: what was found on it, and how it is kept."""

    @property
    def frontier(self) -> NodeFrontier:
        """The host states."""

    saved: Saved | None
    facts: dict[str, Any]
    ahead: int
    """How many visit rows on it were of a clock that was ahead."""
    trouble: Callable[[StoreError], None]
    history: Path | None
    """The directory in which the timeline is kept; None where it is not."""

    @property
    def holds_outputs(self) -> bool:
        """Whether pages of the crawl that was found on it have left outputs beside it."""

    def collect(self, changes: Changes, facts: Mapping[str, Any] | None) -> None:
        """Take in what is new, to be written."""

    @property
    def due(self) -> bool:
        """Whether what was collected is not settled yet."""

    async def write(self) -> None:
        """Write what was collected, in another thread. Raises `StoreError`."""

    def settle(self) -> None:
        """Hear, in the loop, of what was written; the caller hears of nothing if nothing was. Raises `StoreFull` when
        the table of known keys cannot grow: call it again."""

    def read_ahead(self, now: float, allowed: Allowed, arrived: Callable[[], None]) -> None:
        """Read what hosts need whose turn has come, in another thread; `arrived` is called in the loop when it is
        there."""

    async def erase(self) -> None:
        """Begin again, with nothing. Raises `UbiDirectoryError`."""

    def mark_corrupt(self, error: StoreDamaged) -> None:
        """A file turned out to be damaged."""

    async def close(self) -> None:
        """Let go of the files."""


class KeptOutputs(Protocol):
    """What pages that are done have left behind beside the store, and must be there before a flush says that they are
    done: files whose lengths stand in its flushes (`outputs.writer`), or a database of the user's
    (`adapter.feeds.pipeline_flush`)."""

    @property
    def keeps_elsewhere(self) -> bool:
        """Whether it has to be known which agent has what other agents' pages have left."""

    @property
    def changed(self) -> bool:
        """Whether the next flush has something to say of them."""

    @property
    def kept(self) -> bool:
        """Whether there were such files of this crawl at the start."""

    def recover(self, rows: Store) -> None:
        """The store was opened. Raises `UbiDirectoryError`, OSError."""

    def mark(self, run: str) -> Any:
        """A flush is collected, of this run."""

    def rows(self, mark: Any) -> list[tuple[bytes, bytes | None]]:
        """Wait, in the disk's thread, for what stands before the mark. Raises `StoreError`; it may be asked again."""

    def settled(self, mark: Any) -> None:
        """The flush of that mark is written."""

    def finish(self, rows: Store) -> None:
        """The store is closed after this."""
