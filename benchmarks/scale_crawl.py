"""What agents tell each other while they crawl, by the number of agents: letters, records and bytes a page. A part of
`scale.py`.

Whole production agents crawl a made-up web in virtual time: no faults, no politeness delay, a server that answers in
milliseconds. Exchanges follow `node/pacing.py`: one at a time, one each flush interval, sooner when mail has come;
every letter is encoded, and decoded and validated at its receiver. The group is complete from the start and stays so;
beats are not simulated here (`scale_group.py` has them).

The web grows with the group, so every agent has as much to do: `HOSTS` hosts an agent, `LINKS` links a page. A quarter
of a page's foreign links is its own, the others are some of the dozen that stand on many pages of its host; they lead
to hosts and pages of uneven popularity, half of them to home pages (as in costweb.py).
"""

from __future__ import annotations

import heapq
import json
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from random import Random

from scale_group import sharing_views

from scrapy_ubi.frontier.memory import MemoryFrontier
from scrapy_ubi.protocol.agent import Agent, Effects
from scrapy_ubi.protocol.beat import Beat
from scrapy_ubi.protocol.config import Config
from scrapy_ubi.protocol.host import Entry, HostState
from scrapy_ubi.protocol.lane import STATE
from scrapy_ubi.protocol.wire import decode

FLUSH, EAGER = 0.2, 4  # s between exchanges; an answer waits for three quarters of it (node/pacing.py)
DELAY = 0.001  # s one way to the server
MOST_LETTERS = 64  # that one exchange reads
CONCURRENCY = 16  # loads at once an agent, each LOAD s: about 20 pages a second
LOAD = (0.4, 1.2)
HOSTS, PAGES = 24, 400  # hosts an agent, pages a host
SEEDS = 12  # of an agent
LINKS = 40  # of a page
STANDING, NEW = 12, 0.25  # foreign links of a host that its pages repeat; the share of those that are a page's own
NAVIGATION = 12  # pages of a host that half of its own links point to
WARM = 0.25  # of the pages come before the counting begins


@dataclass(frozen=True)
class Web:
    """A made-up web: `local` is the share of a page's links that stay on its host."""

    hosts: int
    local: float
    seed: int

    def url(self, host: int, page: int) -> str:
        return f"https://www.site-{host}.example/articles/2026/11/a-page-about-{page:05}.html"

    def entry(self, host: int, page: int, depth: int) -> Entry:
        key = ((host << 20 | page) + 1) * 0x9E3779B97F4A7C15 % (1 << 64)
        return Entry(key, self.url(host, page), depth)

    def links(self, host: int, page: int) -> list[tuple[int, int]]:
        """(host, page) of each different link of a page, a pure function of the seed."""
        draw = Random(self.seed << 50 | host << 20 | page).random
        found: dict[tuple[int, int], None] = {}
        for _ in range(LINKS):
            if draw() < self.local:
                found[host, int(draw() * (NAVIGATION if draw() < 0.5 else PAGES))] = None
            elif draw() < NEW:
                found[self._elsewhere(draw)] = None
            else:
                standing = Random(self.seed << 50 | host << 20 | PAGES + int(draw() * STANDING))
                found[self._elsewhere(standing.random)] = None
        return list(found)

    def _elsewhere(self, draw: Callable[[], float]) -> tuple[int, int]:
        """A host, of which a tenth has a third of the links, and its home or, as often, one of its first pages rather
        than its last."""
        return int(self.hosts * draw() ** 2), int(PAGES * max(0.0, draw() * 2 - 1) ** 2)


def name_of(host: int) -> str:
    """The partition key of a host."""
    return f"www.site-{host}.example"


class Server:
    """The Redis: inboxes, answers, and what went in and out."""

    def __init__(self) -> None:
        self.inbox: dict[str, dict[int, dict[str, str]]] = {}
        self.acks: dict[str, dict[str, str]] = {}
        self.acks_size: Counter[str] = Counter()
        self.count: Counter[str] = Counter()
        self._number = 0

    def post(self, receiver: str, fields: dict[str, str]) -> None:
        """Append a letter."""
        self._number += 1
        if receiver in self.inbox:
            self.inbox[receiver][self._number] = fields
        kind = fields["lane"]
        self.count[f"{kind}_letters"] += 1
        self.count[f"{kind}_records"] += int(fields["n"])
        self.count[f"{kind}_body_bytes"] += len(fields["body"])
        self.count["letter_bytes"] += sum(len(name) + len(value) for name, value in fields.items())

    def answer(self, sender: str, lane: str, text: str) -> None:
        """Set an answer."""
        old = self.acks[sender].get(lane)
        self.acks_size[sender] += len(text) - len(old) if old is not None else len(lane) + len(text)
        self.acks[sender][lane] = text
        self.count["answers"] += 1
        self.count["answer_bytes"] += len(lane) + len(text)

    def forget(self, sender: str, lane: str) -> None:
        """Delete an answer."""
        old = self.acks[sender].pop(lane, None)
        if old is not None:
            self.acks_size[sender] -= len(lane) + len(old)


class Peer:
    """One agent, its mail and its loads."""

    def __init__(self, crawl: Crawl, name: str) -> None:
        self.crawl, self.name = crawl, name
        self.frontier = MemoryFrontier()
        draw = crawl.random.getrandbits
        config = Config(replication=crawl.replication)
        self.agent = Agent(name, f"{draw(32):08x}", config, self.frontier, lambda: f"{draw(32):08x}", 0.0)
        self.agent.sure()
        self.consumed: list[int] = []
        self.hand: set[int] = set()
        self.loads = 0
        crawl.server.inbox[name], crawl.server.acks[name] = {}, {}

    def exchange(self) -> None:
        """One round trip: what a drain gives goes out, mail and answers come in."""
        crawl, server = self.crawl, self.crawl.server
        now, effects = crawl.now, self.drain()
        self.deliver(effects, effects.letters)
        letters = list(server.inbox[self.name].items())[:MOST_LETTERS]
        server.count["exchanges"] += 1
        server.count["answers_read_bytes"] += server.acks_size[self.name]
        server.count["answers_read"] += len(server.acks[self.name])
        crawl.at(now + 2 * DELAY, lambda: self.exchanged(letters, dict(server.acks[self.name]), now))

    def drain(self) -> Effects:
        """What is to go out now."""
        self.agent.group.lease.acknowledged(self.crawl.now)
        self.agent.tick(self.crawl.now)
        return self.agent.drain(self.crawl.now)

    def deliver(self, effects: Effects, letters: Iterable[tuple[str, dict[str, str]]]) -> None:
        """The server gets that, with these letters; what was read before is deleted."""
        server = self.crawl.server
        for number in self.consumed:
            del server.inbox[self.name][number]
        self.consumed.clear()
        for lane in effects.forget:
            server.forget(self.name, lane)
        for (sender, lane), text in effects.answers.items():
            server.answer(sender, lane, text)
        for receiver, fields in letters:
            server.post(receiver, fields)

    def exchanged(self, letters: list[tuple[int, dict[str, str]]], acks: dict[str, str], begun: float) -> None:
        """The answer of the server is here."""
        crawl, agent = self.crawl, self.agent
        for number, fields in letters:
            self.consumed.append(number)
            agent.inbound.receive(decode(fields, self.name, 100_000, 4096))
        for lane, text in acks.items():
            agent.outbound.answered(lane, text, crawl.now)
        wait = FLUSH * (1 - 1 / EAGER) if letters else FLUSH
        crawl.at(max(crawl.now, begun + wait), self.exchange)
        self.work()

    def work(self) -> None:
        """Begin loads as long as there is something to load."""
        crawl = self.crawl
        while self.loads < crawl.concurrency:
            found = self.agent.work.next(crawl.now)
            if found is None:
                return
            self.loads += 1
            crawl.at(crawl.now + crawl.random.uniform(*crawl.load), lambda found=found: self.loaded(*found))

    def loaded(self, state: HostState, entry: Entry) -> None:
        """A page is here: its links are told, and it is done."""
        crawl, agent = self.crawl, self.agent
        host, page = int(entry.url[17 : entry.url.index(".", 17)]), int(entry.url[-10:-5])
        agent.work.freed(state, crawl.now)
        outlinks: list[tuple[str, Entry]] = []
        for to, number in crawl.web.links(host, page):
            crawl.server.count["foreign_links"] += to != host
            agent.discovery.discover(name_of(to), crawl.web.entry(to, number, entry.depth + 1), outlinks)
        agent.work.ended(state, entry.key, outlinks)
        self.loads -= 1
        crawl.pages += 1
        self.work()


class Crawl:
    """A crawl by so many agents, until each has fetched `pages` on the average."""

    concurrency, load, own_hosts, seeds = CONCURRENCY, LOAD, HOSTS, SEEDS
    peer_type: type[Peer] = Peer

    def __init__(self, agents: int, replication: int, local: float, seed: int) -> None:
        self.random, self.replication, self.now = Random(seed), replication, 0.0
        self.web = Web(self.own_hosts * agents, local, seed)
        self.server = Server()
        self.pages = 0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self.peers = [self.peer_type(self, f"crawler-{number}") for number in range(agents)]
        self._assemble()
        for number, peer in enumerate(self.peers):
            for host in range(number * self.seeds, (number + 1) * self.seeds):
                peer.agent.discovery.discover(name_of(host), self.web.entry(host, 0, 0))
            self.at(self.random.uniform(0, FLUSH), peer.exchange)

    def _assemble(self) -> None:
        """Everybody has read everybody's beats, twice: the first view, and that it is complete."""
        for counter in (1, 2):
            beats = {peer.name: replace(peer.agent.beat, counter=counter) for peer in self.peers}
            for peer in self.peers:
                peer.agent.group.lease.acknowledged(0.0)
                peer.agent.read(0.0, 0.0, beats)
                peer.agent.tick(0.0)
        assert all(peer.agent.view_history.complete is peer.agent.view for peer in self.peers)

    def at(self, time: float, what: Callable[[], None]) -> None:
        """Let something happen at that time."""
        self._count += 1
        heapq.heappush(self._events, (time, self._count, what))

    def until(self, pages: int) -> None:
        """Go on until so many pages are fetched. Raises RuntimeError when there are not so many."""
        while self.pages < pages:
            self.now, _, what = heapq.heappop(self._events)
            if self.now > 2_000:
                raise RuntimeError(f"only {self.pages} pages were found")
            what()

    def tally(self) -> Counter[str]:
        """All counts up to now."""
        count = Counter(self.server.count)
        count["pages"] = self.pages
        for peer in self.peers:
            counters = peer.agent.counters
            for what in ("links", "forwarded", "suppressed", "replicated", "refused", "resent", "received"):
                count[what] += getattr(counters, what)
        return count


class One(Crawl):
    """One agent among so many, for a crawl longer than that of a whole group can be: it fetches the pages of its own
    hosts that follow from their homes. The others acknowledge what they are sent, and send nothing themselves."""

    def __init__(self, agents: int, local: float, seed: int) -> None:
        self._others = agents - 1
        self._acked: dict[str, deque[int]] = {}
        super().__init__(1, 1, local, seed)
        self.web = Web(self.own_hosts * agents, local, seed)
        peer = self.peers[0]
        own = [host for host in range(self.web.hosts) if peer.agent.keeping.ring.owner(name_of(host)) == peer.name]
        for host in own:
            peer.agent.discovery.discover(name_of(host), self.web.entry(host, 0, 0))
        self.at(0.0, peer.exchange)
        real, self.server.post = self.server.post, self._answer  # type: ignore[method-assign]
        self._post = real

    def _assemble(self) -> None:
        peer = self.peers[0]
        agent = peer.agent
        beats = {f"crawler-{n}": Beat(f"{n:08x}", 0, 200, "0" * 16) for n in range(1, self._others + 1)}
        for counter in (1, 2, 3):
            agent.group.lease.acknowledged(0.0)
            agent.read(0.0, 0.0, {peer.name: replace(agent.beat, counter=counter), **beats})
            agent.tick(0.0)
            digest = agent.view.digest
            beats = {a: replace(b, digest=digest, settled=digest, counter=counter) for a, b in beats.items()}
        assert agent.view_history.complete is agent.view

    def _answer(self, receiver: str, fields: dict[str, str]) -> None:
        """What is posted is acknowledged at the next exchange but one, about as soon as by a real agent."""
        self._post(receiver, fields)
        lane = f"{fields['store']}/{receiver}/{fields['lane']}"
        acked = self._acked.setdefault(lane, deque(maxlen=2 * Config().bounds.window))
        acked.append(int(fields["seq"]))
        text = json.dumps({"acked": [*acked]})
        self.at(self.now + 2 * FLUSH, lambda: self.server.answer(fields["from"], lane, text))


def one(agents: int, pages: list[int], local: float, seed: int) -> list[dict[str, object]]:
    """URLs sent a page by one of so many agents, while it fetches its first `pages[0]` pages, the next, and so on."""
    with sharing_views():
        crawl = One(agents, local, seed)
        rows: list[dict[str, object]] = []
        before = crawl.tally()
        for end in pages:
            crawl.until(end)
            now = crawl.tally()
            rows.append({"agents": agents, "local_links": local, "until_page": end, **figures(now - before)})
            before = now
    return rows


def measure(agents: int, pages: int, replication: int, local: float, seed: int) -> dict[str, object]:
    """The figures of one crawl in which each agent fetches `pages` pages on the average."""
    with sharing_views():
        crawl = Crawl(agents, replication, local, seed)
        crawl.until(int(pages * agents * WARM))
        before, since = crawl.tally(), crawl.now
        crawl.until(pages * agents)
        count, lasted = crawl.tally() - before, crawl.now - since
        lanes = [len(peer.agent.outbox.lanes) for peer in crawl.peers]
    return {
        "agents": agents,
        "replication": replication,
        "local_links": local,
        "pages_an_agent": pages,
        "pages_a_second_an_agent": count["pages"] / lasted / agents,
        "lanes_an_agent": sum(lanes) / agents,
        **figures(count),
    }


def figures(count: Counter[str]) -> dict[str, float]:
    """What a page costs, of counts of so many pages."""
    pages = count["pages"]
    letters = {kind: count[f"{kind}_letters"] for kind in ("discovery", STATE)}
    return {
        "foreign_links_a_page": count["foreign_links"] / pages,
        "links_a_page": count["links"] / pages,
        "urls_sent_a_page": count["forwarded"] / pages,
        "suppressed_share": count["suppressed"] / max(1, count["suppressed"] + count["forwarded"]),
        "state_records_a_page": count["state_records"] / pages,
        "letters_a_page": sum(letters.values()) / pages,
        "discovery_letters_a_page": letters["discovery"] / pages,
        "state_letters_a_page": letters[STATE] / pages,
        "records_a_discovery_letter": count["discovery_records"] / max(1, letters["discovery"]),
        "records_a_state_letter": count["state_records"] / max(1, letters[STATE]),
        "body_bytes_a_page": (count["discovery_body_bytes"] + count["state_body_bytes"]) / pages,
        "letter_bytes_a_page": count["letter_bytes"] / pages,
        "answers_a_page": count["answers"] / pages,
        "answer_bytes_a_page": count["answer_bytes"] / pages,
        "answers_read_bytes_a_page": count["answers_read_bytes"] / pages,
        "answers_read_an_exchange": count["answers_read"] / max(1, count["exchanges"]),
        "exchanges_a_page": count["exchanges"] / pages,
        "resent": count["resent"],
    }
