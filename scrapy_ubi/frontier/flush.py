"""One flush of the frontier: everything that has changed since the last one, to be written at once.

A flush is collected in the loop, where nothing changes meanwhile, and is a value from then on: it may be written in
another thread, and again as it is when the disk was full. That everything of it is written in one batch is what makes
the store whole at any moment.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Protocol

from scrapy_ubi.frontier import queue_rows, rows, visit_rows
from scrapy_ubi.frontier.disk_state import DiskState, HostChanges
from scrapy_ubi.frontier.left_rows import Left, move
from scrapy_ubi.frontier.store import RowBatch, Store

Extra = tuple[bytes, bytes | None]  # a row of the agent's: None deletes it


class StoredRows(Protocol):
    """The visits of a host, as a flush knows them."""

    def collect(self) -> Iterable[tuple[bytes, bytes | None]]:
        """The rows to be written."""
        ...

    def written(self) -> None:
        """They are in the store."""
        ...


class UnflushedChanges:
    """What is not flushed yet, beside the keys: by host, the failures, and the numbers of hosts dropped. `again`: rows
    of queues that a flush before has written too. `left`: rows of queues that are thrown away, and may move
    (`elsewhere`); `gone`: of hosts dropped, by number. `visits`: of hosts with new visit rows; `unvisited`: numbers of
    hosts dropped that had any.
    """

    __slots__ = ("again", "dropped", "elsewhere", "failed", "gone", "hosts", "left", "unvisited", "visits")

    def __init__(self) -> None:
        self.hosts: dict[DiskState, HostChanges] = {}
        self.again: set[bytes] = set()
        self.failed: dict[bytes, bytes | None] = {}
        self.dropped: list[bytes] = []
        self.elsewhere: dict[bytes, bytes | None] = {}
        self.left: list[Left] = []
        self.gone: dict[bytes, HostChanges] = {}
        self.visits: dict[DiskState, StoredRows] = {}
        self.unvisited: list[bytes] = []

    def __bool__(self) -> bool:
        return bool(self.hosts or self.failed or self.dropped or self.elsewhere or self.visits)


class Flush:
    """What is to be written. `number` counts flushes; `keys` are the salted keys changed: 1 is known, 2 done."""

    __slots__ = ("_changes", "_clear", "_records", "_rows", "beside", "keys", "number")

    def __init__(
        self,
        number: int,
        keys: dict[int, int],
        changes: UnflushedChanges,
        records: dict[bytes, bytes | None],
        clear: Iterable[bytes],
        extra: Iterable[Extra],
    ) -> None:
        """`records` are rows to be put (None: to be deleted); `clear` numbers of hosts whose whole queue is garbage."""
        self.number = number
        self.keys = keys
        self._changes = changes
        self._records = records
        self._clear = list(clear)
        self._rows = list(extra)
        self.beside: Iterable[Extra] = ()
        """Rows about files beside the store, known only when it is to be written."""

    @property
    def hosts(self) -> dict[DiskState, HostChanges]:
        """The hosts whose changes are in it."""
        return self._changes.hosts

    @property
    def visits(self) -> dict[DiskState, StoredRows]:
        """The hosts whose visit rows are in it."""
        return self._changes.visits

    @property
    def failed(self) -> dict[bytes, bytes | None]:
        """The failures in it, by row."""
        return self._changes.failed

    @property
    def elsewhere(self) -> dict[bytes, bytes | None]:
        """What it has of outputs elsewhere, by row."""
        return self._changes.elsewhere

    @property
    def left(self) -> list[Left]:
        """What of queues it throws away, where that may move."""
        return self._changes.left

    def write(self, store: Store) -> None:
        """Make it durable; in any thread, any number of times. Raises what `Store.write` does."""
        if self._changes.left:
            move(store, self._changes.left, {**self._changes.gone, **{s.hid: c for s, c in self.hosts.items()}})
        batch = store.batch()
        put, delete = batch.put, batch.delete
        queue = rows.QUEUE[0]
        done: list[tuple[bytes, bytes]] = []
        hosts = self._changes.hosts
        for state in sorted(hosts, key=attrgetter("hid")):  # rows in the order of a store are put there sooner
            for row, queued in hosts[state].items():
                if row[0] != queue:
                    done.append((row, queued or b""))
                elif queued is None:
                    delete(row)
                else:
                    put(row, queued[queue_rows.ROW :])
        for row, status in done:
            put(row, status)
        for row, kept in (
            *self._changes.failed.items(),
            *self.elsewhere.items(),
            *self._rows,
            *self.beside,
            *self._records.items(),
        ):
            if kept is None:
                delete(row)
            else:
                put(row, kept)
        known = [key for key, status in self.keys.items() if status == 1]
        done_keys = [key for key, status in self.keys.items() if status == 2]
        put(rows.recent_key(self.number), rows.recent_value(self.number, known, done_keys))
        for hid in self._clear:
            batch.delete_range(*rows.of_host(rows.QUEUE, hid))
        self._drop(batch)
        store.write(batch)

    def _drop(self, batch: RowBatch) -> None:
        """Last: what was put in this flush for hosts that are dropped goes too."""
        for hid in self._changes.dropped:
            batch.delete_range(*rows.of_host(rows.QUEUE, hid))
            batch.delete_range(*rows.of_host(rows.DONE, hid))
            batch.delete(rows.HOST + hid)
        for hid in self._changes.unvisited:
            for kind in (visit_rows.VISIT, visit_rows.DUE):
                batch.delete_range(*rows.of_host(kind, hid))
            batch.delete(visit_rows.VISITS + hid)
