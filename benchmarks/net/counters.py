"""What the servers of the testbed count, in memory that their processes share: one writer for each column."""

from __future__ import annotations

import mmap
from array import array

NAMES = (
    "pages", "bytes", "unpacked", "again", "missing", "connections", "handshakes", "resumed", "hung", "reset",
    "misdirected", "foreign", "queries", "unknown_names", "unresumable",
)  # fmt: skip
_WIDTH = 8 * len(NAMES)


class Counters:
    """Of `processes` processes, each with a row of its own, and a byte for each of `pages` pages: was it served?"""

    def __init__(self, processes: int, pages: int) -> None:
        self._memory = mmap.mmap(-1, processes * _WIDTH)
        self._rows = memoryview(self._memory).cast("q")
        self._processes = processes
        self.served = mmap.mmap(-1, max(1, pages))

    def of(self, process: int) -> memoryview:
        """The row of a process: a number for each of NAMES."""
        return self._rows[process * len(NAMES) : (process + 1) * len(NAMES)]

    def sums(self) -> dict[str, int]:
        """All processes together."""
        found = array("q", bytes(_WIDTH))
        for process in range(self._processes):
            for place, number in enumerate(self.of(process)):
                found[place] += number
        return dict(zip(NAMES, found, strict=True))
