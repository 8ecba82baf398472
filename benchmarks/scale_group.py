"""How long a large group takes to agree after a crash, a join or a leave, and what its beats weigh. A part of scale.py.

Whole production agents (with an empty frontier, so nothing is to be handed over) read and write beats in virtual time.
The beating follows `transport/heartbeat.py`: one beat an interval, each agent in a phase of its own; out of turn when
what it says has changed, at most 20 times an interval; a read of all beats is one atomic look at the server. A request
takes some milliseconds there and some back. Faults other than the one measured there are none.

Views are values, so equal ones are kept once for all agents (`sharing_views`): a thousand agents in one process would
otherwise hold a thousand copies of a ring of 200,000 points.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from random import Random

from scrapy_ubi.frontier.memory import MemoryFrontier
from scrapy_ubi.protocol import view as view_module
from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.protocol.beat import Beat
from scrapy_ubi.protocol.config import Config
from scrapy_ubi.protocol.ring import Ring
from scrapy_ubi.protocol.view import View
from scrapy_ubi.transport.heartbeat import SOONER, next_turn

DELAY = 0.002  # s one way to the server and back again, mean of an exponential distribution

CYCLE = ("crash", "join", "leave", "join")  # changes, after which there are as many agents as before

Apart = Callable[[int, float, float], float]  # members, interval, lease -> seconds between two reads, at least


@contextmanager
def sharing_views() -> Iterator[None]:
    """Views and rings that are equal are one object, as long as this lasts."""
    real_ring, real_of = view_module._ring, View.of
    rings: dict[frozenset[tuple[str, int]], Ring] = {}
    views: dict[str, View] = {}

    def ring(replicas: dict[str, int], near: View | None) -> Ring:
        key = frozenset(replicas.items())
        if key not in rings:
            rings[key] = real_ring(replicas, near)
        return rings[key]

    def of(members: Mapping[str, view_module.Member], near: View | None = None) -> View:
        view = real_of(members, near)
        return views.setdefault(view.digest, view)

    view_module._ring, View.of = ring, staticmethod(of)  # type: ignore[assignment,method-assign]
    try:
        yield
    finally:
        view_module._ring, View.of = real_ring, real_of  # type: ignore[method-assign]


@dataclass
class Timing:
    """The settings a group runs with, s. `apart`: how far apart an agent's reads are, at least."""

    interval: float
    lease: float
    failure: float
    apart: Apart


class Peer:
    """One agent and its heart."""

    def __init__(self, group: Group, name: str) -> None:
        self.group, self.name = group, name
        random, timing = group.random, group.timing
        config = Config(lease_timeout=timing.lease, failure_timeout=timing.failure)
        self.agent = Agent(name, name, config, MemoryFrontier(), lambda: f"{random.getrandbits(32):08x}", group.now)
        self.start = group.now
        self.up, self.soon, self.busy = True, False, False
        self.earliest = 0.0
        self.read_sent = -1e9
        self.turn = 0  # number of the turn that counts: out of turn beats set another one
        self.counter = 0
        self.said: Beat = self.agent.beat

    def set(self, at: float) -> None:
        """The next beat is at this time."""
        self.turn += 1
        self.group.at(at, self.beat, self.turn)

    def beat(self, turn: int) -> None:
        """Write the own beat, and read everybody's unless the last read is too young."""
        group, now = self.group, self.group.now
        if not self.up or turn != self.turn:
            return
        self.busy, self.soon = True, False
        self.counter += 1
        self.said = self.agent.beat
        beat = replace(self.said, counter=self.counter)
        timing = group.timing
        apart = timing.apart(len(self.agent.view.members), timing.interval, timing.lease)
        reads = now - self.read_sent >= apart - timing.interval / 2  # as heartbeat.py
        if reads:
            self.read_sent = now
        group.at(now + group.delay(), self.execute, beat, now, reads)

    def execute(self, beat: Beat, sent: float, reads: bool) -> None:
        """At the server."""
        group = self.group
        group.beats[self.name] = beat
        group.writes += 1
        group.reads += reads
        seen = dict(group.beats) if reads else None
        group.at(group.now + group.delay(), self.answered, sent, seen)

    def answered(self, sent: float, seen: dict[str, Beat] | None) -> None:
        """The beat is acknowledged; what was read goes to the protocol."""
        if not self.up:
            return
        now, interval = self.group.now, self.group.timing.interval
        self.busy = False
        self.earliest = now + interval / SOONER
        self.agent.group.lease.acknowledged(sent)
        if seen is not None:
            self.agent.read(sent, now, seen)
            self.agent.tick(now)  # nothing else happens to it: no tick in between would change what it says
            self.group.watch(self)
        self.set(next_turn(self.start, interval, now))
        self.publish()

    def publish(self) -> None:
        """Beat out of turn when what is to be said has changed, as the node does."""
        old, new = self.said, self.agent.beat
        if replace(old, activity=0, dead=()) != replace(new, activity=0, dead=()) and not self.busy and not self.soon:
            self.soon = True
            self.set(max(self.group.now, self.earliest))


@dataclass
class Change:
    """One change of the group: who entered the view that follows from it, and who saw that view complete, when."""

    kind: str
    agent: str
    at: float
    entered: dict[str, float] = field(default_factory=dict)
    complete: dict[str, float] = field(default_factory=dict)


class Group:
    """A number of agents with their server."""

    def __init__(self, count: int, timing: Timing, seed: int) -> None:
        self.random, self.timing, self.now = Random(seed), timing, 0.0
        self.beats: dict[str, Beat] = {}
        self.reads = self.writes = 0
        self._events: list[tuple[float, int, Callable[..., None], tuple[object, ...]]] = []
        self._count = self._names = 0
        self.change: Change | None = None
        self.peers: dict[str, Peer] = {}
        apart = timing.apart(count, timing.interval, timing.lease)
        for _ in range(count):
            peer = self.join(self.random.uniform(0, max(timing.interval, apart)))  # beats and reads have a phase each
            peer.agent.sure()  # as the first agents of a new crawl are: nobody waits for a lease to pass
            self.beats[peer.name] = peer.agent.beat
        self.change = Change("start", "", 0.0)
        self.until(self.agreed, 20 * timing.failure)

    def join(self, wait: float) -> Peer:
        """An agent more, whose first beat is after so many seconds."""
        self._names += 1
        peer = Peer(self, f"crawler-{self._names}")
        peer.start = self.now + wait
        self.peers[peer.name] = peer
        peer.set(peer.start)
        return peer

    def at(self, time: float, what: Callable[..., None], *args: object) -> None:
        """Let something happen at that time."""
        self._count += 1
        heapq.heappush(self._events, (time, self._count, what, args))

    def delay(self) -> float:
        """One way to the server, s."""
        return self.random.expovariate(1 / DELAY)

    def until(self, done: Callable[[], bool], most: float) -> None:
        """Go on until this is so. Raises RuntimeError when it is not after so many seconds."""
        end = self.now + most
        while not done():
            self.now, _, what, args = heapq.heappop(self._events)
            if self.now > end:
                raise RuntimeError(f"no agreement within {most:g} s")
            what(*args)

    def watch(self, peer: Peer) -> None:
        """Note what an agent has just come to believe."""
        change, agent = self.change, peer.agent
        if change is None or (peer.name == change.agent and change.kind != "join"):
            return
        if (change.agent in agent.view.members) == (change.kind == "join"):
            change.entered.setdefault(peer.name, self.now)
            if agent.view_history.complete is agent.view:
                change.complete.setdefault(peer.name, self.now)

    def agreed(self) -> bool:
        """Whether everybody who is there has seen the view complete that follows from the last change."""
        change = self.change
        assert change is not None
        return len(change.complete) >= len(self.peers) - (change.kind == "leave")

    def happen(self, kind: str) -> Change:
        """A crash, a join or a leave of one agent at a random moment, and all that follows, until everybody agrees."""
        timing = self.timing
        span = max(timing.interval, timing.apart(len(self.peers), timing.interval, timing.lease))
        pause = self.now + self.random.uniform(0, span)
        self.until(lambda: self.now >= pause, 10 * timing.failure)
        if kind == "join":
            peer = self.join(0.0)
        else:
            peer = self.random.choice(list(self.peers.values()))
        self.change = Change(kind, peer.name, self.now)
        if kind == "crash":
            peer.up = False
            del self.peers[peer.name]
        elif kind == "leave":
            peer.agent.leave(self.now)
            peer.agent.tick(self.now)
            peer.publish()
        self.until(self.agreed, 20 * timing.failure)
        if kind == "leave":
            self._gone(peer)
        return self.change

    def _gone(self, peer: Peer) -> None:
        """The leaver has nothing left to hand on: it says so and ends."""
        self.until(peer.agent.self_status.may_go, self.timing.failure)
        self.beats[peer.name] = replace(peer.agent.last_beat(), counter=peer.counter + 1)
        peer.up = False
        del self.peers[peer.name]

    def reply_bytes(self) -> int:
        """What one read of all beats brings, as the server sends it (RESP)."""
        texts = [text for name, beat in self.beats.items() for text in (name, beat.line(beat.counter + 50_000))]
        return sum(len(f"${len(text)}\r\n{text}\r\n") for text in texts) + len(f"*{len(texts)}\r\n")


def quantiles(values: list[float]) -> dict[str, float]:
    """Least, median, 95th percentile and most."""
    each = sorted(values)
    return {
        "min": each[0],
        "median": each[len(each) // 2],
        "p95": each[min(len(each) - 1, int(len(each) * 0.95))],
        "max": each[-1],
        "of": len(each),
    }


def _figures(seen: list[Change], reads: int) -> dict[str, object]:
    """Of changes of one kind. `last_`: of the last agent of each change; `first_`: of the first."""
    return {
        "entered": quantiles([at - change.at for change in seen for at in change.entered.values()]),
        "complete": quantiles([at - change.at for change in seen for at in change.complete.values()]),
        "first_entered": quantiles([min(change.entered.values()) - change.at for change in seen]),
        "last_entered": quantiles([max(change.entered.values()) - change.at for change in seen]),
        "last_complete": quantiles([max(change.complete.values()) - change.at for change in seen]),
        "reads_a_second": reads,
    }


def measure(count: int, timing: Timing, times: int, seed: int) -> dict[str, object]:
    """`CYCLE` so many times over in a group of so many agents: how long after each change did every agent enter the
    view that follows, and see it complete (s); and what is read in a group at rest."""
    with sharing_views():
        group = Group(count, timing, seed)
        apart = timing.apart(count, timing.interval, timing.lease)
        reads, writes, since = group.reads, group.writes, group.now
        group.until(lambda: group.now >= since + 3 * max(timing.interval, apart), 1e9)
        lasted = group.now - since
        figures: dict[str, object] = {
            "agents": count,
            "interval": timing.interval,
            "lease": timing.lease,
            "failure": timing.failure,
            "reads_apart": apart,
            "reads_a_second": (group.reads - reads) / lasted,
            "beats_a_second": (group.writes - writes) / lasted,
            "bytes_a_read": group.reply_bytes(),
        }
        figures["read_bytes_a_second"] = figures["reads_a_second"] * figures["bytes_a_read"]  # type: ignore[operator]
        seen: dict[str, list[Change]] = {kind: [] for kind in CYCLE}
        read: Counter[str] = Counter()
        for _ in range(times):
            for kind in CYCLE:
                before, begun = group.reads, group.now
                change = group.happen(kind)
                seen[kind].append(change)
                read[kind] = max(read[kind], round((group.reads - before) / (group.now - begun)))
        for kind in seen:
            figures[kind] = _figures(seen[kind], read[kind])
    return figures
