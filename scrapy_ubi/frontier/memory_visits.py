"""The visit rows of a frontier in memory, and which of them are due."""

from __future__ import annotations

import heapq
from collections.abc import Container, Mapping

from scrapy_ubi.frontier.due_hosts import DueHosts, Mine
from scrapy_ubi.frontier.host_revisits import READY, HostRevisits
from scrapy_ubi.frontier.workbench import Workbench
from scrapy_ubi.protocol.host import NO_VISITS, Entry, HostState
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
