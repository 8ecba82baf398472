"""A simulated disk: what an agent's last flush left. A flush is atomic; a crash leaves the disk as the last one did."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from scrapy_ubi.frontier import ledger, restore
from scrapy_ubi.frontier.memory import MemoryFrontier
from scrapy_ubi.protocol.host import Entry, HostState, Notes, VisitRow
from scrapy_ubi.protocol.notes import NOTHING
from scrapy_ubi.protocol.snapshot import Changes, Saved
from tests.frontier.frontiers import DictKind, Reading
from tests.simulation.outputs import Outputs
from tests.support.ledger import Ledger
from tests.support.memory_store import MemoryStore


class Change(NamedTuple):
    """An entry of a host is known, a key is done, it has a row, or something is noted of the host; none of these: it
    was dropped."""

    host: str
    entry: Entry | None = None
    key: int | None = None
    notes: Notes | None = None
    row: VisitRow | None = None


class Logged:
    """A production frontier; what changes in it is noted for the next flush."""

    changes: list[Change]

    def log_rows(self) -> None:
        """Note rows, too."""
        keep, visited = self.keep_row, self.visited

        def logged_keep(state: HostState, row: VisitRow) -> bool:
            news = keep(state, row)
            if news:
                self.changes.append(Change(state.host, row=row))
            return news

        def logged_visited(state: HostState, key: int, row: VisitRow) -> bool:
            news = visited(state, key, row)
            if news:
                self.changes.append(Change(state.host, row=row))
            return news

        self.keep_row, self.visited = logged_keep, logged_visited

    def add(self, host: str, entries: Iterable[Entry]) -> tuple[HostState, list[Entry]]:
        state, news = super().add(host, entries)
        self.changes += [Change(host, entry=entry) for entry in news]
        return state, news

    def add_done(self, state: HostState, keys: Iterable[int], by: str = "") -> list[int]:
        news = super().add_done(state, keys)
        self.changes += [Change(state.host, key=key) for key in news]
        return news

    def finish(self, state: HostState, key: int) -> bool:
        news = super().finish(state, key)
        if news:
            self.changes.append(Change(state.host, key=key))
        return news

    def note(self, state: HostState, notes: Notes) -> bool:
        news = super().note(state, notes)
        if news:
            self.changes.append(Change(state.host, notes=state.notes))
        return news

    def drop(self, host: str) -> None:
        super().drop(host)
        self.changes.append(Change(host))


class LoggedFrontier(Logged, MemoryFrontier):
    """The one in memory."""

    def __init__(self, delay: float = 0.0) -> None:
        super().__init__(delay)
        self.changes = []
        self.log_rows()


class LoggedDiskFrontier(Logged, Reading):
    """The one on disk, with hardly any memory: it reads all the time."""

    def __init__(self, *args: Any, **rest: Any) -> None:
        self.changes = []
        super().__init__(*args, **rest)
        self.log_rows()
        self.window.head, self.window.grown, self.window.most = 2, 2, 6


class Disk:
    """`undone`: host -> key -> entry; `done`: host -> keys; `notes`: of hosts; `ledger`: the rest of the agent;
    `merged`: the numbers of the inbox entries whose content is in it."""

    def __init__(self) -> None:
        self.undone: dict[str, dict[int, Entry]] = {}
        self.done: dict[str, set[int]] = {}
        self.notes: dict[str, Notes] = {}
        self.rows: dict[str, dict[int, VisitRow]] = {}
        self.ledger = Ledger()
        self.merged: frozenset[int] = frozenset()
        self.lives: list[str] = []  # the incarnations that have run on it
        self.lost: dict[str, Any] = {}  # what the agent knows of those who were lost
        self.heard: set[str] = set()  # the incarnations whose lines were read where it was
        self.outputs = Outputs()

    @property
    def saved(self) -> Saved | None:
        """What is durable beside the host states."""
        return self.ledger.saved

    def flush(self, changes: list[Change]) -> None:
        """Make these changes durable."""
        for host, entry, key, notes, row in changes:
            if entry is not None:
                self.undone.setdefault(host, {})[entry.key] = entry
            elif key is not None:
                self.undone.get(host, {}).pop(key, None)
                self.done.setdefault(host, set()).add(key)
            elif notes is not None:
                self.notes[host] = notes
            elif row is not None:
                self.rows.setdefault(host, {})[row.key] = row
            else:
                self.rows.pop(host, None)
                self.notes.pop(host, None)
                self.undone.pop(host, None)
                self.done.pop(host, None)

    def frontier(self) -> LoggedFrontier:
        """The frontier in memory that a process makes of what it finds here: what was out waits."""
        frontier = LoggedFrontier()
        for host in dict.fromkeys((*self.undone, *self.done, *self.notes)):
            state, _ = frontier.add(host, self.undone.get(host, {}).values())
            frontier.add_done(state, self.done.get(host, ()))
            frontier.note(state, self.notes.get(host, NOTHING))
            for row in self.rows.get(host, {}).values():
                frontier.keep_row(state, row)
        frontier.changes.clear()
        return frontier

    def knows(self, host: str, key: int) -> bool:
        """Whether a page is known here, done or not."""
        return key in self.undone.get(host, ()) or key in self.done.get(host, ())

    def done_keys(self) -> set[tuple[int, int]]:
        """Every visit that is done as far as this disk knows: key, generation."""
        return {
            (key, generation)
            for host, keys in self.done.items()
            for key in keys
            for generation in range(1, self.generation(host, key) + 1)
        }

    def generation(self, host: str, key: int) -> int:
        """How often a page that is done was visited."""
        row = self.rows.get(host, {}).get(key)
        return row.generation if row is not None else 1

    def leads_to(self, host: str, key: int, generation: int) -> bool:
        """Whether that visit of a page is to come."""
        if key in self.undone.get(host, ()):
            return True
        row = self.rows.get(host, {}).get(key)
        return row is not None and row.generation < generation and row.due > 0


class StoreDisk(Disk):
    """A disk with a production store on it, too, which must hold the same."""

    def __init__(self) -> None:
        super().__init__()
        self.store = MemoryStore()
        self.seen: Any = None

    def opened(self, offset: float) -> LoggedDiskFrontier:
        """The frontier on disk that a process finds here. `offset`: the world's time less the process's."""
        kind = DictKind(self.seen)
        made = restore.restore(
            self.store,
            Path("seen"),
            offset=offset,
            kind=kind,
            made=LoggedDiskFrontier,  # type: ignore[arg-type]
        )
        assert isinstance(made, LoggedDiskFrontier)
        self.seen = made.seen
        self._compare(made)
        return made

    def _compare(self, frontier: LoggedDiskFrontier) -> None:
        """What is found must be what was written."""
        assert ledger.load(self.store) == self.saved, "the ledger"
        frontier.check_invariants()
        states = {state.host: state for state in frontier.states()}
        known = {host for host in (*self.undone, *self.done) if self.undone.get(host) or self.done.get(host)}
        assert known <= states.keys(), "hosts"
        for host, state in states.items():
            assert {entry.key for entry in state.undone()} == self.undone.get(host, {}).keys(), host
            assert set(state.told_done()) == self.done.get(host, set()), host
            assert state.notes == self.notes.get(host, NOTHING), host
            rows = {key: row for key in state.told_done() if (row := state.visit_row(key)) is not None}
            assert rows == self.rows.get(host, {}), host

    def written(self, frontier: LoggedDiskFrontier, changes: Changes) -> None:
        """A flush."""
        frontier.flush(ledger.rows(changes))
