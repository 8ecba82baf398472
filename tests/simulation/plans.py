"""What goes wrong in a simulated crawl, drawn from its seed: swarm testing, so that each crawl has its own few kinds
of fault.

A plan respects what the promises assume: at most `t` agents are lost with their state between two settled views, so a
crash waits until every living agent has seen the present view complete. Everything else comes at any moment. Faults
stop at `CALM`; from then on the crawl must end within `LIMIT`.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from scrapy_ubi.protocol.mail import Bounds

from .world import FAILURE, Process, World

CALM = 25.0  # s of simulated time from which on nothing goes wrong any more
LIMIT = 300.0  # s by which the crawl is over

KINDS = ("join", "leave", "crash", "restart", "pause", "cut", "amnesia", "outage", "lossy", "slow")


class Plan:
    """The world of one seed, with its faults scheduled. `str()` says what was drawn."""

    def __init__(self, seed: int, tight: bool | None = None) -> None:
        """`tight` (None: drawn): letters and windows so small that they are often full, absences that end about when
        others notice them, agents that leave as soon as they have joined, and sometimes no copies at all."""
        self.seed = seed
        self.tight = Random(f"tight {seed}").random() < 0.4 if tight is None else tight
        random = self.random = Random(f"plan {seed}")
        self._edges = Random(f"edges {seed}")
        self.replication = random.choice((1, 1, 1, 2))
        if self.tight and self._edges.random() < 0.3:
            self.replication = 0
        self.agents = random.randint(1, 5)
        hosts, pages = random.choice(((12, 12), (4, 30), (30, 5), (2, 60)))
        self.world = World(seed, hosts, pages, self.replication, concurrency=random.choice((1, 4, 8)))
        if self.tight:
            self.world.config = self.world.config._replace(bounds=Bounds(window=1, records=3, size=100_000, resend=2.0))
        self.world.drift = random.choice((0.0, 0.0, 0.02))
        self.kinds = random.sample(KINDS, random.randint(0, 3))
        self.faults: list[tuple[float, str]] = []
        self.crashed: list[str] = []
        self.too_many_lost = False
        for number in range(self.agents):
            self.world.at(
                random.choice((0.0, random.uniform(0, 2))), lambda number=number: self.world.start(f"a{number}")
            )
        for kind in self.kinds:
            for _ in range(random.randint(1, 3)):
                self.at(random.uniform(1, CALM - 1), kind)

    def __str__(self) -> str:
        faults = ", ".join(f"{kind} at {time:.1f}" for time, kind in sorted(self.faults))
        tight = ", tight" if self.tight else ""
        return f"seed {self.seed}: {self.agents} agents, t={self.replication}{tight}, {faults or 'no faults'}"

    def at(self, time: float, kind: str) -> None:
        """Let a fault of this kind happen at that time."""
        self.faults.append((time, kind))
        self.world.at(time, getattr(self, kind))

    def run(self) -> World:
        """Run to the end and judge."""
        self.world.run(LIMIT)
        self.too_many_lost = any(process.lossy or process.agent.lossy for process in self.world.all)
        if set(self.kinds) <= {"outage", "amnesia"}:
            self.world.referee.judge_outage()
        if not self.too_many_lost:
            self.world.referee.judge()
        return self.world

    def _pick(self, least: int = 1) -> Process | None:
        """A living agent that is not leaving, when there are at least so many."""
        living = [process for process in self.world.alive() if not process.stopping]
        return self.random.choice(living) if len(living) >= least else None

    def _until(self, end: Callable[[], None]) -> None:
        seconds = self._edge(self.random.choice((0.5, 2.0, FAILURE + 1, 12.0)))
        self.world.at(min(self.world.now + seconds, CALM), end)

    def _edge(self, seconds: float) -> float:
        """In a tight plan, an absence of about the failure timeout instead: some see it, some do not."""
        return self._edges.uniform(FAILURE - 0.5, FAILURE + 1.5) if self.tight else seconds

    def _settled(self) -> bool:
        """Whether every living agent has seen one and the same view complete, that of exactly the living."""
        living = {process.name for process in self.world.alive()}
        views = {p.agent.tenure.complete.digest for p in self.world.alive() if p.agent.tenure.complete is p.agent.view}
        agents = [set(process.agent.view.members) for process in self.world.alive()]
        seen = all(p.agent.tenure.complete is p.agent.view for p in self.world.alive())
        return seen and len(views) == 1 and all(members == living for members in agents)

    # -- the kinds of fault

    def join(self) -> None:
        if self.world.alive():
            process = self.world.start(f"j{len(self.world.all)}", seeds=self.random.random() < 0.5)
            if self.tight and self._edges.random() < 0.5:
                self._soon_gone(process)

    def _soon_gone(self, process: Process) -> None:
        """Who has joined leaves as soon as it has begun to fetch: some may not even have seen its view complete."""
        if process.visits:
            process.leave()
        elif process.up and self.world.now < CALM:
            self.world.at(self.world.now + 0.02, lambda: self._soon_gone(process))

    def leave(self) -> None:
        if process := self._pick(least=2):
            process.leave()

    def crash(self) -> None:
        if self._settled() and self.world.now < CALM and (process := self._pick(least=2)):
            process.crash()
            self.crashed.append(process.name)
        elif self.world.now < CALM:
            self.world.at(self.world.now + 0.5, self.crash)

    def restart(self) -> None:
        if self._settled() and self.world.now < CALM and (process := self._pick(least=2)):
            process.crash()
            self.world.at(self.world.now + self.random.choice((0.0, 1.0, 8.0)), lambda: self._return(process))
        elif self.world.now < CALM:
            self.world.at(self.world.now + 0.5, self.restart)

    def _return(self, process: Process) -> None:
        if self.world.alive():
            self.world.start(process.name)

    def pause(self) -> None:
        if process := self._pick():
            seconds = self.random.choice((1.0, 3.5, FAILURE + 2, 12.0))
            process.pause(min(self._edge(seconds), CALM - self.world.now))

    def cut(self) -> None:
        if process := self._pick():
            process.cut = True
            self._until(lambda: setattr(process, "cut", False))

    def amnesia(self) -> None:
        self.world.redis.forget()

    def outage(self) -> None:
        self.world.redis.up = False
        if self.random.random() < 0.7:
            self.world.redis.forget()
        self._until(lambda: setattr(self.world.redis, "up", True))

    def lossy(self) -> None:
        self.world.loss = self.random.choice((0.02, 0.1, 0.3))
        self.world.duplication = self.random.choice((0.0, 0.1))
        self._until(self._sound)

    def slow(self) -> None:
        self.world.slow = self.random.choice((0.05, 0.3))
        self._until(self._sound)

    def _sound(self) -> None:
        self.world.loss = self.world.duplication = 0.0
        self.world.slow = 0.005
