"""Whole agents with their disks, under faults drawn from a seed: nothing is lost unless the agents say so, nothing
fetched twice but what only a process knew that was killed, held dead or asked to go when nobody was left, no host is
fetched by two at once, and the crawl ends.
"""

from __future__ import annotations

import gc
import heapq
import os
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import count
from random import Random
from typing import Any
from unittest.mock import patch

import pytest

from scrapy_ubi.agent import builder
from scrapy_ubi.agent.mail.io_thread import IoThread
from scrapy_ubi.frontier import disk_frontier, disk_state, flushes, window
from scrapy_ubi.protocol.beat import LOSSY
from scrapy_ubi.protocol.records import Record
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.transport.in_process import MemoryHub
from tests.agent.whole import Files, Process
from tests.simulation.process import host_of
from tests.simulation.world import Web, key_of

CALM = 12.0  # s from which on nothing goes wrong any more
LIMIT = 1000.0  # s by which the crawl is over
LEASE, FAILURE = 3.0, 5.0
LIVES = 2  # in a test
WEBS = ((6, 8), (3, 15), (15, 3), (1, 30))  # hosts, pages of each
ABSENCES = (0.5, 2.0, FAILURE + 1.5)  # s


def _iterations(chance: Random) -> dict[str, Any]:
    """Of a third of all crawls; by draws of their own, so that those of older seeds are what they were."""
    if chance.random() > 0.33:
        return {}
    rank, take = chance.choice([None, "backlinks", "bfs"]), chance.choice([1, 2, 5])
    return {"host_iterate": True, "host_load_take": take, "rank": rank, "max_load_seconds": 60.0, "hosts_at_once": take}


class World:
    """One crawl."""

    def __init__(self, seed: int) -> None:
        chance = self.chance = Random(seed)
        self.now, self.hub, self.story = 0.0, MemoryHub(), list[str]()
        self.web = Web(seed, *chance.choice(WEBS))
        self.seeds = [self.web.url(host, 0) for host in range(min(4, self.web.hosts))]
        self.rows, self.head = chance.choice([1, 2, 6, 30]), chance.choice([1, 2, 8])
        self.concurrency, self.max_letters = chance.choice([1, 4, 16]), chance.choice([1, 3, 64])
        self._pauses = chance.choice([(0.0,), (0.0, 0.03), (0.0, 0.05, 0.3), (0.01, 0.2, 1.0)])
        self._slow = chance.choice([0.002, 0.02, 0.1])
        self.settings = replace(self._drawn(), **_iterations(Random(f"iterations {seed}")))
        self.processes: dict[str, Process] = {}
        self.files: dict[str, Files] = {}
        self.loads: dict[str, tuple[Process, str]] = {}
        self.fetched, self.tokens = Counter[str](), Counter[int]()
        self.awaited = 0
        self._all: list[Process] = []  # what was killed is not to be tidied up while others run
        self._numbers = count()
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        for number in range(chance.randint(1, 4)):
            self.soon(chance.choice([0.0, 1.0]), lambda number=number: self.start(f"a{number}"))
        faults = [self.join, self.leave, self.lose, self.kill_one, self.kill_all, self.stop_all]
        faults += [self.pause, self.cut, self.outage, self.forget, self.fill_redis, self.fill_disk]
        for fault in chance.sample(faults, chance.randint(0, 4)):
            for _ in range(chance.randint(1, 3)):
                self.at(chance.uniform(0.5, CALM), lambda fault=fault: self._befall(fault))

    def _drawn(self) -> UbiSettings:
        chance, tight = self.chance, self.chance.random() < 0.5
        return UbiSettings(
            redis_url="redis://nowhere", redis_wait=LIMIT, crawl="crawl", replicas=20,
            replication=chance.choice([0, 1, 1, 2]), host_delay=chance.choice([0.0, 0.0, 0.1]),
            heartbeat_interval=0.5, lease_timeout=LEASE, failure_timeout=FAILURE, flush_interval=0.2,
            handoff_timeout=LIMIT, leave_timeout=LIMIT, resend_timeout=2.0, flush_records=chance.choice([1, 10, 1000]),
            window=1 if tight else 8, letter_records=3 if tight else 500, outbox_records=chance.choice([20, 200_000]),
            suppressed_keys=chance.choice([1, 10, 1_000_000]),
        )  # fmt: skip

    def io(self) -> float:
        return self.chance.choice(self._pauses)

    def lag(self) -> float:
        return self.chance.expovariate(1 / self._slow)

    def load_time(self) -> float:
        return self.chance.random() * (LEASE + FAILURE if self.draws(0.05) else 0.3)

    def draws(self, chance: float) -> bool:
        return self.chance.random() < chance

    def at(self, when: float, what: Callable[[], None]) -> None:
        heapq.heappush(self._events, (when, next(self._numbers), what))

    def soon(self, seconds: float, what: Callable[[], None]) -> None:
        """After a while, for which the crawl does not end."""

        def come() -> None:
            self.awaited -= 1
            what()

        self.awaited += 1
        self.at(self.now + seconds, come)

    # -- processes

    def alive(self) -> list[Process]:
        return [process for process in self.processes.values() if process.up]

    def start(self, name: str) -> None:
        if not self.is_over and name not in [process.name for process in self.alive()]:
            self._say(f"{name} starts")
            files = self.files.setdefault(name, Files())
            self.processes[name] = Process(self, name, files, self.chance.uniform(0, 1000))
            self._all.append(self.processes[name])

    @property
    def is_over(self) -> bool:
        """Whether somebody has seen the end: who comes later begins a new crawl."""
        return any(process.node is not None and process.node.over for process in self.processes.values())

    def _say(self, text: str) -> None:
        self.story.append(f"{self.now:.2f} {text}")

    def is_refused(self, process: Process) -> None:
        self.soon(1.0, lambda: self.start(process.name))

    def has_left(self, process: Process) -> None:
        assert process.node is not None
        if not process.node.over:
            self._say(f"{process.name} has left")
        self._excuse_those_who_keep_it()

    # -- the web

    @contextmanager
    def load(self, process: Process, url: str) -> Iterator[None]:
        host, load = host_of(url), (process, url)
        assert host not in self.loads, f"{process.name} asks for {url} while another loads {self.loads[host][1]}"
        self.loads[host] = load
        try:
            yield
        finally:
            if self.loads.get(host) is load:
                del self.loads[host]

    def _hang_up(self, process: Process) -> None:
        self.loads = {host: load for host, load in self.loads.items() if load[0] is not process}

    def has_loaded(self, process: Process, url: str) -> None:
        if self.fetched[url]:
            self._excuse_those_who_keep_it()  # what they said last may have been read before they have ended
            assert self.tokens[key_of(url)] > 0, f"{process.name} has fetched {url} again"
            self.tokens[key_of(url)] -= 1
        self.fetched[url] += 1

    def _excuse_those_who_keep_it(self) -> None:
        """Who has left and handed nothing on, as nobody was there to take it, or says that something is lost."""
        for process in self._all:
            node = process.node
            if process.excused or not process.up or node is None or node.status.state not in ("left", "finished"):
                continue
            alone = node.status.state == "left" and not node.agent.view.members
            if alone or LOSSY in node.agent.last_beat().flags:
                process.excused = True
                self._excuse(process)

    def _excuse(self, process: Process) -> None:
        """What nobody else knows to be done may be fetched again."""
        nodes = [one.node for one in self.alive() if one is not process]
        frontiers = [node.frontier for node in nodes if node is not None]
        for url in self.fetched:
            states = [frontier.find(host_of(url)) for frontier in frontiers]
            if not any(state is not None and state.is_done(key_of(url)) for state in states):
                self.tokens[key_of(url)] += 1
        if process.node is None:
            return
        agent = process.node.agent
        keys = {key for _, _, key in agent.closing.unsent}
        keys |= {visit.entry.key for visit in process.node.handout.under_way()}
        for lane in agent.outbox.lanes.values():
            letters = [record for letter in lane.unacknowledged.values() for record in letter.records]
            waiting = [item for item in lane.waiting if isinstance(item, Record)]
            keys |= {record.done for record in (*letters, *waiting) if record.done is not None}
        self.tokens.update(keys)

    # -- what befalls it

    def _befall(self, fault: Callable[[], None]) -> None:
        if not self.is_over and self.alive():
            self._say(fault.__name__)
            fault()

    def _one(self) -> Process:
        return self.chance.choice(self.alive())

    def join(self) -> None:
        self.start(f"j{len(self.processes)}")

    def leave(self) -> None:
        if len([process for process in self.alive() if not process.stopping]) > 1:
            self._go_and_come_back(self._one())

    def stop_all(self) -> None:
        for process in self.alive():
            self._go_and_come_back(process)

    def _go_and_come_back(self, process: Process) -> None:
        process.stop()

        def look() -> None:
            gone = not any(other.up and other.stopping for other in self.processes.values())
            self.soon(0.3, (lambda: self.start(process.name)) if gone else look)

        look()

    def _kill(self, process: Process) -> None:
        self._excuse(process)
        self._hang_up(process)
        process.up = False
        self.soon(self.chance.choice([0.0, 1.0, FAILURE, 8.0]), lambda: self.start(process.name))

    def kill_one(self) -> None:
        self._kill(self._one())

    def kill_all(self) -> None:
        for process in self.alive():
            self._kill(process)

    def lose(self) -> None:
        """One is killed, and its disk lost, where all copies are there."""
        nodes = [process.node for process in self.alive()]
        views = {
            node.agent.view.digest if node.agent.view_history.complete is node.agent.view else ""
            for node in nodes
            if node
        }
        settled = len(views) == 1 and "" not in views and None not in nodes
        if settled and self.settings.replication and len(nodes) > 1 and len(nodes) == len(nodes[0].agent.view.members):
            process = self._one()
            self._kill(process)
            self.files[process.name] = Files()

    def pause(self) -> None:
        process = self._one()
        self._excuse(process)
        self._hang_up(process)
        process.paused = True
        self.soon(self.chance.choice(ABSENCES), lambda: setattr(process, "paused", False))

    def cut(self) -> None:
        process, seconds = self._one(), self.chance.choice(ABSENCES)
        process.transport.cut = True
        self.soon(seconds, lambda: setattr(process.transport, "cut", False))
        if seconds > LEASE:  # then it is held dead
            self.at(self.now + LEASE + 0.5, lambda: self._excuse(process))

    def _switch(self, what: object, name: str) -> None:
        setattr(what, name, True)
        self.soon(self.chance.choice(ABSENCES), lambda: setattr(what, name, False))

    def outage(self) -> None:
        self._switch(self.hub, "down")

    def fill_redis(self) -> None:
        self._switch(self.hub, "full")

    def fill_disk(self) -> None:
        self._switch(self._one().files, "full")

    def forget(self) -> None:
        self.hub.flush()

    # -- and its end

    def _turn(self) -> None:
        """Whatever is next."""
        due = [
            (at, process) for process in self.alive() if not process.paused and (at := process.loop.due()) is not None
        ]
        at, process = min(due, key=lambda one: one[0], default=(LIMIT, None))
        if self._events and self._events[0][0] <= at:
            self.now, _, what = heapq.heappop(self._events)
            what()
        else:
            self.now = at
            assert process is not None and at < LIMIT, f"not over: {[(one.name, one.node) for one in self.alive()]}"
            process.step()

    def run(self) -> None:
        while self.awaited or self.alive():
            self._turn()
        missing = self.web.reachable(self.seeds) - self.fetched.keys()
        said = any(process.node is not None and process.node.agent.lossy for process in self._all)
        assert said or not missing, f"never fetched: {sorted(missing)}"


def live(seed: int) -> World:
    """One crawl; what is done in pieces, or from some size on, is done in pieces here, too."""
    chance, world = Random(-seed - 1), World(seed)
    garbage = chance.choice([1, 2, 16])
    sizes: dict[tuple[object, str], object] = {
        (disk_frontier, "LEAST_GARBAGE"): garbage,
        (flushes, "LEAST_GARBAGE"): garbage,
    }
    sizes |= {(window, "LEAST_TIDY"): chance.choice([2, 64]), (window, "TIDY"): chance.choice([1, 3, 1024])}
    sizes |= {(window, "MOST_SCANS"): chance.choice([1, 3, 64]), (disk_state, "PIECE"): chance.choice([1, 3, 256])}
    sizes |= {(secrets, "token_hex"): lambda size: f"{chance.getrandbits(8 * size):0{2 * size}x}"}
    sizes |= {(time, "time"): lambda: 1e9 + world.now, (builder, "IoThread"): lambda own_thread: IoThread(False)}
    with ExitStack() as stack:
        for (module, name), size in sizes.items():
            stack.enter_context(patch.object(module, name, size))
        try:
            world.run()
            return world
        except BaseException as error:
            again = f'python -c "from tests.agent.test_whole import live; live({seed})"'
            error.add_note(f"seed {seed}: {', '.join(world.story)}; again: {again}")
            raise


pytestmark = pytest.mark.filterwarnings(  # what a killed process was about to do is never done
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::RuntimeWarning", "ignore::ResourceWarning"
)


@pytest.mark.parametrize("first", range(0, 5 * LIVES, LIVES))
def test_promises_hold_for_whole_agents(first: int) -> None:
    for seed in range(first, first + LIVES):
        live(seed)


def test_promises_hold_for_whole_agents_that_nobody_has_seen() -> None:
    first = int(os.environ.get("UBI_TEST_SEED") or time.time_ns() // 1_000_000)
    for seed in range(first, first + LIVES):
        live(seed)
        gc.collect()
