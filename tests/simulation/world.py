"""A simulated world for the production protocol and frontier: agents, a web, a Redis and clocks, all drawn from one
seed.

Everything is a discrete event; nothing real is waited for. Agents run `scrapy_ubi.protocol.agent.Agent` on
`scrapy_ubi.frontier.memory.MemoryFrontier`, driven as the node drives them: beats in one loop, flushes in another,
fetches in between. Faults are events too (`plans.py` draws them). The checkers in `checkers.py` see only what the web
and Redis see.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from scrapy_ubi.frontier.memory import MemoryFrontier
from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.protocol.config import Config
from scrapy_ubi.protocol.host import Entry, HostState
from scrapy_ubi.protocol.mail import Bounds, Record
from scrapy_ubi.protocol.view import LOSSY, Beat
from scrapy_ubi.protocol.wire import decode

from .checkers import Referee, key_of

INTERVAL, LEASE, FAILURE, FLUSH = 0.5, 3.0, 5.0, 0.2
MOST_RECORDS = 10_000


@dataclass
class Web:
    """Hosts and pages; the links of a page are a pure function of the seed."""

    seed: int
    hosts: int
    pages: int

    def url(self, host: int, page: int) -> str:
        return f"http://h{host}.example/{page}"

    def links(self, url: str) -> list[str]:
        random = Random(f"{self.seed} {url}")
        host = int(url[8 : url.index(".")])
        out = []
        for _ in range(random.randint(2, 8)):
            to = host if random.random() < 0.6 else random.randrange(self.hosts)
            out.append(self.url(to, random.randrange(self.pages)))
        return out

    def reachable(self, seeds: list[str]) -> set[str]:
        seen, todo = set(seeds), list(seeds)
        for url in todo:
            for link in self.links(url):
                if link not in seen:
                    seen.add(link)
                    todo.append(link)
        return seen


def host_of(url: str) -> str:
    return url.split("/")[2]


def entry(url: str, depth: int) -> Entry:
    return Entry(key_of(url), url, depth)


class Redis:
    """What agents share. Every method is one atomic execution at the server."""

    def __init__(self) -> None:
        self.beats: dict[str, str] = {}
        self.inbox: dict[str, dict[int, dict[str, str]]] = {}
        self.acks: dict[str, dict[str, str]] = {}
        self.control: dict[str, str] = {}
        self.up = True
        self._count = 0

    def forget(self) -> None:
        self.beats, self.inbox, self.acks, self.control = {}, {}, {}, {}

    def exchange(self, agent: str, out: Outgoing) -> tuple[dict[int, dict[str, str]], dict[str, str], dict[str, str]]:
        for receiver, fields in out.letters:
            self._count += 1
            self.inbox.setdefault(receiver, {})[self._count] = fields
        for (sender, lane), text in out.answers.items():
            self.acks.setdefault(sender, {})[lane] = text
        box, acks = self.inbox.setdefault(agent, {}), self.acks.setdefault(agent, {})
        for number in out.consumed:
            box.pop(number, None)
        for lane in out.forget:
            acks.pop(lane, None)
        self.control.update(out.control)
        self.control.setdefault("run", "1") if out.control else None
        return dict(list(box.items())[:64]), dict(acks), dict(self.control)


@dataclass
class Outgoing:
    letters: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    answers: dict[tuple[str, str], str] = field(default_factory=dict)
    consumed: list[int] = field(default_factory=list)
    forget: list[str] = field(default_factory=list)
    control: dict[str, str] = field(default_factory=dict)


@dataclass
class Visit:
    state: HostState
    entry: Entry
    load: int | None = None  # the web's number of the load while it lasts
    freed: bool = False
    cancelled: bool = False


class Process:
    """One agent process: its clock, its loops, its fetches."""

    def __init__(self, world: World, name: str, seeds: list[str], config: Config, rate: float) -> None:
        self.world, self.name, self.rate = world, name, rate
        self.offset = world.random.uniform(0, 1000)
        self.up, self.paused, self.cut = True, False, False
        self.deferred: list[Callable[[], None]] = []
        self.counter = 0
        self.incarnations = 0
        self.visits: list[Visit] = []
        self.frontier = MemoryFrontier()
        self.store = f"{world.random.getrandbits(32):08x}"
        self.agent = Agent(name, self.store, config, self.frontier, self._incarnation, self.now())
        self.in_hand: dict[int, bool] = {}  # inbox number -> merged since the last drain
        self.out: Outgoing | None = None
        self.stopping = self.lossy = False
        self.beat_line: Beat = self.agent.beat
        self.seeds = seeds
        self.after(0, self.beat_loop)
        self.after(0.01, self.flush_loop)
        self.after(0.02, self.begin)

    def _incarnation(self) -> str:
        return f"{self.world.random.getrandbits(32):08x}"

    def now(self) -> float:
        return self.world.now * self.rate + self.offset

    def after(self, delay: float, what: Callable[[], None]) -> None:
        self.world.at(self.world.now + delay, lambda: self.run(what))

    def run(self, what: Callable[[], None]) -> None:
        if not self.up:
            return
        if self.paused:
            self.deferred.append(what)
            return
        what()

    # -- loops

    def begin(self) -> None:
        for url in self.seeds:
            self.agent.discover(host_of(url), entry(url, 0))
        self.agent.start_exhausted = True
        self.work()

    def beat_loop(self) -> None:
        self.after(INTERVAL, self.beat_loop)
        self.beat()

    def beat(self, last: bool = False) -> None:
        world, sent = self.world, self.now()
        self.counter += 1
        line = (self.agent.last_beat() if last else self.agent.beat).line(self.counter)
        self.lossy = self.agent.lossy or (last and LOSSY in line.split()[5])

        def execute() -> None:
            if not world.redis.up or self.cut or world.lost():
                return
            world.redis.beats[self.name] = line
            beats = dict(world.redis.beats)
            if not world.lost():
                self.after(world.delay(), lambda: self.beaten(sent, beats))

        world.at(world.now + world.delay(), execute)

    def beaten(self, sent: float, lines: dict[str, str]) -> None:
        self.agent.lease.acknowledged(sent)
        beats = {a: b for a, line in lines.items() if (b := Beat.parse(line)) is not None}
        self.agent.read(sent, self.now(), beats)
        self.world.note_deaths(self)
        self.work()

    def unsettled(self) -> set[int]:
        """Keys of pages out or done here whose done marks nobody else has acknowledged: P4 excuses them after a
        crash.
        """
        agent = self.agent
        keys = {visit.entry.key for visit in self.visits} | {key for _, _, key in agent._unsent}
        for lane in agent.outbox.lanes.values():
            for letter in lane.unacknowledged.values():
                keys |= {record.done for record in letter.records if record.done is not None}
            keys |= {item.done for item in lane.waiting if isinstance(item, Record) and item.done is not None}
        return keys

    def flush_loop(self) -> None:
        self.after(FLUSH, self.flush_loop)
        agent = self.agent
        agent.tick(self.now())
        if agent.cancel:
            agent.cancel = False
            self.cancel()
        if self.stopping and agent.may_go():
            self.go()
            return
        if self.out is None:
            effects = agent.drain(self.now())
            self.out = Outgoing(
                list(effects.letters),
                dict(effects.answers),
                [n for n, m in self.in_hand.items() if m],
                list(effects.forget),
            )
            if agent.finished:
                self.out.control = {"finished": "lossy" if agent.lossy else "whole"}
            self.send()
        self.work()

    def send(self) -> None:
        world, out = self.world, self.out
        assert out is not None
        answered = False

        def execute() -> None:
            if not world.redis.up or self.cut or world.lost():
                return
            got = world.redis.exchange(self.name, out)
            world.note_mail(out)
            if world.duplicated():
                world.redis.exchange(self.name, Outgoing(out.letters, out.answers))
            if not world.lost():
                self.after(world.delay(), lambda: reply(got))

        def reply(got: tuple[dict[int, dict[str, str]], dict[str, str], dict[str, str]]) -> None:
            nonlocal answered
            if not answered and self.out is out:
                answered = True
                self.out = None
                self.exchanged(out, *got)

        def again() -> None:
            if self.out is out:
                self.send()

        world.at(world.now + world.delay(), execute)
        self.after(1.0, again)

    def exchanged(
        self, out: Outgoing, inbox: dict[int, dict[str, str]], acks: dict[str, str], control: dict[str, str]
    ) -> None:
        for number in out.consumed:
            self.in_hand.pop(number, None)
        for number, fields in inbox.items():
            if number not in self.in_hand:
                self.in_hand[number] = True
                self.agent.receive(decode(fields, self.name, MOST_RECORDS, 4096))
        for lane, text in acks.items():
            self.agent.answered(lane, text, self.now())
        if "finished" in control:
            self.agent.accept_end(control["finished"] == "lossy")
        if self.agent.finished:
            self.go()
        self.work()

    # -- fetches

    def work(self) -> None:
        if not self.up or self.stopping:
            return
        while len(self.visits) < self.world.concurrency:
            found = self.agent.next(self.now())
            if found is None:
                return
            visit = Visit(*found)
            self.visits.append(visit)
            self.after(self.world.random.choice((0, 0, 0.01, 0.05)), lambda visit=visit: self.dispatch(visit))

    def dispatch(self, visit: Visit) -> None:
        if not self.world.mutations.get("no_dispatch_check") and not self.agent.may_fetch(visit.state, self.now()):
            self.free(visit)
            self.visits.remove(visit)
            self.agent.put_back(visit.state, visit.entry.key)
            return
        visit.load = self.world.referee.begin(self.world.now, self.name, visit.entry.url)
        load, duration = visit.load, self.world.random.uniform(0.005, 0.4)
        self.world.at(self.world.now + duration, lambda: self.world.referee.end(load))
        self.after(duration, lambda: self.loaded(visit))

    def free(self, visit: Visit) -> None:
        if not visit.freed:
            visit.freed = True
            self.agent.freed(visit.state, self.now())

    def cancel(self) -> None:
        for visit in list(self.visits):
            if visit.load is not None and not visit.freed:
                self.world.referee.end(visit.load)
                self.free(visit)
                visit.cancelled = True
                self.visits.remove(visit)
                self.agent.put_back(visit.state, visit.entry.key)

    def loaded(self, visit: Visit) -> None:
        if visit.cancelled:
            return
        self.free(visit)
        self.world.referee.loaded(self.name, visit.entry.url)
        self.after(self.world.random.choice((0.0, 0.01, 0.5)), lambda: self.parsed(visit))
        self.work()

    def parsed(self, visit: Visit) -> None:
        for url in self.world.web.links(visit.entry.url):
            self.agent.discover(host_of(url), entry(url, visit.entry.depth + 1))
        self.visits.remove(visit)
        self.agent.ended(visit.state, visit.entry.key)
        self.work()

    # -- ends

    def leave(self) -> None:
        """SIGTERM: no new fetches; when those under way have ended, hand over and go."""
        self.stopping = True

        def ready() -> None:
            if self.visits:
                self.after(0.1, ready)
            else:
                self.agent.leave(self.now())

        ready()

    def go(self) -> None:
        self.beat(last=True)
        self.up = False
        self.world.referee.closed(self.name, "finished" if not self.stopping else "left")

    def crash(self) -> None:
        self.world.referee.excuse(self.unsettled())
        self.up = False

    def pause(self, seconds: float) -> None:
        self.paused = True
        self.world.at(self.world.now + seconds, self.resume)

    def resume(self) -> None:
        self.paused = False
        deferred, self.deferred = self.deferred, []
        for what in deferred:
            self.run(what)


class World:
    """All of it; `run` until the crawl has ended everywhere or the limit is reached."""

    def __init__(self, seed: int, hosts: int = 12, pages: int = 12, replication: int = 1, concurrency: int = 4) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.now = 0.0
        self.steps = 0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self.web = Web(seed, hosts, pages)
        self.redis = Redis()
        self.referee = Referee(self)
        self.concurrency = concurrency
        self.loss = self.duplication = 0.0
        self.slow = 0.005
        self.drift = 0.0
        self.mutations: dict[str, bool] = {}
        self.processes: dict[str, Process] = {}
        self.all: list[Process] = []
        self.config = Config(
            replication=replication, replicas=20, lease_timeout=LEASE, failure_timeout=FAILURE, handoff_timeout=60.0,
            bounds=Bounds(window=4, records=20, size=100_000, resend=2.0),
        )  # fmt: skip
        self.seeds = [self.web.url(h, 0) for h in range(min(4, hosts))]
        self.sent = 0
        self._lost: set[str] = set()

    def at(self, time: float, what: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._events, (time, self._count, what))

    def delay(self) -> float:
        return self.random.expovariate(1 / self.slow)

    def lost(self) -> bool:
        return self.loss > 0 and self.random.random() < self.loss

    def duplicated(self) -> bool:
        return self.duplication > 0 and self.random.random() < self.duplication

    def note_deaths(self, observer: Process) -> None:
        """Whoever is declared dead while it lives is excused, from the first such declaration, as if it had crashed
        then.
        """
        for process in self.alive():
            incarnation = process.agent.incarnation
            if incarnation not in self._lost and observer.agent.watch.is_dead(incarnation):
                self._lost.add(incarnation)
                self.referee.excuse(process.unsettled())

    def note_mail(self, out: Outgoing) -> None:
        self.sent += len(out.letters)

    def start(self, name: str, seeds: bool = True) -> Process:
        rate = 1 + self.random.uniform(-self.drift, self.drift)
        process = Process(self, name, self.seeds if seeds else [], self.config, rate)
        self.processes[name] = process
        self.all.append(process)
        return process

    def alive(self) -> list[Process]:
        return [p for p in self.processes.values() if p.up]

    def run(self, limit: float, check: bool = True) -> None:
        while self._events and (self.alive() or self.now < 2.5):
            time, _, what = heapq.heappop(self._events)
            if time > limit:
                self.referee.hung(limit)
                return
            self.now = time
            self.steps += 1
            what()
            if check and self.steps % 50 == 0:
                for process in self.alive():
                    process.agent._check()
                    process.frontier._check()
