"""What a transcript says, and how it names things.

It is told from outside: after every step an agent is looked at, and what became so is said once. Numbers of letters,
digests and keys are left out; a view is named by its members, a page by its host's short name.

An agent is `a1`; after it began anew, `a1'`; `a1+` in a view has been fenced since. A host is named by the order in
which agents keep it: `h312` belongs to a3 while it is there, then to a1, then to a2 (`h312b` is another). Pages are
`h312/1`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.protocol.answer import read_answer
from scrapy_ubi.protocol.beat import MANY
from scrapy_ubi.protocol.host import Entry, HostState
from scrapy_ubi.protocol.received import Delta, Received
from scrapy_ubi.protocol.view import View
from scrapy_ubi.protocol.view_change import point
from tests.support.views import ordered
from tests.support.village import page

MOST_PAGES = 20  # of a host


class Names:
    """Short names for hosts, pages, incarnations and views."""

    def __init__(self) -> None:
        self.hosts: dict[str, str] = {}  # host -> short name
        self.points: dict[str, str] = {}  # as beats list hosts -> short name
        self.labels: dict[str, str] = {}  # incarnation -> agent
        self.views: dict[str, str] = {}  # digest -> members

    def entry(self, short: str) -> tuple[str, Entry]:
        """The page with this name, and its host."""
        host, number = short.split("/")
        name = ordered(*(f"a{digit}" for digit in host.strip("hbcde")), nth="bcde".find(host[-1]) + 1)
        self.hosts[name] = self.points[point(name)] = host
        return name, page(name, int(number))

    def page(self, host: str, entry: Entry) -> str:
        """The name of a page."""
        return f"{self.hosts[host]}/{entry.url.rsplit('/', 1)[1]}"

    def agent(self, agent: Agent) -> str:
        """The name of an agent in its present life."""
        if agent.incarnation not in self.labels:
            lives = sum(label.rstrip("'") == agent.me for label in self.labels.values())
            self.labels[agent.incarnation] = agent.me + "'" * lives
        return self.labels[agent.incarnation]

    def view(self, view: View) -> str:
        """The name of a view."""
        members = (self.labels.get(m.incarnation, a) + "+" * m.epoch for a, m in sorted(view.members.items()))
        return self.views.setdefault(view.digest, "{" + " ".join(members) + "}")

    def listed(self, points: Iterator[str]) -> str:
        """The names of hosts that are listed by their ring points."""
        return " ".join(sorted(self.points[listed] for listed in points))

    def delta(self, delta: Delta) -> str:
        """What a letter says of one host."""
        parts = [self.hosts[delta.host]]
        if delta.discovered:
            new = sorted(int(entry.url.rsplit("/", 1)[1]) for entry in delta.discovered)
            parts.append(f"new {' '.join(map(str, new))}")
        numbers = {page(delta.host, number).key: number for number in range(MOST_PAGES)}
        if delta.done:
            parts.append(f"done {' '.join(map(str, sorted({numbers[key] for key in delta.done})))}")
        for redo in delta.redo:
            parts += [f"redo {numbers[redo.key]}", *(str(numbers.get(key, "?")) for key in redo.own)]
            parts += [self.page(*outlink) for outlink in redo.outlinks]
        if delta.notes is not None:
            parts.append(f"notes {delta.notes.version}")
        if delta.offer is not None:
            parts.append(f"offer {delta.offer.known} known {delta.offer.done} done")
        return " ".join(parts)


class Telling:
    """The lines of a transcript, and what was said already. Times are seconds since `zero`."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names = Names()
        self.now = self.zero = 0.0
        self._facts: dict[tuple[str, str], str] = {}
        self._carried: set[tuple[str, int]] = set()
        self._answered: set[tuple[str, int]] = set()

    def say(self, text: str) -> None:
        """A line."""
        self.lines.append(f"{self.now - self.zero:5.1f} {text}")

    def look(self, agent: Agent) -> None:
        """Say what has become so of an agent."""
        for topic, text in self._facts_of(agent):
            self._fact(agent.me, topic, text)

    def settled(self, agent: Agent) -> None:
        """It beats: say what it publishes, when that is news."""
        but, view = self.names.listed(iter(agent.beat.pending)), self.names.views.get(agent.beat.settled)
        text = (f"settled {view}" + (f" but {but}" if but else "")) if view else ""
        many = "has handed on all but too many pending hosts" if MANY in agent.beat.flags else ""
        self._fact(agent.me, "settled", text or many)

    def letter(self, receiver: str, letter: Received) -> None:
        """A letter was sent."""
        again = "again " if (letter.lane, letter.seq) in self._carried else ""
        self._carried.add((letter.lane, letter.seq))
        what = "; ".join(map(self.names.delta, letter.deltas))
        self.say(f"{letter.sender} -> {receiver} {letter.kind} {again}{what}")

    def answers(self, receiver: str, acks: Mapping[str, Mapping[str, str]]) -> None:
        """Say what is new in the answers of a receiver to all senders."""
        for sender, answers in acks.items():
            for lane, text in answers.items():
                _, to, kind = lane.split("/")
                for seq, outcome in read_answer(text).items() if to == receiver else ():
                    if (lane, seq) not in self._answered:
                        self._answered.add((lane, seq))
                        hosts = self.names.hosts
                        told = [f"refuse {hosts[host]}, {owner} owns it" for host, owner in outcome.refused.items()]
                        told += [f"want {hosts[host]}" for host in outcome.want]
                        self.say(f"{receiver} -> {sender} {'; '.join(told) or f'ack {kind}'}")

    def forget_answers(self) -> None:
        """Redis has forgotten them: when they are given again they are news again."""
        self._answered.clear()

    def forget_facts(self, name: str) -> None:
        """The agent is gone."""
        self._facts = {key: text for key, text in self._facts.items() if key[0] != name}

    def _fact(self, name: str, topic: str, text: str) -> None:
        """What is so of an agent on some topic now; '' is never said. Who is new goes on, so that is no news."""
        if self._facts.get((name, topic), "goes on") != text:
            self._facts[name, topic] = text
            if text:
                self.say(f"{name} {text}")

    def _facts_of(self, agent: Agent) -> Iterator[tuple[str, str]]:
        view_history, names = agent.view_history, self.names
        yield "incarnation", "begins anew as " + names.agent(agent) if agent.counters.rejoins else ""
        for incarnation in agent.group.watch.dead:
            yield f"dead {incarnation}", f"holds {names.labels[incarnation]} dead"
        yield "view", f"view {names.view(agent.view)}"
        yield "lossy", "calls the crawl lossy" if agent.lossy else ""
        yield "sure", "is sure who lives" if agent.group.sure else ""
        yield "lease", "goes on" if agent.group.lease.holds(self.now) else "fenced"
        listed = names.listed(iter(view_history.listed))
        yield "tenure", f"sees all settled but {listed}" if listed else ""
        yield "complete", f"sees {names.view(agent.view)} complete" if view_history.complete is agent.view else ""
        yield "redone", "redoes without a fetch what it was told" if agent.counters.redone else ""
        yield "force", "waits no longer" if agent.counters.handoff_timeouts else ""
        held = sorted(names.hosts[state.host] for state in agent.frontier.states() if self._held(agent, state))
        yield "held", f"waits with {' '.join(held)}" if held else ""

    def _held(self, agent: Agent, state: HostState) -> bool:
        """Whether the agent has pages of its own host to fetch, and may not."""
        mine = bool(state.queued) and agent.keeping.owns(state.host) and agent.group.lease.holds(self.now)
        return mine and not (agent.group.sure and agent.view_history.may_fetch(state.host, agent.group.alive))
