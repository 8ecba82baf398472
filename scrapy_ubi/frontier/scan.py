"""A piece of a queue that is to be read: which rows, and what for.

Rules of this module: nothing is changed here, so all of it may run in any thread. `window` says which pieces are to be
read, and takes in heads; `entries` takes in pieces that are looked through for garbage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from scrapy_ubi.frontier import queue_rows, visit_rows
from scrapy_ubi.frontier.disk_state import DiskState, Head
from scrapy_ubi.frontier.queue_rows import HEAVY
from scrapy_ubi.frontier.store import Store
from scrapy_ubi.protocol.host import Entry


class Scan(NamedTuple):
    """What is to be read: rows of `state` from `start` on, before `end`; `tidy`: to find garbage, not for its head;
    `whole`: at most `most` rows were there when this was asked; `ranks`: to put them in another order; `due`: not of a
    queue, but the visit rows that are due by this time.
    """

    state: DiskState
    start: bytes
    end: bytes
    most: int
    tidy: bool = False
    whole: bool = False
    ranks: bool = False
    due: int = 0


Result = tuple[Scan, Head]

Priorities = Callable[[Sequence[Entry]], Sequence[int] | None]
"""The priorities that these entries get, in their order; None: they stay as they are."""


def cut(scan: Scan, read: Head) -> Result:
    """What was read for this, of that only as much as was asked for, by weight; one row in any case."""
    if queue_rows.are_usual(read):
        return scan, read
    weight = 0
    for count, queued in enumerate(read):
        weight += 1 + (len(queued) >> HEAVY)
        if weight > scan.most and count:
            return scan._replace(most=count, whole=False), read[:count]
    return scan, read


def read_all(store: Store, scans: Iterable[Scan]) -> list[Result]:
    """Read these, in any thread. Raises `StoreDamaged`."""
    return [
        (scan, _due(store, scan))
        if scan.due
        else cut(scan, queue_rows.joined(store.scan(scan.start, scan.end, scan.most)))
        for scan in scans
    ]


def _due(store: Store, scan: Scan) -> Head:
    """For each row that says when a page is due: that row, and the value of its visit row; and of the first that is not
    read the row alone.
    """
    found: Head = []
    for number, (row, _) in enumerate(store.scan(scan.start, scan.end, scan.most + 1)):
        due, key = visit_rows.read_due(row)
        if due > scan.due or number == scan.most:
            found.append(row)
            break
        if (value := store.get(visit_rows.visit_key(scan.state.hid, key))) is not None:
            found.append(row + value)
    return found


def rows_there(state: DiskState, quantum: int) -> int:
    """How many rows the host's queue has in the store; more than the quantum where that is not known.

    A read that asks for no more than there are need not find out that behind them there is none, which takes as long as
    the read. What is put there from now on is late (`Window.loaded`); what is taken away leaves fewer than asked for.
    """
    if state.fresh is not None or state.writing is not None:
        return quantum + 1
    return state.waiting + state.garbage + len(state.out)
