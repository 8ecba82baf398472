"""New priorities for what waits of a host: the rows of its queue are written again, in another order.

Rules of this module:

* At most `RANKED` rows are, the first ones of the queue; what waits behind them keeps its priority. Only rows whose
  priority changes are written: a row is its place, so the old one goes and another one comes.
* A queue that is in memory whole is put in order at once. Of any other the rows are read in another thread, as heads
  are (`window`); its head is given up then, and read again in its new order. At most `AT_ONCE` are read at a time.
* While a queue is read by others (a copy is made of it for another agent), it stays as it is: one who reads it in
  pieces would miss what moves past where he has come to.
* What was known of a row's entry stays: only its priority is another one.
"""

from __future__ import annotations

from collections.abc import Callable

from scrapy_ubi.frontier import queue_rows, rows
from scrapy_ubi.frontier.disk_state import DiskState, Head
from scrapy_ubi.frontier.entries import Entries
from scrapy_ubi.frontier.flushes import Flushes
from scrapy_ubi.frontier.scan import Priorities, Scan
from scrapy_ubi.frontier.window import Window
from scrapy_ubi.protocol.host import HostState

RANKED = 10_000  # rows of a queue: 30 to 130 ms
AT_ONCE = 2  # queues read at a time: 3 MB each


class Rerank:
    """Puts the queues of one frontier in order."""

    def __init__(self, window: Window, entries: Entries, flushes: Flushes) -> None:
        self._window = window
        self._entries = entries
        self._flushes = flushes
        self._asked: dict[DiskState, tuple[Priorities, Callable[[], None]]] = {}

    def ask(self, state: HostState, priorities: Priorities, done: Callable[[], None]) -> None:
        """Give the first entries of this host's queue new priorities; then `done` is called, at once or later. It is
        not called if the host is forgotten before."""
        assert isinstance(state, DiskState)
        if state.complete and not self._window.is_read(state):
            self._order(state, [queued for queued in state.head if state.waits(queued)], priorities)
            done()
            return
        self._asked[state] = priorities, done

    def look_at(self, state: HostState) -> None:
        """If this host is parked, it waits again: its order is what it was parked for."""
        assert isinstance(state, DiskState)
        self._window.workbench.look_at(state, state.next_at)

    @property
    def wants(self) -> bool:
        """Whether there is something to be read."""
        return len(self._asked) > len(self._window.ranking) < AT_ONCE

    def needs(self) -> list[Scan]:
        """What is to be read now: each is read once, and must be taken."""
        scans = []
        for state in [*self._asked]:
            if not self.wants:
                break
            if state not in self._window.ranking:
                self._window.ranking[state] = {}
                start, end = rows.of_host(rows.QUEUE, state.hid)
                first = min(state.low, state.head[0]) if state.head else state.low
                changed = sum(len(changes) for changes in (state.fresh, state.writing) if changes)
                most = RANKED + min(changed, 2 * RANKED)  # rows of the store may have moved since
                scans.append(Scan(state, max(start, first[: queue_rows.ROW]), end, most, ranks=True))
        return scans

    def forget(self, state: DiskState) -> None:
        """The host is not held any more."""
        self._asked.pop(state, None)

    def read(self, scan: Scan, read: Head) -> None:
        """The rows of a host were read: they are put in order."""
        state = scan.state
        priorities, done = self._asked.pop(state)
        self._order(state, self._window.ranked(scan, read), priorities)
        self._window.read_again(state)
        done()

    def _order(self, state: DiskState, waiting: Head, priorities: Priorities) -> None:
        """Give these rows, which are in their order and wait, their priorities, in the changes and in the head."""
        del waiting[RANKED:]
        if not waiting or state.readers:
            return
        entries = [queue_rows.read_queue(state.host, queued) for queued in waiting]
        found = priorities(entries)
        if found is None:
            return
        moved: dict[bytes, bytes] = {}
        for queued, entry, priority in zip(waiting, entries, found, strict=True):
            if priority != entry.priority:
                arrival = queue_rows.arrival_of(queued)
                moved[queued] = queue_rows.queued(state.hid, state.host, entry._replace(priority=priority), arrival)
        self._move(state, moved)

    def _move(self, state: DiskState, moved: dict[bytes, bytes]) -> None:
        """Put rows where they belong now."""
        if not moved:
            return
        changes, again = self._flushes.of(state), self._flushes.changes.again
        for queued in moved:
            self._entries.delete(state, queued[: queue_rows.ROW])
        for queued in moved.values():
            row = queued[: queue_rows.ROW]
            if row in changes:  # it stood there before, and may do so in the store
                again.add(row)
            changes[row] = queued
        state.low = min(state.low, min(moved.values())[: queue_rows.ROW])
        if state.head:
            state.fill(sorted(moved.get(queued, queued) for queued in state.head))
