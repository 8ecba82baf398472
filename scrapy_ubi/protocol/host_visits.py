"""What a host has beside its two sets where its pages are visited again: the visits that are out, and those whose rows
may not be told yet.

Rules of this module:

* Where the rows rest is a subclass's matter: in memory or on disk.
* A page that is out for its first visit, and was done elsewhere meanwhile, is not handed out for its next one before
  that has ended: whose end is told would not be known.
* The row of a visit leaves its owner as a done mark does: when every outlink of its flush is acknowledged (P5). Else an
  heir would take the page for visited, find it unchanged, and never learn what it leads to. Until then it is *closing*,
  and the others are told the row *before* it. A page that is visited once more meanwhile closes with its last visit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from scrapy_ubi.protocol.entry import Entry
from scrapy_ubi.protocol.shared_dict import NONE
from scrapy_ubi.protocol.visit_row import VisitRow

Ready = tuple[VisitRow, Entry]  # a row that is due, and the request: that of the row, or the same one retried


class ClosingVisits(NamedTuple):
    """So many visits of one page whose rows may not be told yet, and the row `before` them."""

    before: VisitRow | None
    visits: int = 1


class HostVisits:
    """`out`: key -> row of a page that was handed out; `closing`: by key. `count`: how many rows there are; `xor`: of
    their fingerprints; `due`: no row is due before this time (unix s), 0 when none is ever, but for what is `ready`,
    which is due and at hand, and what is out. `after_page`: the last one handed out was not visited before.
    """

    __slots__ = ("after_page", "closing", "count", "due", "out", "ready", "xor")

    def __init__(self) -> None:
        self.out: dict[int, VisitRow] = NONE
        self.closing: dict[int, ClosingVisits] = NONE
        self.ready: Sequence[Ready] = ()
        self.count = self.xor = self.due = 0
        self.after_page = False

    def row(self, key: int) -> VisitRow | None:
        """The row of a key, None where it has none; for those who keep them here."""
        return None

    @property
    def awaited(self) -> bool:
        """Whether a page is due, now or later."""
        return bool(self.due or self.ready or self.out)

    def close(self, key: int, before: VisitRow | None) -> None:
        """A visit of this page has ended, and its row may not be told yet."""
        told = self.closing.get(key)
        self.closing = self.closing or {}
        self.closing[key] = ClosingVisits(before) if told is None else told._replace(visits=told.visits + 1)

    def closed(self, key: int) -> bool:
        """What such a visit has found is safe. Return whether the row of the page may be told."""
        told = self.closing.pop(key)
        if told.visits > 1:
            self.closing[key] = told._replace(visits=told.visits - 1)
            return False
        self.closing = self.closing or NONE
        return True


NO_VISITS = HostVisits()  # of every host without a row; never changed
