"""The frontier in memory: every host's state and queue, and the workbench. It is gone when the process ends.

It keeps the contract `protocol.frontier.Frontier`, the one that a frontier on disk fulfils too. Its bound is the memory
of the machine: about 300 bytes a waiting URL and 80 a done one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from scrapy_ubi.frontier.host_loads import HostLoads
from scrapy_ubi.frontier.memory_visits import MemoryVisits
from scrapy_ubi.frontier.queue import HostQueue
from scrapy_ubi.frontier.scan import Priorities
from scrapy_ubi.frontier.visit_pace import NoPace
from scrapy_ubi.frontier.workbench import Workbench
from scrapy_ubi.protocol.frontier_contract import MOST_FAILED
from scrapy_ubi.protocol.host import Entry, Failure, HostState, Notes
from scrapy_ubi.protocol.memory_state import SetState


class MemoryFrontier:
    """Host states by host; `delay` is the politeness delay in seconds, measured from the end of a load. `loads`: of
    hosts of which several requests may be handed out at once, if there are any."""

    def __init__(self, delay: float = 0.0) -> None:
        self.delay = delay
        self.on_new: Callable[[HostState], None] | None = None
        self.loads: HostLoads | None = None
        self.pace = NoPace()
        self.looks_on = False  # the last `pop` has not looked at all hosts whose time has come: ask again
        self.workbench: Workbench[str] = Workbench(lambda host: self._states[host].was_fetched)
        self._states: dict[str, SetState] = {}
        self._queues: dict[str, HostQueue] = {}
        self._failed: dict[str, dict[int, Failure]] = {}  # by host
        self._failures = 0
        self._visits = visits = MemoryVisits(self._states, self.workbench)
        self.keep_row, self.visited, self.not_visited = visits.keep, visits.visited, visits.not_visited
        self.wake, self.awaits, self.due_before = visits.wake, visits.hosts.awaits, visits.hosts.due_before

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
            if self.on_new is not None:
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

    def failed(self, host: str | None = None) -> Iterator[Failure]:
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

    def elsewhere(self, agent: str) -> Iterator[Failure]:
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
