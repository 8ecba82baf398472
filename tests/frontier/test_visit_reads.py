"""What is due is read in one thread while a flush is written in another, and other agents visit the same pages: lives
of a frontier drawn at random, beside a model of its rows. Whatever crosses, the frontier knows when the next page is
due, and each comes.
"""

from __future__ import annotations

import random
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

import pytest

from scrapy_ubi.frontier import disk_visits, host_revisits
from scrapy_ubi.frontier import restore as opening
from scrapy_ubi.frontier.disk_frontier import DiskFrontier
from scrapy_ubi.frontier.flush import Flush
from scrapy_ubi.frontier.memory import MemoryFrontier
from scrapy_ubi.frontier.scan import Result, Scan
from scrapy_ubi.protocol.host import Entry, HostState
from scrapy_ubi.protocol.visit_row import VisitRow, merged
from tests.frontier.frontiers import DictKind, DictSeen
from tests.support.memory_store import MemoryStore

LIVES = 25  # in a test
STEPS = (20, 60, 200)
Rows = dict[str, dict[int, VisitRow]]


class Life:
    """One life, of few hosts; on disk, or in memory, where nothing is read or written."""

    def __init__(self, seed: int, on_disk: bool) -> None:
        self.chance = chance = random.Random(seed)
        self.names = [f"h{number}" for number in range(chance.choice([1, 1, 3]))]
        self.keys, self.span = chance.choice([3, 10, 40]), chance.choice([2, 10, 50])
        self.wall, self.mine = 100, set(self.names)
        self.known: dict[str, dict[int, Entry]] = {}
        self.rows: Rows = {}
        self.out: dict[tuple[str, int], bool] = {}  # -> whether it is to be visited again
        self.back: set[tuple[str, int]] = set()  # was out, and is to be visited still
        self.durable, self.pending = self.copy(), self.copy()
        self.store = MemoryStore()
        self.frontier: DiskFrontier | MemoryFrontier
        self.open(None if on_disk else MemoryFrontier())

    def open(self, frontier: MemoryFrontier | None, left: DictSeen | None = None) -> None:
        made = opening.restore(self.store, Path("seen"), kind=DictKind(left)) if frontier is None else frontier
        self.frontier = made
        self.flush: Flush | None = None
        self.is_written = False
        self.asked: dict[Scan, Result | None] = {}

    def copy(self) -> tuple[dict[str, dict[int, Entry]], Rows]:
        known = {host: {**held} for host, held in self.known.items()}
        return known, {host: {**rows} for host, rows in self.rows.items()}

    @property
    def disk(self) -> DiskFrontier | None:
        return self.frontier if isinstance(self.frontier, DiskFrontier) else None

    def is_mine(self, state: HostState) -> bool:
        return state.host in self.mine

    def state(self, host: str) -> HostState:
        state = self.frontier.find(host)
        assert state is not None
        return state

    def any_row(self, host: str, entry: Entry, generation: int) -> VisitRow:
        due = self.chance.choice([0, *[self.wall + self.chance.randint(-self.span // 2, self.span)] * 5])
        return VisitRow(generation, due, 0, 1, 0, self.wall, 5, 0, 3, "", "", entry)

    # -- what may happen

    def hear(self) -> None:
        """Another agent has visited pages, known here or not, one or more times; or one was found."""
        host = self.chance.choice(self.names)
        held, rows = self.known.setdefault(host, {}), self.rows.setdefault(host, {})
        for _ in range(self.chance.choice([1, 3, 20])):
            key = self.chance.randint(1, self.keys)
            entry = held.setdefault(key, Entry(key, f"http://{host}/{key}", 1))
            state, _ = self.frontier.add(host, [entry])
            if key not in rows and self.chance.random() < 0.3:
                continue
            before = rows.get(key)
            generation = (before.generation if before else 0) + self.chance.choice([0, 1, 1, 2])
            row = self.any_row(host, entry, max(generation, 1))
            self.frontier.add_done(state, [key])
            news = before is None or merged(before, row) != before
            assert self.frontier.keep_row(state, row) == news
            rows[key] = row if news or before is None else before

    def pop(self) -> bool:
        found = self.frontier.pop(1e6, self.is_mine)
        if found is None:
            return False
        state, entry = found
        row = self.rows.get(state.host, {}).get(entry.key)
        assert (state.host, entry.key) not in self.out and state.host in self.mine
        if row is not None:
            assert state.visits.out[entry.key] == row
            assert 0 < row.due <= self.wall or (state.host, entry.key) in self.back, "it is not due"
        self.out[state.host, entry.key] = row is not None
        self.frontier.free(state, 0.0)
        return True

    def end(self, again: bool = True) -> None:
        if not self.out:
            return
        host, key = self.chance.choice([*self.out])
        state, entry, visit = self.state(host), self.known[host][key], self.out.pop((host, key))
        before = self.rows.setdefault(host, {}).get(key)
        done = not again or self.chance.random() < 0.75
        if not visit and done:
            assert self.frontier.finish(state, key) == (before is None)
            if before is None:
                self.rows[host][key] = self.any_row(host, entry, 1)
                assert self.frontier.keep_row(state, self.rows[host][key])
        elif not visit:
            self.frontier.put_back(state, key)
        elif done:
            generation = state.visits.out[key].generation + 1
            row = self.any_row(host, entry, generation)
            row = row if again else row._replace(due=0)
            assert before is not None
            self.frontier.visited(state, key, row)
            self.rows[host][key] = merged(before, row)
        else:
            self.frontier.not_visited(state, key)
            self.back.add((host, key))

    def drop(self) -> None:
        if idle := [host for host in self.known if not any(host == name for name, _ in self.out)]:
            host = self.chance.choice(idle)
            self.frontier.drop(host)
            del self.known[host]
            self.rows.pop(host, None)

    def look_again(self) -> None:
        self.mine = {host for host in self.names if self.chance.random() < 0.6}
        self.frontier.look_again()

    def pass_time(self) -> None:
        self.wall += self.chance.choice([0, 1, 5])
        self.frontier.wake(self.wall, self.is_mine)

    def collect(self) -> None:
        if self.disk is not None and self.flush is None:
            self.flush, self.is_written, self.pending = self.disk.collect(), False, self.copy()

    def write(self) -> None:
        if self.flush is not None and not self.is_written:
            self.flush.write(self.store)
            self.is_written, self.durable = True, self.pending

    def written(self) -> None:
        if self.disk is not None and self.flush is not None and self.is_written:
            self.disk.written(self.flush)
            self.flush = None

    def ask(self) -> None:
        if self.disk is not None and not self.asked:
            self.asked = dict.fromkeys(self.disk.needs(1e6, self.is_mine))

    def read(self) -> None:
        for scan, result in self.asked.items():
            if self.disk is not None and result is None and self.chance.random() < 0.6:
                [self.asked[scan]] = self.disk.read([scan])

    def take(self) -> None:
        if self.disk is not None:
            self.disk.take([result or self.disk.read([scan])[0] for scan, result in self.asked.items()])
            self.asked = {}

    def crash(self) -> None:
        if self.disk is not None:
            left = self.disk.seen
            assert isinstance(left, DictSeen)
            self.store, self.out = MemoryStore(self.store.rows.copy()), {}
            self.known, self.rows = self.durable
            self.durable, self.pending = self.copy(), self.copy()
            self.open(None, left)

    # -- what must hold

    def check(self) -> None:
        for state in self.frontier.states():
            state.open_work = len({*state.out, *state.visits.out})
        self.frontier.check_invariants()
        for host, rows in self.rows.items():
            assert {key: row for key in self.known[host] if (row := self.state(host).visit_row(key))} == rows

    def hand_out(self) -> None:
        """All that is due comes, and nobody has to wait for a flush, nor to ask more often than there are pages."""
        self.mine = set(self.names)
        self.frontier.look_again()
        self.wall += 2 * self.span
        due = sum(1 for rows in self.rows.values() for row in rows.values() if row.due)
        waiting = sum(len(held) for held in self.known.values()) - sum(len(rows) for rows in self.rows.values())
        for _ in range(3 * (due + waiting) + 20):
            while self.out:
                self.end(again=False)
            for rows in self.rows.values():  # those done just now, and due later
                self.wall = max([self.wall, *(row.due for row in rows.values())])
            self.wall += 1
            self.frontier.wake(self.wall, self.is_mine)
            if not self.pop():
                self.ask()
                self.take()
        left = [row for rows in self.rows.values() for row in rows.values() if row.due]
        assert not left and not self.frontier.awaits(lambda state: True), f"what is due does not come: {left}"

    def run(self) -> None:
        steps = [self.hear, self.pop, self.pop, self.end, self.end, self.ask, self.read, self.take] * 2
        steps += [self.collect, self.write, self.written, self.pass_time] * 2 + [self.drop, self.look_again]
        for _ in range(self.chance.choice(STEPS)):
            self.chance.choice(steps if self.chance.random() < 0.99 else [self.crash])()
            if self.chance.random() < 0.3:
                self.check()
        self.take()
        self.hand_out()
        self.check()


def live(seed: int, on_disk: bool) -> None:
    """One life; few rows are at hand."""
    ready = random.Random(-seed - 1).choice([1, 2, 16])
    with ExitStack() as stack:
        for module in (disk_visits, host_revisits):
            stack.enter_context(patch.object(module, "READY", ready))
        Life(seed, on_disk).run()


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("first", range(0, 8 * LIVES, LIVES))
def test_what_is_due_comes_whatever_crosses(first: int, on_disk: bool) -> None:
    for seed in range(first, first + LIVES):
        try:
            live(seed, on_disk)
        except Exception as error:
            again = f"from tests.frontier.test_visit_reads import live; live({seed}, {on_disk})"
            error.add_note(f'seed {seed}; again: python -c "{again}"')
            raise
