"""Host state: what an agent knows about one host, and how two such states become one.

Rules of this module:

* A host's state is two grow-only sets: the keys *known* (discovered) and the keys *done*. What waits to be fetched is
  known minus done. Merging is the union; where one key is known at two depths the smaller wins. Merging is therefore
  commutative, associative and idempotent: duplicates, reordering and resends of mail are harmless (DESIGN, part 2).
* The text of a URL is kept only until its key is done: afterwards the key alone is the memory.
* A page that is done here is *closing* until its done mark may leave (P5): the others are told its entry, not that it
  is done.
* A page's *redo* is what its owner learned from it, told to the host's other keepers before the done mark may leave:
  an heir finds the page's outlinks there and need not fetch it again. It is a convenience: a lost one costs a fetch.
* A host's *notes* are what its owner keeps of it beside its URLs (`notes.py`); they merge, too, and are a convenience.
* A request made again after a failure is told from the same one found anew: it is *retried*, and says how often at the
  start of its text. The version retried more often wins, whatever its depth and priority: else each find of the URL
  would give the page all its retries again.
* A key handed out to be fetched is *out*: still known, not done, in nobody's queue here. It comes back (`put_back`) or
  becomes done (`finish`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, NoReturn, Protocol

from .notes import MOST_NOTES as MOST_NOTES
from .notes import NOTHING
from .notes import Notes as Notes

MOST_FAILED = 100_000  # failures kept by an agent; what fails beyond is only counted
MOST_REDO = 1024  # redo records kept a host: far more than are ever under way; beyond it the pages are fetched again


class Entry(NamedTuple):
    """One request to be fetched, as it waits and as it travels.

    `key` is 64 bits, unsigned, of (method, normal form, body, nonce); `url` is as found, and is what is fetched;
    `depth` and `priority` have Scrapy's meaning (higher priority first); `request` is JSON text with all else of the
    request, empty for a plain GET.
    """

    key: int
    url: str
    depth: int
    priority: int = 0
    request: str = ""


MOST_RETRIES = 10**9 - 1  # it counts no further
_RETRIES = re.compile(r'\{"retries":([1-9][0-9]{0,8})[,}]')


def retries_of(request: str) -> int:
    """How often a request was retried before, as its text says; 0 for one that was not."""
    found = _RETRIES.match(request) if request else None
    return int(found[1]) if found else 0


def retried(again: Entry, before: Entry) -> Entry:
    """The entry `again`, made in the place of `before`, which has failed: retried once more than that."""
    said = f'"retries":{min(retries_of(before.request) + 1, MOST_RETRIES)}'
    rest = again.request[1:] if len(again.request) > 2 else "}"  # all but its brace; none where it says nothing
    return again._replace(request=f"{{{said}{'' if rest == '}' else ','}{rest}")


class Redo(NamedTuple):
    """What is to be done again if the owner of a page dies before its done mark may leave: its outlinks, each with its
    host. A redo record, as a write-ahead log has. Outlinks to the page's `own` host are keys only: who keeps the host
    is told their entries anyway.
    """

    key: int
    outlinks: tuple[tuple[str, Entry], ...]
    own: tuple[int, ...] = ()

    @classmethod
    def of(cls, host: str, key: int, outlinks: Iterable[tuple[str, Entry]]) -> Redo:
        """The redo of a page of this host."""
        own, others = [], []
        for link in outlinks:
            if link[0] == host:
                own.append(link[1].key)
            else:
                others.append(link)
        return cls(key, tuple(others), tuple(own))


class Failure(NamedTuple):
    """A request that failed for good: its key is done, and what is kept of it lets people look, and fetch it again.

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


def _rank(entry: Entry) -> tuple[int, int, int, str, str]:
    """The total order that decides between two versions of one key: the most retries, then the smallest depth, then the
    highest priority.
    """
    return (-retries_of(entry.request), entry.depth, -entry.priority, entry.url, entry.request)


class _Nothing(dict[int, Any]):
    """An empty dict that stays one, shared by all hosts that have nothing under way: most of them."""

    __slots__ = ()

    def __setitem__(self, key: int, value: object) -> NoReturn:
        raise TypeError("this dict is shared: give the host one of its own")


NONE = _Nothing()


class HostState:
    """The state of one host at one agent, with the few facts the agent keeps beside it. Where the sets rest is a
    subclass's matter: in memory (`SetState`) or on disk (`frontier.diskstate`).

    `out`: key -> entry handed out; `closing`: key -> entry of the done whose done mark may not leave yet; `redo`: key
    -> redo of a page that waits here and is done elsewhere, maybe. An empty one may be `NONE`, which none adds to.
    `waiting`, `done_count`: how many entries wait and how many keys are done.
    `known_xor`, `done_xor`: the XOR of all keys that are known and of all that are done.
    `open_work`: how much of what was begun here is not settled yet (requests out, done marks not acknowledged).
    `dirty`: this copy may hold something the host's owner lacks.
    `keepers`, `keepers_at`: owner and successors under the view with that number (a cache of the agent's).
    `trusted`: nobody else can have fetched this host since this agent did, so only its own delay counts.
    `next_at`: time (s, the agent's clock) before which politeness forbids the next fetch.
    `notes`: what is noted of it; `pause`: the delay (s) between two loads that it wants, where that is more than all
    hosts are given.
    `stays_until`: time before which the copy is not dropped: somebody who believes in another view may count on it.
    """

    __slots__ = (
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
        "trusted",
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
        self.trusted = False
        self.stays_until = 0.0

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

    def is_known(self, key: int) -> bool:
        """Whether a key is known, done or not."""
        raise NotImplementedError

    def is_done(self, key: int) -> bool:
        """Whether a key is done."""
        raise NotImplementedError

    def holds(self, key: int, depth: int, priority: int) -> bool:
        """Whether being told of this key, found so deep and with this priority, would change nothing that matters.

        Of two finds alike in both the first one stays where it was: only when states are merged does their text decide,
        so that everybody ends with the same one.
        """
        raise NotImplementedError

    def undone(self) -> Iterator[Entry]:
        """Every entry that is known and not done as far as others may know, those handed out included."""
        raise NotImplementedError

    def told_done(self) -> Iterator[int]:
        """The keys that are done and that others may know to be."""
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
        closing = _xor(self.closing)
        return Summary(self.known, self.known_xor, self.done_count - len(self.closing), self.done_xor ^ closing)

    def _check(self) -> None:
        """Assert every invariant of the state."""
        assert all(map(self.is_done, self.closing)), self
        assert all(map(self.is_known, self.redo)), self
        assert self.open_work >= len(self.out), (self, self.open_work)


class SetState(HostState):
    """A host state in memory. `queued`: key -> entry that waits; `done`: keys."""

    __slots__ = ("done", "queued")

    def __init__(self, host: str) -> None:
        super().__init__(host)
        self.queued: dict[int, Entry] = {}
        self.done: set[int] = set()

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
        yield from self.queued.values()
        yield from (entry for key, entry in self.out.items() if key not in self.done)
        yield from self.closing.values()

    def told_done(self) -> Iterator[int]:
        """The keys that are done and that others may know to be."""
        return (key for key in self.done if key not in self.closing)

    def _check(self) -> None:
        """Assert every invariant of the state."""
        super()._check()
        assert not self.queued.keys() & self.done, self
        assert not self.queued.keys() & self.out.keys(), self
        assert self.redo.keys() <= self.queued.keys() | self.out.keys(), self
        keys = set(self.queued) | set(self.out) | self.done
        assert _xor(keys) == self.known_xor, self
        assert _xor(self.done) == self.done_xor, self


def _xor(keys: Iterable[int]) -> int:
    total = 0
    for key in keys:
        total ^= key
    return total


class Frontier(Protocol):
    """Where an agent keeps its host states, in memory or on disk; what the protocol asks of it.

    Every change of a host's sets goes through it, so that the queue order and the workbench follow. Times are seconds
    of the agent's clock. `delay` (s) is that between the end of a load and the next of the same host.
    """

    delay: float

    def __len__(self) -> int:
        """How many hosts are held."""
        ...

    def states(self) -> list[HostState]:
        """Every host state held, as a list of its own."""
        ...

    def find(self, host: str) -> HostState | None:
        """The state of a host, None when nothing of it is held."""
        ...

    def add(self, host: str, entries: Iterable[Entry]) -> tuple[HostState, list[Entry]]:
        """Merge discovered entries; the state, and those that were news."""
        ...

    def add_done(self, state: HostState, keys: Iterable[int]) -> list[int]:
        """Merge done marks; those that were news."""
        ...

    def note(self, state: HostState, notes: Notes) -> bool:
        """Merge notes of a host held; True when that was news. They are kept as long as the host is."""
        ...

    def drop(self, host: str) -> None:
        """Forget a host."""
        ...

    def pop(self, now: float, allowed: Callable[[HostState], bool]) -> tuple[HostState, Entry] | None:
        """Hand out the next entry of the host that waits longest among those ready and allowed; the host is then
        busy.
        """
        ...

    def free(self, state: HostState, now: float) -> None:
        """The load of a busy host has ended at this time: it may be fetched again after its delay, the frontier's or
        the host's own `pause`.
        """
        ...

    def finish(self, state: HostState, key: int) -> bool:
        """An entry handed out is done; True when that was news."""
        ...

    def put_back(self, state: HostState, key: int, entry: Entry | None = None) -> None:
        """An entry handed out waits again, as `entry` when given."""
        ...

    def look_again(self) -> None:
        """What was not allowed may be allowed now."""
        ...

    def defer(self, state: HostState, now: float) -> None:
        """Another agent may have fetched this host a moment ago: it is not fetched before its delay has passed."""
        ...

    def postpone(self, state: HostState, until: float) -> None:
        """The host is not fetched before that time, nor earlier than it would be anyway."""
        ...

    def hasten(self, state: HostState, now: float) -> None:
        """Nothing forbids the next fetch of the host from now on: no load of it was made, or none will be."""
        ...

    def waits(self, mine: Callable[[HostState], bool]) -> bool:
        """Whether any entry of such a host is queued."""
        ...

    def note_status(self, state: HostState, key: int, status: int) -> None:
        """Keep the HTTP status with which a page was done just now, for people; where it costs little."""
        ...

    def status_of(self, state: HostState, key: int) -> int | None:
        """The HTTP status with which a page was done here; None where that is not known."""
        ...

    def fail(self, failure: Failure) -> None:
        """Keep a failure, while there is room (`MOST_FAILED`). It is kept even when its host is dropped."""
        ...

    def failed(self, host: str | None = None) -> Iterator[Failure]:
        """The failures kept, of one host or of all, in any order."""
        ...

    def forgive(self, failure: Failure) -> None:
        """Forget a failure, if it is kept."""
        ...

    def rests(self, state: HostState) -> bool:
        """Whether a host with waiting entries has none of them in memory: its turn to be read has yet to come."""
        ...
