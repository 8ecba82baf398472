"""Checkers of P1, P5, P7 and of the order of a flush: they look at views, disks and mail as they come by.

* **P1**: in every view that is met, every host has the owner and the successors that a plain search for the nearest
  replicas gives. (Contravariance follows: leaving agents out of one fixed order does not reorder the others. It alone
  would not tell nearest from clockwise: both have it.)
* **P5**: when the done mark of a page leaves, each of its outlinks is safe: known on the disks of as many agents as
  there are copies, or on the way to be found again there, for a page that leads to it is not done there.
* **P7**: letters of a lane that are not superseded and lie in Redis are never more than a few windows.
* **Order**: what leaves was durable before: numbers of letters, acknowledged letters, inbox entries to be deleted.
"""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING

import mmh3

from scrapy_ubi.protocol.answer import read_answer
from scrapy_ubi.protocol.lost_mail import LANE as LOST_MAIL
from scrapy_ubi.protocol.rates import LANE
from tests.simulation.checkers import Pair, Violation, key_of
from tests.simulation.mailstore import Outgoing

if TYPE_CHECKING:
    from tests.simulation.process import Process
    from tests.simulation.world import World

CIRCLE = 1 << 64
HOST_SEED = 0x756269
WINDOWS = 3  # a window under way, one of copies sent again, one that came late


class Nearest:
    """The order of agents for a host, by brute force (UbiCrawler 4.3: points from the identifier, nearest first)."""

    def __init__(self, replicas: int) -> None:
        self.replicas = replicas
        self._points: dict[str, list[int]] = {}
        self._distance: dict[tuple[str, str], int] = {}

    def distance(self, agent: str, host: str) -> int:
        """From a host's point to the agent's nearest replica."""
        found = self._distance.get((agent, host))
        if found is None:
            at = mmh3.hash64(host, HOST_SEED, signed=False)[0]
            away = [abs(at - point) for point in self._replicas(agent)]
            found = self._distance[agent, host] = min(min(gap, CIRCLE - gap) for gap in away)
        return found

    def _replicas(self, agent: str) -> list[int]:
        if agent not in self._points:
            draw = Random(int.from_bytes(agent.encode(), "big"))
            self._points[agent] = [draw.getrandbits(64) for _ in range(self.replicas)]
        return self._points[agent]

    def order(self, agents: list[str], host: str, count: int) -> tuple[str, ...]:
        """The first `count` of these agents for a host."""
        return tuple(sorted(agents, key=lambda agent: self.distance(agent, host))[:count])


class Watchers:
    """All of them, for one world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.hosts = list(dict.fromkeys(world.host_of(url) for url in world.keys.values()))
        self.nearest = Nearest(world.config.replicas)
        self.views: set[str] = set()
        self.safe: set[Pair] = set()  # pages whose outlinks were found safe when their done marks left
        self._fetchers: dict[Pair, set[str]] = {}  # of each visit
        self._parents: dict[str, list[tuple[str, int, int]]] = {}
        for key, url in world.keys.items():
            for generation in range(1, world.web.most + 1):
                for link in world.web.links(url, generation):
                    self._parents.setdefault(link, []).append((world.host_of(url), key, generation))

    def view(self, process: Process) -> None:
        """P1: a process believes in this view."""
        view, view_history = process.agent.view, process.agent.view_history
        if view_history.released:
            process.fewest = min(process.fewest, len(view.members))
        if view_history.complete is not None:
            process.sizes = [len(view.members) for view in (view_history.complete, *view_history.entered)]
        if view.digest in self.views:
            return
        self.views.add(view.digest)
        agents, count = list(view.members), self.world.config.replication + 1
        for host in self.hosts if agents else ():
            found, right = view.ring.order(host, count), self.nearest.order(agents, host, count)
            if tuple(found) != right or view.ring.owner(host) != right[0]:
                raise Violation(f"P1: {host} goes to {found} in the view of {sorted(agents)}, and not to {right}")

    # -- what leaves

    def leaves(self, process: Process, out: Outgoing) -> None:
        """A drain's effects are about to leave a process."""
        disk = process.disk
        saved = disk.saved if out.answers or out.letters else None
        if not disk.merged.issuperset(out.consumed):
            raise Violation(f"order: {process.name} deletes inbox entries that its disk does not hold")
        for (_, lane), text in out.answers.items():
            if lane.startswith((LANE, LOST_MAIL)):
                continue
            held = saved.lanes_in.get(lane) if saved is not None else None
            said = read_answer(text).keys()
            if said and (held is None or not said <= held.outcomes.keys()):
                raise Violation(f"order: {process.name} acknowledges letters of {lane} that its disk does not hold")
        for receiver, fields in out.letters:
            name = f"{fields['store']}/{receiver}/{fields['lane']}"
            if saved is None or int(fields["seq"]) >= saved.numbers.get(name, 1):
                raise Violation(f"order: {process.name} sends a letter of {name} whose number its disk does not hold")
            if '"done"' in fields["body"] or '"visited"' in fields["body"]:
                self._done_marks(process, fields["body"])

    def _done_marks(self, process: Process, body: str) -> None:
        for delta in json.loads(body):
            marks = [(int(text, 16), 1) for text in delta.get("done", ())]
            marks += [(int(row[0][0], 16), row[1]) for row in delta.get("visited", ())]
            for pair in marks:
                if pair not in self.safe:
                    self.safe.add(pair)
                    if process.name in self._fetchers.get(pair, ()):
                        self._done_mark(process, self.world.keys[pair[0]], pair[1])

    def _done_mark(self, process: Process, url: str, generation: int) -> None:
        """P5: a done mark leaves an agent that has fetched the page, for the first time since somebody has. Where more
        disks were lost than there are copies, outlinks that were safe may be gone. An agent that passes a mark on does
        not know how few agents there were when that left: one may have been alone."""
        if self.world.referee.losses.too_many:
            return
        need = self._copies(process)
        there = [other for other in self.world.all if self._counts(other)]
        for link in self.world.web.links(url, generation):
            host, key = self.world.host_of(link), key_of(link)
            if sum(other.disk.knows(host, key) for other in there) < need:
                self._is_safe(process, url, link, there, need)

    def _copies(self, process: Process) -> int:
        """How many copies this agent must have waited for: as many as there were agents, by all it has seen since it
        saw a view complete. One that came back may tell of pages from when the group was smaller, as may one that began
        anew as another incarnation. The first view after that is without it: it counts for one that is leaving, which
        enters none."""
        view_history, settled = process.agent.view_history, self.world.referee.losses.settled
        if view_history.complete is not None:
            sizes = [len(view.members) for view in (view_history.complete, *view_history.entered)]
        else:
            first = 0 if process.agent.leaving else 1
            sizes = [process.fewest, len(settled or ()), *(len(view.members) for view in view_history.entered[first:])]
            sizes += process.sizes
        return min(self.world.config.replication + 1, *sizes)

    def _is_safe(self, process: Process, url: str, link: str, there: list[Process], need: int) -> None:
        holders = {other.name for other in there if self._leads_to(other, link)}
        if len(holders) < need:
            raise Violation(
                f"P5: at {self.world.now:.2f} the done mark of {url} leaves {process.name}, and {link} is safe "
                f"only at {sorted(holders)}, not at {need}"
            )

    def _counts(self, process: Process) -> bool:
        """Whether a disk is there, or was when all were settled last. Who has closed at the end of the crawl keeps its
        disk, and nothing of what it knew is left to fetch."""
        referee = self.world.referee
        if process in referee.losses.lost:
            return True
        present = self.world.processes[process.name] is process
        return present and (process.up or referee.is_kept(process) or referee.ends.get(process.name) == "finished")

    def _leads_to(self, process: Process, link: str) -> bool:
        disk = process.disk
        if disk.knows(self.world.host_of(link), key_of(link)):
            return True
        return any(disk.leads_to(*parent) for parent in self._parents.get(link, ()))

    def fetched(self, pair: Pair, name: str) -> None:
        """A page was fetched by this agent: the done mark of that visit will leave, maybe again."""
        self.safe.discard(pair)
        self._fetchers.setdefault(pair, set()).add(name)

    def mail(self, out: Outgoing) -> None:
        """P7: letters have arrived at Redis."""
        bound = WINDOWS * self.world.config.bounds.window
        for receiver, fields in out.letters:
            lane, floor = self.world.redis.lanes[receiver, fields["store"], fields["lane"]], int(fields["floor"])
            live = sum(seq >= floor for seq in lane)
            if live > bound:
                raise Violation(f"P7: {live} letters of {fields['from']} to {receiver} in Redis, more than {bound}")
