"""The memory window: which hosts have the head of their queue in memory, and in which order the others come in.

A host with waiting entries is in exactly one of two places: on the *workbench* (it has a head in memory, or is busy),
or among the *resting* (its waiting entries are in the store or in the changes only), which is a workbench of its own:
waiting there means that its turn to be read has not come, busy there that it is being read.

* At most about `most` rows of queues are in memory, where one with a large request counts as several
  (`queue_rows.weight`). While less than half of that is used, heads grow up to `GROWN` rows and stay complete: a small
  crawl reads nothing.
  Beyond, a head has `HEAD` rows, and hosts that may not be fetched here, or not for long, give theirs away; those that
  keep one from before get none. So they have half of it at most.
* A host whose head is used up goes behind those that rest, so all have their turn.
* A read is asked for here, made in another thread, and taken in later; flushes are written meanwhile, and it may have
  seen the rows of before or of after one. So what is written from the asking on is kept beside it (`_late` for heads,
  `_tidying` for garbage), and is laid over what was read, with the changes that no flush has written yet. Rows that
  were thrown away with all of their queue (`clear`) are known by their arrival, until no read can bring them any more
  (`_cleared`). A host that is forgotten takes its reads along. The same holds for a queue that is read to be put in
  another order (`ranking`, `rerank`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter

from scrapy_ubi.frontier import queue_rows, rows
from scrapy_ubi.frontier.disk_state import NO_HEAD, DiskState, Head, HostChanges
from scrapy_ubi.frontier.queue_rows import HEAVY
from scrapy_ubi.frontier.scan import Scan, rows_there
from scrapy_ubi.frontier.workbench import LOOKED, Workbench
from scrapy_ubi.protocol.host import Entry, HostState

HEAD = 64  # rows of a head when memory is scarce: one read serves so many fetches
GROWN = 256  # and when it is not
AHEAD = 30.0  # s before its time that a host is read, so that it is there in time
MOST_SCANS = 256  # hosts read at once: a few milliseconds in a thread
TIDY = 1024  # rows looked at for garbage at once
LEAST_TIDY = 64  # rows of garbage before a queue is looked through


class Window:
    """The heads in memory. `workbench` holds the hosts that have one; `delay` is the politeness delay (s)."""

    def __init__(self, workbench: Workbench[DiskState], most: int, delay: float) -> None:
        self.workbench = workbench
        self.resting: Workbench[DiskState] = Workbench(attrgetter("was_fetched"))
        self.most = max(most, 2 * HEAD)
        self.head = HEAD
        self.grown = GROWN
        self.held = 0  # rows in heads, by weight
        self._coming = 0  # rows that are being read
        self._ahead = max(AHEAD, 2 * delay)
        self._now = 0.0
        self.stopped = False  # the last `next`
        self._cleared: dict[DiskState, int] = {}  # whose rows before this arrival go, or went while it was read
        self._late: dict[DiskState, HostChanges] = {}  # being read: changes written since that was asked
        self._untidy: dict[DiskState, bytes] = {}  # -> the row from which on its queue is to be looked through
        self._tidying: dict[DiskState, HostChanges] = {}  # of these, being read: changes written since, too
        self.ranking: dict[DiskState, HostChanges] = {}  # whose order is to be another one, being read: likewise

    @property
    def _roomy(self) -> bool:
        return self.held + self._coming < self.most // 2

    def settle(self, state: DiskState) -> None:
        """If something of the host waits, or is due, and it is nowhere, it has its place from now on."""
        if state.head or state.visits.ready:  # with both it is read when what is due is used up
            if (state.waiting or state.visits.ready) and state not in self.resting:
                self.workbench.activate(state, state.next_at)
        elif state.waiting and state not in self.workbench:
            self.resting.activate(state, max(state.next_at, self._now))

    def remove(self, state: DiskState) -> None:
        """Forget a host."""
        self.clear(state)
        del self._cleared[state]
        self.workbench.remove(state)
        self.resting.remove(state)
        self.ranking.pop(state, None)
        if self._late.pop(state, None) is not None:
            self._coming -= self.head

    def clear(self, state: DiskState) -> None:
        """Nothing is left in the host's queue: its rows go with the coming flush."""
        self._cleared[state] = state.arrival
        if state.head:
            self.held -= queue_rows.weight(state.head)
        state.fill(NO_HEAD)
        state.complete = True
        if state not in self._late:
            self.resting.remove(state)
            self.settle(state)
        self._untidy.pop(state, None)
        self._tidying.pop(state, None)

    # -- heads

    def insert(self, state: DiskState, queued: bytes, entry: Entry) -> None:
        """An entry was put into the host's queue: into its head, where that is its place."""
        if queued < state.low:
            state.low = queued[: queue_rows.ROW]
        head, weight = state.head, 1 + (len(queued) >> HEAVY)
        if state.complete and self._has_room(state, 1, weight) and state not in self.resting:
            state.insert(queued, entry)  # (one that rests, though nothing waited, is read)
            self.held += weight
        else:
            if head and queued < head[-1]:
                state.insert(queued, entry)
                more = (len(queued) >> HEAVY) - (len(head.pop()) >> HEAVY)
                while more > 0 and len(head) > 1:  # no more than it had
                    more -= 1 + (len(head.pop()) >> HEAVY)
                self.held += more
                if more > 0 and not self._roomy and not self._soon(state):
                    self._give_up(state)
            state.complete = False
        if state.waiting < 2:  # else it has its place already
            self.settle(state)

    def append(self, state: DiskState, queued: Head, entry: Entry) -> bool:
        """Entries that wait from now on were put into the host's queue: into its head, where all are like this one, and
        there is room. Return whether they are there.
        """
        count = len(queued)
        weight = queue_rows.weight(queued) if count > 1 else 1 + (len(queued[0]) >> HEAVY)
        if not state.complete or state in self.resting or not self._has_room(state, count, weight):
            return False
        if not queue_rows.are_alike(queued) or not state.append(queued, entry):
            return False
        self.held += weight
        state.waiting += count
        if state.waiting == count:  # else it has its place already
            self.settle(state)
        return True

    def _has_room(self, state: DiskState, more: int, weight: int) -> bool:
        """Whether the host's head may have so many rows more, of this weight together."""
        held = self.held + weight - 1
        if held + self._coming < self.most // 2:
            return len(state.head) + more <= self.grown
        return held < self.most and len(state.head) + more <= self.head and self._soon(state)

    def _soon(self, state: DiskState) -> bool:
        """Whether the host gives back what it has before long: else all others would wait for it."""
        return state.next_at <= self._now + self._ahead and not self.workbench.is_parked(state)

    def take_out(self, state: DiskState, index: int) -> bytes:
        """Take a row out of a head."""
        queued = state.head.pop(index)
        self.held -= 1 + (len(queued) >> HEAVY)
        return queued[: queue_rows.ROW]

    def exchange(self, state: DiskState, index: int, queued: bytes) -> None:
        """Put another version of a row into its place in a head."""
        self.held += (len(queued) >> HEAVY) - (len(state.head[index]) >> HEAVY)
        state.head[index] = queued

    def first(self, state: DiskState) -> bytes:
        """Take the first entry out of a head."""
        head = state.head
        first = head.pop(0)
        self.held -= 1 + (len(first) >> HEAVY)
        if not head:
            state.head, state.deepest = NO_HEAD, 0
            state.low = first[: queue_rows.ROW] + b"\0"  # what is put before it later lowers that again
        return first

    def _give_up(self, state: DiskState) -> None:
        """A host that waits on the workbench rests from now on."""
        if not self.workbench.is_busy(state):
            self.read_again(state)

    def _evict(self, state: DiskState) -> None:
        self.held -= state.release()

    # -- the order of hosts

    def next(self, now: float, allowed: Callable[[HostState], bool]) -> DiskState | None:
        """The first host on the workbench that is ready and allowed; it is busy then. Those not allowed are parked.

        None also where it has `stopped` before it had looked at all.
        """
        self._now = now
        parked = None if self.held + self._coming < self.most // 2 else self._evict
        for _ in range(LOOKED):
            state = self.workbench.take(now, allowed, parked)
            if state is None or state.next_at <= now:
                self.stopped = self.workbench.stopped
                return state
            self.release(state, now)  # put off since it was put there
        self.stopped = True
        return None

    def release(self, state: DiskState, now: float, again_at: float = 0.0) -> None:
        """A busy host is no longer busy: it waits for its next time, and for `again_at`, rests, or is idle."""
        at = state.next_at if state.next_at > again_at else again_at
        if at > now + self._ahead and not self._roomy:
            self._evict(state)
        if (state.waiting and state.head) or state.visits.ready:
            self.workbench.release(state, at)
        else:
            self.workbench.release(state, None)
            if state.head:  # all of it was done elsewhere meanwhile, and no pop would take it out
                self._evict(state)
            self.settle(state)

    def move(self, state: DiskState) -> None:
        """The time of a host has changed: it has its turn then."""
        self.workbench.move(state, state.next_at)
        self.resting.move(state, max(state.next_at, self._now))

    def look_again(self) -> None:
        """Parked hosts wait again."""
        self.workbench.look_again(lambda state: state.next_at)
        self.resting.look_again(lambda state: max(state.next_at, self._now))

    def unserved(self, mine: Callable[[HostState], bool]) -> Iterator[DiskState]:
        """Every host that may have something waiting and is not busy; but for most that are parked and not `mine`."""
        yield from self.resting.unserved(mine)
        yield from self._late
        yield from self.workbench.unserved(mine)

    # -- reading

    def next_read(self) -> float | None:
        """The time from which on `needs` has something; None when it has nothing whatever the time."""
        if self._untidy.keys() - self._tidying.keys():
            return 0.0
        first = self.resting.next_ready() if self.held + self._coming < self.most else None
        return None if first is None else first - self._ahead

    def needs(self, now: float, allowed: Callable[[HostState], bool]) -> list[Scan]:
        """What is to be read now. Hosts that are not allowed are parked."""
        self._now = now
        scans = [self._tidy(state) for state in [*self._untidy][:MOST_SCANS] if state not in self._tidying]
        self.resting.stopped = False
        if self.held + self._coming >= self.most:
            return scans
        quantum = self.most // 2 // (len(self.workbench) + len(self.resting) + 1)
        quantum = min(max(quantum, self.head), self.grown)
        while len(scans) < MOST_SCANS and self.held + self._coming < self.most:
            state = self.resting.take(now + self._ahead, allowed)
            if state is None:
                break
            if not state.waiting:
                self.resting.release(state, None)
                self.settle(state)
                continue
            if state.next_at > now + self._ahead:  # put off since it was put there
                self.resting.release(state, state.next_at)
                continue
            start, end = rows.of_host(rows.QUEUE, state.hid)
            there = rows_there(state, quantum)
            scans.append(Scan(state, max(start, state.low), end, min(there, quantum), False, there <= quantum))
            self._late[state] = {}
            self._coming += self.head
        return scans

    def loaded(self, scan: Scan, read: Head) -> None:
        """A host's rows were read: its head is in memory."""
        state = scan.state
        late = self._late.pop(state)
        self._coming -= self.head
        self.resting.release(state, None)
        stays = not late and state.writing is None  # else rows may have come before those that were there
        whole = (scan.whole and stays) or len(read) < scan.most
        end = scan.end if whole else read[-1][: queue_rows.ROW]
        found = self._merged(state, read, late, end)
        state.low = found[0][: queue_rows.ROW] if found else end + b"\0"
        state.complete = whole and len(found) <= scan.most
        del found[scan.most :]
        state.fill(found)
        self.held += queue_rows.weight(found)
        if not state.waiting:  # all of it was done elsewhere meanwhile, as in `release`
            self._evict(state)
        self.settle(state)

    def _merged(self, state: DiskState, read: Head, late: HostChanges, end: bytes) -> Head:
        """What of these rows, and of the changes up to that rank, waits."""
        read = self.uncleared(state, read)
        if late or state.writing is not None or state.fresh is not None:
            read = state.merged(read, late, rows.QUEUE, end)
        if state.out:
            read = [queued for queued in read if queue_rows.queued_key(queued) not in state.out]
        return read

    def uncleared(self, state: DiskState, read: Head) -> Head:
        """These rows but for those that are none any more, though the store had them when they were read."""
        first = self._cleared.get(state, 0)
        return [queued for queued in read if queue_rows.arrival_of(queued) >= first] if first else read

    def written(self, hosts: Mapping[DiskState, HostChanges]) -> None:
        """These changes are in the store; what is being read may have been read before."""
        for late in (self._late, self._tidying, self.ranking):
            for state in late.keys() & hosts.keys():
                late[state].update((row, value) for row, value in hosts[state].items() if queue_rows.is_queued(row))
        for state in self._cleared.keys() & hosts.keys():
            if not (state in self._late or state in self._tidying or state in self.ranking):
                del self._cleared[state]

    # -- garbage

    def tidy(self, state: DiskState) -> None:
        """There is garbage in the host's queue: if it is much, look for it."""
        if state.garbage >= LEAST_TIDY and state.garbage > state.waiting > 0:
            self._untidy.setdefault(state, b"")

    def _tidy(self, state: DiskState) -> Scan:
        self._tidying[state] = {}
        start, end = rows.of_host(rows.QUEUE, state.hid)
        return Scan(state, max(start, self._untidy[state]), end, TIDY, True)

    def forget(self, state: DiskState, gone: set[bytes]) -> None:
        """These rows are deleted: none of them is in the head any more."""
        before = queue_rows.weight(state.head)
        if before:
            state.fill([queued for queued in state.head if queued[: queue_rows.ROW] not in gone])
            self.held -= before - queue_rows.weight(state.head)

    def is_read(self, state: DiskState) -> bool:
        """Whether the host's head is being read."""
        return state in self._late

    def ranked(self, scan: Scan, read: Head) -> Head:
        """What waits of a queue that was read to be put in another order."""
        late, end = self.ranking.pop(scan.state), scan.end if len(read) < scan.most else read[-1][: queue_rows.ROW]
        return [queued for queued in self._merged(scan.state, read, late, end) if scan.state.waits(queued)]

    def read_again(self, state: DiskState) -> None:
        """What a host's head has may not be first any more: it is read, where the host is busy when it comes back."""
        if state.head:
            self._evict(state)
            if not self.workbench.is_busy(state):
                self.workbench.remove(state)
                self.settle(state)

    def tidied(self, scan: Scan, read: Head) -> HostChanges | None:
        """The changes written since this was asked, which may be later than what was read; None when all garbage is
        gone meanwhile. The next piece is looked through then.
        """
        state = scan.state
        late = self._tidying.pop(state, None)
        if late is None:
            return None
        if len(read) < scan.most:
            del self._untidy[state]
        else:
            self._untidy[state] = read[-1][: queue_rows.ROW] + b"\0"
        return late

    def check_invariants(self, states: Iterable[DiskState]) -> None:
        """Assert every invariant of the window."""
        self.workbench.check_invariants()
        self.resting.check_invariants()
        states = list(states)
        assert self.held == sum(queue_rows.weight(state.head) for state in states)
        assert self._coming == self.head * len(self._late)
        assert not NO_HEAD
        for state in states:
            placed = (state in self.workbench) + (state in self.resting)
            assert placed == 1 or (placed == 0 and not state.waiting), (state, placed)
            assert not (state.head and state in self.resting), state
            assert self.resting.is_busy(state) == (state in self._late), state
            assert not (state.complete and state.waiting) or len(state.head) >= state.waiting, state
