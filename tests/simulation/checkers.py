"""Checkers: one for each promise, apart from the code they check. They see the web's own log, and who closed how."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import mmh3

if TYPE_CHECKING:
    from .world import Process, World


def key_of(url: str) -> int:
    """The key of a page in the simulated web."""
    return mmh3.hash64(url, signed=False)[0]


class Violation(AssertionError):
    """A promise was broken."""


class Referee:
    """The web's access log."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.loads: dict[int, tuple[float, str, str]] = {}
        self.open: dict[str, set[int]] = {}
        self.fetched: Counter[str] = Counter()
        self.by: dict[str, list[str]] = {}
        self.ends: dict[str, str] = {}
        self.excused: set[int] = set()
        self._count = 0

    def begin(self, now: float, agent: str, url: str) -> int:
        """A request arrives. P2: never two at once at one host."""
        host = url.split("/")[2]
        open_loads = self.open.setdefault(host, set())
        if open_loads:
            other = self.loads[next(iter(open_loads))]
            raise Violation(
                f"P2: at {now:.3f} {agent} asks for {url} while {other[1]} loads {other[2]} since {other[0]:.3f}"
            )
        self._count += 1
        self.loads[self._count] = (now, agent, url)
        open_loads.add(self._count)
        return self._count

    def end(self, load: int) -> None:
        """The answer was sent, or the connection closed."""
        load_ = self.loads.pop(load, None)
        if load_ is not None:
            self.open[load_[2].split("/")[2]].discard(load)

    def loaded(self, agent: str, url: str) -> None:
        """An agent has received the whole page."""
        self.fetched[url] += 1
        self.by.setdefault(url, []).append(agent)

    def closed(self, agent: str, reason: str) -> None:
        """An agent closed by itself."""
        self.ends[agent] = reason

    def hung(self, limit: float) -> None:
        """P6: with faults over, the crawl ends."""
        left = "; ".join(f"{p.name}: {_told(p)}" for p in self.world.alive())
        raise Violation(f"P6: not over after {limit} s: {left}")

    def excuse(self, keys: set[int]) -> None:
        """An incarnation is lost: what P4 allows to be fetched again is what only it knew to be done, or had in
        flight.
        """
        self.excused |= keys

    def judge_outage(self) -> None:
        """An outage of Redis that hits everybody alike ends without anybody being declared dead (DESIGN 2.2)."""
        rejoined = [process.name for process in self.world.all if process.agent.counters.rejoins]
        if rejoined:
            raise Violation(f"outage: {rejoined} were declared dead though Redis was away for everybody")

    def judge(self) -> None:
        """P3 and P4, when all is over."""
        want = self.world.web.reachable(self.world.seeds)
        missing = want - self.fetched.keys()
        if missing:
            raise Violation(f"P3: {len(missing)} of {len(want)} pages never fetched, e.g. {sorted(missing)[:3]}")
        excused = {url for url in want if key_of(url) in self.excused}
        twice = {url: self.by[url] for url, n in self.fetched.items() if n > 1 and url not in excused}
        if twice:
            raise Violation(f"P4: {len(twice)} pages fetched again without excuse, e.g. {sorted(twice.items())[:3]}")


def _told(process: Process) -> str:
    agent = process.agent
    return (
        f"{agent.beat.line(0)} outbox={len(agent.outbox)} out={agent.out} unsent={len(agent._unsent)} "
        f"custody={len(agent.reception.custody)} syncs={len(agent.handover.open)} "
        f"pending={len(agent.handover.pending)} "
        f"lease={agent.lease.holds(process.now())} released={agent.tenure.released}"
    )
