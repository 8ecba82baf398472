"""A scene: one scripted hard case, played by the production protocol and frontier, and its transcript (`telling.py`).

Nothing is random, nothing happens but what the script says: `turn` is a second in which every agent that is awake
finishes its loads, beats, sends, takes its mail and fetches what it may; `beat`, `flush`, `take` and `work` are its
parts, for agents by name. Agents are eager: whatever the protocol lets them fetch they fetch, so a rule that lets go
too early shows at once. One request a host at a time (P2) is checked at every fetch, in every scene.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from scrapy_ubi.frontier.memory import MemoryFrontier
from scrapy_ubi.protocol import snapshot
from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.protocol.done_mark_delivery import Outlinks
from scrapy_ubi.protocol.host import Entry, HostState
from tests.simulation.telling import Telling
from tests.support.ledger import Ledger
from tests.support.village import Village


@dataclass
class Load:
    """A request of an agent: `begun` when it has left, `answered` when the web is done with it."""

    agent: str
    page: str
    state: HostState
    entry: Entry
    begun: bool = False
    answered: bool = False


class Disk:
    """What the flushes of an agent have written, up to one."""

    def __init__(self, agent: Agent, before: Disk | None) -> None:
        self.ledger = Ledger()
        if before is not None and before.ledger.store == agent.outbox.store:
            self.ledger = before.ledger
        self.ledger.write(snapshot.changes(agent))
        self.saved = self.ledger.saved
        self.hosts = {state.host: (tuple(state.undone()), tuple(state.done)) for state in agent.frontier.states()}

    def restore(self, fresh: Agent, now: float) -> Agent:
        """The agent that begins again from it, in place of a fresh one."""
        frontier = MemoryFrontier()
        for host, (undone, done) in self.hosts.items():
            frontier.add_done(frontier.add(host, undone)[0], done)
        return snapshot.restore(fresh.me, self.saved, fresh.config, frontier, lambda: fresh.incarnation, now)


class Scene(Village):
    """A group that has settled, at time 0, and what happens to it from then on. `web` maps pages to their links."""

    def __init__(self, agents: str, web: dict[str, str] | None = None, **config: Any) -> None:
        self.telling = Telling()
        self.say, self.lines = self.telling.say, self.telling.lines
        self.web = {page: links.split() for page, links in (web or {}).items()}
        self.found: set[str] = set()
        self.fetched: Counter[str] = Counter()
        self.loads: list[Load] = []
        self.slow: set[str] = set()  # pages that the web does not answer yet
        self.paused: set[str] = set()  # processes that stand still
        self.deaf: set[str] = set()  # agents that send, but take no mail
        self.hesitant: set[str] = set()  # agents that take requests in hand, and wait with the dispatch
        self.exhausted = False
        self._cancels: dict[Agent, int] = {}  # done so far
        self.disks: dict[str, Disk] = {}  # what each agent's last flush has left
        super().__init__(*agents.split(), **config)
        self.lines.clear()
        self.telling.zero = self.now
        self.say(f"{self.telling.names.view(next(iter(self.agents.values())).view)} has settled")

    @property
    def now(self) -> float:
        """Everybody's clock (s)."""
        return self.telling.now

    @now.setter
    def now(self, now: float) -> None:
        self.telling.now = now

    # ------------------------------------------------------------------ what happens

    def find(self, agent: str, pages: str) -> None:
        """The agent's spider comes upon these pages."""
        self.say(f"{agent} finds {pages}")
        self._discover(self.agents[agent], pages.split())

    def start(self, name: str, disk: bool = False) -> Agent:
        """A process starts under this name, maybe with its predecessor's disk; its first turn is its first beat."""
        hosts = self.telling.names.hosts.values()
        assert all(name[1:] in host for host in hosts), f"where does {name} stand in the order of {hosts}?"
        agent = super().start(name)
        if disk:
            agent = self.agents[name] = self.disks[name].restore(agent, self.now)
        self.inbox[name].clear()  # a predecessor's mail, as a node does
        agent.end.start_exhausted = self.exhausted
        self.say(f"{self.telling.names.agent(agent)} starts" + (" with its disk" if disk else ""))
        return agent

    def kill(self, name: str) -> Agent:
        """kill -9."""
        self.say(f"{name} is killed")
        return self._closed(name)

    def leave(self, name: str) -> None:
        """It is asked to go; what it loads it may finish."""
        self.say(f"{name} is to leave")
        self.agents[name].leave(self.now)

    def pause(self, *names: str) -> None:
        """SIGSTOP."""
        for name in names:
            self.say(f"{name} stands still")
        self.paused.update(names)

    def wake(self, *names: str) -> None:
        """SIGCONT."""
        for name in names:
            self.say(f"{name} wakes")
        self.paused.difference_update(names)

    def cut_off(self, *names: str) -> None:
        """Redis cannot be reached from there."""
        for name in names:
            self.say(f"{name} is cut off from Redis")
        self.cut.update(names)

    def mend(self, *names: str) -> None:
        """Redis can be reached again."""
        for name in names:
            self.say(f"{name} reaches Redis again")
        self.cut.difference_update(names)

    def redis(self, up: bool) -> None:
        """Redis goes away, or comes back."""
        self.say("Redis is back" if up else "Redis is away")
        self.down = not up

    def forget(self, noticed: bool = True) -> None:
        """FLUSHALL. `noticed`: agents find the token gone that they left in Redis, as a node does."""
        self.say("Redis forgets everything")
        super().forget()
        self.telling.forget_answers()
        for agent in self.agents.values() if noticed else ():
            agent.mail_lost()

    def answer(self, *pages: str) -> None:
        """The web answers these at last."""
        self.slow.difference_update(pages)

    def dispatch(self, name: str) -> None:
        """The agent sends the requests it has in hand."""
        self.hesitant.discard(name)
        for load in self._drop_loads(lambda load: load.agent == name and not load.begun):
            self._begin(load)

    def put_back(self, name: str) -> None:
        """It has them in hand no longer."""
        self.hesitant.discard(name)
        for load in self._drop_loads(lambda load: load.agent == name and not load.begun):
            self.say(f"{name} puts {load.page} back")
            self._put_back(load)

    # ------------------------------------------------------------------ turns

    def turn(self, *names: str, seconds: float = 1.0) -> None:
        """A second in the life of all that are awake, or of these."""
        self.now += seconds
        awake = [name for name in names or self.agents if name not in self.paused]
        self._answers(awake)
        for part in (self.beat, self.flush, self.take, self.work):
            part(*(name for name in awake if name in self.agents))
        self.check()

    def hear(self, *names: str, seconds: float) -> None:
        """After so long these hear what the web has answered, and do nothing else."""
        self.now += seconds
        self._answers(list(names))

    def turns(self, count: int, *names: str) -> None:
        """So many seconds."""
        for _ in range(count):
            self.turn(*names)

    def wait(self, text: str, *names: str) -> None:
        """Turns until the transcript says this, from now on."""
        done = len(self.lines)
        self.until(lambda: any(text in line for line in self.lines[done:]), *names)

    def beat(self, *names: str) -> None:
        """These beat, and see everybody's beats."""
        for name in names:
            if self.reaches(name):
                self.telling.settled(self.agents[name])
            super().beat(name)
            self.telling.look(self.agents[name])

    def beat_unheard(self, name: str) -> None:
        """It beats, and the answer is lost."""
        self.telling.settled(self.agents[name])
        self.say(f"{name} beats, and does not hear the answer")
        self.beats[name] = self.agents[name].beat.line(next(self._beats))

    def flush(self, *names: str) -> None:
        """These let time pass and send; who has handed over all it holds, or knows that the crawl is over, goes."""
        for name in names:
            agent, sent = self.agents[name], len(self.log)
            super().flush(name)
            self.disks[name] = Disk(agent, self.disks.get(name))
            if self.urgent[name].cancels > self._cancels.get(agent, 0):
                self._cancels[agent] = self.urgent[name].cancels
                self._cancel(name)
            self.telling.look(agent)
            for receiver, letter in self.log[sent:]:
                self.telling.letter(receiver, letter)
            self.telling.answers(name, self.acks)
            if agent.end.finished or (agent.leaving and (agent.self_status.may_go() or not agent.view.members)):
                self._go(name)

    def take(self, *names: str) -> None:
        """These take their mail."""
        for name in names:
            if name not in self.deaf:
                super().take(name)
                self.telling.look(self.agents[name])

    def work(self, *names: str) -> None:
        """These fetch whatever they may."""
        for name in names:
            while found := self.agents[name].work.next(self.now):
                state, entry = found
                load = Load(name, self.telling.names.page(state.host, entry), state, entry)
                if name in self.hesitant:
                    self.say(f"{name} takes {load.page} in hand")
                    self.loads.append(load)
                else:
                    self._begin(load)
            self.telling.look(self.agents[name])

    # ------------------------------------------------------------------ what must be so

    def in_order(self, *texts: str) -> None:
        """Assert that lines with these texts are there, in this order."""
        at = 0
        for text in texts:
            at = 1 + next((n for n in range(at, len(self.lines)) if text in self.lines[n]), len(self.lines))
            assert at <= len(self.lines), f"{text!r} does not come where it should:{self!r}"

    def count(self, text: str) -> int:
        """How many lines say this."""
        return sum(text in line for line in self.lines)

    def first(self, text: str) -> float:
        """When it was first said."""
        return min(self._when(text))

    def last(self, text: str) -> float:
        """When it was last said."""
        return max(self._when(text))

    def _when(self, text: str) -> list[float]:
        times = [float(line.split()[0]) for line in self.lines if text in line]
        assert times, f"{text!r} is not there:{self!r}"
        return times

    def exhaust(self) -> None:
        """The spiders know nothing more by themselves: when all is fetched the crawl is over."""
        self.exhausted = True
        for agent in self.agents.values():
            agent.end.start_exhausted = True

    def end(self, again: str = "") -> None:
        """Nothing more goes wrong: the crawl ends by itself. Every page was fetched once; those in `again` twice."""
        self.exhaust()
        self.until(lambda: not self.agents)
        assert self.fetched == Counter(self.found) + Counter(again.split()), f"{self.fetched}{self!r}"

    def __repr__(self) -> str:
        return "\n" + "\n".join(self.lines)

    # ------------------------------------------------------------------ loads

    def _discover(self, agent: Agent, pages: list[str], learned: Outlinks | None = None) -> None:
        self.found.update(pages)
        for page in pages:
            assert all(name[1:] in page for name in self.agents), f"where do all stand in the order of {page}?"
            agent.discovery.discover(*self.telling.names.entry(page), learned)

    def _begin(self, load: Load) -> None:
        if not self.agents[load.agent].work.may_fetch(load.state, self.now):
            self.say(f"{load.agent} must not fetch {load.page}, puts it back")
            self._put_back(load)
            return
        self.say(f"{load.agent} fetch {load.page}")
        others = [one for one in self.loads if one.begun and not one.answered and one.state.host == load.state.host]
        assert not others, f"P2: {others[0].agent} loads {others[0].page} at the same time:{self!r}"
        load.begun = True
        self.loads.append(load)

    def _put_back(self, load: Load) -> None:
        self.agents[load.agent].work.freed(load.state, self.now)
        self.agents[load.agent].work.put_back(load.state, load.entry.key)

    def _answers(self, awake: list[str]) -> None:
        """The web answers what it was asked for; those awake hear it."""
        for load in [load for load in self.loads if load.begun and load.page not in self.slow]:
            load.answered = True
            if load.agent in awake:
                self.loads.remove(load)
                self._done(load)

    def _done(self, load: Load) -> None:
        agent, links = self.agents[load.agent], self.web.get(load.page, [])
        self.fetched[load.page] += 1
        self.say(f"{load.agent} done {load.page}" + (f", finds {' '.join(links)}" if links else ""))
        agent.work.freed(load.state, self.now)
        learned: Outlinks = []
        self._discover(agent, links, learned)
        agent.work.ended(load.state, load.entry.key, learned)

    def _cancel(self, name: str) -> None:
        for load in self._drop_loads(lambda load: load.agent == name and load.begun):
            self.say(f"{name} cancels {load.page}")
            self._put_back(load)

    def _drop_loads(self, which: Callable[[Load], bool]) -> list[Load]:
        dropped = [load for load in self.loads if which(load)]
        self.loads = [load for load in self.loads if not which(load)]
        return dropped

    def _go(self, name: str) -> None:
        agent = self.agents[name]
        if self.reaches(name):
            self.beats[name] = agent.last_beat().line(next(self._beats))
        self.say(f"{name} closes: the crawl is over" if agent.end.finished else f"{name} has left")
        self._closed(name)

    def _closed(self, name: str) -> Agent:
        self._drop_loads(lambda load: load.agent == name)
        self.telling.forget_facts(name)
        return super().kill(name)
