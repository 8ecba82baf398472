"""A small world in which agents keep one rate: clocks of their own, mail that is late or lost, a right to lend that
moves as that to a host does (one agent at a time, decision 0142), and a server that notes when requests arrive."""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Callable
from itertools import count
from random import Random

from scrapy_ubi.protocol.rates import GroupRates

NAME, LEASE, EXPIRY = "api.example", 4.0, 6.0
DRIFT = 0.0004  # of clocks, each way


class World:
    """One run. `arrivals` are the times at which the server has seen requests, of which agent."""

    def __init__(self, seed: int, loads: int, seconds: float, rough: bool = True) -> None:
        self.random = Random(seed)
        self.delays = (0.0, 0.05, 0.3, 2.0) if rough else (0.0, 0.05)  # s, of mail
        self.lost = 0.05 if rough else 0.0
        self.loads, self.seconds = loads, seconds
        self.now = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self.agents: dict[str, Peer] = {}
        self.arrivals: list[tuple[float, str]] = []
        self.mail: dict[str, dict[str, str]] = {}  # receiver -> lane -> text
        self.away = False
        self.holder = ""  # who alone may lend now, if anybody

    def at(self, when: float, what: Callable[[], None]) -> None:
        heapq.heappush(self._events, (when, next(self._numbers), what))

    def run(self, until: float) -> None:
        while self._events and self._events[0][0] <= until:
            self.now, _, what = heapq.heappop(self._events)
            what()
        self.now = until

    def join(self, name: str, fresh: bool = False) -> Peer:
        peer = self.agents[name] = Peer(self, name, fresh)
        return peer

    def appoint(self, name: str, gap: float = 0.0) -> None:
        """Nobody may lend from now on; after the gap that agent may. Each agent believes so sooner or later."""
        self.holder = ""
        for peer in self.agents.values():
            if peer.believed == peer.name:  # it knows that it may not, whatever it believes
                peer.rates.check_lending(peer.clock())

        def begin() -> None:
            if name in self.agents:
                self.holder = name
                self.agents[name].believe(name)
                for peer in self.agents.values():
                    self.at(self.now + self.random.uniform(0, 3), lambda peer=peer: peer.believe(self.holder))

        self.at(self.now + gap, begin)

    def worst(self) -> int:
        """The most requests in a window that the server has seen."""
        times = sorted(time for time, _ in self.arrivals)
        first = most = 0
        for last, time in enumerate(times):
            while times[first] + self.seconds <= time:
                first += 1
            most = max(most, last - first + 1)
        return most

    def served(self, since: float) -> Counter[str]:
        """Requests by agent since then."""
        return Counter(name for time, name in self.arrivals if time >= since)


class Peer:
    """One agent: `demand` hosts want to be loaded all the time."""

    def __init__(self, world: World, name: str, fresh: bool) -> None:
        self.world, self.name = world, name
        random = world.random
        self._offset, self._pace = random.uniform(0, 1e5), 1 + random.uniform(-DRIFT, DRIFT)
        self.life = f"{random.getrandbits(32):08x}"
        self.believed = world.holder
        self.demand = 0
        self.up = True
        self.paused_until = 0.0
        self.rates = GroupRates(
            name,
            {NAME: (world.loads, world.seconds)},
            LEASE,
            EXPIRY,
            lambda: self.life,
            lambda _: (self.believed or name, self._life_of(self.believed or name)),
            lambda _, now: world.holder == name and self.believed == name,
            lambda: len(world.agents) == 1,
        )
        self.rates.fresh = fresh
        self._busy: set[int] = set()
        self._retry: dict[int, float] = {}
        self._later(0.0, self._exchange)
        self._later(0.0, self._work)

    def _life_of(self, name: str) -> str:
        return self.world.agents[name].life if name in self.world.agents else ""

    def clock(self) -> float:
        return self.world.now * self._pace + self._offset

    def believe(self, holder: str) -> None:
        if self.up and holder:
            self.believed = holder
            self.rates.view_entered()
            self.rates.check_lending(self.clock())

    def kill(self) -> None:
        self.up = False
        self.world.agents.pop(self.name, None)
        if self.world.holder == self.name:
            self.world.holder = ""

    def _later(self, delay: float, what: Callable[[], None]) -> None:
        def act() -> None:
            if self.up:
                wait = self.paused_until - self.world.now
                self._later(wait, what) if wait > 0 else what()

        self.world.at(self.world.now + delay, act)

    def _exchange(self) -> None:
        """What is written arrives a while later, or never; so does what is read."""
        world = self.world
        random = world.random
        self._later(random.choice((0.2, 0.2, 0.3, 1.0)), self._exchange)
        texts = self.rates.messages(self.clock())
        if world.away or random.random() < world.lost:
            return

        def write() -> None:
            for (receiver, lane), text in texts.items():
                world.mail.setdefault(receiver, {})[lane] = text

        def read() -> None:
            there = dict(world.mail.get(self.name, {}))
            self._later(random.uniform(0, 0.3), lambda: self._hear(there))

        delay = random.choice(world.delays)
        world.at(world.now + delay, write)
        world.at(world.now + delay, read)

    def _hear(self, there: dict[str, str]) -> None:
        for lane, text in there.items():
            json.loads(text)
            assert self.rates.hear(lane, text, self.clock())

    def _work(self) -> None:
        self._later(self.world.random.uniform(0.02, 0.15), self._work)
        for host in range(self.demand):
            if host in self._busy or self.clock() < self._retry.get(host, 0.0):
                continue
            wait = self.rates.start_load((NAME,), str(host), self.clock())
            if wait:
                self._retry[host] = self.clock() + wait
            else:
                self._load(host)

    def _load(self, host: int) -> None:
        """Connect, send where the right still holds, and be answered; the server notes it somewhere in between."""
        random = self.world.random
        self._busy.add(host)

        def send() -> None:
            if not self.rates.holds((NAME,), self.clock()):
                return end()
            took = random.choice((0.01, 0.05, 0.4, 3.0))
            seen = self.world.now + random.uniform(0, min(took, 0.5))
            self.world.at(seen, lambda: self.world.arrivals.append((seen, self.name)))
            return self._later(took, end)

        def end() -> None:
            self._busy.discard(host)
            self.rates.end_load((NAME,), self.clock())

        self._later(random.choice((0.0, 0.02, 2.0)), send)


def disturbed(seed: int) -> World:
    """A run with joins, kills, pauses, views that change, and mail that is lost; then a quiet time."""
    random = Random(f"plan {seed}")
    world = World(seed, random.choice((1, 2, 5, 20)), random.choice((0.5, 1.0, 5.0, 20.0)))
    names = count()
    first = world.join(f"a{next(names)}", fresh=True)
    world.appoint(first.name)
    time = 0.0
    for _ in range(random.randint(5, 25)):
        time += random.expovariate(1 / 4)
        world.run(time)
        peers = list(world.agents.values())
        match random.randint(0, 8):
            case 0 | 1 if len(peers) < 5:
                world.join(f"a{next(names)}").demand = random.choice((0, 1, 5, 30))
            case 2 if len(peers) > 1:
                random.choice(peers).kill()
            case 3:
                random.choice(peers).paused_until = time + random.choice((0.5, 3.0, 8.0, 20.0))
            case 4:
                world.mail.clear()
            case 5:
                world.away = not world.away
            case 6 | 7:
                random.choice(peers).demand = random.choice((0, 1, 5, 30))
            case _:
                world.appoint(random.choice(peers).name, random.choice((0.0, 0.0, 1.0, 5.0)))
        if not world.holder and random.random() < 0.5:
            world.appoint(random.choice(list(world.agents)), random.choice((0.0, 2.0)))
    world.run(time + 5)
    return world
