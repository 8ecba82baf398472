"""What of a frontier is not in its store yet, and how it becomes one flush after another.

Rules of this module:

* There is one flush at a time (`unwritten`). One that could not be written is written again as it is; what changes
  meanwhile belongs to the next one.
* Each flush writes the sums of every host that it changes into the log (`host_totals`), and a row of its own only for a
  host that is new, or whose notes have changed.
* A queue that is nothing but garbage goes with the flush, as one range.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from scrapy_ubi.frontier import queue_rows, rows
from scrapy_ubi.frontier.disk_state import DiskState, HostChanges, KeyStates
from scrapy_ubi.frontier.flush import Extra, Flush, UnflushedChanges
from scrapy_ubi.frontier.host_totals import SumsLog
from scrapy_ubi.frontier.left_rows import Left
from scrapy_ubi.frontier.window import Window

LEAST_GARBAGE = 16  # rows of a queue, all of them garbage: deleted as one range
GONE = ("gone_known", "gone_known_xor", "gone_done", "gone_done_xor")  # of hosts dropped, whose keys are in the table


class Flushes:
    """The flushes of one frontier. `saved` is what the store says of it, `offset` unix time less the agent's clock.

    `changes` has what is not in a flush yet; `unwritten` is the flush that is being written. `next` is the number of
    the next new host, `failed` how many failures are kept, `log` the sums of hosts.
    """

    def __init__(self, keys: KeyStates, window: Window, offset: float, saved: Mapping[str, int]) -> None:
        self.changes = UnflushedChanges()
        self.unwritten: Flush | None = None
        self.log = SumsLog()
        self.has_visits = False  # whether there is, or was, a visit row: who knows none of them must not open the store
        self.keeps_left = False  # whether what queues throw away may move (`elsewhere`)
        self.next = saved.get("next", 1)
        self.failed = saved.get("failed", 0)
        self._keys = keys
        self._window = window
        self._offset = offset
        self._named: dict[DiskState, None] = {}  # whose own row the coming flush writes
        self._number = saved.get("flush", 0)
        self._gone = [saved.get(name, 0) for name in GONE]

    @property
    def changed(self) -> bool:
        """Whether there is anything to flush."""
        return bool(self.changes or self._keys.fresh)

    def of(self, state: DiskState) -> HostChanges:
        """The host's changes of the coming flush."""
        change = state.fresh
        if change is None:
            change = state.fresh = self.changes.hosts[state] = {}
        return change

    def add(self, state: DiskState) -> None:
        """A host has got the next number."""
        self.next += 1
        self.name(state)

    def name(self, state: DiskState) -> None:
        """The coming flush writes the host's own row."""
        self.of(state)
        self._named[state] = None

    def drop(self, state: DiskState) -> None:
        """The host is not held any more; what is out of it is no longer known, either."""
        changes = self.changes.hosts.pop(state, None)
        if self.keeps_left:
            self._leave(self.changes, state, changes or {})
            self.changes.gone[state.hid] = changes or {}
        self._named.pop(state, None)
        state.logged = -1
        self.changes.dropped.append(state.hid)
        for index, (count, xor) in enumerate(state.salted()):
            self._gone[2 * index] += count
            self._gone[2 * index + 1] ^= xor

    @staticmethod
    def _leave(into: UnflushedChanges, state: DiskState, changes: HostChanges) -> None:
        """All of a host's queue is thrown away."""
        fresh = [queued for row, queued in changes.items() if queued is not None and queue_rows.is_queued(row)]
        into.left += [Left(state.host, state.hid), *(Left(state.host, state.hid, queued) for queued in fresh)]

    def forget_gone(self) -> bytes:
        """The seen table was made again, without the keys of hosts dropped: what the store is to say of the
        frontier."""
        self._gone = [0] * len(GONE)
        return self._saved()

    def _saved(self) -> bytes:
        fixed = {"flush": self._number, "next": self.next, "failed": self.failed}
        return rows.frontier_value({**fixed, **dict(zip(GONE, self._gone, strict=True))}, self.has_visits)

    def collect(self, hosts: int, extra: Iterable[Extra]) -> Flush:
        """Everything since the last flush, with rows of the agent's own (key, value; None deletes). So many hosts are
        held.
        """
        assert self.unwritten is None, "one flush at a time"
        self._number += 1
        keys = self._keys
        changes, self.changes = self.changes, UnflushedChanges()
        clear, logged = [], []
        for state, change in changes.hosts.items():
            idle = not state.waiting and not state.out and not self._window.is_read(state)
            if idle and state.garbage >= LEAST_GARBAGE:
                clear.append(state.hid)
                if self.keeps_left:
                    self._leave(changes, state, change)
                for row in [row for row in change if queue_rows.is_queued(row)]:
                    del change[row]
                state.garbage = 0
                self._window.clear(state)
            if state not in self._named or state.logged >= 0:
                logged.append(state)
            state.writing, state.fresh = change, None
        records: dict[bytes, bytes | None] = {rows.HOST + s.hid: s.record(self._offset) for s in self._named}
        self._named = {}
        records.update(self.log.add(logged, hosts, self._offset))
        for visits in changes.visits.values():
            records.update(visits.collect())
        records[rows.FRONTIER] = self._saved()
        self.unwritten = Flush(self._number, keys.fresh, changes, records, clear, extra)
        keys.writing, keys.fresh = keys.fresh, {}
        keys.unknown.clear()
        return self.unwritten

    def written(self, flush: Flush) -> None:
        """This flush is durable. Raises `StoreFull` when the seen table cannot grow: call it again."""
        assert flush is self.unwritten
        seen = self._keys.seen
        seen.apply(flush.keys)
        seen.flush = flush.number
        self._window.written(flush.hosts)
        for state in flush.hosts:
            state.writing = None
        for visits in flush.visits.values():
            visits.written()
        self._keys.writing = {}
        self.unwritten = None

    def check_invariants(self, states: Iterable[DiskState]) -> None:
        """Assert every invariant, given all hosts held."""
        held = list(states)
        for state in held:
            assert state.fresh is self.changes.hosts.get(state), state
        assert self._named.keys() <= self.changes.hosts.keys()
        self.log.check_invariants(held)
