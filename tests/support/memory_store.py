"""A store in memory: the contract of the one on disk, for tests and the simulator, with faults that a test asks for.

What is written is `rows`; it outlives the store object the way a disk outlives a process: `MemoryStore(rows)` is what
the next process finds.
"""

from __future__ import annotations

from collections.abc import Callable

from sortedcontainers import SortedDict

from scrapy_ubi.frontier.store import Row, RowBatch, StoreError

Change = tuple[bytes, bytes, bytes | None]  # kind ("p", "d", "r"), key, value or end of the range


class MemoryBatch:
    """Changes in order."""

    def __init__(self) -> None:
        self.changes: list[Change] | None = []

    def _add(self, kind: bytes, key: bytes, value: bytes | None) -> None:
        if self.changes is None:
            raise StoreError("This batch was written already.")
        self.changes.append((kind, key, value))

    def put(self, key: bytes, value: bytes) -> None:
        """Set a row."""
        self._add(b"p", key, value)

    def delete(self, key: bytes) -> None:
        """Delete a row."""
        self._add(b"d", key, None)

    def delete_range(self, begin: bytes, end: bytes) -> None:
        """Delete every row with begin <= key < end."""
        self._add(b"r", begin, end)

    def len(self) -> int:
        """How many changes."""
        return len(self.changes or ())


class MemoryStore:
    """An ordered map in memory.

    `before_write` and `after_write` are called with the number of the write (from 1) around its becoming durable, and
    may raise: a full disk or a killed process before or after it.
    """

    def __init__(
        self,
        rows: SortedDict | None = None,
        before_write: Callable[[int], None] = lambda number: None,
        after_write: Callable[[int], None] = lambda number: None,
    ) -> None:
        self.rows: SortedDict = SortedDict() if rows is None else rows
        self.before_write = before_write
        self.after_write = after_write
        self.writes = 0
        self.reads = 0

    def batch(self) -> RowBatch:
        """An empty batch."""
        return MemoryBatch()

    def write(self, batch: RowBatch) -> None:
        """Make a batch durable."""
        assert isinstance(batch, MemoryBatch)
        if batch.changes is None:
            raise StoreError("This batch was written already.")
        changes, batch.changes = batch.changes, None
        self.writes += 1
        self.before_write(self.writes)
        for kind, key, value in changes:
            if kind == b"p":
                self.rows[key] = value
            elif kind == b"d":
                self.rows.pop(key, None)
            else:
                for old in list(self.rows.irange(key, value, (True, False))):
                    del self.rows[old]
        self.after_write(self.writes)

    def get(self, key: bytes) -> bytes | None:
        """The value of a row."""
        self.reads += 1
        value: bytes | None = self.rows.get(key)
        return value

    def scan(self, start: bytes, end: bytes, most: int) -> list[Row]:
        """The first rows from start on, before end."""
        self.reads += 1
        found: list[Row] = []
        for key in self.rows.irange(start, end, (True, False)):
            if len(found) == most:
                break
            found.append((key, self.rows[key]))
        return found

    def close(self) -> None:
        """Nothing to let go of."""
