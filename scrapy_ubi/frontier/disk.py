"""The frontier on disk: millions of URLs in little memory, and a crawl that goes on where it was.

It keeps the contract `protocol.host.Frontier`, as the one in memory does. The life of an entry: *new* (a row among the
changes), *waiting* (a row in the store; near the end of the queue also in its host's head), *out*, *done* (the row of
the queue gives way to one that says so).

How it is driven, beside the protocol's calls:

* `collect` gives a `Flush` of everything since the last one; its `write(store)` may run in a thread; then `written`.
  There is one flush at a time (`unwritten`). One that could not be written is written again as it is. Nothing that
  depends on a change (mail, acknowledgements) may leave before the flush that holds it is written.
* Only active hosts have the head of their queue in memory; the others *rest*, in the order of their turn. `needs` says
  what is to be read for those whose turn has come, `read` reads it (in any thread), `take` takes it in. `pop` hands
  out from heads in memory only: when it finds none there may still be something to read. A host whose head is used up
  goes behind those that rest. `load` does all three at once.

What a crash leaves is the last flush that was written: what was out waits again.

A key that is known is not merged again: that it was found nearer is news only while it waits in a head.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

from scrapy_ubi.protocol.host import MOST_FAILED, NONE, Entry, Failure, HostState, Notes, retries_of

from . import rows
from .diskstate import DiskState, Head, HostChanges, Keys
from .flush import Changes, Extra, Flush
from .seen import Seen
from .store import Store, every
from .sums import SumsLog
from .window import Result, Scan, Window
from .workbench import Workbench


class Find(Protocol):
    """How a host's state is found."""

    def __call__(self, host: str, /) -> HostState | None:
        """The state of a host, None when nothing of it is held."""
        ...


LEAST_GARBAGE = 16  # rows of a queue, all of them garbage: deleted as one range


class DiskFrontier:
    """Host states by host, their sets on disk. `opening.open_frontier` makes one.

    `delay` is the politeness delay in seconds, measured from the end of a load; `offset` is unix time less the agent's
    clock; `most` is how many rows of queues may be in memory; `saved` is what the store says of the frontier.
    """

    def __init__(
        self, store: Store, seen: Seen, saved: Mapping[str, int], *, delay: float, offset: float, most: int
    ) -> None:
        self.delay = delay
        self.store = store
        self.seen = seen
        self.keys = Keys(seen)
        self.workbench: Workbench[DiskState] = Workbench()
        self.window = Window(self.workbench, most, delay)
        self.unwritten: Flush | None = None
        self._offset = offset
        self._states: dict[str, DiskState] = {}
        self.find: Find = self._states.get  # it is asked for every link: the dict itself answers
        self._taken: dict[int, bytes] = {}  # salted key of what is out -> its row
        self._overtaken: set[int] = set()  # salted keys of what is out and was done elsewhere meanwhile
        self._changes = Changes()
        self._named: dict[DiskState, None] = {}  # whose own row the coming flush writes
        self.log = SumsLog()
        self._flush = saved.get("flush", 0)
        self._next = saved.get("next", 1)
        self._failed = saved.get("failed", 0)
        self._gone = [saved.get(name, 0) for name in GONE]

    # -- hosts

    def __len__(self) -> int:
        return len(self._states)

    def states(self) -> list[HostState]:
        """Every host state held."""
        return [*self._states.values()]

    def _new(self, host: str) -> DiskState:
        state = self._states[host] = DiskState(host, self._next, self.keys, self.store)
        self._next += 1
        self._change(state)
        self._named[state] = None
        return state

    def restore(self, hid: int, record: rows.HostRecord) -> DiskState:
        """A host as its row says; for `opening`."""
        state = self._states[record.host] = DiskState(record.host, hid, self.keys, self.store)
        state.known_xor, state.done_xor = record.known_xor, record.done_xor
        state.waiting, state.done_count = record.known - record.done, record.done
        state.garbage, state.arrival = record.garbage, record.arrival
        state.next_at = max(0.0, record.next_at - self._offset) if record.next_at else 0.0
        state.notes = record.notes
        state.complete = not state.waiting
        self.window.settle(state)
        return state

    def forget_gone(self) -> None:
        """The seen table was made anew, without the keys of hosts dropped; the store is told. Raises `StoreFull`."""
        self._gone = [0] * len(GONE)
        batch = self.store.batch()
        batch.put(rows.FRONTIER, rows.frontier_value(self._saved()))
        self.store.write(batch)

    def _change(self, state: DiskState) -> HostChanges:
        """The host's changes of the coming flush."""
        change = state.fresh
        if change is None:
            change = state.fresh = self._changes.hosts[state] = {}
        return change

    def note(self, state: HostState, notes: Notes) -> bool:
        """Merge notes of a host; True when that was news, and then the next flush writes them."""
        own = self._own(state)
        news = own.merge_notes(notes)
        if news:
            self._change(own)
            self._named[own] = None
        return news

    def drop(self, host: str) -> None:
        """Forget a host."""
        state = self._states.pop(host)
        self.window.remove(state)
        for key in state.out:
            del self._taken[key ^ state.salt]
            self._overtaken.discard(key ^ state.salt)
        self._changes.hosts.pop(state, None)
        self._named.pop(state, None)
        state.logged = -1
        self._changes.dropped.append(state.hid)
        for index, (count, xor) in enumerate(state.salted()):
            self._gone[2 * index] += count
            self._gone[2 * index + 1] ^= xor

    # -- what is known and done

    def add(self, host: str, entries: Iterable[Entry]) -> tuple[HostState, list[Entry]]:
        """Merge discovered entries; the state, and those that were news."""
        state = self._states.get(host)
        if state is None:
            state = self._new(host)
        keys, salt, news = self.keys, state.salt, []
        fresh, unknown = keys.fresh, keys.unknown
        for entry in entries:
            key = entry[0]
            salted = key ^ salt
            known = fresh.get(salted)
            if known is None and salted != unknown:
                known = keys.status(salted)
            if not known:
                fresh[salted] = 1
                state.known_xor ^= key
                state.waiting += 1
                self._queue(state, entry)
                news.append(entry)
            elif known == 1 and retries_of(entry.request):
                if self._retry(state, entry):
                    news.append(entry)
            elif known == 1 and (place := state.better(key, entry.depth, entry.priority)) is not None:
                self._delete(state, self.window.take_out(state, place))
                self._queue(state, entry)
                news.append(entry)
        return state, news

    def _retry(self, state: DiskState, entry: Entry) -> bool:
        """An entry that waits was retried elsewhere: True when that was news. It stays where it stands; one that is not
        in memory stays as it is, and has its retries once more.
        """
        place = state.find(entry.key)
        if place is None:
            return False
        queued = state.head[place]
        old = rows.read_queue(state.host, queued)
        if retries_of(old.request) >= retries_of(entry.request):
            return False
        entry = entry._replace(depth=old.depth, priority=old.priority)
        queued = rows.queued(state.hid, state.host, entry, rows.arrival_of(queued))
        state.head[place] = self._change(state)[queued[: rows.ROW]] = queued
        return True

    def _queue(self, state: DiskState, entry: Entry) -> None:
        """An entry waits, behind those of its kind."""
        queued = rows.queued(state.hid, state.host, entry, state.arrival)
        state.arrival += 1
        changes = state.fresh
        if changes is None:
            changes = state.fresh = self._changes.hosts[state] = {}
        changes[queued[: rows.ROW]] = queued
        self.window.insert(state, queued, entry)

    def _delete(self, state: DiskState, row: bytes) -> None:
        """A row of the queue is not wanted any more. One that no flush holds is forgotten."""
        changes = state.fresh
        if changes is None:
            changes = self._change(state)
        if changes.get(row) is None:
            changes[row] = None
        else:
            del changes[row]

    def _throw_away(self, state: DiskState, row: bytes) -> None:
        """A row is garbage."""
        self._delete(state, row)
        state.garbage -= 1

    def add_done(self, state: HostState, keys: Iterable[int]) -> list[int]:
        """Merge done marks; those that were news."""
        own = self._own(state)
        news = [key for key in keys if self._mark(own, key)]
        if news and own.garbage >= LEAST_GARBAGE:
            self.window.tidy(own)
        return news

    def _mark(self, state: DiskState, key: int) -> bool:
        """A key is done; True when that was news. Its row stays: as garbage, or as that of what is out."""
        salted = key ^ state.salt
        known = self.keys.status(salted)
        if known == 2:
            return False
        if not known:
            state.known_xor ^= key
        elif key in state.out:
            self._overtaken.add(salted)
        else:
            state.waiting -= 1
            state.garbage += 1
        self._done(state, key, salted)
        return True

    def _done(self, state: DiskState, key: int, salted: int) -> None:
        self.keys.fresh[salted] = 2
        state.done_xor ^= key
        state.done_count += 1
        if state.redo:
            state.redo.pop(key, None)
        self._change(state)[rows.done_row(state.hid, key)] = b""

    def finish(self, state: HostState, key: int) -> bool:
        """An entry handed out is done; True when that was news."""
        assert isinstance(state, DiskState)
        own = state
        if own.out.pop(key, None) is None:
            return self._mark(own, key)
        own.out = own.out or NONE
        news = self._returned(own, key)
        if news:
            self._done(own, key, key ^ own.salt)
        return news

    def _returned(self, state: DiskState, key: int) -> bool:
        """What was out is not any more, and its row not wanted; False when it was done meanwhile."""
        salted = key ^ state.salt
        self._delete(state, self._taken.pop(salted))
        if salted not in self._overtaken:
            return True
        self._overtaken.discard(salted)
        return False

    def put_back(self, state: HostState, key: int, entry: Entry | None = None) -> None:
        """An entry handed out waits again, as `entry` when given."""
        own = self._own(state)
        old = own.out.pop(key)
        own.out = own.out or NONE
        if self._returned(own, key):
            own.waiting += 1
            self._queue(own, entry or old)

    def _own(self, state: HostState) -> DiskState:
        assert isinstance(state, DiskState)
        return state

    # -- fetching

    def pop(self, now: float, allowed: Callable[[HostState], bool]) -> tuple[HostState, Entry] | None:
        """Hand out the next entry of the first host that is ready, allowed and in memory; the host is then busy."""
        window, read = self.window, rows.read_queue
        while (state := window.next(now, allowed)) is not None:
            while state.head:
                queued = window.first(state)
                entry = read(state.host, queued)
                key = entry[0]
                if state.garbage and self.keys.status(key ^ state.salt) == 2:
                    self._throw_away(state, queued[: rows.ROW])
                    continue
                state.waiting -= 1
                if state.out:
                    state.out[key] = entry
                else:
                    state.out = {key: entry}
                self._taken[key ^ state.salt] = queued[: rows.ROW]
                return state, entry
            window.release(state, now)
        return None

    def free(self, state: HostState, now: float) -> None:
        """The load of a busy host has ended at this time."""
        assert isinstance(state, DiskState)
        if self.workbench.is_busy(state):
            state.next_at = max(state.next_at, now + max(self.delay, state.pause))
            if state.fresh is None:
                self._change(state)
            self.window.release(state, now)

    def look_again(self) -> None:
        """Parked hosts wait again."""
        self.window.look_again()

    def defer(self, state: HostState, now: float) -> None:
        """The host is not fetched before its delay has passed from now on."""
        self.postpone(state, now + max(self.delay, state.pause))

    def postpone(self, state: HostState, until: float) -> None:
        """The host is not fetched before that time: it is looked at again when it is handed out, or read."""
        own = self._own(state)
        own.next_at = max(own.next_at, until)
        self._change(own)

    def hasten(self, state: HostState, now: float) -> None:
        """Nothing forbids the next fetch from now on."""
        own = self._own(state)
        own.next_at = min(own.next_at, now)
        self._change(own)
        self.window.move(own)

    def waits(self, mine: Callable[[HostState], bool]) -> bool:
        """Whether any entry of such a host is queued."""
        return any(state.waiting and mine(state) for state in self.window.unserved())

    def rests(self, state: HostState) -> bool:
        """Whether a host with waiting entries has none of them in memory."""
        own = self._own(state)
        return own.waiting > 0 and not own.head

    def next_ready(self) -> float | None:
        """The time at which the first host with something in memory is ready; None when none is."""
        return self.workbench.next_ready()

    def next_read(self) -> float | None:
        """The time from which on `needs` has something; None when it has nothing whatever the time."""
        return self.window.next_read()

    # -- reading

    def needs(self, now: float, allowed: Callable[[HostState], bool]) -> list[Scan]:
        """What is to be read now: each is read once, and must be taken."""
        return self.window.needs(now, allowed)

    def read(self, scans: Iterable[Scan]) -> list[Result]:
        """Read these, in any thread. Raises `StoreDamaged`."""
        return [(scan, rows.joined(self.store.scan(scan.start, scan.end, scan.most))) for scan in scans]

    def take(self, results: Iterable[Result]) -> None:
        """Take in what was read: hosts are ready, or rid of garbage. Raises `StoreDamaged`."""
        for scan, read in results:
            if self._states.get(scan.state.host) is not scan.state:
                continue  # dropped meanwhile
            if scan.tidy:
                self._tidied(scan, read)
            else:
                self.window.loaded(scan, read)

    def _tidied(self, scan: Scan, read: Head) -> None:
        """Delete the garbage among these rows of a queue."""
        state = scan.state
        if not self.window.tidied(scan, read):
            return
        found = set()
        for queued in read:
            row, key = queued[: rows.ROW], rows.queued_key(queued)
            done = self.keys.status(key ^ state.salt) == 2
            if done and key not in state.out and not state.changed(row):
                self._throw_away(state, row)
                found.add(row)
        self.window.forget(state, found)

    def load(self, now: float, allowed: Callable[[HostState], bool]) -> bool:
        """Read what is needed, here and now; whether there was anything."""
        scans = self.needs(now, allowed)
        self.take(self.read(scans))
        return bool(scans)

    # -- flushes

    @property
    def changed(self) -> bool:
        """Whether there is anything to flush."""
        return bool(self._changes or self.keys.fresh)

    def collect(self, extra: Iterable[Extra] = ()) -> Flush:
        """Everything since the last flush, with rows of the agent's own (key, value; None deletes)."""
        assert self.unwritten is None, "one flush at a time"
        self._flush += 1
        changes, self._changes = self._changes, Changes()
        clear, logged = [], []
        for state, change in changes.hosts.items():
            idle = not state.waiting and not state.out and not self.window.is_read(state)
            if idle and state.garbage >= LEAST_GARBAGE:
                clear.append(state.hid)
                for row in [row for row in change if rows.is_queued(row)]:
                    del change[row]
                state.garbage = 0
                self.window.clear(state)
            if state not in self._named or state.logged >= 0:
                logged.append(state)
            state.writing, state.fresh = change, None
        records: dict[bytes, bytes | None] = {rows.HOST + s.hid: s.record(self._offset) for s in self._named}
        self._named = {}
        records.update(self.log.add(logged, len(self._states), self._offset))
        records[rows.FRONTIER] = rows.frontier_value(self._saved())
        self.unwritten = Flush(self._flush, self.keys.fresh, changes, records, clear, extra)
        self.keys.writing, self.keys.fresh, self.keys.unknown = self.keys.fresh, {}, -1
        return self.unwritten

    def _saved(self) -> dict[str, int]:
        fixed = {"flush": self._flush, "next": self._next, "failed": self._failed}
        return {**fixed, **dict(zip(GONE, self._gone, strict=True))}

    def written(self, flush: Flush) -> None:
        """This flush is durable. Raises `StoreFull` when the seen table cannot grow: call it again."""
        assert flush is self.unwritten
        self.seen.apply(flush.keys)
        self.seen.flush = flush.number
        self.window.written(flush.hosts)
        for state in flush.hosts:
            state.writing = None
        self.keys.writing = {}
        self.unwritten = None

    def flush(self, extra: Iterable[Extra] = ()) -> None:
        """Collect and write, here and now. Raises what `Store.write` does; then the flush is `unwritten`."""
        if self.unwritten is not None:
            self.unwritten.write(self.store)
            self.written(self.unwritten)
        self.collect(extra).write(self.store)
        assert self.unwritten is not None
        self.written(self.unwritten)

    def close(self) -> None:
        """Let go of the files. What was not flushed is lost."""
        self.seen.close()
        self.store.close()

    def note_status(self, state: HostState, key: int, status: int) -> None:
        """Keep the status of a page that was done since the last flush."""
        own = self._own(state)
        row = rows.done_row(own.hid, key)
        if own.fresh is not None and row in own.fresh:
            own.fresh[row] = rows.done_value(status)

    def status_of(self, state: HostState, key: int) -> int | None:
        """The status of a page; one row may be read. Raises `StoreDamaged`."""
        own = self._own(state)
        row = rows.done_row(own.hid, key)
        for changes in (own.fresh, own.writing):
            if changes is not None and (value := changes.get(row)) is not None:
                return rows.read_status(row, value)
        found = self.store.get(row)
        return rows.read_status(row, found) if found is not None else None

    # -- failures

    def fail(self, failure: Failure) -> None:
        """Keep a failure, while there is room."""
        row = rows.failed_key(failure.host, failure.entry.key)
        new = self._failure(row) is None
        if not new or self._failed < MOST_FAILED:
            self._failed += new
            self._changes.failed[row] = rows.failed_value(failure)

    def _failure(self, row: bytes) -> bytes | None:
        for changes in self._failures():
            if row in changes:
                return changes[row]
        return self.store.get(row)

    def _failures(self) -> list[dict[bytes, bytes | None]]:
        """The failures not in the store yet: the latest first."""
        return [self._changes.failed, self.unwritten.failed if self.unwritten is not None else {}]

    def failed(self, host: str | None = None) -> Iterator[Failure]:
        """The failures kept, of one host or of all."""
        start = rows.FAILED if host is None else rows.failed_prefix(host)
        fresh, writing = self._failures()
        changed = {row: value for row, value in {**writing, **fresh}.items() if row.startswith(start)}
        stored = (pair for pair in every(self.store, start, start + b"\xff" * 17) if pair[0] not in changed)
        for source in ([(row, value) for row, value in changed.items() if value is not None], stored):
            for row, value in source:
                failure = rows.read_failed(row, value)
                if host is None or failure.host == host:
                    yield failure

    def forgive(self, failure: Failure) -> None:
        """Forget a failure."""
        row = rows.failed_key(failure.host, failure.entry.key)
        if self._failure(row) is not None:
            self._failed -= 1
            self._changes.failed[row] = None

    def _check(self) -> None:
        """Assert every invariant of the frontier, by reading all of it."""
        self.window._check(self._states.values())
        taken: set[int] = set()
        for state in self._states.values():
            state._check()
            taken |= {key ^ state.salt for key in state.out}
            assert state.fresh is self._changes.hosts.get(state), state
        assert self._named.keys() <= self._changes.hosts.keys()
        self.log._check(self._states.values())
        assert self._taken.keys() == taken >= self._overtaken


GONE = ("gone_known", "gone_known_xor", "gone_done", "gone_done_xor")  # of hosts dropped, whose keys are in the table
