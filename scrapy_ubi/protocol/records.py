"""Records: the small facts about hosts that agents tell each other.

Rules of this module:

* A *record* is one fact about one host: a discovered entry, a done mark, a redo (what an heir needs to know of a page),
  an offer (the summary of a host's state), or the host's notes.
* The visit row of a page is part of its done mark: neither can be lost without the other. A page that was visited again
  is told as a done mark once more, with its new row.
* Every record is idempotent, so the letter that holds it may arrive twice.
* A *sync* is the whole state of a host as records, made one by one as they leave.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from scrapy_ubi.protocol.host import NO_VISITS, Entry, HostState, Notes, Redo, Summary, VisitRow

MOST_OUTLINKS = 64  # of a redo: a page with more is fetched again if its owner dies at the wrong moment
RECORD_SIZE = 40  # characters of a record besides its host, URL and request, about


class Record(NamedTuple):
    """One fact about one host. Exactly one of `entry`, `done`, `offer`, `redo`, `notes` is set; with `done` there may
    be the `row` of its last visit. `flush` orders it among its sender's writes.
    """

    host: str
    flush: int
    entry: Entry | None = None
    done: int | None = None
    offer: Summary | None = None
    redo: Redo | None = None
    notes: Notes | None = None
    row: VisitRow | None = None


@dataclass(slots=True)
class Sync:
    """The whole state of one host on its way to one receiver, taken from the host in pieces as the window allows.

    `waits`: not all of it has left its lane; one that was cancelled stays there and no longer waits.
    """

    host: str
    receiver: str
    flush: int
    records: Iterator[Record]
    outstanding: int = 0
    exhausted: bool = False
    waits: bool = False
    _ahead: Record | None = None

    def peek(self) -> Record | None:
        """The next record, left where it is; None when there is none, and then `exhausted` is true."""
        if self._ahead is None:
            self._ahead = next(self.records, None)
            self.exhausted = self._ahead is None
        return self._ahead

    def take_record(self) -> Record | None:
        """The next record; `exhausted` is true from the last one on, so that the last letter knows that it is the
        last.
        """
        record, self._ahead = self.peek(), None
        self.peek()
        return record

    @property
    def is_acknowledged(self) -> bool:
        """Whether the receiver has acknowledged all of it."""
        return self.exhausted and not self.outstanding


def whole(state: HostState, flush: int) -> Iterator[Record]:
    """All of a host's state as records; what it learns later travels by itself. Redos come behind the entries, without
    which they are passed over.

    It is gone through as letters leave: all at once, a host of a million URLs takes seconds and hundreds of megabytes.
    What is done meanwhile is among the keys done, which therefore come behind the entries.
    """
    if state.notes.version:
        yield Record(state.host, flush, notes=state.notes)
    for entry in state.undone():
        yield Record(state.host, flush, entry=entry)
    for key in state.told_done():
        yield done_mark(state, key, flush)
    for redo in [*state.redo.values()]:
        yield Record(state.host, flush, redo=redo)


def done_mark(state: HostState, key: int, flush: int) -> Record:
    """The done mark of a key, with the row that others may know of it."""
    if state.visits is NO_VISITS:
        return Record(state.host, flush, done=key)
    return Record(state.host, flush, done=key, row=state.told_row(key))


def weight(entry: Entry) -> int:
    """About how many characters an entry adds to a letter."""
    return len(entry.url) + len(entry.request)


def row_weight(row: VisitRow) -> int:
    """About how many characters the texts of a row add to a letter."""
    return weight(row.entry) + len(row.etag) + len(row.modified)


def size(record: Record) -> int:
    """About how many characters a record adds to a letter."""
    entry = record.entry
    if entry is not None:  # most are one: `weight` in place
        return RECORD_SIZE + len(record.host) + len(entry.url) + len(entry.request)
    if record.row is not None:
        return 3 * RECORD_SIZE + len(record.host) + row_weight(record.row)
    if record.redo is not None:
        outlinks = sum(RECORD_SIZE + len(host) + weight(entry) for host, entry in record.redo.outlinks)
        return RECORD_SIZE + len(record.host) + outlinks + RECORD_SIZE * len(record.redo.own) // 2
    if record.notes is not None:
        spent = RECORD_SIZE * len(record.notes.spent) // 2
        return RECORD_SIZE + len(record.host) + len(record.notes.text) + spent
    return RECORD_SIZE + len(record.host)
