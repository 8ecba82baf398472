"""The pages of one host that are due to be visited again, as a frontier has them.

Rules of this module:

* A few of those that are due are *ready*: at hand, the most overdue first. A frontier takes in the next ones when these
  are used up, so a host with many that are overdue takes as much memory as another, and as many turns.
* A host with pages that were never fetched, too, gives one of each kind in turn.
* What was visited elsewhere meanwhile is not ready any more.
"""

from __future__ import annotations

from scrapy_ubi.protocol.entry import Entry
from scrapy_ubi.protocol.host_visits import HostVisits, Ready
from scrapy_ubi.protocol.shared_dict import NONE
from scrapy_ubi.protocol.visit_row import VisitRow, fingerprint

READY = 16  # rows of a host at hand


class HostRevisits(HostVisits):
    """What a host has of visits, with what of it is due."""

    __slots__ = ()

    ready: list[Ready]

    def __init__(self) -> None:
        super().__init__()
        self.ready = []

    def put(self, before: VisitRow | None, row: VisitRow) -> None:
        """This row is the one of its key from now on."""
        self.count += before is None
        self.xor ^= fingerprint(before) ^ fingerprint(row)
        if before is not None and self.ready:
            self.ready = [ready for ready in self.ready if ready[0].key != row.key]
        if row.key not in self.out:
            self.expect(row.due)

    def expect(self, due: int) -> None:
        """A row is due then; 0: never."""
        if due and (not self.due or due < self.due):
            self.due = due

    def next(self, pages_wait: bool) -> Entry | None:
        """Hand out the next one that is due; None when there is none at hand, or a page has its turn that was never
        fetched.
        """
        if not self.ready or (pages_wait and not self.after_page):
            self.after_page = True
            return None
        self.after_page = False
        row, entry = self.ready.pop(0)
        self.out = self.out or {}
        self.out[row.key] = row
        return entry

    def returned(self, key: int) -> VisitRow:
        """What was out is not any more. KeyError when it is not out."""
        row = self.out.pop(key)
        self.out = self.out or NONE
        return row

    def put_aside(self) -> None:
        """Nothing is at hand: what was, is due still."""
        for row, _ in self.ready:
            self.expect(row.due)
        self.ready.clear()
