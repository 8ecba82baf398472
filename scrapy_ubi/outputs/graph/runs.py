"""Sort more numbers, or lines, than fit into memory, each once: by runs on disk, merged.

A *run* is a file in order without doubles. Numbers are unsigned, of 64 bits; they are merged by blocks, so that numpy
does the work. Lines are bytes with their line end.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np

from scrapy_ubi.outputs.graph.page_record import Keys

MOST_NUMBERS = 1 << 21  # in memory: 16 MB, and as much again while they are sorted
MOST_LINES, MOST_BYTES = 150_000, 24 << 20  # lines in memory, and the bytes in them
WAYS = 128  # runs that are merged at once
BLOCK = 1 << 16  # numbers read of a run at a time


class NumberSorter:
    """`add` numbers, then iterate once over `blocks` in order, without doubles. Raises OSError."""

    def __init__(self, place: Path, name: str, most: int = MOST_NUMBERS) -> None:
        self._place = place
        self._name = name
        self._most = most
        self._waits: list[Keys] = []
        self._size = self._count = 0
        self._runs: list[Path] = []

    def add(self, numbers: Keys) -> None:
        """Keep these."""
        self._waits.append(numbers)
        self._size += len(numbers)
        if self._size >= self._most:
            self._write_run()

    def blocks(self) -> Iterator[Keys]:
        """All of them, in order, some thousand at a time."""
        self._write_run()
        while len(self._runs) > WAYS:
            some, self._runs = self._runs[:WAYS], self._runs[WAYS:]
            path = self._next()
            with path.open("wb") as file:
                for block in _merged(some):
                    block.tofile(file)
            self._runs.append(path)
        return _merged(self._runs)

    def _write_run(self) -> None:
        if self._waits:
            path = self._next()
            _once_each(np.concatenate(self._waits)).tofile(path)
            self._runs.append(path)
            self._waits, self._size = [], 0

    def _next(self) -> Path:
        self._count += 1
        return self._place / f"{self._name}.{self._count}"


def _merged(runs: list[Path]) -> Iterator[Keys]:
    """What is in the runs, each number once; the runs are deleted when they are through."""
    files = [path.open("rb") for path in runs]
    heads = [_read(file) for file in files]
    try:
        while any(len(head) for head in heads):
            # What is not above the least end is all there: behind it each run has greater ones only.
            bound = min(head[-1] for head in heads if len(head))
            parts = []
            for number, head in enumerate(heads):
                if not len(head):
                    continue
                cut = int(np.searchsorted(head, bound, "right"))
                parts.append(head[:cut])
                heads[number] = head[cut:] if cut < len(head) else _read(files[number])
            yield _once_each(np.concatenate(parts)) if len(parts) > 1 else parts[0]
    finally:
        for file, path in zip(files, runs, strict=True):
            file.close()
            path.unlink()


def _once_each(numbers: Keys) -> Keys:
    """In order, without doubles; in place. `np.unique` may do it by a hash table, which takes ten times as long."""
    numbers.sort()
    return numbers[np.concatenate(([True], numbers[1:] != numbers[:-1]))] if len(numbers) else numbers


def _read(file: IO[bytes]) -> Keys:
    return np.fromfile(file, np.uint64, BLOCK)


class LineSorter:
    """`add` lines, then iterate once over them in order, each once. Raises OSError."""

    def __init__(self, place: Path, name: str, most: int = MOST_LINES) -> None:
        self._place = place
        self._name = name
        self._most = most
        self._waits: set[bytes] = set()
        self._size = self._count = 0
        self._runs: list[Path] = []

    def add(self, line: bytes) -> None:
        """Keep a line, which has its line end."""
        self._waits.add(line)
        self._size += len(line)
        if len(self._waits) >= self._most or self._size >= MOST_BYTES:
            self._runs.append(self._written(iter(sorted(self._waits))))
            self._waits, self._size = set(), 0

    def lines(self) -> Iterator[bytes]:
        """All of them, in order."""
        while len(self._runs) > WAYS:
            some, self._runs = self._runs[:WAYS], self._runs[WAYS:]
            self._runs.append(self._written(_once(some, [])))
        return _once(self._runs, sorted(self._waits))

    def _written(self, lines: Iterator[bytes]) -> Path:
        self._count += 1
        path = self._place / f"{self._name}.{self._count}"
        with path.open("wb") as file:
            file.writelines(lines)
        return path


def _once(runs: list[Path], lines: list[bytes]) -> Iterator[bytes]:
    """What is in the runs and among the lines, each once; the runs are deleted when they are through."""
    files = [path.open("rb") for path in runs]
    last = b""
    try:
        for line in heapq.merge(*files, lines):
            if line != last:
                last = line
                yield line
    finally:
        for file, path in zip(files, runs, strict=True):
            file.close()
            path.unlink()
