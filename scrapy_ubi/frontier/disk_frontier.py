"""The frontier on disk: millions of URLs in little memory, and a crawl that goes on where it was.

It keeps the contract `protocol.frontier_contract.Frontier`, as the one in memory does. It is made of the hosts' states
(`disk_state`) and their entries (`entries`), the part of their queues that is in memory (`window`), what is not written
yet (`flushes`), and the failures kept (`Failures`).

How it is driven, beside the protocol's calls:

* `collect` gives a `Flush` of everything since the last one; its `write(store)` may run in a thread; then `written`.
  There is one flush at a time. Nothing that depends on a change (mail, acknowledgements) may leave before the flush
  that holds it is written.
* Only active hosts have the head of their queue in memory; the others *rest*, in the order of their turn. `needs` says
  what is to be read for those whose turn has come, `read` reads it (in any thread), `take` takes it in. `pop` hands
  out from heads in memory only: when it finds none there may still be something to read. `load` does all three at once.

What a crash leaves is the last flush that was written: what was out waits again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter

from scrapy_ubi.frontier import queue_rows, rows
from scrapy_ubi.frontier.disk_state import DiskState, KeyStates
from scrapy_ubi.frontier.disk_visits import DiskVisits
from scrapy_ubi.frontier.due_hosts import Mine
from scrapy_ubi.frontier.entries import Entries
from scrapy_ubi.frontier.flush import Extra, Flush
from scrapy_ubi.frontier.flushes import LEAST_GARBAGE, Flushes
from scrapy_ubi.frontier.host_loads import HostLoads
from scrapy_ubi.frontier.host_totals import SumsLog
from scrapy_ubi.frontier.rerank import Rerank
from scrapy_ubi.frontier.scan import Priorities, Result, Scan, read_all
from scrapy_ubi.frontier.seen import Seen
from scrapy_ubi.frontier.store import Store, every
from scrapy_ubi.frontier.visit_pace import NoPace
from scrapy_ubi.frontier.window import Window
from scrapy_ubi.frontier.workbench import Workbench
from scrapy_ubi.protocol.frontier_contract import MOST_FAILED
from scrapy_ubi.protocol.host import NONE, Entry, Failure, HostState, Notes


class Failures:
    """The failures that are kept, by host: those in the store, and those that `flushes` has for it."""

    def __init__(self, store: Store, flushes: Flushes) -> None:
        self._store = store
        self._flushes = flushes

    def fail(self, failure: Failure) -> None:
        """Keep a failure, while there is room."""
        row = rows.failed_key(failure.host, failure.entry.key)
        new = self._kept(row) is None
        if not new or self._flushes.failed < MOST_FAILED:
            self._flushes.failed += new
            self._flushes.changes.failed[row] = rows.failed_value(failure)

    def forgive(self, failure: Failure) -> None:
        """Forget a failure."""
        row = rows.failed_key(failure.host, failure.entry.key)
        if self._kept(row) is not None:
            self._flushes.failed -= 1
            self._flushes.changes.failed[row] = None

    def failures(self, host: str | None = None) -> Iterator[Failure]:
        """The failures kept, of one host or of all."""
        start = rows.FAILED if host is None else rows.failed_prefix(host)
        fresh, writing = self._unwritten()
        changed = {row: value for row, value in {**writing, **fresh}.items() if row.startswith(start)}
        stored = (pair for pair in every(self._store, start, start + b"\xff" * 17) if pair[0] not in changed)
        for source in ([(row, value) for row, value in changed.items() if value is not None], stored):
            for row, value in source:
                failure = rows.read_failed(row, value)
                if host is None or failure.host == host:
                    yield failure

    def _kept(self, row: bytes) -> bytes | None:
        for changes in self._unwritten():
            if row in changes:
                return changes[row]
        return self._store.get(row)

    def _unwritten(self) -> list[dict[bytes, bytes | None]]:
        """The failures not in the store yet: the latest first."""
        flush = self._flushes.unwritten
        return [self._flushes.changes.failed, flush.failed if flush is not None else {}]


class DiskFrontier:
    """Host states by host, their sets on disk. `restore.open_frontier` makes one.

    `delay` is the politeness delay in seconds, measured from the end of a load; `offset` is unix time less the agent's
    clock; `most` is how many rows of queues may be in memory; `saved` is what the store says of the frontier.
    """

    def __init__(
        self, store: Store, seen: Seen, saved: Mapping[str, int], *, delay: float, offset: float, most: int
    ) -> None:
        self.delay = delay
        self.on_new: Callable[[HostState], None] = lambda state: None
        self.loads: HostLoads | None = None
        self.pace = NoPace()
        self.store = store
        self.seen = seen
        self.keys = KeyStates(seen)
        self.workbench: Workbench[DiskState] = Workbench(attrgetter("was_fetched"))
        self.window = Window(self.workbench, most, delay)
        self._flushes = Flushes(self.keys, self.window, offset, saved)
        self._entries = Entries(store, self.keys, self.window, self._flushes)
        self._rerank = Rerank(self.window, self._entries, self._flushes)
        self.visits = visits = DiskVisits(store, self.window, self._flushes)
        self._failures = Failures(store, self._flushes)
        # Asked for every page, or link: the part answers.
        self.keep_row = visits.keep
        self.visited = visits.visited
        self.not_visited = visits.not_visited
        self.note_status = self._entries.note_status
        self.looks_on = False  # the last `pop` or `needs` has not looked at all hosts whose time has come: ask again
        self.lost = 0  # of the last flushes the store had lost so many, when it was opened (`restore`)
        self._offset = offset
        self._states: dict[str, DiskState] = {}
        self.find: Callable[[str], HostState | None] = self._states.get  # for every link: the dict answers

    # -- hosts

    def __len__(self) -> int:
        return len(self._states)

    def states(self) -> list[HostState]:
        """Every host state held."""
        return [*self._states.values()]

    def _new(self, host: str) -> DiskState:
        state = self._states[host] = DiskState(host, self._flushes.next, self.keys, self.store)
        self._flushes.add(state)
        self.on_new(state)
        return state

    def restore(self, hid: int, record: rows.HostRecord) -> DiskState:
        """A host as its row says; for `restore`."""
        state = self._states[record.host] = DiskState(record.host, hid, self.keys, self.store)
        state.known_xor, state.done_xor = record.known_xor, record.done_xor
        state.waiting, state.done_count = record.known - record.done, record.done
        state.garbage, state.arrival = record.garbage, record.arrival
        state.next_at = max(0.0, record.next_at - self._offset) if record.next_at else 0.0
        state.notes = record.notes
        state.complete = not state.waiting
        self.window.settle(state)
        self._clean(state)
        return state

    def forget_gone(self) -> None:
        """The seen table was made again, without the keys of hosts dropped; the store is told. Raises `StoreFull`."""
        batch = self.store.batch()
        batch.put(rows.FRONTIER, self._flushes.forget_gone())
        self.store.write(batch)

    def note(self, state: HostState, notes: Notes) -> bool:
        """Merge notes of a host; True when that was news, and then the next flush writes them."""
        own = self._own(state)
        news = own.merge_notes(notes)
        if news:
            self._flushes.name(own)
        return news

    def drop(self, host: str) -> None:
        """Forget a host."""
        state = self._states.pop(host)
        self.window.remove(state)
        self._entries.drop(state)
        self._rerank.forget(state)
        self.visits.forget(state)
        self._flushes.drop(state)

    # -- what is known and done

    def add(self, host: str, entries: Iterable[Entry]) -> tuple[HostState, list[Entry]]:
        """Merge discovered entries; the state, and those that were news."""
        state = self._states.get(host)
        if state is None:
            state = self._new(host)
        keys, salt = self.keys, state.salt
        fresh, unknown, writing, status = keys.fresh, keys.unknown, keys.writing, keys.seen.status
        news: list[Entry] = []
        first = 0  # of the news: those before it have their rows
        for entry in entries:
            key = entry[0]
            salted = key ^ salt
            known = fresh.get(salted)  # as `KeyStates.status`
            if known is None and salted not in unknown:
                known = writing.get(salted)
                if known is None:
                    known = status(salted)
            if not known:
                fresh[salted] = 1
                state.known_xor ^= key
                news.append(entry)
            elif known == 1:
                self._entries.put_all(state, news[first:])
                if self._entries.found_again(state, entry):
                    news.append(entry)
                first = len(news)
        if len(news) == first + 1:
            self._entries.put(state, news[first])
        else:
            self._entries.put_all(state, news[first:] if first else news)
        return state, news

    def add_done(self, state: HostState, keys: Iterable[int], by: str = "") -> list[int]:
        """Merge done marks, from the agent `by`; those that were news."""
        own, mark = self._own(state), self._entries.mark
        news = [key for key in keys if mark(own, key, by)]
        if news and own.garbage >= LEAST_GARBAGE:
            self.window.tidy(own)
        return news

    def finish(self, state: HostState, key: int) -> bool:
        """An entry handed out is done; True when that was news."""
        own, entries = self._own(state), self._entries
        if own.out.pop(key, None) is None:
            return entries.mark(own, key)
        own.out = own.out or NONE
        if news := entries.returned(own, key):
            entries.done(own, key, key ^ own.salt)
        else:
            self.visits.page_ended(own, key)
        return news

    def put_back(self, state: HostState, key: int, entry: Entry | None = None) -> None:
        """An entry handed out waits again, as `entry` when given."""
        own = self._own(state)
        old = own.out.pop(key)
        own.out = own.out or NONE
        if self._entries.returned(own, key):
            self._entries.put(own, entry or old)
        else:
            self._entries.overtaken(own, old)
            self.visits.page_ended(own, key)

    def _own(self, state: HostState) -> DiskState:
        assert isinstance(state, DiskState)
        return state

    # -- fetching

    def pop(self, now: float, allowed: Callable[[HostState], bool]) -> tuple[HostState, Entry] | None:
        """Hand out the next entry of the first host that is ready, allowed and in memory; the host is then busy."""
        window, read, loads = self.window, queue_rows.read_queue, self.loads
        while (state := window.next(now, allowed)) is not None:
            if loads is not None and (at := loads.next_at(state.host)) > now:
                window.release(state, now, at)
                continue
            held = 0.0
            if state.visits.ready:
                if held := self.pace.held(state, bool(state.head), now):
                    if state.waiting and not state.head:  # what waits of it is read meanwhile
                        self.visits.put_aside(state, held - now)
                elif (entry := self.visits.next(state, now, loads, self.delay)) is not None:
                    return state, entry
            while state.head:
                queued = window.first(state)
                entry = read(state.host, queued)
                key = entry[0]
                if state.garbage and self.keys.status(key ^ state.salt) == 2:
                    self._entries.throw_away(state, queued)
                    continue
                state.waiting -= 1
                state.out = state.out or {}
                state.out[key] = entry
                self._entries.taken[key ^ state.salt] = queued[: queue_rows.ROW]
                if loads is not None and loads.handed_out(state.host, at := now + max(self.delay, state.pause)):
                    window.release(state, now, at)
                return state, entry
            window.release(state, now, held if state.visits.ready else 0.0)
        self.looks_on = window.stopped
        return None

    def free(self, state: HostState, now: float) -> None:
        """The load of a busy host has ended at this time."""
        assert isinstance(state, DiskState)
        if self.loads is not None and (more := self.loads.freed(state.host)) is not None:
            if more and self.workbench.is_busy(state):
                self.window.release(state, now, now)
        elif self.workbench.is_busy(state):
            state.next_at = max(state.next_at, now + max(self.delay, state.pause))
            if state.fresh is None:
                self._flushes.of(state)
            self.window.release(state, now)

    def defer(self, state: HostState, now: float) -> None:
        """The host is not fetched before its delay has passed from now on."""
        self.postpone(state, now + max(self.delay, state.pause))

    def postpone(self, state: HostState, until: float) -> None:
        """The host is not fetched before that time: it is looked at again when it is handed out, or read."""
        own = self._own(state)
        own.next_at = max(own.next_at, until)
        self._flushes.of(own)

    def hasten(self, state: HostState, now: float) -> None:
        """Nothing forbids the next fetch from now on."""
        own = self._own(state)
        own.next_at = min(own.next_at, now)
        self._flushes.of(own)
        self.window.move(own)
        self.visits.hasten(own)

    def waits(self, mine: Callable[[HostState], bool]) -> bool:
        """Whether any entry of such a host is queued."""
        return any(state.waiting and mine(state) for state in self.window.unserved(mine))

    def rests(self, state: HostState) -> bool:
        """Whether a host with waiting entries has none of them in memory."""
        own = self._own(state)
        return own.waiting > 0 and not own.head

    def next_ready(self) -> float | None:
        """The time at which the first host with something in memory is ready; None when none is."""
        return self.workbench.next_ready()

    def next_read(self) -> float | None:
        """The time from which on `needs` has something; None when it has nothing whatever the time."""
        return 0.0 if self._rerank.wants or self.visits.wants else self.window.next_read()

    def look_again(self) -> None:
        """What was not allowed may be allowed now."""
        self.visits.look_again()

    def look_at(self, state: HostState) -> None:
        """If this host may not be fetched when its time comes, it is asked again whether it may."""
        self._rerank.look_at(state)

    def reorder(self, state: HostState, priorities: Priorities, done: Callable[[], None]) -> None:
        """Give what waits of this host first new priorities, when it is read; then `done` is called."""
        self._rerank.ask(state, priorities, done)

    # -- pages that are visited again

    def wake(self, wall: int, mine: Mine) -> None:
        """It is that time (unix s): pages of such hosts that are due by then have their turn."""
        self.visits.wake(wall, mine)

    def awaits(self, mine: Mine) -> bool:
        """Whether a page of such a host is due to be visited again, now or later."""
        return self.visits.hosts.awaits(mine)

    def due_before(self, wall: int, mine: Mine) -> int:
        """How many hosts of these have a page that is due before that time (unix s); linear in the hosts."""
        return self.visits.hosts.due_before(wall, mine)

    # -- what became of pages

    def status_of(self, state: HostState, key: int) -> int | None:
        """The HTTP status with which a page was done here; one row may be read. Raises `StoreDamaged`."""
        return self._entries.status_of(state, key)

    def fail(self, failure: Failure) -> None:
        """Keep a failure, while there is room."""
        self._failures.fail(failure)

    def failures(self, host: str | None = None) -> Iterator[Failure]:
        """The failures kept, of one host or of all."""
        return self._failures.failures(host)

    def forgive(self, failure: Failure) -> None:
        """Forget a failure."""
        self._failures.forgive(failure)

    def know_outputs(self) -> None:
        """From now on keep at which agent the outputs of a page are."""
        self._entries.elsewhere.start()

    def keep_elsewhere(self, host: str, entry: Entry, agent: str) -> None:
        """A page is done here, and its outputs are at that agent."""
        self._entries.elsewhere.keep(host, entry, agent)

    def pages_kept_by(self, agent: str) -> Iterator[Failure]:
        """The pages whose outputs are at that agent, as far as is known here."""
        return self._entries.elsewhere.pages(agent, self._states)

    def forget_elsewhere(self, agent: str, page: Failure) -> None:
        """Such a page is not to be given again."""
        self._entries.elsewhere.forget_failure(agent, page, self._states.get(page.host))

    # -- reading

    def read(self, scans: Iterable[Scan]) -> list[Result]:
        """Read these, in any thread. Raises `StoreDamaged`."""
        return read_all(self.store, scans)

    def needs(self, now: float, allowed: Callable[[HostState], bool]) -> list[Scan]:
        """What is to be read now: each is read once, and must be taken."""
        scans = self.window.needs(now, allowed) + (self.visits.needs(now) if self.visits.wants else [])
        self.looks_on = self.window.resting.stopped
        return scans + self._rerank.needs() if self._rerank.wants else scans

    def take(self, results: Iterable[Result]) -> None:
        """Take in what was read: hosts are ready, or rid of garbage. Raises `StoreDamaged`."""
        for scan, read in results:
            if self._states.get(scan.state.host) is not scan.state:
                continue  # dropped meanwhile
            if scan.due:
                self.visits.take(scan, read)
            elif scan.ranks:
                self._rerank.read(scan, read)
            elif scan.tidy:
                self._entries.tidied(scan, read)
            else:
                self.window.loaded(scan, read)
                self._clean(scan.state)

    def _clean(self, state: DiskState) -> None:
        """The coming flush looks at a queue that is all garbage, though nothing of its host may change again."""
        if not state.waiting and state.garbage >= LEAST_GARBAGE:
            self._flushes.of(state)

    def load(self, now: float, allowed: Callable[[HostState], bool]) -> bool:
        """Read what is needed, here and now. Return whether there was anything."""
        scans = self.needs(now, allowed)
        self.take(self.read(scans))
        return bool(scans)

    # -- flushes

    @property
    def changed(self) -> bool:
        """Whether there is anything to flush."""
        return self._flushes.changed

    @property
    def unwritten(self) -> Flush | None:
        """The flush that was collected and is not `written`."""
        return self._flushes.unwritten

    @property
    def log(self) -> SumsLog:
        """The sums of hosts' keys, as they were logged."""
        return self._flushes.log

    def written(self, flush: Flush) -> None:
        """This flush is durable. Raises `StoreFull` when the seen table cannot grow: call it again."""
        self._flushes.written(flush)

    def collect(self, extra: Iterable[Extra] = ()) -> Flush:
        """Everything since the last flush, with rows of the agent's own (key, value; None deletes)."""
        return self._flushes.collect(len(self._states), extra)

    def flush(self, extra: Iterable[Extra] = ()) -> None:
        """Collect and write, here and now. Raises what `Store.write` does; then the flush is `unwritten`."""
        if (left := self.unwritten) is not None:
            left.write(self.store)
            self.written(left)
        flush = self.collect(extra)
        flush.write(self.store)
        self.written(flush)

    def close(self) -> None:
        """Let go of the files. What was not flushed is lost."""
        self.seen.close()
        self.store.close()

    def check_invariants(self) -> None:
        """Assert every invariant of the frontier, by reading all of it."""
        self.window.check_invariants(self._states.values())
        taken: set[int] = set()
        for state in self._states.values():
            state.check_invariants()
            taken |= {key ^ state.salt for key in state.out}
        self._flushes.check_invariants(self._states.values())
        self._entries.check_invariants(taken)
        self.visits.check_invariants(self._states.values())
