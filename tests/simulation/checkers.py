"""Checkers: one for each promise, apart from the code they check. They see the web's own log, and who closed how."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .world import World


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
        left = {p.name: p.agent for p in self.world.alive()}
        told = "; ".join(
            f"{n}: {a.beat.line(0)} outbox={len(a.outbox)} out={a.out} settled={a.settled} released={a.tenure.released} "
            f"unsent={len(a._unsent)} held={len(a.reception.custody)} open={list(a.handover.open)[:3]} pending={list(a.handover.pending)[:3]} lease={a.lease.holds(self.world.processes[n].now())}"
            for n, a in left.items()
        )
        raise Violation(f"P6: not over after {limit} s: {told}")

    def judge(self, most_duplicates: int | None = 0) -> None:
        """P3 and P4, when all is over."""
        want = self.world.web.reachable(self.world.seeds)
        missing = want - self.fetched.keys()
        if missing:
            raise Violation(f"P3: {len(missing)} of {len(want)} pages never fetched, e.g. {sorted(missing)[:3]}")
        twice = {url: n for url, n in self.fetched.items() if n > 1}
        count = sum(n - 1 for n in twice.values())
        if most_duplicates is not None and count > most_duplicates:
            raise Violation(
                f"P4: {count} fetches too many (at most {most_duplicates}), e.g. {[(u, self.by[u]) for u in sorted(twice)[:3]]}"
            )
