"""A few agents of the protocol around a tiny post in memory; time passes only when a test says so.

`village.turn()` is one second in which everybody beats and carries mail; `beat`, `flush` and `take` are its parts, for
tests in which the order of things matters. Everything goes over the wire as text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import Any
from zlib import crc32

from scrapy_ubi.frontier.memory import MemoryFrontier
from scrapy_ubi.protocol.agent import Agent, Effects
from scrapy_ubi.protocol.beat import Beat
from scrapy_ubi.protocol.config import Config
from scrapy_ubi.protocol.host import Entry
from scrapy_ubi.protocol.host_policy import FREE, HostPolicy
from scrapy_ubi.protocol.lane import Bounds
from scrapy_ubi.protocol.memory_state import SetState
from scrapy_ubi.protocol.received import Received
from scrapy_ubi.protocol.wire import decode
from tests.support.views import REPLICAS

CONFIG = Config(
    replication=1,
    replicas=REPLICAS,
    lease_timeout=3.0,
    failure_timeout=5.0,
    handoff_timeout=60.0,
    bounds=Bounds(window=4, records=10, size=10_000, resend=5.0),
)
TURNS = 60  # in which whatever is waited for has come true


def page(host: str, number: int = 0, depth: int = 0, **rest: Any) -> Entry:
    """A page of a host."""
    url = f"http://{host}/{number}"
    return Entry(crc32(url.encode()) << 32 | crc32(url.encode()[::-1]), url, depth, **rest)


class Village:
    """Agents by name. `log`: every letter that was carried, as (receiver, letter), in the order of sending."""

    def __init__(self, *names: str, policies: Mapping[str, HostPolicy] | None = None, **config: Any) -> None:
        self.policies = policies or {}
        self.config = CONFIG._replace(**config)
        self.now = 100.0
        self.agents: dict[str, Agent] = {}
        self.urgent: dict[str, Effects] = {}  # what was to be done at once, when time passed last
        self.beats: dict[str, str] = {}
        self.memory = 0  # how often Redis has forgotten everything
        self.inbox: dict[str, list[dict[str, str]]] = {}
        self.acks: dict[str, dict[str, str]] = {}
        self.log: list[tuple[str, Received]] = []
        self.cut: set[str] = set()  # agents that reach nobody
        self.down = False  # Redis is away
        self._incarnations = count(1)
        self._beats = count(1)
        for name in names:
            self.start(name)
        if names:
            self.settle()

    def start(self, name: str) -> Agent:
        """A new process under this name."""
        agent = Agent(
            name,
            f"{crc32(f'{name} {self.now}'.encode()):08x}",
            self.config,
            MemoryFrontier(),
            lambda: f"{next(self._incarnations):08x}",
            self.now,
            self.policies.get(name, FREE),
        )
        self.agents[name] = agent
        self.inbox.setdefault(name, [])
        self.acks.setdefault(name, {})
        return agent

    def kill(self, name: str) -> Agent:
        """kill -9: its beat and its mail stay where they are."""
        return self.agents.pop(name)

    def forget(self) -> None:
        """FLUSHALL."""
        self.memory += 1
        self.beats.clear()
        for box in self.inbox.values():
            box.clear()
        for answers in self.acks.values():
            answers.clear()

    def reaches(self, name: str) -> bool:
        return not self.down and name not in self.cut

    # -- the parts of a turn

    def beat(self, *names: str) -> None:
        """These write their beats and read everybody's."""
        for name in names or list(self.agents):
            agent = self.agents[name]
            if self.reaches(name):
                self.beats[name] = agent.beat.line(next(self._beats))
                agent.group.lease.acknowledged(self.now)
                read = {who: beat for who, line in self.beats.items() if (beat := Beat.parse(line)) is not None}
                agent.read(self.now, self.now, read, str(self.memory))

    def flush(self, *names: str) -> None:
        """These let time pass and send what they have to send. Who reaches nobody keeps it: a drain is not lost."""
        for name in names or list(self.agents):
            agent = self.agents[name]
            self.urgent[name] = agent.tick(self.now)
            if not self.reaches(name):
                continue
            effects = agent.drain(self.now)
            for receiver, fields in effects.letters:
                self.inbox.setdefault(receiver, []).append(dict(fields))
                self.log.append((receiver, decode(fields, receiver, 1000, 4096)))
            for (sender, lane), text in effects.answers.items():
                self.acks.setdefault(sender, {})[lane] = text
            for lane in effects.forget:
                self.acks[name].pop(lane, None)

    def take(self, *names: str) -> None:
        """These read their inboxes, and the answers to what they sent."""
        for name in names or list(self.agents):
            if self.reaches(name):
                agent = self.agents[name]
                letters, self.inbox[name] = self.inbox[name], []
                for fields in letters:
                    agent.inbound.receive(decode(fields, name, 1000, 4096))
                for lane, text in self.acks[name].items():
                    agent.outbound.answered(lane, text, self.now)

    def check(self) -> None:
        for agent in self.agents.values():
            agent.check_invariants()
            agent.frontier.check_invariants()  # type: ignore[attr-defined]

    def turn(self, *names: str, seconds: float = 1.0) -> None:
        """A second in the life of all, or of these."""
        self.now += seconds
        self.beat(*names)
        self.flush(*names)
        self.take(*names)
        self.check()

    def until(self, condition: Callable[[], Any], *names: str) -> int:
        """Turns until this comes true; how many they were."""
        for turns in range(TURNS):
            if condition():
                return turns
            self.turn(*names)
        raise AssertionError(f"did not come true in {TURNS} turns: {self}")

    def settle(self) -> int:
        """A turn, and more until everybody has seen the view of all living agents complete and no mail is under way."""

        def settled() -> bool:
            return all(
                set(agent.view.members) == {name for name, one in self.agents.items() if not one.leaving}
                and agent.view_history.complete is agent.view
                and not len(agent.outbox)
                and agent.inbound.idle
                for agent in self.agents.values()
            )

        self.turn()
        return 1 + self.until(settled)

    # -- the crawl

    def visit(self, name: str, *links: Entry) -> str | None:
        """This agent fetches its next page, which has these links; the page's URL."""
        agent = self.agents[name]
        found = agent.work.next(self.now)
        if found is None:
            return None
        state, entry = found
        agent.work.freed(state, self.now)
        learned: list[tuple[str, Entry]] = []
        for link in links:
            agent.discovery.discover(host_of(link), link, learned)
        agent.work.ended(state, entry.key, learned)
        return entry.url

    def crawl(self, names: Iterable[str] = ()) -> list[str]:
        """These fetch what they may, without links, until there is nothing left; the URLs."""
        return [url for name in names or list(self.agents) for url in iter(lambda name=name: self.visit(name), None)]

    def state(self, name: str, host: str) -> SetState:
        """What an agent knows of a host."""
        state = self.agents[name].frontier.find(host) or SetState(host)
        assert isinstance(state, SetState)
        return state

    def queued(self, name: str, host: str) -> set[int]:
        """The keys that wait at an agent."""
        return set(self.state(name, host).queued)

    def holders(self, host: str) -> set[str]:
        """Who holds anything of a host."""
        return {name for name, agent in self.agents.items() if agent.frontier.find(host) is not None}

    def __repr__(self) -> str:
        return "; ".join(
            f"{name}: {agent.beat.line(0)} view={'+'.join(agent.view.members)} outbox={len(agent.outbox)}"
            for name, agent in self.agents.items()
        )


def host_of(entry: Entry) -> str:
    return entry.url.split("/")[2]
