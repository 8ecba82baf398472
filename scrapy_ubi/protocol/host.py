"""Host state: what an agent knows about one host, and how two such states become one.

Rules of this module:

* A host's state is two grow-only sets: the keys *known* (discovered) and the keys *done*. What waits to be fetched is
  known minus done. Merging is the union; where one key is known at two depths the smaller wins. Merging is therefore
  commutative, associative and idempotent: duplicates, reordering and resends of mail are harmless
  (docs/explanation/protocol.md#host-state).
* The text of a URL is kept only until its key is done: afterwards the key alone is the memory.
* A page that is done here is *closing* until its done mark may leave (P5): the others are told its entry, not that it
  is done.
* A page's *redo* is what its owner learned from it, told to the host's other keepers before the done mark may leave:
  an heir finds the page's outlinks there and need not fetch it again. It is a convenience: a lost one costs a fetch.
* A host's *notes* are what its owner keeps of it beside its URLs (`notes.py`); they merge, too, and are a convenience.
* A request made again after a failure is told from the same one found again: it is *retried*, and says how often at the
  start of its text. The version retried more often wins, whatever its depth and priority: else each find of the URL
  would give the page all its retries again.
* A key handed out to be fetched is *out*: still known, not done, in no queue here. It comes back (`put_back`) or
  becomes done (`finish`).
* A key that is done may have a *visit row* (`visit_row.py`): its page is visited again when it is due, by the owner
  alone. Rows merge by the highest generation, and are part of the summary. The row of a visit whose outlinks are not
  safe yet is not told (`host_visits.py`); the one before it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from scrapy_ubi.protocol.entry import MOST_RETRIES as MOST_RETRIES
from scrapy_ubi.protocol.entry import Entry as Entry
from scrapy_ubi.protocol.entry import retried as retried
from scrapy_ubi.protocol.entry import retries_of as retries_of
from scrapy_ubi.protocol.host_visits import NO_VISITS as NO_VISITS
from scrapy_ubi.protocol.host_visits import HostVisits as HostVisits
from scrapy_ubi.protocol.notes import MOST_NOTES as MOST_NOTES
from scrapy_ubi.protocol.notes import NOTHING
from scrapy_ubi.protocol.notes import Notes as Notes
from scrapy_ubi.protocol.shared_dict import NONE as NONE
from scrapy_ubi.protocol.visit_row import VisitRow as VisitRow
from scrapy_ubi.protocol.visit_row import fingerprint

MOST_REDO = 1024  # redo records kept a host: far more than are ever under way; beyond it the pages are fetched again


class Redo(NamedTuple):
    """What is to be done again if the owner of a page dies before its done mark may leave: its outlinks, each with its
    host. A redo record, as a write-ahead log has. Outlinks to the page's `own` host are keys only: who keeps the host
    is told their entries anyway. `by`: the agent that has told it, which has fetched the page.
    """

    key: int
    outlinks: tuple[tuple[str, Entry], ...]
    own: tuple[int, ...] = ()
    by: str = ""

    @classmethod
    def from_outlinks(cls, host: str, key: int, outlinks: Iterable[tuple[str, Entry]]) -> Redo:
        """The redo of a page of this host."""
        own, others = [], []
        for link in outlinks:
            if link[0] == host:
                own.append(link[1].key)
            else:
                others.append(link)
        return cls(key, tuple(others), tuple(own))


class Failure(NamedTuple):
    """A request that failed permanently: its key is done, and what is kept of it lets people look, and fetch it again.

    `reason` is a short word as `http/404`; `when` is unix seconds.
    """

    host: str
    entry: Entry
    reason: str
    when: float


class Summary(NamedTuple):
    """Sizes and XOR of a host's two key sets: two agents with equal summaries hold the same state."""

    known: int
    known_xor: int
    done: int
    done_xor: int


def xor(keys: Iterable[int]) -> int:
    """All these keys in one number, whatever their order."""
    total = 0
    for key in keys:
        total ^= key
    return total


NEVER_ABROAD, ABROAD = -math.inf, math.inf


class HostState:
    """The state of one host at one agent, with the few facts the agent keeps beside it. Where the sets rest is a
    subclass's matter: in memory (`memory_state`) or on disk (`frontier.disk_state`).

    `out`: key -> entry handed out; `closing`: key -> entry of the done whose done mark may not leave yet; `redo`: key
    -> redo of a page that waits here and is done elsewhere, maybe. An empty one may be `NONE`, which none adds to.
    `waiting`, `done_count`: how many entries wait and how many keys are done.
    `known_xor`, `done_xor`: the XOR of all keys that are known and of all that are done.
    `open_work`: how much of what was begun here is not settled yet (requests out, done marks not acknowledged).
    `dirty`: this copy may hold something the host's owner lacks.
    `keepers`, `keepers_at`: owner and successors under the view with that number (a cache of the agent's).
    `abroad`: until when (s, the agent's clock) another agent may have loaded of this host: `NEVER_ABROAD` where none
    can have since this agent did, so that only its own delay counts; `ABROAD` where that is not known yet.
    `next_at`: time (s, the agent's clock) before which politeness forbids the next fetch.
    `notes`: what is noted of it; `pause`: the delay (s) between two loads that it wants, where that is more than all
    hosts are given.
    `stays_until`: time before which the copy is not dropped: somebody who believes in another view may count on it.
    `visits`: what there is of pages that are visited again; `NO_VISITS`, which is shared, where there is nothing.
    """

    __slots__ = (
        "abroad",
        "closing",
        "dirty",
        "done_xor",
        "host",
        "keepers",
        "keepers_at",
        "known_xor",
        "next_at",
        "notes",
        "open_work",
        "out",
        "pause",
        "redo",
        "stays_until",
        "visits",
    )

    def __init__(self, host: str) -> None:
        self.host = host
        self.out: dict[int, Entry] = NONE
        self.closing: dict[int, Entry] = NONE
        self.redo: dict[int, Redo] = NONE
        self.known_xor = 0
        self.done_xor = 0
        self.open_work = 0
        self.dirty = False
        self.keepers: tuple[str, ...] = ()
        self.keepers_at = -1
        self.next_at = 0.0
        self.notes = NOTHING
        self.pause = 0.0
        self.abroad = ABROAD
        self.stays_until = 0.0
        self.visits: HostVisits = NO_VISITS

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.host} waiting={self.waiting} out={len(self.out)} done={self.done_count}>"

    @property
    def waiting(self) -> int:
        """How many entries wait to be fetched."""
        raise NotImplementedError

    @property
    def done_count(self) -> int:
        """How many keys are done."""
        raise NotImplementedError

    @property
    def known(self) -> int:
        """How many keys are known."""
        return self.waiting + self.done_count + sum(1 for key in self.out if not self.is_done(key))

    @property
    def was_fetched(self) -> bool:
        """Whether something of it was handed out, or is done."""
        return bool(self.out) or self.done_count > 0

    def is_known(self, key: int) -> bool:
        """Whether a key is known, done or not."""
        raise NotImplementedError

    def is_done(self, key: int) -> bool:
        """Whether a key is done."""
        raise NotImplementedError

    def visit_row(self, key: int) -> VisitRow | None:
        """The visit row of a key; None where it has none."""
        raise NotImplementedError

    def told_row(self, key: int) -> VisitRow | None:
        """The visit row of a key that is done, as others may know it."""
        told = self.visits.closing.get(key)
        return told.before if told is not None else self.visit_row(key)

    def is_over(self, key: int) -> bool:
        """Whether what is out with this key need not be fetched any more: it was, elsewhere."""
        visited = self.visits.out.get(key)
        if visited is None:
            return self.is_done(key)
        row = self.visit_row(key)
        return row is not None and row.generation > visited.generation

    def holds(self, key: int, depth: int, priority: int) -> bool:
        """Whether being told of this key, found so deep and with this priority, would change nothing that matters.

        Of two finds alike in both the first one stays where it was: only when states are merged does their text decide,
        so that everybody ends with the same one.
        """
        raise NotImplementedError

    def undone(self) -> Iterator[Entry]:
        """Every entry that is known and not done as far as others may know, those handed out included.

        The state may change while they are gone through: what was there at the beginning comes unless it is done by
        then, and may come twice.
        """
        raise NotImplementedError

    def told_done(self) -> Iterator[int]:
        """The keys that are done and that others may know to be; the state may change while they are gone through."""
        raise NotImplementedError

    def merge_notes(self, notes: Notes) -> bool:
        """Merge notes of this host; True when that was news."""
        before, self.notes = self.notes, self.notes.merged(notes)
        return self.notes != before

    def keep_redo(self, redo: Redo) -> None:
        """Keep what a page's owner has learned from it, while the page waits here."""
        waits = self.is_known(redo.key) and redo.key not in self.out and not self.is_done(redo.key)
        if waits and len(self.redo) < MOST_REDO:
            self.redo = self.redo or {}
            self.redo[redo.key] = redo

    def close(self, entry: Entry) -> None:
        """A page is done whose done mark may not leave yet."""
        self.closing = self.closing or {}
        self.closing[entry.key] = entry

    def closed(self, key: int) -> None:
        """The done mark of such a page leaves. KeyError when it is none."""
        del self.closing[key]
        self.closing = self.closing or NONE

    def still(self, redo: Redo) -> Redo | None:
        """What is still to be told of a page of this host: its outlinks, but for those to this host that are done. None
        where one to this host is not known here: what the owner said of it was lost on its way.
        """
        if not all(map(self.is_known, redo.own)):
            return None
        return redo._replace(own=tuple(key for key in redo.own if key in self.closing or not self.is_done(key)))

    def summary(self) -> Summary:
        """The state in four numbers, as others may know it, to be compared with another agent's."""
        done_xor = self.done_xor ^ xor(self.closing)
        if self.visits is not NO_VISITS:
            done_xor ^= self._told_rows_xor()
        return Summary(self.known, self.known_xor, self.done_count - len(self.closing), done_xor)

    def _told_rows_xor(self) -> int:
        """The XOR of the fingerprints of all rows that others may know."""
        total, told = self.visits.xor, self.visits.closing
        for key in self.closing.keys() | told.keys():
            total ^= fingerprint(self.visit_row(key))
            if key not in self.closing:
                total ^= fingerprint(told[key].before)
        return total

    def check_invariants(self) -> None:
        """Assert every invariant of the state."""
        assert all(map(self.is_done, self.closing)), self
        assert all(map(self.is_known, self.redo)), self
        assert self.open_work >= len(self.out) + len(self.visits.out), (self, self.open_work)
        assert all(map(self.is_done, self.visits.out)), self
        assert self.visits.out.keys().isdisjoint(self.out), self
        assert all(map(self.is_done, self.visits.closing)), self
