"""A simulated world for the production protocol and frontier: agents with disks, a web, a Redis and clocks, all drawn
from one seed.

Everything is a discrete event; nothing real is waited for. `process.py` runs the production agent and frontier,
`disk.py` and `mailstore.py` are what they write to. Faults are events too (`plans.py` draws them). The checkers
(`checkers.py`, `watchers.py`) look on: at the web's log, at Redis, at disks, at the views that are met.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from scrapy_ubi.protocol.beat import Beat
from scrapy_ubi.protocol.config import Config
from scrapy_ubi.protocol.lane import Bounds
from scrapy_ubi.urls.host_shards import HostShards
from tests.simulation.budgets import Budgets
from tests.simulation.checkers import Referee, key_of
from tests.simulation.mailstore import Incoming, Outgoing, Redis
from tests.simulation.outputs import Outputs
from tests.simulation.outside import Outside
from tests.simulation.process import FAILURE, LEASE, Process, host_of
from tests.simulation.watchers import Watchers

STRIDE = 50  # events between two checks of every invariant of every agent (1 where `check` asks for it: 10 x slower)
LATE = 1.5  # s by which a piece of an exchange may come late when mail is reordered
SHORT, LONG = 0.4, 7.0  # s a load lasts at most: most of them, and one in ten
EPOCH = 1_800_000_000.0  # unix s when a world begins
LINES_KEPT = 4096
NEVER = 1e9  # s: the handoff time-out would hide agents that wait for each other
PATIENCE = 60.0  # s in which a crawl that is late comes nearer to its end, with the smallest letters, too


@dataclass
class Web:
    """Hosts and pages; the links of a page are a pure function of the seed."""

    seed: int
    hosts: int
    pages: int
    most: int = 1  # generations of a page
    _links: dict[tuple[str, int], list[str]] = field(default_factory=dict)

    def url(self, host: int, page: int) -> str:
        return f"http://h{host}.example/{page}"

    def urls(self) -> list[str]:
        """Every page there is."""
        return [self.url(host, page) for host in range(self.hosts) for page in range(self.pages)]

    def links(self, url: str, generation: int = 1) -> list[str]:
        """The pages that a page leads to when it is visited for that time: it may have changed since the last one."""
        out = self._links.get((url, generation))
        if out is None:
            random = Random(f"{self.seed} {url}" + (f" {generation}" if generation > 1 else ""))
            host = int(url[8 : url.index(".")])
            out = self._links[url, generation] = []
            for _ in range(random.randint(2, 8) if generation == 1 else random.choice((0, 0, 1, 3))):
                to = host if random.random() < 0.6 else random.randrange(self.hosts)
                out.append(self.url(to, random.randrange(self.pages)))
        return out

    def reachable(self, seeds: list[str]) -> set[str]:
        """What a complete crawl fetches."""
        seen, todo = set(seeds), list(seeds)
        for url in todo:
            for generation in range(1, self.most + 1):
                for link in self.links(url, generation):
                    if link not in seen:
                        seen.add(link)
                        todo.append(link)
        return seen


class World:
    """All of it; `run` until the crawl has ended everywhere or the limit is reached. `happened` counts what went wrong
    by itself (losses, duplicates, late pieces), beside the faults of the plan."""

    def __init__(
        self,
        seed: int,
        hosts: int = 12,
        pages: int = 12,
        replication: int = 1,
        concurrency: int = 4,
        on_disk: bool = False,
        loads: int = 1,
        shards: int = 1,
    ) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.now = 0.0
        self.steps = self.checks = 0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self.web = Web(seed, hosts, pages)
        self.keys = {key_of(url): url for url in self.web.urls()}
        self.redis = Redis(2 * FAILURE)
        self.outside: Outside | None = None
        self.watched = False  # agents ask for how long Redis is known to have forgotten nothing
        self.skews: tuple[float, ...] = (0.0,)  # s by which their clocks on the wall may be off
        self.concurrency = concurrency
        self.on_disk = on_disk
        self.loads = loads  # of most hosts that may be open at once
        self.cut = HostShards({f"h{host}.example": shards for host in range(0, hosts, 2)} if shards > 1 else {})
        self._places: dict[str, str] = {}
        self.loss = self.duplication = self.shuffling = 0.0
        self.slow = 0.005
        self.drift = 0.0
        self.rounds = 0  # how often each page is visited after the first time
        self.interval = 2  # s between two visits of a page
        self.halted = False  # nobody takes a request in hand
        self.noting = 0.0  # the chance that a page ends with a note of its host
        self.rate: tuple[int, float] | None = None  # of all pages together: loads, and seconds of the window
        self.rated: list[float] = []  # when loads have begun under it
        self.scribe = Random(f"notes {seed}")  # its own: who notes nothing draws the same from the other
        self.clerk = Random(f"outputs {seed}")  # likewise
        self.outputs: list[Outputs] = []  # of every disk that there was
        self.processes: dict[str, Process] = {}
        self.all: list[Process] = []
        self.living = 0
        self.awaited = 0  # processes that will come back
        self.config = Config(
            replication=replication, replicas=20, lease_timeout=LEASE, failure_timeout=FAILURE, handoff_timeout=NEVER,
            bounds=Bounds(window=4, records=20, size=100_000, resend=2.0),
        )  # fmt: skip
        self.seeds = [self.web.url(h, 0) for h in range(min(4, hosts))]
        self.happened: Counter[str] = Counter()
        self.referee = Referee(self)
        self.budgets = Budgets(self)
        self.watch = Watchers(self)
        self._declared: set[str] = set()
        self._forgotten: set[str] = set()  # incarnations that were there when Redis lost what it had
        self._lines: dict[str, Beat | None] = {}

    def host_of(self, url: str) -> str:
        """The partition key of a page: its host, or one of the shards that every other host is cut into."""
        if (host := self._places.get(url)) is None:
            host = self._places[url] = self.cut.key(host_of(url), url)
        return host

    def loads_of(self, host: str) -> int:
        """How many loads of this host may be open at once: of one host in three one, whatever the others may."""
        return 1 if int(host[1 : host.index(".")]) % 3 == 2 else self.loads

    def at(self, time: float, what: Callable[[], None]) -> None:
        """Let something happen at that time (s)."""
        self._count += 1
        heapq.heappush(self._events, (time, self._count, what))

    @property
    def wall(self) -> float:
        """The time on everybody's wall (unix s)."""
        return EPOCH + self.now

    def delay(self) -> float:
        """How long a message is under way (s)."""
        return self.random.expovariate(1 / self.slow)

    def load_time(self) -> float:
        """How long the web takes to answer (s): one page in ten may take longer than a lease."""
        return self.random.random() * (LONG if self.random.random() < 0.1 else SHORT)

    def lost(self) -> bool:
        """Whether a message is lost."""
        return self.loss > 0 and self._happens("message lost", self.loss)

    def _happens(self, what: str, chance: float) -> bool:
        happens = self.random.random() < chance
        self.happened[what] += happens
        return happens

    def parse(self, lines: dict[str, str]) -> dict[str, Beat]:
        """Lines as beats. A line is parsed once, whoever reads it."""
        known = self._lines
        if len(known) > LINES_KEPT:
            known.clear()
        for line in lines.values():
            if line not in known:
                known[line] = Beat.parse(line)
        return {agent: beat for agent, line in lines.items() if (beat := known[line]) is not None}

    def exchange(self, name: str, out: Outgoing) -> Incoming:
        """One exchange arrives at Redis: whole, twice, or in pieces that others overtake."""
        if self.outside is not None:
            self.outside.answered(out.answered)
        redis, random = self.redis, self.random
        if not self.shuffling or not self._happens("exchange in pieces", self.shuffling):
            got = redis.exchange(name, out, self.now)
            self.watch.mail(out)
            if self.duplication > 0 and self._happens("exchange twice", self.duplication):
                redis.exchange(name, Outgoing(out.letters, out.answers))
            return got
        for receiver, fields in out.letters:
            self._late(lambda receiver=receiver, fields=fields: redis.append(receiver, fields))
        for (sender, lane), text in out.answers.items():
            self._late(lambda sender=sender, lane=lane, text=text: redis.answer(sender, lane, text))
        if random.random() < 0.3:
            self._late(lambda: redis.exchange(name, Outgoing(out.letters, out.answers)) and None)
        rest = Outgoing([], {}, out.consumed, out.forget, out.control)
        for each in ("answered", "handed", "read_seeds", "end"):
            setattr(rest, each, getattr(out, each))
        return redis.exchange(name, rest, self.now)

    def post(self, out: Outgoing, number: int) -> bool:
        """Letters and answers arrive at the server of a mail slot, which may be full, or away: whether it takes them;
        whole, twice, or in pieces."""
        redis, slot = self.redis, self.redis.slots[number]
        if not slot.up or slot.full:
            self.happened["slot took nothing"] += 1
            return False
        pieces: list[Callable[[], None]] = []
        for receiver, fields in out.letters:
            pieces.append(lambda receiver=receiver, fields=fields: redis.append(receiver, fields))  # type: ignore[misc]
        for (sender, lane), text in out.answers.items():
            pieces.append(lambda sender=sender, lane=lane, text=text: redis.answer(sender, lane, text))  # type: ignore[misc]
        if self.shuffling and self._happens("exchange in pieces", self.shuffling):
            for piece in pieces:
                self._late(lambda piece=piece: piece() if slot.up else None)  # type: ignore[misc]
            return True
        for piece in pieces:
            piece()
        self.watch.mail(out)
        if self.duplication > 0 and self._happens("exchange twice", self.duplication):
            for piece in pieces:
                piece()
        return True

    def _late(self, piece: Callable[[], None]) -> None:
        self.at(self.now + self.random.uniform(0, LATE), lambda: piece() if self.redis.up else None)

    def forget(self) -> None:
        """FLUSHALL."""
        self.redis.forget()
        self.forgotten()

    def noticed(self, observer: Process) -> None:
        """An agent has read everybody's beats: what it concludes is looked at.

        Whoever is declared dead while it lives is excused, from the first such declaration, as if it had crashed then.
        """
        self.watch.view(observer)
        if self.referee.losses.news(observer):
            self.referee.look()
        for process in self.alive():
            if observer.agent.group.watch.is_dead(process.agent.incarnation):
                self._declare(process)

    def overlooked(self, observer: Process) -> None:
        """Whoever is fenced, and not known to this agent, is as good as dead to it: Redis had forgotten them before it
        came. Where it has, what that one had done is not known before all have settled in a view with it, though it is
        seen by then, and its lease may be mended: this agent goes on by the right of the last view that was complete
        for it, with what it had taken in hand before, and with what else it knows."""
        view, complete = observer.agent.view, observer.agent.view_history.complete
        for process in self.alive():
            agent, in_view = process.agent, view
            fenced = not agent.group.lease.holds(process.now())
            if agent.incarnation in self._forgotten:
                in_view = complete or view
                fenced = fenced or (agent.group.epoch > 0 and agent.view_history.complete is None)
            if fenced and process is not observer and in_view.incarnation(process.name) != agent.incarnation:
                self._declare(process)

    def forgotten(self) -> None:
        """Redis has not what it had: of nobody it is known that it lives, before that one beats again."""
        self._forgotten = {process.agent.incarnation for process in self.alive()}
        self.referee.forgotten()
        if self.outside is not None:
            self.outside.forgotten()

    def _declare(self, process: Process) -> None:
        if process.agent.incarnation not in self._declared:
            self._declared.add(process.agent.incarnation)
            self.happened["held dead alive"] += 1
            self.referee.held_dead(process)

    def declared_dead(self, process: Process) -> bool:
        """Whether somebody holds this living process dead."""
        return process.agent.incarnation in self._declared

    def start(self, name: str, seeds: bool = True) -> Process:
        """A process starts, with an empty disk."""
        self.referee.started()
        return self._start(name, seeds)

    def restart(self, name: str) -> Process:
        """A process starts again under a name that crashed, with the disk that was left."""
        before = self.processes[name]
        process = self._start(name, True, before)
        self.referee.returned(process)
        return process

    def _start(self, name: str, seeds: bool, before: Process | None = None) -> Process:
        rate = 1 + self.random.uniform(-self.drift, self.drift)
        process = Process(self, name, self.seeds if seeds else [], rate, before.disk if before else None)
        self.referee.gone.started(process)
        process.fewest = before.fewest if before else process.fewest
        self.processes[name] = process
        self.all.append(process)
        self.living += 1
        return process

    def ended(self, process: Process) -> None:
        """A process is no more."""
        process.up = False
        self.living -= 1

    def alive(self) -> list[Process]:
        """The processes that run."""
        return [p for p in self.processes.values() if p.up]

    def check(self) -> None:
        """Assert every invariant of every living agent; those of host states, which both have, at one of the two."""
        self.checks += 1
        for process in self.alive():
            if self.checks % 2:
                process.agent.check_invariants()
            else:
                process.frontier.check_invariants()

    def run(self, limit: float, stride: int = STRIDE) -> None:
        """Until nobody lives and nobody is awaited. Beyond the limit (s) only as long as that comes nearer."""
        events = self._events
        while events and (self.living or self.awaited or self.now < 2.5):
            time, _, what = heapq.heappop(events)
            if time > limit - PATIENCE:
                self.referee.hung()
                limit += PATIENCE
            self.now = time
            self.steps += 1
            what()
            if self.steps % stride == 0:
                self.check()
