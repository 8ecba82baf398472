"""The journal: what is not settled of each flush, so that an agent that begins again owes it still
(docs/explanation/protocol.md#flush-and-restart, P8).

Rules of this module:

* A flush has a *block*: the entries told to their owners in it, the hosts whose entries were told to successors, and
  the pages done. It is kept until every outlink of that flush and of those before is acknowledged and every done mark
  of them has left; what of it was acknowledged before is told again after a restart, which is harmless.
* A block is written in *parts*, each with what is new since the one before: a flush that lasts (Redis is away) may
  be written many times, and does not cost more for that. What is settled before it was written is never written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from scrapy_ubi.protocol.host import Entry, VisitRow
from scrapy_ubi.protocol.records import Record


class JournalPart(NamedTuple):
    """One part of the block of a flush: entries told to their owners, hosts told of to successors, pages done (host,
    entry), pages visited again (host, the row that others know)."""

    flush: int
    number: int
    discovered: tuple[Record, ...]
    told: tuple[str, ...]
    done: tuple[tuple[str, Entry], ...]
    visited: tuple[tuple[str, VisitRow], ...] = ()


class _Fresh:
    """What a block has gained since it was last written."""

    __slots__ = ("discovered", "done", "told", "visited")

    def __init__(self) -> None:
        self.discovered: list[Record] = []
        self.told: dict[str, None] = {}
        self.done: list[tuple[str, Entry]] = []
        self.visited: list[tuple[str, VisitRow]] = []


class Journal:
    """The blocks of one agent, by flush. `flush` is the number of the present one."""

    def __init__(self) -> None:
        self.flush = 1
        self._fresh: dict[int, _Fresh] = {}
        self._written: dict[int, int] = {}  # flush -> parts on disk

    def _of(self, flush: int) -> _Fresh:
        fresh = self._fresh.get(flush)
        if fresh is None:
            fresh = self._fresh[flush] = _Fresh()
        return fresh

    def discovered(self, records: Sequence[Record]) -> None:
        """Entries were told to their owner, in one flush."""
        if records:
            self._of(records[0].flush).discovered.extend(records)

    def told(self, flush: int, host: str) -> None:
        """An entry of an own host was told to its successors."""
        self._of(flush).told[host] = None

    def done(self, flush: int, host: str, entry: Entry) -> None:
        """A page is done."""
        self._of(flush).done.append((host, entry))

    def visited(self, flush: int, host: str, before: VisitRow) -> None:
        """A page was visited again."""
        self._of(flush).visited.append((host, before))

    def resume(self, written: Mapping[int, int]) -> None:
        """So many parts of these blocks are on the disk."""
        self._written = dict(written)

    def parts(self, oldest: int) -> Iterator[JournalPart]:
        """What is to be written: the new parts of the blocks from that flush on."""
        fresh, self._fresh = self._fresh, {}
        for flush in sorted(fresh):
            new = fresh[flush]
            if flush >= oldest:
                number = self._written.get(flush, 0)
                self._written[flush] = number + 1
                done, visited = tuple(new.done), tuple(new.visited)
                yield JournalPart(flush, number, tuple(new.discovered), tuple(new.told), done, visited)

    def settled(self, oldest: int) -> Iterator[tuple[int, int]]:
        """What is to be deleted: the flushes before that one, with how many parts of their blocks are on the disk."""
        for flush in [flush for flush in self._written if flush < oldest]:
            yield flush, self._written.pop(flush)
