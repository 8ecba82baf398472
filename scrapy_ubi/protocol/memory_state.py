"""The state of a host in memory: the two sets of `host.py`, as sets, and how facts are merged into them.

Rules of this module:

* Between two versions of one key a total order decides, so that everybody ends with the same one, in whatever order the
  facts came.
* A key that is out, or done, learns nothing more.
"""

from __future__ import annotations

from collections.abc import Iterator

from scrapy_ubi.protocol.host import NONE, Entry, HostState, VisitRow, retries_of, xor
from scrapy_ubi.protocol.visit_row import fingerprint, merged


def _rank(entry: Entry) -> tuple[int, int, int, str, str]:
    """The total order that decides between two versions of one key: the most retries, then the smallest depth, then the
    highest priority.
    """
    return (-retries_of(entry.request), entry.depth, -entry.priority, entry.url, entry.request)


class SetState(HostState):
    """A host state in memory. `queued`: key -> entry that waits; `done`: keys; `rows`: key -> visit row, of some of
    these."""

    __slots__ = ("done", "queued", "rows")

    def __init__(self, host: str) -> None:
        super().__init__(host)
        self.queued: dict[int, Entry] = {}
        self.done: set[int] = set()
        self.rows: dict[int, VisitRow] = NONE

    @property
    def waiting(self) -> int:
        """How many entries wait to be fetched."""
        return len(self.queued)

    @property
    def done_count(self) -> int:
        """How many keys are done."""
        return len(self.done)

    def is_known(self, key: int) -> bool:
        """Whether a key is known, done or not."""
        return key in self.done or key in self.queued or key in self.out

    def is_done(self, key: int) -> bool:
        """Whether a key is done."""
        return key in self.done

    def visit_row(self, key: int) -> VisitRow | None:
        """The visit row of a key; None where it has none."""
        return self.rows.get(key)

    def merge_row(self, row: VisitRow) -> bool:
        """Merge a visit row of a key that is done; True when that was news."""
        before = self.rows.get(row.key)
        if before is not None and merged(before, row) == before:
            return False
        self.rows = self.rows or {}
        self.rows[row.key] = row
        return True

    def holds(self, key: int, depth: int, priority: int) -> bool:
        """Whether being told of this key, found so deep and with this priority, would change nothing that matters."""
        if key in self.done or key in self.out:
            return True
        old = self.queued.get(key)
        if old is None:
            return False
        return (old.depth, -old.priority) <= (depth, -priority) or retries_of(old.request) > 0

    def learn(self, entry: Entry) -> bool:
        """Merge one discovered entry; True when that was news (a new key, or a better version of a waiting one)."""
        key = entry.key
        if key in self.done or key in self.out:
            return False
        old = self.queued.get(key)
        if old is None:
            self.known_xor ^= key
        elif _rank(entry) >= _rank(old):
            return False
        self.queued[key] = entry
        return True

    def mark_done(self, key: int) -> bool:
        """Merge one done mark; True when that was news. A key may be done before it is discovered."""
        if key in self.done:
            return False
        self.redo.pop(key, None)
        if self.queued.pop(key, None) is None and key not in self.out:
            self.known_xor ^= key
        self.done.add(key)
        self.done_xor ^= key
        return True

    def hand_out(self, key: int) -> Entry:
        """Take a waiting entry out of the queue to be fetched. KeyError when it does not wait."""
        entry = self.queued.pop(key)
        self.out = self.out or {}
        self.out[key] = entry
        return entry

    def put_back(self, key: int, entry: Entry | None = None) -> bool:
        """What was out was not fetched, or is to be fetched again (as `entry`): True when it waits now."""
        old = self.out.pop(key)
        if key in self.done:
            return False
        self.queued[key] = entry or old
        return True

    def finish(self, key: int) -> bool:
        """What was out is done; True when that was news."""
        news = self.mark_done(key)
        self.out.pop(key, None)
        return news

    def undone(self) -> Iterator[Entry]:
        """Every entry that is known and not done as far as others may know, those handed out included."""
        waiting = [*self.queued.values(), *(entry for key, entry in self.out.items() if key not in self.done)]
        yield from waiting
        yield from [*self.closing.values()]

    def told_done(self) -> Iterator[int]:
        """The keys that are done and that others may know to be."""
        return iter([key for key in self.done if key not in self.closing])

    def check_invariants(self) -> None:
        """Assert every invariant of the state."""
        super().check_invariants()
        assert not self.queued.keys() & self.done, self
        assert not self.queued.keys() & self.out.keys(), self
        assert self.redo.keys() <= self.queued.keys() | self.out.keys(), self
        keys = set(self.queued) | set(self.out) | self.done
        assert xor(keys) == self.known_xor, self
        assert xor(self.done) == self.done_xor, self
        assert self.rows.keys() <= self.done, self
        assert len(self.rows) == self.visits.count, self
        assert xor(map(fingerprint, self.rows.values())) == self.visits.xor, self
