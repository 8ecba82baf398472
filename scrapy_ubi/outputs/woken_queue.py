"""A queue between two threads whose taker is woken for several pieces of work at once.

Rules of this module:

* Work is taken in the order in which it was put. Threads that change places take as long as a small store does with a
  page: so work lies until there are `TOGETHER` pieces of it, or `TOGETHER_BYTES`. What is waited for counts as so many.
* Any thread may put; one takes.
"""

from __future__ import annotations

from collections import deque
from queue import SimpleQueue
from typing import Generic, TypeVar

TOGETHER = 16  # pieces of work
TOGETHER_BYTES = 1 << 20

Work = TypeVar("Work")


class WokenQueue(Generic[Work]):
    """Work on its way to one thread."""

    __slots__ = ("_bytes", "_pieces", "_wake", "_work")

    def __init__(self) -> None:
        self._work: deque[Work] = deque()
        self._wake: SimpleQueue[None] = SimpleQueue()
        self._pieces = self._bytes = 0  # for which nothing was woken: no more than a hint where several threads put

    def put(self, work: Work, size: int = TOGETHER_BYTES) -> None:
        """Put work of so many bytes; without a number, work that is to be done, with all before it, at once."""
        self._work.append(work)
        self._pieces += 1
        self._bytes += size
        if self._pieces >= TOGETHER or self._bytes >= TOGETHER_BYTES:
            self._pieces = self._bytes = 0
            self._wake.put(None)

    def take(self) -> Work:
        """The next piece of work; waits where there is none."""
        while not self._work:
            self._wake.get()
        return self._work.popleft()
