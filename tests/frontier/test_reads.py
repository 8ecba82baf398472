"""Queues are read in one thread while a flush is written in another: both may end in any order, and whatever happens
meanwhile is taken in before or after. Lives of a frontier drawn at random, beside a model of what it stands for.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

import pytest

from scrapy_ubi.frontier import disk_frontier, flushes, rerank, window
from scrapy_ubi.frontier import restore as opening
from scrapy_ubi.frontier.disk_state import DiskState
from scrapy_ubi.frontier.flush import Flush
from scrapy_ubi.frontier.scan import Result, Scan
from scrapy_ubi.protocol.host import Entry
from tests.frontier.frontiers import DictKind, DictSeen
from tests.support.memory_store import MemoryStore

LIVES = 25  # in a test
STEPS = (20, 60, 200)
LONG = 1000.0  # s, longer than any host is put off
REQUESTS = ("", "", "", '{"retries":2}', '{"x":"%s"}' % ("y" * 600))


@dataclass
class Host:
    """What is known of a host: by key, and what of it is done."""

    waiting: dict[int, Entry] = field(default_factory=dict)
    out: dict[int, Entry] = field(default_factory=dict)
    done: set[int] = field(default_factory=set)


class Life:
    """One life, of few hosts with little room."""

    def __init__(self, seed: int) -> None:
        self.chance = chance = random.Random(seed)
        self.names = [f"h{number}" for number in range(chance.choice([1, 2, 6]))]
        self.keys, self.most = chance.choice([3, 8, 30]), chance.choice([1, 2, 8, 64])
        self.head, self.grown = chance.choice([1, 2, 8]), chance.choice([1, 4, 256])
        self.delay = chance.choice([0.0, 0.0, 1.0])
        self.now, self.mine, self.busy = LONG, set(self.names), dict[str, int]()
        self.hosts: dict[str, Host] = {}
        self.durable, self.pending = deepcopy(self.hosts), deepcopy(self.hosts)
        self.store, self.left = MemoryStore(), None
        self.open(self.left)

    def open(self, left: DictSeen | None) -> None:
        """As the process finds it that starts."""
        self.frontier = opening.restore(self.store, Path("seen"), delay=self.delay, most=self.most, kind=DictKind(left))
        held = self.frontier.window
        held.most, held.head, held.grown = self.most, self.head, max(self.head, self.grown)
        self.flush: Flush | None = None
        self.is_written = False
        self.asked: dict[Scan, Result | None] = {}

    def state(self, host: str) -> DiskState:
        state = self.frontier.find(host)
        assert isinstance(state, DiskState)
        return state

    def entry(self, host: str) -> Entry:
        chance, key = self.chance, self.chance.randint(1, self.keys)
        place = chance.randrange(4), chance.choice([0, 0, 0, 1, -1])
        return Entry(key + (int(host[1:]) << 20), f"http://{host}/{key}", *place, chance.choice(REQUESTS))

    # -- what may happen

    def add(self) -> None:
        host = self.chance.choice(self.names)
        entries = [self.entry(host) for _ in range(self.chance.choice([1, 2, 5, 20]))]
        known = self.hosts.setdefault(host, Host())
        news = self.frontier.add(host, entries)[1]
        unknown = {entry.key for entry in entries} - known.out.keys() - known.done
        assert {entry.key for entry in news} <= unknown
        assert unknown - known.waiting.keys() <= {entry.key for entry in news}
        known.waiting |= {entry.key: entry for entry in news}

    def mark(self) -> None:
        if not self.hosts:
            return
        host, known = self.chance.choice([*self.hosts.items()])
        keys = [*known.waiting] if self.chance.random() < 0.3 else [self.entry(host).key for _ in range(3)]
        news = self.frontier.add_done(self.state(host), keys)
        assert news == [key for key in dict.fromkeys(keys) if key not in known.done]
        known.done.update(news)
        for key in news:
            known.waiting.pop(key, None)

    def pop(self) -> bool:
        found = self.frontier.pop(self.now, lambda state: state.host in self.mine)
        if found is None:
            return False
        state, entry = found
        known = self.hosts[state.host]
        assert state.host in self.mine - self.busy.keys() and state.next_at <= self.now
        del known.waiting[entry.key]  # it waited: it was neither out nor done
        known.out[entry.key] = entry
        self.busy[state.host] = entry.key
        return True

    def free(self) -> None:
        if self.busy:
            host, _ = self.busy.popitem()
            self.frontier.free(self.state(host), self.now)

    def end(self) -> None:
        out = [(host, key) for host, known in self.hosts.items() for key in known.out]
        if not out:
            return
        host, key = self.chance.choice(out)
        state, known = self.state(host), self.hosts[host]
        entry = known.out.pop(key)
        if self.chance.random() < 0.75:
            assert self.frontier.finish(state, key) == (key not in known.done)
            known.done.add(key)
        else:
            self.frontier.put_back(state, key)
            if key not in known.done:
                known.waiting[key] = entry

    def drop(self) -> None:
        if idle := [host for host, known in self.hosts.items() if not known.out and host not in self.busy]:
            host = self.chance.choice(idle)
            self.frontier.drop(host)
            del self.hosts[host]

    def postpone(self) -> None:
        if self.hosts:
            self.frontier.postpone(
                self.state(self.chance.choice([*self.hosts])), self.now + self.chance.choice([1, 90])
            )

    def reorder(self) -> None:
        if self.hosts:
            host = self.chance.choice([*self.hosts])
            draws = random.Random(self.chance.random())

            def priorities(entries: Sequence[Entry]) -> list[int]:
                assert {entry.key for entry in entries} <= self.hosts[host].waiting.keys()
                return [draws.choice([-1, 0, 0, 1, 5]) for _ in entries]

            self.frontier.reorder(self.state(host), priorities, lambda: None)

    def look_at(self) -> None:
        if self.hosts:
            self.frontier.look_at(self.state(self.chance.choice([*self.hosts])))

    def look_again(self) -> None:
        self.mine = {host for host in self.names if self.chance.random() < 0.6}
        self.frontier.look_again()

    def pass_time(self) -> None:
        self.now += self.chance.choice([0.5, 5.0, 50.0])

    def collect(self) -> None:
        if self.flush is None:
            self.flush, self.is_written, self.pending = self.frontier.collect(), False, deepcopy(self.hosts)

    def write(self) -> None:
        if self.flush is not None and not self.is_written:
            self.flush.write(self.store)
            self.is_written, self.durable = True, self.pending

    def written(self) -> None:
        if self.flush is not None and self.is_written:
            self.frontier.written(self.flush)
            self.flush = None

    def ask(self) -> None:
        if not self.asked:
            self.asked = dict.fromkeys(self.frontier.needs(self.now, lambda state: state.host in self.mine))

    def read(self) -> None:
        for scan, result in self.asked.items():
            if result is None and self.chance.random() < 0.6:
                [self.asked[scan]] = self.frontier.read([scan])

    def take(self) -> None:
        self.frontier.take([result or self.frontier.read([scan])[0] for scan, result in self.asked.items()])
        self.asked = {}

    def crash(self) -> None:
        """What was out waits again, and nothing is known of what no flush has written."""
        left = self.frontier.seen
        assert isinstance(left, DictSeen)
        self.store, self.busy, self.hosts = MemoryStore(self.store.rows.copy()), {}, deepcopy(self.durable)
        for known in self.hosts.values():
            known.waiting |= {key: entry for key, entry in known.out.items() if key not in known.done}
            known.out = {}
        self.open(left)

    # -- what must hold

    def check(self) -> None:
        for state in self.frontier.states():
            state.open_work = len(state.out)
            assert isinstance(state, DiskState)
            assert not state.head or state in self.frontier.window.workbench, "a head that nobody finds"
        self.frontier.check_invariants()
        assert {state.host for state in self.frontier.states()} == self.hosts.keys()
        for host, known in self.hosts.items():
            state = self.state(host)
            assert (state.waiting, state.done_count) == (len(known.waiting), len(known.done))
            assert state.out.keys() == known.out.keys() and set(state.told_done()) == known.done
            assert {entry.key for entry in state.undone()} == known.waiting.keys() | known.out.keys() - known.done

    def hand_out(self) -> None:
        """All that waits comes, one after the other, whatever is read and flushed in between."""
        self.mine = set(self.names)
        self.frontier.look_again()
        for _ in range(10_000):
            while self.busy:
                self.free()
            while any(known.out for known in self.hosts.values()):
                self.end()
            if not any(known.waiting for known in self.hosts.values()):
                return
            if not self.pop():
                self.chance.choice([self.flush_all, self.pass_time])()
                self.ask()
                self.take()
        raise AssertionError(f"what waits does not come: {self.hosts}")

    def flush_all(self) -> None:
        for _ in range(2):
            self.write()
            self.written()
            self.collect()
        self.write()
        self.written()

    def run(self) -> None:
        steps = [self.add, self.pop, self.free, self.end, self.mark, self.ask, self.read, self.take] * 3
        steps += [self.collect, self.write, self.written, self.pass_time] * 2
        steps += [self.drop, self.postpone, self.look_again, self.look_at, self.flush_all]
        steps += [self.reorder] * self.chance.choice([0, 1, 8])
        for _ in range(self.chance.choice(STEPS)):
            self.chance.choice(steps if self.chance.random() < 0.995 else [self.crash])()
            if self.chance.random() < 0.2:
                self.check()
        self.take()
        self.hand_out()
        for _ in range(2):  # garbage is found, then thrown away
            self.flush_all()
            self.ask()
            self.take()
        self.flush_all()
        self.check()
        garbage = [state.garbage for state in self.frontier.states() if isinstance(state, DiskState)]
        assert len([*self.store.rows.irange(b"q", b"r")]) == sum(garbage), "rows that nobody counts"
        self.now += LONG
        assert not self.pop() and self.frontier.window.held == 0, "memory for what is done"
        self.crash()
        self.check()


def live(seed: int) -> None:
    """One life; what is done in pieces, or from some size on, is done in pieces here, too."""
    chance = random.Random(-seed - 1)
    garbage = chance.choice([1, 2, 16])
    sizes = {(flushes, "LEAST_GARBAGE"): garbage, (disk_frontier, "LEAST_GARBAGE"): garbage}
    sizes |= {(window, "LEAST_TIDY"): chance.choice([2, 64]), (window, "TIDY"): chance.choice([1, 3, 1024])}
    sizes |= {(rerank, "RANKED"): chance.choice([1, 3, 10_000])}
    with ExitStack() as stack:
        for (module, name), size in sizes.items():
            stack.enter_context(patch.object(module, name, size))
        Life(seed).run()


@pytest.mark.parametrize("first", range(0, 20 * LIVES, LIVES))
def test_reads_and_flushes_may_cross(first: int) -> None:
    for seed in range(first, first + LIVES):
        try:
            live(seed)
        except Exception as error:
            error.add_note(f'seed {seed}; again: python -c "from tests.frontier.test_reads import live; live({seed})"')
            raise
