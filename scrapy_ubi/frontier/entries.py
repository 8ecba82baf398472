"""The life of an entry on disk: *new* (a row among the changes), *waiting* (a row in the store; near the end of the
queue also in its host's head), *out*, *done* (the row of the queue gives way to one that says so).

Rules of this module:

* The row of what is out stays in the store: after a crash it waits again. It goes when the entry comes back.
* The row of what is done elsewhere while it waits stays, too, as *garbage*: to find it would be a read. The code
  that meets it throws it away.
* A key that is known is not merged again: that it was found nearer is news only while it waits in a head.
"""

from __future__ import annotations

from collections.abc import Sequence

from scrapy_ubi.frontier import queue_rows, rows
from scrapy_ubi.frontier.disk_state import DiskState, Head, KeyStates
from scrapy_ubi.frontier.elsewhere import Elsewhere
from scrapy_ubi.frontier.flushes import Flushes
from scrapy_ubi.frontier.left_rows import Left
from scrapy_ubi.frontier.scan import Scan
from scrapy_ubi.frontier.store import Store
from scrapy_ubi.frontier.window import Window
from scrapy_ubi.protocol.host import Entry, HostState, retries_of

ALIKE = 3  # entries of one page and host from which on they are put together


class Entries:
    """The entries of one frontier: what changes the sets of a host, and the rows of its queue. `taken` has what is out:
    salted key -> row.
    """

    def __init__(self, store: Store, keys: KeyStates, window: Window, flushes: Flushes) -> None:
        self.taken: dict[int, bytes] = {}
        self._overtaken: set[int] = set()  # salted keys of what is out and was done elsewhere meanwhile
        self._store = store
        self._keys = keys
        self._window = window
        self._flushes = flushes
        self.elsewhere = Elsewhere(store, flushes)

    # -- rows of a queue

    def put(self, state: DiskState, entry: Entry) -> None:
        """An entry waits, behind those of its kind."""
        queued = queue_rows.queued(state.hid, state.host, entry, state.arrival)
        state.arrival += 1
        state.waiting += 1
        changes = state.fresh
        if changes is None:
            changes = state.fresh = self._flushes.changes.hosts[state] = {}
        changes[queued[: queue_rows.ROW]] = queued
        self._window.insert(state, queued, entry)

    def put_all(self, state: DiskState, entries: Sequence[Entry]) -> None:
        """Entries wait, one after the other, as most are found on a page."""
        if len(entries) < ALIKE:
            for entry in entries:
                self.put(state, entry)
            return
        queued = queue_rows.queued_all(state.hid, state.host, entries, state.arrival)
        state.arrival += len(queued)
        changes = self._flushes.of(state)
        for row in queued:
            changes[row[: queue_rows.ROW]] = row
        if not self._window.append(state, queued, entries[0]):
            for row, entry in zip(queued, entries, strict=True):
                state.waiting += 1
                self._window.insert(state, row, entry)

    def found_again(self, state: DiskState, entry: Entry) -> bool:
        """What is known was found again: nearer, or retried elsewhere; True when that is news."""
        if retries_of(entry.request):
            return self.retry(state, entry)
        place = state.better(entry.key, entry.depth, entry.priority)
        if place is None:
            return False
        self.delete(state, self._window.take_out(state, place))
        state.waiting -= 1
        self.put(state, entry)
        return True

    def retry(self, state: DiskState, entry: Entry) -> bool:
        """An entry that waits was retried elsewhere: True when that was news. It stays where it stands; one that is not
        in memory stays as it is, and has its retries once more.
        """
        place = state.find(entry.key)
        if place is None:
            return False
        queued = state.head[place]
        old = queue_rows.read_queue(state.host, queued)
        if retries_of(old.request) >= retries_of(entry.request):
            return False
        entry = entry._replace(depth=old.depth, priority=old.priority)
        queued = queue_rows.queued(state.hid, state.host, entry, queue_rows.arrival_of(queued))
        changes, row = self._flushes.of(state), queued[: queue_rows.ROW]
        if row not in changes:
            self._flushes.changes.again.add(row)
        changes[row] = queued
        self._window.exchange(state, place, queued)
        return True

    def delete(self, state: DiskState, row: bytes) -> None:
        """A row of the queue is not wanted any more. One that no flush holds is forgotten."""
        changes = state.fresh
        if changes is None:
            changes = self._flushes.of(state)
        if changes.get(row) is None or row in self._flushes.changes.again:
            changes[row] = None
        else:
            del changes[row]

    def throw_away(self, state: DiskState, queued: bytes) -> None:
        """A row is garbage."""
        if self.elsewhere.on:
            self._flushes.changes.left.append(Left(state.host, state.hid, queued))
        self.delete(state, queued[: queue_rows.ROW])
        state.garbage -= 1

    def tidied(self, scan: Scan, read: Head) -> None:
        """Delete the garbage among these rows of a queue, which were read for that."""
        state = scan.state
        late = self._window.tidied(scan, read)
        if late is None:
            return
        found = set()
        for queued in self._window.uncleared(state, read):
            row, key = queued[: queue_rows.ROW], queue_rows.queued_key(queued)
            done = self._keys.status(key ^ state.salt) == 2
            if done and key not in state.out and row not in late and not state.changed(row):
                self.throw_away(state, queued)
                found.add(row)
        self._window.forget(state, found)

    # -- what is done

    def mark(self, state: DiskState, key: int, by: str = "") -> bool:
        """A key is done; True when that was news. Its row stays: as garbage, or as that of what is out. `by`: the agent
        that has the outputs of the page, if another one."""
        salted = key ^ state.salt
        known = self._keys.status(salted)
        if known == 2:
            return False
        if not known:
            state.known_xor ^= key
        elif key in state.out:
            self._overtaken.add(salted)
        else:
            state.waiting -= 1
            state.garbage += 1
        self.done(state, key, salted)
        if by and known and self.elsewhere.on:
            self._flushes.of(state)[rows.done_row(state.hid, key)] = rows.done_elsewhere(self.elsewhere.number(by))
        return True

    def done(self, state: DiskState, key: int, salted: int) -> None:
        """A key is done that was not."""
        self._keys.fresh[salted] = 2
        state.done_xor ^= key
        state.done_count += 1
        if state.redo:
            state.redo.pop(key, None)
        self._flushes.of(state)[rows.done_row(state.hid, key)] = b""

    def returned(self, state: DiskState, key: int) -> bool:
        """What was out is not any more, and its row not wanted; False when it was done meanwhile."""
        salted = key ^ state.salt
        self.delete(state, self.taken.pop(salted))
        if salted not in self._overtaken:
            return True
        self._overtaken.discard(salted)
        return False

    def note_status(self, state: HostState, key: int, status: int) -> None:
        """Keep the status of a page that was done since the last flush."""
        assert isinstance(state, DiskState)
        row = rows.done_row(state.hid, key)
        if state.fresh is not None and row in state.fresh:
            state.fresh[row] = rows.done_value(status)

    def status_of(self, state: HostState, key: int) -> int | None:
        """The status of a page; one row may be read. Raises `StoreDamaged`."""
        assert isinstance(state, DiskState)
        row = rows.done_row(state.hid, key)
        for changes in (state.fresh, state.writing):
            if changes is not None and (value := changes.get(row)) is not None:
                return rows.read_status(row, value)
        found = self._store.get(row)
        return rows.read_status(row, found) if found is not None else None

    def overtaken(self, state: DiskState, entry: Entry) -> None:
        """An entry that was out is not fetched: it is done elsewhere."""
        if self.elsewhere.on:
            queued = queue_rows.queued(state.hid, state.host, entry, 0)
            self._flushes.changes.left.append(Left(state.host, state.hid, queued))

    def drop(self, state: DiskState) -> None:
        """The host is not held any more: forget what is out of it."""
        for key in state.out:
            del self.taken[key ^ state.salt]
            self._overtaken.discard(key ^ state.salt)

    def check_invariants(self, taken: set[int]) -> None:
        """Assert that these salted keys are what is out."""
        assert self.taken.keys() == taken >= self._overtaken
