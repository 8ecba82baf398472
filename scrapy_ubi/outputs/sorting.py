"""Sort more records than fit into memory: by runs on disk, merged.

A record is its key, a name and four numbers, and its bytes. `most` bytes are in memory at a time; of
the runs on disk `WAYS` are merged at once, so few files are open however many records there are.
"""

from __future__ import annotations

import heapq
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO

MOST = 64 << 20  # bytes of records in memory
WAYS = 64
OVERHEAD = 200  # bytes of a record's objects, about

_HEAD = struct.Struct("!HqqqqQ")  # length of the name, the numbers, length of the data

Key = tuple[str, int, int, int, int]
Record = tuple[Key, bytes]


class Sorter:
    """A context manager: `add` records, then iterate over them in order. The runs are in `place`, files of this process
    alone, and gone with it. Raises OSError where they cannot be written."""

    def __init__(self, place: Path | None = None, most: int = MOST) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="ubi-sort-", dir=place)
        self._most = most
        self._size = 0
        self._records: list[Record] = []
        self.runs: list[Path] = []  # each in order
        self._count = 0

    def __enter__(self) -> Sorter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._directory.cleanup()

    def add(self, key: Key, data: bytes) -> None:
        """Keep a record. No two have the same key."""
        self._records.append((key, data))
        self._size += len(data) + OVERHEAD
        if self._size >= self._most:
            self._records.sort()
            self.runs.append(self._written(iter(self._records)))
            self._records, self._size = [], 0

    def __iter__(self) -> Iterator[Record]:
        while len(self.runs) >= WAYS:
            some, self.runs = self.runs[:WAYS], self.runs[WAYS:]
            self.runs.append(self._written(heapq.merge(*map(_read, some))))
            for path in some:
                path.unlink()
        self._records.sort()
        return heapq.merge(*map(_read, self.runs), self._records)

    def _written(self, records: Iterator[Record]) -> Path:
        self._count += 1
        path = Path(self._directory.name) / str(self._count)
        with path.open("wb") as file:
            for (name, *numbers), data in records:
                text = name.encode()
                file.write(_HEAD.pack(len(text), *numbers, len(data)) + text + data)
        return path


def _read(path: Path) -> Iterator[Record]:
    with path.open("rb") as file:
        while head := file.read(_HEAD.size):
            length, rank, attempt, part, place, size = _HEAD.unpack(head)
            name = _all(file, length).decode()
            yield (name, rank, attempt, part, place), _all(file, size)


def _all(file: IO[bytes], size: int) -> bytes:
    data = file.read(size)
    if len(data) < size:
        raise OSError(f"a file of the sort has lost its end: {file.name}")
    return data
