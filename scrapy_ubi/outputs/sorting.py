"""Sort more records than fit into memory: by runs on disk, merged.

A record is its key, a tuple of texts and numbers that compare, and its bytes. `most` bytes are in memory at a time; of
the runs on disk `WAYS` are merged at once, so few files are open however many records there are.
"""

from __future__ import annotations

import heapq
import pickle
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any

MOST = 64 << 20  # bytes of records in memory
WAYS = 64
OVERHEAD = 200  # bytes of a record's objects, about

Record = tuple[tuple[Any, ...], bytes]


class Sorter:
    """A context manager: `add` records, then iterate over them in order. The runs are in `place`, files of this process
    alone, and gone with it. Raises OSError where they cannot be written."""

    def __init__(self, place: Path | None = None, most: int = MOST) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="ubi-sort-", dir=place)
        self._most, self._size = most, 0
        self._records: list[Record] = []
        self._runs: list[Path] = []
        self._count = 0

    def __enter__(self) -> Sorter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._directory.cleanup()

    def add(self, key: tuple[Any, ...], data: bytes) -> None:
        """Keep a record. No two have the same key."""
        self._records.append((key, data))
        self._size += len(data) + OVERHEAD
        if self._size >= self._most:
            self._records.sort()
            self._runs.append(self._written(iter(self._records)))
            self._records, self._size = [], 0

    def __iter__(self) -> Iterator[Record]:
        while len(self._runs) >= WAYS:
            some, self._runs = self._runs[:WAYS], self._runs[WAYS:]
            self._runs.append(self._written(heapq.merge(*map(_read, some))))
            for path in some:
                path.unlink()
        self._records.sort()
        return heapq.merge(*map(_read, self._runs), self._records)

    def _written(self, records: Iterator[Record]) -> Path:
        self._count += 1
        path = Path(self._directory.name) / str(self._count)
        with path.open("wb") as file:
            while some := list(islice(records, 256)):
                pickle.dump(some, file, pickle.HIGHEST_PROTOCOL)  # read by this process alone
        return path


def _read(path: Path) -> Iterator[Record]:
    with path.open("rb") as file:
        while True:
            try:
                some = pickle.load(file)
            except EOFError:
                return
            yield from some
