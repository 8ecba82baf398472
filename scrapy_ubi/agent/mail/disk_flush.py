"""The disk's part of an exchange: what is new is written before anything of it leaves.

Rules of this module:

* The loop collects a flush, the I/O thread writes it, and the loop hears of that (`settle`): only then is there another
  one.
* What pages have given outlasts the process before they are done on the disk (`on_flush`): where that cannot be, no
  flush is written, as with a full disk.
* The first flush is durable before the agent says that it has settled. When it is killed in that moment its directory
  would be empty, as one is whose disk was lost, and it would be missed (docs/decisions/0156).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

from scrapy_ubi.agent.crawl.disk_contract import Disk
from scrapy_ubi.frontier.store import StoreError, StoreFull
from scrapy_ubi.protocol import snapshot
from scrapy_ubi.protocol.agent import Agent


class DiskFlush:
    """The flushes of `agent` on `disk`. `facts` says what the disk is to hold of the run with this name, None when
    nothing of that is new. `on_flush`: see `NodeEvents.flush`.
    """

    def __init__(
        self,
        agent: Agent,
        disk: Disk,
        facts: Callable[[str], Mapping[str, object] | None],
        on_flush: Callable[[], str],
    ) -> None:
        self._agent = agent
        self._disk = disk
        self._facts = facts
        self._on_flush = on_flush
        self._unflushed = ""  # why what the pages have given may not outlast the process

    @property
    def due(self) -> bool:
        """Whether what was collected is not settled yet."""
        return self._disk.due

    def collect(self, run: str) -> None:
        """Take in what is new in this run, unless the last flush is still due."""
        self._unflushed = self._on_flush()
        if not self._disk.due:
            self._disk.collect(snapshot.changes(self._agent), self._facts(run))

    async def write_first(self, run: str) -> None:
        """Make durable that this life has the disk; its pages have given nothing yet. Where that cannot be it stays
        due, so the first exchange tries it again, and says why."""
        self._disk.collect(snapshot.changes(self._agent), self._facts(run))
        with suppress(StoreError):
            await self._disk.write()
            self._disk.settle()

    async def write(self) -> None:
        """Write what was collected. Raises `StoreFull` where there is no room, `StoreError` where it is broken."""
        if self._unflushed:
            raise StoreFull(self._unflushed)
        await self._disk.write()

    def settle(self) -> None:
        """Hear of what was written. Raises `StoreFull` where the table of what is known cannot grow (call it again),
        `StoreError` where it is damaged."""
        self._disk.settle()

    def broken(self, error: StoreError) -> None:
        """The disk cannot be used any more."""
        self._disk.trouble(error)
