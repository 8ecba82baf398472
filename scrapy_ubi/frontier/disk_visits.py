"""The visit rows of a frontier on disk: which are not written yet, which are due, and which of these are at hand.

Rules of this module:

* A row is in the store, or among the changes of its host until they are written. Beside it stands when it is due, in an
  order of its own; both go with one flush, and with the done mark of the page where that is new.
* What is due is read as heads of queues are: asked for here, read in another thread, taken in later. What has changed
  from the asking on, and what was written since, is *late*: what was read may be of before or of after it.
* What was not read comes behind the last row of a read, whatever became of that row: it says from when on the next
  read may find something.
* Rows are at hand, or being read, of so many hosts at once (`MOST_HOSTS`), and so many of each (`READY`), whatever the
  number of those that are due. Of a host that is put off for long none is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from scrapy_ubi.frontier import visit_rows
from scrapy_ubi.frontier.disk_state import DiskState
from scrapy_ubi.frontier.due_hosts import DueHosts, Mine
from scrapy_ubi.frontier.flushes import Flushes
from scrapy_ubi.frontier.host_loads import HostLoads
from scrapy_ubi.frontier.host_revisits import READY, HostRevisits
from scrapy_ubi.frontier.rows import done_row
from scrapy_ubi.frontier.scan import Scan
from scrapy_ubi.frontier.store import Store, every
from scrapy_ubi.frontier.window import AHEAD, MOST_SCANS, Window
from scrapy_ubi.protocol.host import NO_VISITS, Entry, HostState
from scrapy_ubi.protocol.visit_row import VisitRow, fingerprint, merged

MOST_HOSTS = 4096
MOST_STALE = 256  # rows read beyond those that can be at hand, as so many may have changed since they were written
JUDGED = 1000  # rows written at once


def _of_none(state: HostState) -> bool:
    return False


class StoredVisits(HostRevisits):
    """`fresh`, `writing`: rows that are in no flush yet, and those of the flush being written; `stale`: times, with
    keys, that do not hold any more; `late`: keys that have changed, or were written, since a read was asked for, None
    where none is."""

    __slots__ = ("_state", "_store", "fresh", "late", "stale", "writing")

    def __init__(self, state: DiskState, store: Store) -> None:
        super().__init__()
        self._state = state
        self._store = store
        self.fresh: dict[int, VisitRow] = {}
        self.writing: Mapping[int, VisitRow] = {}
        self.stale: set[tuple[int, int]] = set()
        self.late: set[int] | None = None

    def row(self, key: int) -> VisitRow | None:
        """The row of a key; it may be read. Raises `StoreDamaged`."""
        row = self.fresh.get(key) or self.writing.get(key)
        state = self._state
        if row is None and not (state.fresh is not None and done_row(state.hid, key) in state.fresh):
            at = visit_rows.visit_key(state.hid, key)
            if (value := self._store.get(at)) is not None:
                row = visit_rows.read_visit(state.host, at, value)
        return row

    def collect(self) -> Iterator[tuple[bytes, bytes | None]]:
        """The rows of a flush: what is fresh is being written from now on."""
        hid, host = self._state.hid, self._state.host
        fresh, self.fresh, self.writing = self.fresh, {}, self.fresh
        stale, self.stale = self.stale, set()
        for due, key in stale:
            yield visit_rows.due_key(hid, due, key), None
        for key, row in fresh.items():
            yield visit_rows.visit_key(hid, key), visit_rows.visit_value(host, row)
            if row.due:
                yield visit_rows.due_key(hid, row.due, key), b""
        dues = [self.due, *(row.due for row, _ in self.ready), *(row.due for row in self.out.values())]
        ended = [self.row(key) for key in self._state.out if self._state.is_done(key)]  # elsewhere, while they are out
        dues += [row.due for row in ended if row is not None]
        earliest = min((due for due in dues if due), default=0)
        yield visit_rows.VISITS + hid, visit_rows.host_value(self.count, self.xor, earliest)

    def written(self) -> None:
        """The flush is in the store. A read under way may be of before it."""
        if self.late is not None:
            self.late.update(self.writing)
        self.writing = {}

    @property
    def most_read(self) -> int:
        """How many rows to read: as many as can be at hand, behind those that are there, are out, or have changed."""
        changed = len(self.stale) + len(self.writing)
        return READY + len(self.out) + len(self._state.out) + min(changed, MOST_STALE)

    def take_in(self, read: Iterable[bytes], wall: int) -> bool:
        """These rows were read, the most overdue first: what is due by that time is ready. False where another read
        finds no more before these changes are written."""
        late, self.late = self.late or set(), None
        # A page that is out, not to be visited again, comes back by `DiskVisits.page_ended`.
        at_hand = {*self.out, *self._state.out, *(row.key for row, _ in self.ready)}
        before, self.due = self.due, 0
        changed = {**self.writing, **self.fresh}
        found = [row for key, row in changed.items() if row.due and key not in at_hand]
        enough = len(found) + READY
        for text in read:
            due, key = visit_rows.read_due(text[:17])
            if len(text) == 17 or len(found) == enough:  # those that were not read come behind it
                self.expect(due)
                break
            if key in late or key in changed or key in at_hand:
                continue
            at = visit_rows.visit_key(self._state.hid, key)
            row = visit_rows.read_visit(self._state.host, at, text[17:])
            if row.due == due:
                found.append(row)
        again = bool(late - changed.keys())  # written since: what they are now is in the store
        if again:
            self.expect(min(before, wall) or wall)
        found.sort(key=lambda row: row.due)
        for number, row in enumerate(found):
            if row.due <= wall and number < READY:
                self.ready.append((row, row.entry))
            else:
                self.expect(row.due)
                break  # of those behind it none is due before it
        return again or bool(self.ready)


class DiskVisits:
    """The visits of all hosts."""

    def __init__(self, store: Store, window: Window, flushes: Flushes) -> None:
        self._store = store
        self._window = window
        self._flushes = flushes
        self.hosts: DueHosts[DiskState] = DueHosts()
        self._at_hand: set[DiskState] = set()  # hosts with ready rows, or with a read under way
        self._mine: Mine = _of_none

    def _of(self, state: HostState) -> StoredVisits:
        if state.visits is NO_VISITS:
            assert isinstance(state, DiskState)
            state.visits = StoredVisits(state, self._store)
        assert isinstance(state.visits, StoredVisits)
        return state.visits

    def restore(self, states: Iterable[HostState]) -> None:
        """What the store says of the visits of these hosts."""
        hosts = {state.hid: state for state in states if isinstance(state, DiskState)}
        for key, value in every(self._store, visit_rows.VISITS, visit_rows.VISITS + b"\xff" * 8):
            hid, count, xor, due = visit_rows.read_host(key, value)
            if (state := hosts.get(hid)) is not None:
                visits = self._of(state)
                visits.count, visits.xor, visits.due = count, xor, due
                self.hosts.follow(state, visits)
                self._flushes.has_visits = True

    def judge(self, believed: Callable[[VisitRow], VisitRow], beyond: int) -> None:
        """Put what is believed of each row in the place of what the store says of those due later than `beyond`. Before
        anything else is done with them. Raises `StoreFull`."""
        for state, visits in self.hosts.held():
            start, end = visit_rows.due_key(state.hid, beyond, 0), visit_rows.dues_of(state.hid)[1]
            while read := self._store.scan(start, end, JUDGED):
                start = read[-1][0] + b"\0"
                self._judge(state, visits, believed, [key for key, _ in read])
            self.hosts.follow(state, visits)

    def _judge(
        self, state: DiskState, visits: HostRevisits, believed: Callable[[VisitRow], VisitRow], dues: list[bytes]
    ) -> None:
        batch = self._store.batch()
        for at in dues:
            due, key = visit_rows.read_due(at)
            row = visits.row(key)
            if row is None or row.due != due or (better := believed(row)) == row:
                continue
            visits.xor ^= fingerprint(row) ^ fingerprint(better)
            visits.expect(better.due)
            batch.delete(at)
            batch.put(visit_rows.due_key(state.hid, better.due, key), b"")
            batch.put(visit_rows.visit_key(state.hid, key), visit_rows.visit_value(state.host, better))
        batch.put(visit_rows.VISITS + state.hid, visit_rows.host_value(visits.count, visits.xor, visits.due))
        self._store.write(batch)

    def keep(self, state: HostState, row: VisitRow) -> bool:
        """Merge the visit row of a key that is done; True when that was news."""
        assert isinstance(state, DiskState)
        visits, key = self._of(state), row.key
        before = visits.row(key)
        if before is not None and merged(before, row) == before:
            return False
        if before is not None and before.due and key not in visits.fresh:
            visits.stale.add((before.due, key))
        visits.put(before, row)
        visits.fresh[key] = row
        if visits.late is not None:
            visits.late.add(key)
        self._flushes.changes.visits[state] = visits
        self._flushes.has_visits = True
        self._follow(state, visits)
        return True

    def _follow(self, state: DiskState, visits: StoredVisits) -> None:
        if not visits.ready and visits.late is None:
            self._at_hand.discard(state)
        self.hosts.follow(state, visits)

    def visited(self, state: HostState, key: int, row: VisitRow) -> bool:
        """A page handed out to be visited again was, and this is its row; True when that was news."""
        assert isinstance(state, DiskState)
        visits = self._of(state)
        visits.returned(key)
        news = self.keep(state, row)
        if not news and (kept := visits.row(key)) is not None:  # it came while the page was out
            visits.expect(kept.due)
            self._follow(state, visits)
        return news

    def not_visited(self, state: HostState, key: int, entry: Entry | None = None) -> None:
        """A page handed out to be visited again was not, or is to be fetched once more (as `entry`): it is due."""
        assert isinstance(state, DiskState)
        visits = self._of(state)
        row, kept = visits.returned(key), visits.row(key)
        if kept is not None and kept.generation > row.generation:
            visits.expect(kept.due)
        else:
            row = kept or row  # another agent's of the same generation, perhaps
            visits.ready.insert(0, (row, entry or row.entry))
            self._at_hand.add(state)
            self._window.settle(state)
        self._follow(state, visits)

    def page_ended(self, state: DiskState, key: int) -> None:
        """A page that was out, not to be visited again, is out no longer, and was done elsewhere meanwhile."""
        if state.visits is not NO_VISITS and (row := self._of(state).row(key)) is not None:
            self._of(state).expect(row.due)
            self._follow(state, self._of(state))

    def next(self, state: DiskState, now: float, loads: HostLoads | None, delay: float) -> Entry | None:
        """Hand out the next page of this busy host that is due; None when it is not its turn. The host has its turn
        again at once where `loads` says so, after its delay (s)."""
        visits = self._of(state)
        entry = visits.next(bool(state.head))
        if not visits.ready:
            self._follow(state, visits)
        if entry is not None and loads is not None:
            at = now + max(delay, state.pause)
            if loads.handed_out(state.host, at):
                self._window.release(state, now, at)
        return entry

    def wake(self, wall: int, mine: Mine) -> None:
        """It is that time (unix s): pages of such hosts that are due by then have their turn, when they are read."""
        self.hosts.wall, self._mine = max(self.hosts.wall, wall), mine

    def put_aside(self, state: DiskState, seconds: float) -> None:
        """What is at hand of this host is looked at again after so long."""
        visits = self._of(state)
        visits.put_aside()
        self._at_hand.discard(state)
        self.hosts.put_off(state, self.hosts.wall + int(seconds) + 1)

    def hasten(self, state: DiskState) -> None:
        """What the host was put off for holds no more: it is looked at when the next one of its pages is due."""
        if state.visits is not NO_VISITS:
            self.hosts.follow(state, self._of(state))

    @property
    def wants(self) -> bool:
        """Whether there is something to be read."""
        return self.hosts.is_due and len(self._at_hand) < MOST_HOSTS

    def needs(self, now: float) -> list[Scan]:
        """What is to be read now: each is read once, and must be taken."""
        scans: list[Scan] = []
        while self.wants and len(scans) < MOST_SCANS and (state := self.hosts.next(self._mine)) is not None:
            visits = self._of(state)
            if visits.ready or visits.late is not None:
                continue  # it comes back when that is used up
            if state.next_at > now + AHEAD:
                self.hosts.put_off(state, self.hosts.wall + int(state.next_at - now - AHEAD) + 1)
                continue
            visits.late = set()
            self._at_hand.add(state)
            start, end = visit_rows.dues_of(state.hid)
            scans.append(Scan(state, start, end, visits.most_read, due=self.hosts.wall))
        return scans

    def take(self, scan: Scan, read: Iterable[bytes]) -> None:
        """Take in what was read. Raises `StoreDamaged`."""
        state = scan.state
        visits = self._of(state)
        more = visits.take_in(read, self.hosts.wall)
        self._window.settle(state)
        self._follow(state, visits)
        if not more and 0 < visits.due <= scan.due:  # all that was read has changed
            self.hosts.put_off(state, self.hosts.wall + 1)

    def look_again(self) -> None:
        """What was not allowed may be allowed now, of queues, too."""
        self._window.look_again()
        self.hosts.look_again()
        self._at_hand = {state for state in self._at_hand if self._of(state).late is not None}

    def forget(self, state: DiskState) -> None:
        """The host is not held any more."""
        self.hosts.forget(state)
        self._at_hand.discard(state)
        if self._flushes.changes.visits.pop(state, None) is not None or state.visits is not NO_VISITS:
            self._flushes.changes.unvisited.append(state.hid)

    def check_invariants(self, states: Iterable[DiskState]) -> None:
        """Assert every invariant, by reading all rows."""
        self.hosts.check_invariants()
        for state in states:
            if state.visits is NO_VISITS:
                continue
            visits = self._of(state)
            keys = {*state.told_done(), *state.closing}
            rows = {key: row for key in keys if (row := visits.row(key)) is not None}
            total = 0
            for row in rows.values():
                total ^= fingerprint(row)
            assert (len(rows), total) == (visits.count, visits.xor), (state, len(rows), visits.count)
            assert {*visits.fresh, *visits.writing} <= rows.keys(), state
            assert (state in self._at_hand) == bool(visits.ready or visits.late is not None), state
            assert not visits.ready or state in self._window.workbench or state in self._window.resting, state
            assert all(row == rows.get(row.key) for row, _ in visits.ready), state
            if not visits.fresh and not visits.writing:
                found = {visit_rows.read_due(row) for row, _ in every(self._store, *visit_rows.dues_of(state.hid))}
                assert found == {(row.due, key) for key, row in rows.items() if row.due}, state
            at_hand = {*visits.out, *state.out, *(row.key for row, _ in visits.ready)}
            expected = {row.key for row in rows.values() if row.due} - at_hand
            earliest = min((rows[key].due for key in expected), default=0)
            assert not earliest or visits.late is not None or 0 < visits.due <= earliest, (state, earliest, visits.due)
