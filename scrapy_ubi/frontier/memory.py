"""The frontier in memory: every host's state and queue, and the workbench. It is gone when the process ends.

It keeps the contract `protocol.frontier_contract.Frontier`, the one that a frontier on disk fulfils too. Its bound is
the memory of the machine: about 300 bytes a waiting URL and 80 a done one.

The queue of a host is breadth first, that is by priority, then depth, then arrival. Priority is Scrapy's and comes
first because a spider that sets it means it; without it the visit of a host is breadth first (UbiCrawler 3.2). An entry
that is met again at a smaller depth, or put back with another priority, is pushed again; its earlier place is passed
over.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Container, Iterable, Iterator, Mapping

from scrapy_ubi.frontier.due_hosts import DueHosts, Mine
from scrapy_ubi.frontier.host_loads import HostLoads
from scrapy_ubi.frontier.host_revisits import READY, HostRevisits
from scrapy_ubi.frontier.scan import Priorities
from scrapy_ubi.frontier.visit_pace import NoPace
from scrapy_ubi.frontier.workbench import Workbench
from scrapy_ubi.protocol.frontier_contract import MOST_FAILED
from scrapy_ubi.protocol.host import NO_VISITS, Entry, Failure, HostState, Notes
from scrapy_ubi.protocol.memory_state import SetState
from scrapy_ubi.protocol.visit_row import VisitRow


class HeapedVisits(HostRevisits):
    """With the times at which rows are due: the earliest first, some of them not valid any more."""

    __slots__ = ("times",)

    def __init__(self) -> None:
        super().__init__()
        self.times: list[tuple[int, int]] = []  # due, key

    def take_in(self, rows: Mapping[int, VisitRow], wall: int, loading: Container[int]) -> None:
        """Some of the rows that are due by that time are ready; `due` is that of the next one. `loading`: pages that
        are out, not to be visited again; they come back by `MemoryVisits.page_ended`."""
        at_hand = {row.key for row, _ in self.ready}
        self.due = 0
        while self.times:
            due, key = self.times[0]
            row = rows.get(key)
            if row is None or row.due != due or key in self.out or key in at_hand or key in loading:
                heapq.heappop(self.times)
            elif due <= wall and len(self.ready) < READY:
                heapq.heappop(self.times)
                self.ready.append((row, row.entry))
                at_hand.add(key)
            else:
                self.due = due
                return

    def put_aside(self) -> None:
        """Nothing is at hand: what was, is due still."""
        for row, _ in self.ready:
            heapq.heappush(self.times, (row.due, row.key))
        super().put_aside()


class MemoryVisits:
    """The visits of all hosts."""

    def __init__(self, states: Mapping[str, SetState], workbench: Workbench[str]) -> None:
        self._states = states
        self._workbench = workbench
        self.hosts: DueHosts[SetState] = DueHosts()

    def _of(self, state: HostState) -> HeapedVisits:
        if state.visits is NO_VISITS:
            state.visits = HeapedVisits()
        assert isinstance(state.visits, HeapedVisits)
        return state.visits

    def keep(self, state: HostState, row: VisitRow) -> bool:
        """Merge the visit row of a key that is done; True when that was news."""
        own = self._states[state.host]
        before = own.rows.get(row.key)
        if not own.merge_row(row):
            return False
        visits = self._of(own)
        visits.put(before, row)
        if row.due:
            heapq.heappush(visits.times, (row.due, row.key))
        self.hosts.follow(own, visits)
        return True

    def visited(self, state: HostState, key: int, row: VisitRow) -> bool:
        """A page handed out to be visited again was, and this is its row; True when that was news."""
        visits = self._of(state)
        visits.returned(key)
        news = self.keep(state, row)
        if not news and (kept := state.visit_row(key)) is not None:
            self._expect(self._states[state.host], kept)
        return news

    def page_ended(self, own: SetState, key: int) -> None:
        """A page that was out, not to be visited again, is out no longer, and was done elsewhere meanwhile."""
        if (row := own.visit_row(key)) is not None:
            self._expect(own, row)

    def _expect(self, own: SetState, row: VisitRow) -> None:
        """A row that came while its page was out is due, too."""
        visits = self._of(own)
        if row.due:
            heapq.heappush(visits.times, (row.due, row.key))
            visits.expect(row.due)
        self.hosts.follow(own, visits)

    def not_visited(self, state: HostState, key: int, entry: Entry | None = None) -> None:
        """A page handed out to be visited again was not, or is to be fetched once more (as `entry`): it is due."""
        own, visits = self._states[state.host], self._of(state)
        row, kept = visits.returned(key), state.visit_row(key)
        if kept is not None and kept.generation > row.generation:
            self._expect(own, kept)
            return
        row = kept or row  # another agent's of the same generation, perhaps
        visits.ready.insert(0, (row, entry or row.entry))
        self.hosts.follow(own, visits)
        self._workbench.activate(own.host, own.next_at)

    def next(self, own: SetState) -> Entry | None:
        """Hand out the next page of this host that is due; None when it is not its turn."""
        visits = self._of(own)
        entry = visits.next(bool(own.queued))
        if entry is not None and not visits.ready:
            self._take_in(own, visits)
        return entry

    def wake(self, wall: int, mine: Mine) -> None:
        """It is that time (unix s): pages of such hosts that are due by then have their turn."""
        self.hosts.wall = max(self.hosts.wall, wall)
        while (own := self.hosts.next(mine)) is not None:
            self._take_in(own, self._of(own))

    def _take_in(self, own: SetState, visits: HeapedVisits) -> None:
        visits.take_in(own.rows, self.hosts.wall, own.out)
        if visits.ready:
            self._workbench.activate(own.host, own.next_at)
        if visits.due > self.hosts.wall or not visits.ready:  # else when these are used up
            self.hosts.follow(own, visits)

    def check_invariants(self) -> None:
        """Assert that each page that is due is at hand, out, or known to be due, and no earlier than its host says."""
        self.hosts.check_invariants()
        for own in self._states.values():
            if own.visits is NO_VISITS:
                continue
            visits = self._of(own)
            assert all(row == own.rows.get(row.key) for row, _ in visits.ready), own
            at_hand = {*visits.out, *own.out, *(row.key for row, _ in visits.ready)}
            expected = {(row.due, row.key) for row in own.rows.values() if row.due and row.key not in at_hand}
            assert expected <= {*visits.times}, (own, expected - {*visits.times})
            assert not expected or 0 < visits.due <= min(expected)[0], (own, min(expected), visits.due)


class HostQueue:
    """The order in which the waiting entries of a host are fetched. What waits is the host state's to say."""

    __slots__ = ("_count", "_heap")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, int, int]] = []
        self._count = 0

    def push(self, entry: Entry) -> None:
        """Put an entry in its place."""
        self._count += 1
        heapq.heappush(self._heap, (-entry.priority, entry.depth, self._count, entry.key))

    def pop(self, queued: Mapping[int, Entry]) -> int | None:
        """The key of the first entry that still waits, None when none does."""
        heap = self._heap
        while heap:
            priority, depth, _, key = heapq.heappop(heap)
            entry = queued.get(key)
            if entry is not None and (-entry.priority, entry.depth) == (priority, depth):
                return key  # else it is not its place any more
        return None


class MemoryFrontier:
    """Host states by host; `delay` is the politeness delay in seconds, measured from the end of a load. `loads`: of
    hosts of which several requests may be handed out at once, if there are any."""

    def __init__(self, delay: float = 0.0) -> None:
        self.delay = delay
        self.on_new: Callable[[HostState], None] = lambda state: None
        self.loads: HostLoads | None = None
        self.pace = NoPace()
        self.looks_on = False  # the last `pop` has not looked at all hosts whose time has come: ask again
        self.workbench: Workbench[str] = Workbench(lambda host: self._states[host].was_fetched)
        self._states: dict[str, SetState] = {}
        self._queues: dict[str, HostQueue] = {}
        self._failed: dict[str, dict[int, Failure]] = {}  # by host
        self._failures = 0
        self._visits = visits = MemoryVisits(self._states, self.workbench)
        self.keep_row = visits.keep
        self.visited = visits.visited
        self.not_visited = visits.not_visited
        self.wake = visits.wake
        self.awaits = visits.hosts.awaits
        self.due_before = visits.hosts.due_before

    def __len__(self) -> int:
        return len(self._states)

    def states(self) -> list[HostState]:
        """Every host state held."""
        return [*self._states.values()]

    def find(self, host: str) -> HostState | None:
        """The state of a host, None when nothing of it is held."""
        return self._states.get(host)

    def add(self, host: str, entries: Iterable[Entry]) -> tuple[HostState, list[Entry]]:
        """Merge discovered entries; the state, and those that were news."""
        state = self._states.get(host)
        if state is None:
            state = self._states[host] = SetState(host)
            self._queues[host] = HostQueue()
            self.on_new(state)
        news = [entry for entry in entries if state.learn(entry)]
        for entry in news:
            self._queues[host].push(entry)
        if news:
            self.workbench.activate(host, state.next_at)
        return state, news

    def add_done(self, state: HostState, keys: Iterable[int], by: str = "") -> list[int]:
        """Merge done marks; those that were news. Of which agent they are is not kept."""
        mark = self._states[state.host].mark_done
        return [key for key in keys if mark(key)]

    def note(self, state: HostState, notes: Notes) -> bool:
        """Merge notes of a host; True when that was news."""
        return state.merge_notes(notes)

    def drop(self, host: str) -> None:
        """Forget a host."""
        self.workbench.remove(host)
        self._visits.hosts.forget(self._states[host])
        del self._states[host], self._queues[host]

    def pop(self, now: float, allowed: Callable[[HostState], bool]) -> tuple[HostState, Entry] | None:
        """Hand out the next entry of the first host that is ready and allowed; the host is then busy."""
        states, loads = self._states, self.loads
        while (host := self.workbench.take(now, lambda host: allowed(states[host]))) is not None:
            state = states[host]
            if state.next_at > now:  # put off since it was put on the workbench
                self.workbench.release(host, state.next_at)
                continue
            if loads is not None and (at := loads.next_at(host)) > now:
                self.workbench.release(host, at)
                continue
            held = 0.0
            if state.visits.ready:
                held = self.pace.held(state, bool(state.queued), now)
            entry = self._visits.next(state) if state.visits.ready and not held else None
            if entry is None and (key := self._queues[host].pop(state.queued)) is not None:
                entry = state.hand_out(key)
            if entry is not None:
                if loads is not None and loads.handed_out(host, at := now + max(self.delay, state.pause)):
                    self.workbench.release(host, self._next_at(state, at))
                return state, entry
            self.workbench.release(host, held or None)
        self.looks_on = self.workbench.stopped
        return None

    def _next_at(self, state: HostState, at: float) -> float | None:
        """When the host has its turn again, which is not before `at`; None when nothing of it waits."""
        return at if state.waiting or state.visits.ready else None

    def free(self, state: HostState, now: float) -> None:
        """The load of a busy host has ended at this time."""
        if self.loads is not None and (more := self.loads.freed(state.host)) is not None:
            if more:
                self.workbench.release(state.host, self._next_at(state, max(state.next_at, now)))
        elif self.workbench.is_busy(state.host):
            state.next_at = max(state.next_at, now + max(self.delay, state.pause))
            self.workbench.release(state.host, self._next_at(state, state.next_at))

    def finish(self, state: HostState, key: int) -> bool:
        """An entry handed out is done; True when that was news."""
        own = self._states[state.host]
        if not (news := own.finish(key)):
            self._visits.page_ended(own, key)
        return news

    def put_back(self, state: HostState, key: int, entry: Entry | None = None) -> None:
        """An entry handed out waits again, as `entry` when given."""
        own = self._states[state.host]
        if own.put_back(key, entry):
            self._queues[state.host].push(own.queued[key])
            self.workbench.activate(state.host, state.next_at)
        else:
            self._visits.page_ended(own, key)

    def look_again(self) -> None:
        """Parked hosts wait again."""
        self._visits.hosts.look_again()
        self.workbench.look_again(lambda host: self._states[host].next_at)

    def look_at(self, state: HostState) -> None:
        """If this host is parked, it waits again."""
        self.workbench.look_at(state.host, state.next_at)

    def reorder(self, state: HostState, priorities: Priorities, done: Callable[[], None]) -> None:
        """Give what waits of this host new priorities."""
        own, queue = self._states[state.host], self._queues[state.host]
        entries = [*own.queued.values()]
        for entry, priority in zip(entries, priorities(entries) or (), strict=False):
            if priority != entry.priority:
                own.queued[entry.key] = entry._replace(priority=priority)
                queue.push(own.queued[entry.key])
        done()

    def defer(self, state: HostState, now: float) -> None:
        """The host is not fetched before its delay has passed from now on."""
        self.postpone(state, now + max(self.delay, state.pause))

    def postpone(self, state: HostState, until: float) -> None:
        """The host is not fetched before that time: it is looked at again when it is handed out."""
        state.next_at = max(state.next_at, until)

    def hasten(self, state: HostState, now: float) -> None:
        """Nothing forbids the next fetch from now on."""
        state.next_at = min(state.next_at, now)
        self.workbench.move(state.host, state.next_at)

    def waits(self, mine: Callable[[HostState], bool]) -> bool:
        """Whether any entry of such a host is queued."""
        unserved = self.workbench.unserved(lambda host: mine(self._states[host]))
        return any(state.queued and mine(state) for state in map(self._states.__getitem__, unserved))

    def next_read(self) -> float | None:
        """Nothing is ever read."""
        return None

    def next_ready(self) -> float | None:
        """The time at which the first waiting host is ready; None when none waits."""
        return self.workbench.next_ready()

    def note_status(self, state: HostState, key: int, status: int) -> None:
        """Nothing is kept: in memory it would cost as much as the key."""

    def status_of(self, state: HostState, key: int) -> int | None:
        """Not known."""
        return None

    def fail(self, failure: Failure) -> None:
        """Keep a failure, while there is room."""
        kept = self._failed.get(failure.host, {})
        new = failure.entry.key not in kept
        if not new or self._failures < MOST_FAILED:
            kept[failure.entry.key] = failure
            self._failed[failure.host] = kept
            self._failures += new

    def failures(self, host: str | None = None) -> Iterator[Failure]:
        """The failures kept, of one host or of all."""
        hosts = self._failed if host is None else {host: self._failed.get(host, {})}
        return iter([failure for kept in hosts.values() for failure in kept.values()])

    def forgive(self, failure: Failure) -> None:
        """Forget a failure."""
        kept = self._failed.get(failure.host, {})
        if kept.pop(failure.entry.key, None) is not None:
            self._failures -= 1
            if not kept:
                del self._failed[failure.host]

    def keep_elsewhere(self, host: str, entry: Entry, agent: str) -> None:
        """Nothing is kept: agents with outputs have a disk."""

    def pages_kept_by(self, agent: str) -> Iterator[Failure]:
        """Not known."""
        return iter(())

    def forget_elsewhere(self, agent: str, page: Failure) -> None:
        """Nothing is known."""

    def rests(self, state: HostState) -> bool:
        """All of it is in memory."""
        return False

    def check_invariants(self) -> None:
        """Assert every invariant of the frontier."""
        self.workbench.check_invariants()
        self._visits.check_invariants()
        assert self._states.keys() == self._queues.keys()
        for host, state in self._states.items():
            state.check_invariants()
            assert host in self.workbench or not (state.queued or state.visits.ready), state
