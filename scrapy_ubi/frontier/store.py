"""What a frontier on disk needs of a store: the Store contract. An ordered map of bytes with atomic batches.

Three things keep it: `rocks.RocksStore` and `sqlite_store.SqliteStore` (production; `engines` says which), and
`tests/support/memory_store.py: MemoryStore` (tests, the simulator). All pass tests/frontier/test_store.py. The frontier
relies on what stands here and on nothing else.

* A batch is written wholly or not at all, whatever happens to the process or the machine meanwhile; when `write` has
  returned it is on the disk (synced). Within a batch, changes count in the order in which they were put in.
* A batch serves one call of `write`, whether that succeeds or not.
* `write` that raises `StoreFull` has written nothing, as far as the caller may know: the same changes may be written
  again, later, in a new batch. (Should they be there already, they are there once: a batch is a set of assignments.)
* `write` may run in a thread of its own beside `get` and `scan` of others; there is one writer at a time. A reader sees
  a batch wholly or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from scrapy_ubi.errors import UbiError

Row = tuple[bytes, bytes]


class StoreError(UbiError):
    """The agent's store cannot be used as it is."""


class StoreFull(StoreError):
    """The disk has no room: the operator has to make some. Nothing was lost; what could not be written can be tried
    again.
    """


class StoreHeldBack(StoreFull):
    """The disk has room, and may not be written yet: what pages have given elsewhere does not outlast this process."""


class StoreDamaged(StoreError):
    """A file of the store is not what was written: the operator has to put it back, or to give up what it held.

    `file` names the file, or the row of it; `reason` says what is wrong with it.
    """

    def __init__(self, file: str, reason: str) -> None:
        self.file = file
        self.reason = reason
        super().__init__(
            f"{file} is damaged ({reason}): put back a copy of the agent's directory, or move it away to go on without "
            "what it held."
        )


class RowBatch(Protocol):
    """Changes to be written together."""

    def put(self, key: bytes, value: bytes) -> None:
        """Set a row."""
        ...

    def delete(self, key: bytes) -> None:
        """Delete a row, if it is there."""
        ...

    def delete_range(self, begin: bytes, end: bytes) -> None:
        """Delete every row with begin <= key < end. For many rows: each range costs later readers a little."""
        ...

    def len(self) -> int:
        """How many changes."""
        ...


class Store(Protocol):
    """An ordered map of bytes."""

    def batch(self) -> RowBatch:
        """An empty batch."""
        ...

    def write(self, batch: RowBatch) -> None:
        """Make a batch durable. Blocks for the disk. Raises `StoreFull`, `StoreDamaged`, `StoreError`."""
        ...

    def get(self, key: bytes) -> bytes | None:
        """The value of a row, None where there is none. Raises `StoreDamaged`."""
        ...

    def scan(self, start: bytes, end: bytes, most: int) -> list[Row]:
        """The first `most` rows with start <= key < end, ascending. Raises `StoreDamaged`."""
        ...

    def close(self) -> None:
        """Let go of the files; a second call does nothing. Nothing else may be called after it."""
        ...


def every(store: Store, start: bytes, end: bytes, piece: int = 1000) -> Iterator[Row]:
    """All rows with start <= key < end, read in pieces; rows written meanwhile may be among them or not."""
    while rows := store.scan(start, end, piece):
        yield from rows
        if len(rows) < piece:
            return
        start = rows[-1][0] + b"\0"


def after(prefix: bytes) -> bytes:
    """The first key behind all keys that begin with this prefix (which does not end with the byte 255)."""
    return prefix[:-1] + bytes([prefix[-1] + 1])
