"""A scene: one scripted hard case, played by the production protocol and frontier, and its transcript.

Nothing is random, nothing happens but what the script says: `turn` is a second in which every agent that is awake
finishes its loads, beats, sends, takes its mail and fetches what it may; `beat`, `flush`, `take` and `work` are its
parts, for agents by name. Agents are eager: whatever the protocol lets them fetch they fetch, so a rule that lets go
too early shows at once. One request a host at a time (P2) is checked at every fetch, in every scene.

Names: an agent is `a1`; after it began anew, `a1'`; `a1+` in a view has been fenced since. A host is named by the order
in which agents keep it: `h312` belongs to a3 while it is there, then to a1, then to a2 (`h312b` is another). Pages are
`h312/1`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.protocol.host import Entry, HostState
from scrapy_ubi.protocol.tenure import point
from scrapy_ubi.protocol.view import View
from scrapy_ubi.protocol.wire import Delta, read_answer
from tests.support.views import ordered
from tests.support.village import Village, host_of, page

MOST_PAGES = 20  # of a host


@dataclass
class Load:
    """A request of an agent: `begun` when it has left, `answered` when the web is done with it."""

    agent: str
    state: HostState
    entry: Entry
    begun: bool = False
    answered: bool = False


class Scene(Village):
    """A group that has settled, at time 0, and what happens to it from then on. `web` maps pages to their links."""

    def __init__(self, agents: str, web: dict[str, str] | None = None, **config: Any) -> None:
        self.lines: list[str] = []
        self.web = {page: links.split() for page, links in (web or {}).items()}
        self.found: set[str] = set()
        self.fetched: Counter[str] = Counter()
        self.loads: list[Load] = []
        self.slow: set[str] = set()  # pages that the web does not answer yet
        self.paused: set[str] = set()  # processes that stand still
        self.deaf: set[str] = set()  # agents that send, but take no mail
        self.hesitant: set[str] = set()  # agents that take requests in hand, and wait with the dispatch
        self.exhausted = False
        self._short: dict[str, str] = {}
        self._labels: dict[str, str] = {}
        self._views: dict[str, str] = {}
        self._facts: dict[tuple[str, str], str] = {}
        self._carried: set[tuple[str, int]] = set()
        self._answered: set[tuple[str, int]] = set()
        self._zero = 0.0
        super().__init__(*agents.split(), **config)
        self.lines.clear()
        self._zero = self.now
        self.say(f"{self._view(next(iter(self.agents.values())).view)} has settled")

    # ------------------------------------------------------------------ what happens

    def find(self, agent: str, pages: str) -> None:
        """The agent's spider comes upon these pages."""
        self.say(f"{agent} finds {pages}")
        self._discover(self.agents[agent], pages.split())

    def start(self, name: str) -> Agent:
        """A process starts under this name; its first turn is its first beat."""
        assert all(name[1:] in short for short in self._short.values()), f"where does {name} stand in their order?"
        agent = super().start(name)
        agent.start_exhausted = self.exhausted
        self.say(f"{self._label(agent)} starts")
        return agent

    def kill(self, name: str) -> Agent:
        """kill -9, and the disk is gone."""
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
        self._answered.clear()
        for agent in self.agents.values() if noticed else ():
            agent.mail_lost()

    def answer(self, *pages: str) -> None:
        """The web answers these at last."""
        self.slow.difference_update(pages)

    def dispatch(self, name: str) -> None:
        """The agent sends the requests it has in hand."""
        self.hesitant.discard(name)
        for load in [load for load in self.loads if load.agent == name and not load.begun]:
            self.loads.remove(load)
            self._begin(load)

    def put_back(self, name: str) -> None:
        """It has them in hand no longer."""
        self.hesitant.discard(name)
        for load in self._drop_loads(lambda load: load.agent == name and not load.begun):
            self.say(f"{name} puts {self._page(load)} back")
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

    def turns(self, count: int, *names: str) -> None:
        """So many seconds."""
        for _ in range(count):
            self.turn(*names)

    def wait(self, text: str, *names: str) -> None:
        """Turns until the transcript says this, from now on."""
        done = len(self.lines)
        self.until(lambda: any(text in line for line in self.lines[done:]), *names)

    def beat(self, *names: str) -> None:
        """These beat, and see everybody's beats; what they publish is told when it is news."""
        for name in names:
            if self.reaches(name):
                self._tell_settled(name)
            super().beat(name)
            self._look(name)

    def beat_unheard(self, name: str) -> None:
        """It beats, and the answer is lost."""
        self._tell_settled(name)
        self.say(f"{name} beats, and does not hear the answer")
        self.beats[name] = self.agents[name].beat.line(next(self._beats))

    def flush(self, *names: str) -> None:
        """These let time pass and send; who has handed over all it holds, or knows that the crawl is over, goes."""
        for name in names:
            agent, sent = self.agents[name], len(self.log)
            super().flush(name)
            if agent.cancel:
                agent.cancel = False
                self._cancel(name)
            self._look(name)
            for receiver, letter in self.log[sent:]:
                again = "again " if (letter.lane, letter.seq) in self._carried else ""
                self._carried.add((letter.lane, letter.seq))
                what = "; ".join(self._told(delta) for delta in letter.deltas)
                self.say(f"{name} -> {receiver} {letter.kind} {again}{what}")
            self._tell_answers(name)
            if agent.finished or (agent.leaving and (agent.may_go() or not agent.view.members)):
                self._go(name)

    def take(self, *names: str) -> None:
        """These take their mail."""
        for name in names:
            if name not in self.deaf:
                super().take(name)
                self._look(name)

    def work(self, *names: str) -> None:
        """These fetch whatever they may."""
        for name in names:
            while found := self.agents[name].next(self.now):
                load = Load(name, *found)
                if name in self.hesitant:
                    self.say(f"{name} takes {self._page(load)} in hand")
                    self.loads.append(load)
                else:
                    self._begin(load)

    def exhaust(self) -> None:
        """The spiders know nothing more by themselves: when all is fetched the crawl is over."""
        self.exhausted = True
        for agent in self.agents.values():
            agent.start_exhausted = True

    def end(self, again: str = "") -> None:
        """Nothing more goes wrong: the crawl ends by itself. Every page was fetched once; those in `again` twice."""
        self.exhaust()
        self.until(lambda: not self.agents)
        assert self.fetched == Counter(self.found) + Counter(again.split()), f"{self.fetched}{self!r}"

    # ------------------------------------------------------------------ what the transcript says

    def __repr__(self) -> str:
        return "\n" + "\n".join(self.lines)

    def in_order(self, *texts: str) -> None:
        """Assert that lines with these texts are there, in this order."""
        at = 0
        for text in texts:
            at = 1 + next((n for n in range(at, len(self.lines)) if text in self.lines[n]), len(self.lines))
            assert at <= len(self.lines), f"{text!r} does not come where it should:{self!r}"

    def count(self, text: str) -> int:
        """How many lines say this."""
        return sum(text in line for line in self.lines)

    def last(self, text: str) -> float:
        """When it was last said."""
        return max(float(line.split()[0]) for line in self.lines if text in line)

    def say(self, text: str) -> None:
        """A line of the transcript."""
        self.lines.append(f"{self.now - self._zero:5.1f} {text}")

    def _fact(self, name: str, topic: str, text: str) -> None:
        """What is so of an agent; said when it is news."""
        if self._facts.get((name, topic), "goes on") != text:
            self._facts[name, topic] = text
            if text:
                self.say(f"{name} {text}")

    def _tell_settled(self, name: str) -> None:
        beat = self.agents[name].beat
        but = " ".join(sorted(self._points()[point] for point in beat.pending))
        settled = f"settled {self._views.get(beat.settled)}" if beat.settled else ""
        self._fact(name, "settled", settled + (f" but {but}" if but else ""))

    def _look(self, name: str) -> None:
        for topic, text in self._seen(self.agents[name]):
            self._fact(name, topic, text)

    def _seen(self, agent: Agent) -> Iterator[tuple[str, str]]:
        tenure = agent.tenure
        yield "incarnation", "begins anew as " + self._label(agent) if agent.counters.rejoins else ""
        for incarnation in agent.watch.dead:
            yield f"dead {incarnation}", f"holds {self._labels[incarnation]} dead"
        yield "view", f"view {self._view(agent.view)}"
        yield "lossy", "knows that too many were lost at once" if agent.lossy else ""
        yield "sure", "is sure who lives" if agent.group.sure else ""
        yield "lease", "goes on" if agent.lease.holds(self.now) else "fenced"
        listed = " ".join(sorted(self._points()[point] for point in tenure.listed))
        yield "tenure", f"sees all settled but {listed}" if listed else ""
        yield "complete", f"sees {self._view(agent.view)} complete" if tenure.complete is agent.view else ""
        yield "force", "waits no longer" if agent.counters.handoff_timeouts else ""
        held = sorted(self._host(state.host) for state in agent.frontier.states() if self._held(agent, state))
        yield "held", f"waits with {' '.join(held)}" if held else ""

    def _held(self, agent: Agent, state: HostState) -> bool:
        """Whether the agent has pages of its own host to fetch, and may not."""
        mine = bool(state.queued) and agent.owns(state.host) and agent.lease.holds(self.now)
        return mine and not (agent.group.sure and agent.tenure.free(state.host, agent.group.alive))

    def _told(self, delta: Delta) -> str:
        parts = [self._host(delta.host)]
        if delta.discovered:
            numbers = sorted(int(entry.url.rsplit("/", 1)[1]) for entry in delta.discovered)
            parts.append(f"new {' '.join(map(str, numbers))}")
        if delta.done:
            numbers = [number for number in range(MOST_PAGES) if page(delta.host, number).key in delta.done]
            parts.append(f"done {' '.join(map(str, numbers))}")
        if delta.offer is not None:
            parts.append(f"offer {delta.offer.known} known {delta.offer.done} done")
        return " ".join(parts)

    def _tell_answers(self, name: str) -> None:
        for sender, answers in self.acks.items():
            for lane, text in answers.items():
                for seq, outcome in read_answer(text).items():
                    if lane.split("/")[1] == name and (lane, seq) not in self._answered:
                        self._answered.add((lane, seq))
                        told = [f"refuse {self._host(host)}, {to} owns it" for host, to in outcome.refused.items()]
                        told += [f"want {self._host(host)}" for host in outcome.want]
                        self.say(f"{name} -> {sender} {'; '.join(told) or 'ack ' + lane.split('/')[2]}")

    def _label(self, agent: Agent) -> str:
        if agent.incarnation not in self._labels:
            lives = sum(label.rstrip("'") == agent.me for label in self._labels.values())
            self._labels[agent.incarnation] = agent.me + "'" * lives
        return self._labels[agent.incarnation]

    def _view(self, view: View) -> str:
        members = (self._labels.get(m.incarnation, a) + "+" * m.epoch for a, m in sorted(view.members.items()))
        return self._views.setdefault(view.digest, "{" + " ".join(members) + "}")

    # ------------------------------------------------------------------ names, loads, ends

    def host(self, short: str) -> str:
        """The host with this short name."""
        order, nth = short.strip("hbcde"), "bcde".find(short[-1]) + 1
        assert all(agent[1:] in order for agent in self.agents), f"{short} does not say where all stand in its order"
        name = ordered(*(f"a{digit}" for digit in order), nth=nth)
        self._short[name] = short
        return name

    def _host(self, host: str) -> str:
        return self._short[host]

    def _points(self) -> dict[str, str]:
        return {point(host): short for host, short in self._short.items()}

    def _page(self, load: Load) -> str:
        return f"{self._host(load.state.host)}/{load.entry.url.rsplit('/', 1)[1]}"

    def _discover(self, agent: Agent, pages: list[str]) -> None:
        self.found.update(pages)
        for text in pages:
            short, number = text.split("/")
            entry = page(self.host(short), int(number))
            agent.discover(host_of(entry), entry)

    def _begin(self, load: Load) -> None:
        agent = self.agents[load.agent]
        if agent.may_fetch(load.state, self.now):
            self.say(f"{load.agent} fetch {self._page(load)}")
            others = [one for one in self.loads if one.begun and not one.answered and one.state.host == load.state.host]
            assert not others, f"P2: {others[0].agent} loads {self._page(others[0])} at the same time:{self!r}"
            load.begun = True
            self.loads.append(load)
        else:
            self.say(f"{load.agent} must not fetch {self._page(load)}, puts it back")
            self._put_back(load)

    def _put_back(self, load: Load) -> None:
        self.agents[load.agent].freed(load.state, self.now)
        self.agents[load.agent].put_back(load.state, load.entry.key)

    def _answers(self, awake: list[str]) -> None:
        """The web answers what it was asked for; those awake hear it."""
        for load in [load for load in self.loads if load.begun and self._page(load) not in self.slow]:
            load.answered = True
            if load.agent in awake:
                self.loads.remove(load)
                self._done(load)

    def _done(self, load: Load) -> None:
        agent, links = self.agents[load.agent], self.web.get(self._page(load), [])
        self.fetched[self._page(load)] += 1
        self.say(f"{load.agent} done {self._page(load)}" + (f", finds {' '.join(links)}" if links else ""))
        agent.freed(load.state, self.now)
        self._discover(agent, links)
        agent.ended(load.state, load.entry.key)

    def _cancel(self, name: str) -> None:
        for load in self._drop_loads(lambda load: load.agent == name and load.begun):
            self.say(f"{name} cancels {self._page(load)}")
            self._put_back(load)

    def _drop_loads(self, which: Callable[[Load], bool]) -> list[Load]:
        dropped = [load for load in self.loads if which(load)]
        self.loads = [load for load in self.loads if not which(load)]
        return dropped

    def _go(self, name: str) -> None:
        agent = self.agents[name]
        if self.reaches(name):
            self.beats[name] = agent.last_beat().line(next(self._beats))
        self.say(f"{name} closes: the crawl is over" if agent.finished else f"{name} has left")
        self._closed(name)

    def _closed(self, name: str) -> Agent:
        self._drop_loads(lambda load: load.agent == name)
        for key in [key for key in self._facts if key[0] == name]:
            del self._facts[key]
        return super().kill(name)
