"""The state of a host whose sets are on disk: what stays in memory of it, and the changes not written yet.

Rules of this module:

* No set of keys is here. Whether a key is known or done, `KeyStates` says: first the changes that are not in the seen
  table yet, then the table. Entries are rows of the store.
* Of the entries that wait only the *head* of the queue may be in memory, as rows not yet decoded, in the order of
  the store. A head is *complete* when nothing waits that is not in it; such a host is never read. The head may hold
  entries that were done elsewhere meanwhile (garbage): the code that takes the first one looks.
* A host's keys are salted by its number before they come to the seen table: a host that was dropped and comes again has
  another number, and knows nothing.
* A host that rests (no head, nothing out) takes about 800 bytes.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping

from scrapy_ubi.frontier import queue_rows, rows
from scrapy_ubi.frontier.seen import Seen
from scrapy_ubi.frontier.store import Store, every
from scrapy_ubi.protocol.host import NO_VISITS, Entry, HostState, VisitRow, retries_of, xor

PIECE = 256  # rows read at once by those who want all
CHEAP = 32  # times as many as are put into it a head may have to be sorted for it: to put in one costs about as much
MOST_UNKNOWN = 10_000  # keys of which it is remembered for a moment that they are new

Head = list[bytes]  # rows of the queue with their values (`queue_rows.read_queue`); ascending
NO_HEAD: Head = []  # shared by all who have none; never changed


HostChanges = dict[bytes, bytes | None]
"""What a flush holds of one host: rows of its queue (each with the row and its value in one, as heads have them; None:
to be deleted), and of what is done. One dict of plain values: there are thousands, and the garbage collector looks at
none.
"""


class KeyStates:
    """Which salted keys are known and done, for all hosts: `fresh` is not flushed, `writing` is being written.

    `unknown` has keys asked for lately and found nowhere: who asks is about to add them. They hold until the next flush
    is collected, but for what is fresh.
    """

    __slots__ = ("fresh", "seen", "unknown", "writing")

    def __init__(self, seen: Seen) -> None:
        self.fresh: dict[int, int] = {}
        self.writing: Mapping[int, int] = {}
        self.unknown: set[int] = set()
        self.seen = seen

    def status(self, salted: int) -> int:
        """0: unknown, 1: known, 2: known and done."""
        status = self.fresh.get(salted)
        if status is None:
            status = self.writing.get(salted)
            if status is None:
                return self.seen.status(salted)
        return status

    def missed(self, salted: int) -> None:
        """A key was asked for and found nowhere."""
        if len(self.unknown) >= MOST_UNKNOWN:
            self.unknown.clear()
        self.unknown.add(salted)


class DiskState(HostState):
    """The state of one host at one agent, its sets on disk.

    `hid`: its number; `salt`: of its keys. `garbage`: rows of the queue whose key is done. `arrival`: the number of the
    next entry. `head`, `complete`: see above; `low`: no row before this one waits but for those of the head. `deepest`:
    an entry that is found so deep, with no priority, is better than no entry of the head.
    `logged`: the row of the log that has its latest sums, -1 where its own row has them. `readers`: how many read its
    queue in pieces.
    `fresh`, `writing`: its changes that are not in a flush yet, and those in the flush that is being written.
    """

    __slots__ = (
        "_keys",
        "_store",
        "arrival",
        "complete",
        "deepest",
        "done_count",
        "fresh",
        "garbage",
        "head",
        "hid",
        "logged",
        "low",
        "readers",
        "salt",
        "waiting",
        "writing",
    )

    waiting: int
    done_count: int

    def __init__(self, host: str, hid: int, keys: KeyStates, store: Store) -> None:
        super().__init__(host)
        self.hid = hid.to_bytes(4, "big")
        self.salt = rows.salt(self.hid)
        self.waiting = 0
        self.done_count = 0
        self.garbage = 0
        self.arrival = 0
        self.head = NO_HEAD
        self.complete = True
        self.deepest = 0
        self.low = b""
        self.logged = -1
        self.readers = 0
        self.fresh: HostChanges | None = None
        self.writing: HostChanges | None = None
        self._keys = keys
        self._store = store

    def is_known(self, key: int) -> bool:
        """Whether a key is known, done or not."""
        return self._keys.status(key ^ self.salt) != 0

    def is_done(self, key: int) -> bool:
        """Whether a key is done."""
        return self._keys.status(key ^ self.salt) == 2

    def visit_row(self, key: int) -> VisitRow | None:
        """The visit row of a key, None where it has none; one row may be read. Raises `StoreDamaged`."""
        return None if self.visits is NO_VISITS else self.visits.row(key)

    def holds(self, key: int, depth: int, priority: int) -> bool:
        """Whether being told of this key, found so deep and with this priority, would change nothing that matters.

        That a waiting entry was found nearer matters only while it is in memory, and then only where it would be the
        next one: else it keeps its place.
        """
        keys, salted = self._keys, key ^ self.salt  # as `KeyStates.status` does; this is asked for every link found
        status = keys.fresh.get(salted)
        if status is None and keys.writing:
            status = keys.writing.get(salted)
        if status is None:
            status = keys.seen.status(salted)
            if not status:
                keys.missed(salted)
                return False
        if status == 2 or (depth >= self.deepest and priority <= 0):
            return True
        return self.better(key, depth, priority) is None

    def better(self, key: int, depth: int, priority: int) -> int | None:
        """The index in the head of an entry with this key, where being found so deep, with this priority, is better
        than what it has, and than what all others there have. One that is retried stays.
        """
        head = self.head
        if not head or queue_rows.rank_start(priority, depth) > head[0][queue_rows.RANK_START]:
            return None
        # Those of this priority that are no deeper come first, and are no worse.
        index = self.find(key, bisect_left(head, queue_rows.before(self.hid, priority, depth + 1)))
        if index is None:
            return None
        old = queue_rows.read_queue(self.host, head[index])
        better = (depth, -priority) < (old.depth, -old.priority) and not retries_of(old.request)
        return index if better else None

    def find(self, key: int, first: int = 0) -> int | None:
        """The index in the head, not before `first`, of the entry with this key; None when it does not wait there."""
        if key in self.out:
            return None
        head, sought, start, end = self.head, key.to_bytes(8, "big"), queue_rows.ROW, queue_rows.ROW + 8
        for index in range(first, len(head)):
            if head[index][start:end] == sought:
                return index
        return None

    def sums(self, offset: float) -> tuple[int, int, int, int, int, int, float]:
        """What is durable of it and changes, in the order of `rows.HostRecord`; `offset` is unix time less the agent's
        clock.
        """
        known, garbage = self.waiting + self.done_count, self.garbage
        if self.out:  # its rows are in the store still
            undone = sum(1 for key in self.out if not self.is_done(key))
            known, garbage = known + undone, garbage + len(self.out) - undone
        next_at = self.next_at + offset if self.next_at else 0.0
        if next_at < 0.0:
            next_at = 0.0
        return known, self.known_xor, self.done_count, self.done_xor, garbage, self.arrival, next_at

    def record(self, offset: float) -> bytes:
        """The row of what is durable of it."""
        return rows.host_value(rows.HostRecord(self.host, *self.sums(offset), self.notes))

    def salted(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Count and XOR of the known keys, and of those done, as the seen table has them."""
        known, done = self.known, self.done_count
        return (
            (known, self.known_xor ^ (self.salt if known % 2 else 0)),
            (done, self.done_xor ^ (self.salt if done % 2 else 0)),
        )

    def changed(self, row: bytes) -> bool:
        """Whether a row is among the changes not written yet."""
        return any(changes is not None and row in changes for changes in (self.fresh, self.writing))

    def merged(self, read: Head, late: HostChanges, start: bytes, end: bytes) -> Head:
        """What was read of the queue between these rows (both included), with later changes and those not in the store
        yet.
        """
        found: HostChanges = {queued[: queue_rows.ROW]: queued for queued in read}
        for changes in (late, self.writing, self.fresh):
            if changes:
                found.update((row, queued) for row, queued in changes.items() if start <= row <= end)
        return sorted(queued for queued in found.values() if queued is not None)

    def queue_rows(self) -> Iterator[bytes]:
        """All rows of the queue from `low` on, garbage and what is out included; the store is read in pieces."""
        if self.complete:
            yield from tuple(self.head)
            return
        start, last = rows.of_host(rows.QUEUE, self.hid)
        start = max(start, min(self.low, self.head[0][: queue_rows.ROW]) if self.head else self.low)
        while start < last:
            read = queue_rows.joined(self._store.scan(start, last, PIECE))
            end = read[-1][: queue_rows.ROW] if len(read) == PIECE else last
            yield from self.merged(read, {}, start, end)
            start = end + b"\0"

    def waits(self, queued: bytes) -> bool:
        """Whether the entry of a row of the queue waits: it is neither done nor out."""
        key = queue_rows.queued_key(queued)
        return key not in self.out and self._keys.status(key ^ self.salt) != 2

    def undone(self) -> Iterator[Entry]:
        """Every entry that is known and not done as far as others may know, those handed out included. What is handed
        out meanwhile has its row still; what was out before may come back in front of where this has come to.
        """
        out = {**self.out}
        self.readers += 1
        try:
            for queued in self.queue_rows():
                key = queue_rows.queued_key(queued)
                if key not in out and not self.is_done(key):
                    yield queue_rows.read_queue(self.host, queued)
        finally:
            self.readers -= 1
        yield from [entry for key, entry in out.items() if not self.is_done(key)]
        yield from [*self.closing.values()]

    def told_done(self) -> Iterator[int]:
        """The keys that are done and that others may know to be."""
        changed = [row for changes in (self.writing, self.fresh) for row in changes or ()]
        fresh = [rows.done_key(row) for row in changed if not queue_rows.is_queued(row)]
        told = {*fresh, *self.closing}
        yield from [key for key in fresh if key not in self.closing]
        start, end = rows.of_host(rows.DONE, self.hid)
        while found := self._store.scan(start, end, PIECE):
            for row, _ in found:
                if (key := rows.done_key(row)) not in told and key not in self.closing:
                    yield key
            start = found[-1][0] + b"\0"

    def append(self, queued: Head, entry: Entry) -> bool:
        """Put entries into the head: behind all others, where they belong there, else among them, where these are so
        few that sorting all is cheap. Return whether they were put. They are in their order, and each is as deep as
        this one, with its priority."""
        head, first = self.head, queued[0]
        among = bool(head) and first < head[-1]
        if among and len(head) > CHEAP * len(queued):
            return False
        if first < self.low:
            self.low = first[: queue_rows.ROW]
        self._deepen(entry)
        if head is NO_HEAD:
            self.head = queued
        else:
            head += queued
            if among:
                head.sort()  # two runs, each in its order: one pass
        return True

    def _deepen(self, entry: Entry) -> None:
        deep = entry[2] if entry[3] >= 0 else entry[2] + 1
        if deep > self.deepest:
            self.deepest = deep

    def insert(self, queued: bytes, entry: Entry) -> None:
        """Put an entry into the head."""
        self._deepen(entry)
        if self.head is NO_HEAD:
            self.head = [queued]
        else:
            insort(self.head, queued)

    def fill(self, head: Head) -> None:
        """These are the head from now on."""
        self.head, self.deepest = (head, queue_rows.deepest(head)) if head else (NO_HEAD, 0)

    def release(self) -> int:
        """Give the head away, which is in the store or in the changes; the weight it had."""
        head = self.head
        self.fill(NO_HEAD)
        if head:
            self.low = min(self.low, head[0][: queue_rows.ROW])
            self.complete = False
        return queue_rows.weight(head)

    def check_invariants(self) -> None:
        """Assert every invariant of the state, by reading all of it."""
        super().check_invariants()
        assert self.head == sorted(self.head), self
        waiting = [queued for queued in self.queue_rows() if self.waits(queued)]
        entries = [queue_rows.read_queue(self.host, queued) for queued in waiting]
        keys = [entry.key for entry in entries]
        assert len(set(keys)) == len(keys) == self.waiting, (self, entries)
        assert all(map(self.is_known, keys)), self
        if self.fresh is None and self.writing is None:  # all of it is in the store: `window` counts on that number
            stored = sum(1 for _ in every(self._store, *rows.of_host(rows.QUEUE, self.hid)))
            assert stored == self.waiting + self.garbage + len(self.out), (self, stored, self.garbage)
        for entry in (queue_rows.read_queue(self.host, queued) for queued in self.head):
            assert (entry.depth, -entry.priority) <= (self.deepest, 0), self
        if self.head and not self.complete:
            head = {*self.head}
            assert all(queued in head for queued in waiting if queued <= self.head[-1]), self
        done = {*self.told_done(), *self.closing}
        assert len(done) == self.done_count, (self, done)
        assert xor(done) == self.done_xor, self
        assert xor({*keys, *done, *self.out}) == self.known_xor, self
        assert self.redo.keys() <= {*keys, *self.out}, self
