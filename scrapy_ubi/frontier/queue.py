"""The queue of one host: breadth first, that is by priority, then depth, then arrival.

Priority is Scrapy's and comes first because a spider that sets it means it; without it the visit of a host is breadth
first (UbiCrawler 3.2). An entry that is met again at a smaller depth, or put back with another priority, is pushed
again; its earlier place is passed over.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping

from scrapy_ubi.protocol.host import Entry


class HostQueue:
    """The order in which the waiting entries of a host are fetched. What waits is the host state's to say."""

    __slots__ = ("_count", "_heap")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, int, int]] = []
        self._count = 0

    def push(self, entry: Entry) -> None:
        """Put an entry in its place."""
        self._count += 1
        heapq.heappush(self._heap, (-entry.priority, entry.depth, self._count, entry.key))

    def pop(self, queued: Mapping[int, Entry]) -> int | None:
        """The key of the first entry that still waits, None when none does."""
        heap = self._heap
        while heap:
            priority, depth, _, key = heapq.heappop(heap)
            entry = queued.get(key)
            if entry is not None and (-entry.priority, entry.depth) == (priority, depth):
                return key  # else it is not its place any more
        return None
