"""Checkers of P2, P3, P4, P6 and P8: the web's own log, who was lost, who closed how. Those of P1, P5, P7 stand in
watchers.py. They know everything, and share nothing with the code they check.

P3 rests on the *losses*: a disk is lost when a process crashes and its disk with it, or an agent leaves without handing
on. The count begins anew at every *settled* moment: when all who live (and whom nobody holds dead) have seen that all
have settled in one and the same view. More than `t` losses between two such moments, or of all who were there at the
last one, excuse missing pages; a crash whose disk comes back does not count.

P4 is kept by *tokens*: a loss, a crash, a living process held dead give one token for each page that was in flight or
done there and whose done mark nobody else had acknowledged. A page fetched again takes one, or is a violation. A
process that is back with its disk and in a settled view gives the tokens back for the pages done on its disk (P8).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import reduce
from itertools import combinations
from typing import TYPE_CHECKING

import mmh3

from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.protocol.beat import Beat
from scrapy_ubi.protocol.host import HostState, Notes, VisitRow
from scrapy_ubi.protocol.lane import DISCOVERY
from scrapy_ubi.protocol.notes import NOTHING
from scrapy_ubi.protocol.records import Record
from scrapy_ubi.protocol.view import View, digest_of

if TYPE_CHECKING:
    from tests.simulation.disk import Disk
    from tests.simulation.process import Process
    from tests.simulation.world import World


Pair = tuple[int, int]  # a visit of a page: key, generation


def owed(agent: Agent) -> Iterator[Record]:
    """The entries that an agent has told, or is to tell, to their owners, and that are not acknowledged."""
    for (_, kind), lane in agent.outbox.lanes.items():
        yield from lane.records() if kind == DISCOVERY else ()
    yield from (record for _, record, _ in agent.outbox.returned)


def key_of(url: str) -> int:
    """The key of a page in the simulated web."""
    return mmh3.hash64(url, signed=False)[0]


class Violation(AssertionError):
    """A promise was broken."""


class Losses:
    """Which disks were lost since all were settled."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.settled: set[str] | None = None  # who was there at the last settled moment and has not left cleanly
        self.lost: list[Process] = []  # a name may come back with an empty disk, and lose that, too
        self.too_many = False
        self.blamed: list[Process] = []  # those without whom there were first too many
        self._seen: dict[str, object] = {}

    def news(self, process: Process) -> bool:
        """Whether this process may just have made the moment a settled one."""
        now = (process.agent.view, process.agent.view_history.released)
        if self._seen.get(process.name) == now:
            return False
        self._seen[process.name] = now
        return True

    def is_settled(self) -> bool:
        """Whether all who live have seen all settled in one and the same view, that of exactly those who live."""
        alive = [p for p in self.world.alive() if not self.world.declared_dead(p)]
        names = {process.name for process in alive}
        return bool(alive) and all(
            p.agent.view_history.released
            and p.agent.view.digest == alive[0].agent.view.digest
            and p.agent.view.members.keys() == names
            for p in alive
        )

    def look(self) -> bool:
        """Begin anew if the moment is a settled one. It is none while somebody lives whom the others hold dead: what it
        knows may be nowhere else, so losing it now is as losing it before they settled without it.
        """
        if not self.is_settled() or any(map(self.world.declared_dead, self.world.alive())):
            return False
        self.settled = {p.name for p in self.world.alive() if not self.world.declared_dead(p)}
        self.lost.clear()
        return True

    def would_be_too_many(self, name: str) -> bool:
        """Whether one loss more excuses missing pages."""
        names = {name, *(process.name for process in self.lost)}
        first = {process.name for process in self.world.all if process.seeds and not process.went_clean}
        there = (
            first if self.settled is None else self.settled
        )  # at first each knows the seeds, and nobody anything else
        return len(self.lost) >= self.world.config.replication or there <= names

    def lose(self, process: Process) -> None:
        """A disk is lost."""
        too_many = self.would_be_too_many(process.name)
        self.lost.append(process)
        if not self.too_many and too_many:
            self.too_many, self.blamed = True, [*self.lost]

    def left(self, name: str) -> None:
        """An agent has handed on all it had."""
        if self.settled is not None:
            self.settled.discard(name)


class Gone:
    """Whose disks are gone, to judge an alarm: in each time between two settled moments those that were lost, and those
    of processes that have crashed and are not back. The state of a host may be gone where more are away than there are
    copies, or all that were there when it began."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.there: set[int] = set()  # disks: at first of all who know the seeds
        self.away: dict[int, Disk] = {}
        self.past: list[tuple[set[int], dict[int, Disk]]] = []
        self.agreed: list[set[int]] = []  # disks of those who have settled without others, who live and are held dead
        self.begun = self.excused = False

    def started(self, process: Process) -> None:
        """A process starts, with its disk or an empty one."""
        if not self.begun and process.seeds:
            self.there.add(id(process.disk))

    def settled(self) -> None:
        """All who live have all copies."""
        if self.away:
            self.past.append((self.there, self.away))
        here = {id(process.disk) for process in self.world.alive()}
        self.past = [  # who is here with its disk has brought what it knew: it is another loss if that goes now
            (there, {disk: one for disk, one in away.items() if disk not in here}) for there, away in self.past
        ]
        self.begun = True
        down = {id(process.disk) for process in self.world.all if not process.up}
        self.agreed = [there for there in self.agreed if there <= down]
        self.there, self.away = {id(process.disk) for process in self.world.alive()}, {}

    def crashed(self, process: Process) -> None:
        """A process has ended without a word. What it said before, or has on its way to Redis, may have been that all
        of its view have all copies: from then on they may have gone on without those who are not in it, though none of
        them has seen it complete."""
        self.away[id(process.disk)] = process.disk
        said = Beat.parse(process.said)
        if said is None or not said.settled:
            return
        if lives := _lives_of(said.settled, process.agent.view):
            self.agreed.append({id(p.disk) for p in self.world.all if p.agent.incarnation in lives})

    def left(self, process: Process) -> None:
        """An agent has handed on all it had."""
        self.there.discard(id(process.disk))

    def may_be(self, view: View) -> bool:
        """Whether the state of a host may be gone, as those stand who are in that view at the end."""
        here, ends = view.members, self.world.referee.ends
        latest = {id(p.disk): p for p in self.world.all}.values()  # one that went clean may have come back since
        back = {
            id(p.disk)
            for p in latest
            if (p.up and p.name in here and here[p.name].incarnation == p.agent.incarnation)
            or (not p.up and p.name in ends and p.went_clean)
        }
        for there, away in (*self.past, (self.there, self.away)):
            lost = away.keys() - back
            if len(lost) > self.world.config.replication or (lost and there <= lost):
                return True
        lost = {id(p.disk) for p in self.world.all if not p.up} - back
        return self.excused or any(there <= lost for there in self.agreed)

    def agree(self) -> None:
        """Somebody may just have seen that all have settled in its view, and goes on. Others may live who are not in it
        (they came later, are held dead, or are back as another incarnation that these have not seen yet): they do not
        know what its members know by now."""
        alive = {p.agent.incarnation: p for p in self.world.alive()}
        views = {p.agent.view.digest: p.agent.view for p in alive.values() if p.agent.view_history.released}
        for view in views.values():
            there = [alive.get(member.incarnation) for member in view.members.values()]
            disks = {id(p.disk) for p in there if p}
            if there and all(there) and disks not in self.agreed:
                self.agreed.append(disks)


def _lives_of(digest: str, later: View) -> set[str]:
    """The incarnations of the view with this digest: the one that an agent is in now, or one of before, with fewer."""
    for number in range(len(later.members), 0, -1):
        for members in combinations(later.members.items(), number):
            if digest_of(dict(members)) == digest:
                return {member.incarnation for _, member in members}
    return set()


class Referee:
    """The web's access log, and what is allowed in it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.losses = Losses(world)
        self.gone = Gone(world)
        self.loads: dict[int, tuple[float, str, str]] = {}
        self.open: dict[str, set[int]] = {}
        self.given_up: list[str] = []  # who has cancelled loads though nobody held it dead, and when
        self._rejoins: dict[Process, int] = {}
        self._slept: dict[int, Process] = {}  # loads of processes that were stopped meanwhile
        self.most_open = 0  # loads of one host at once, as far as they came
        self.fetched: Counter[str] = Counter()
        self.visited: Counter[tuple[str, int]] = Counter()  # by page and generation
        self.dues: dict[tuple[int, int], set[int]] = {}  # of the rows of these visits
        self.by: dict[str, list[str]] = {}
        self.ends: dict[str, str] = {}
        self.tokens: Counter[Pair] = Counter()
        self.again = 0  # pages fetched again with an excuse
        self.anything = False  # whether any page may be fetched again
        self._over = False
        self._vanished = False  # the last to leave left all to one that had crashed a moment ago: nobody could know
        self._kept: dict[str, set[Pair]] = {}  # tokens given for crashes whose disks stay
        self._back: dict[str, set[Pair]] = {}  # tokens to be taken back at the next settled moment
        self._count = 0
        self._learned: set[tuple[str, int, int]] = set()  # what anybody has known of pages since the crawl was late
        self._late: tuple[int, ...] = ()  # how far it was when that was last asked

    # -- the web's side

    def begin(self, now: float, agent: str, url: str, generation: int = 1) -> int:
        """A request arrives. P2: never more at once at one host, or one shard of it, than are allowed, one unless the
        world says more. Who is not known to the agent now may be when the page is loaded."""
        host = self.world.host_of(url)
        open_loads = self.open.setdefault(host, set())
        for load in [load for load in open_loads if load in self._slept]:
            if self.world.declared_dead(self._slept[load]):  # it was stopped, and has not heard of it
                self.end(load)
        self.most_open = max(self.most_open, len(open_loads) + 1)
        if len(open_loads) >= self.world.loads_of(host):
            others = (self.loads[load] for load in sorted(open_loads))
            raise Violation(
                f"P2: at {now:.3f} {agent} asks for {url} while "
                + ", and ".join(f"{other} loads {page} since {since:.3f}" for since, other, page in others)
            )
        if self.visited[url, generation] and self.tokens[key_of(url), generation] <= 0:
            self.world.overlooked(self.world.processes[agent])
        self._count += 1
        self.loads[self._count] = (now, agent, url)
        open_loads.add(self._count)
        return self._count

    def goes_on(self, load: int, process: Process, url: str) -> None:
        """A load that was hung up, as its process was stopped, is there again: the process runs."""
        host = self.world.host_of(url)
        open_loads = self.open.setdefault(host, set())
        if load in self.loads or self.world.declared_dead(process):
            return
        if len(open_loads) >= self.world.loads_of(host):
            others = [self.loads[other] for other in sorted(open_loads)]
            raise Violation(f"P2: at {self.world.now:.3f} {process.name} goes on to load {url} beside {others}")
        self.loads[load] = (self.world.now, process.name, url)
        open_loads.add(load)
        self._slept[load] = process

    def end(self, load: int) -> None:
        """The answer was sent, or the connection closed."""
        self._slept.pop(load, None)
        load_ = self.loads.pop(load, None)
        if load_ is not None:
            self.open[self.world.host_of(load_[2])].discard(load)

    def cancelled(self, process: Process) -> None:
        """A process cancels its loads. Where it does not join again nobody, as far as it knows, holds it dead."""
        rejoins, before = process.agent.counters.rejoins, self._rejoins.get(process, 0)
        self._rejoins[process] = rejoins
        if rejoins == before:
            self.given_up.append(f"{process.name} at {self.world.now:.2f}")

    def rowed(self, row: VisitRow) -> None:
        """An agent has made this row of a visit."""
        self.dues.setdefault((row.key, row.generation), set()).add(row.due)

    def due(self, agent: str, url: str, before: VisitRow | None) -> None:
        """A request arrives for a page, of which an agent has this row. Never before its time: that of a row which
        somebody has made of the visit before."""
        if before is None:
            return
        dues = [due for due in self.dues.get((before.key, before.generation), ()) if due]
        if not dues or self.world.wall < min(dues) or self.world.wall < before.due:
            raise Violation(f"due: at {self.world.wall:.2f} {agent} visits {url} again, which is due at {sorted(dues)}")

    def loaded(self, process: Process, url: str, generation: int = 1) -> None:
        """A process has received the whole page. P4: not again for the same visit, but with a token. P8: not what its
        disk has as done."""
        key, who = key_of(url), self.by.setdefault(url, [])
        pair = key, generation
        who.append(f"{process.name} at {self.world.now:.2f}" + (f" ({generation})" if generation > 1 else ""))
        if pair in process.returned_done:
            raise Violation(f"P8: {url} fetched by {who}, though it was done on the disk of the last")
        if self.visited[url, generation] and not self.anything:
            if self.tokens[pair] <= 0:
                self.world.overlooked(process)
            if self.tokens[pair] <= 0:
                raise Violation(f"P4: {url} fetched again without excuse, by {who}")
            self.tokens[pair] -= 1
            self.again += 1
        self.visited[url, generation] += 1
        self.fetched[url] += 1
        self.world.watch.fetched(pair, process.name)

    # -- who is lost

    def grant(self, keys: Iterable[Pair]) -> None:
        """These visits may be made once more than they were."""
        for key in keys:
            self.tokens[key] += 1

    def crashed(self, process: Process, keep: bool) -> None:
        """A process ended without a word; its disk stays, or not."""
        self.gone.crashed(process)
        loading = {(visit.entry.key, visit.generation) for visit in process.visits if not visit.loaded}
        keys = self._only_there(process) - loading
        self.grant(keys)
        if keep:
            self._kept.setdefault(process.name, set()).update(keys)
            if self._over:  # it comes back alone, as one that was away when the end was found
                self.grant(self._fetched_keys() - process.disk.done_keys() - keys)
        else:
            self.losses.lose(process)

    def held_dead(self, process: Process) -> None:
        """Somebody holds a living process dead: it is excused as if it had crashed, and goes on."""
        self.grant(self._only_there(process))

    def _only_there(self, process: Process) -> set[Pair]:
        """Pages that may be fetched again without this process: they were in flight, their done marks are not
        acknowledged by all, or nobody else has them. Where too many disks are lost or, without this one, away, nobody
        has to have a copy: who was handing on what it alone had may have reached some of its heirs only, of whom
        another is the owner."""
        every = all if self.losses.too_many or self.losses.would_be_too_many(process.name) else any
        others = [p.frontier for p in self.world.alive() if p is not process and not self.world.declared_dead(p)]
        keys = process.unsettled()
        for url, generation in self.visited:
            key, host = key_of(url), self.world.host_of(url)
            states = [frontier.find(host) for frontier in others]
            have = [state is not None and _visited(state, key, generation) for state in states]
            if not every(have) or not have:
                keys.add((key, generation))
        return keys

    def is_kept(self, process: Process) -> bool:
        """Whether it crashed, and its disk will come back."""
        return process.name in self._kept

    def started(self) -> None:
        """A process starts with an empty disk. Once somebody has found the end it begins a new crawl
        (docs/explanation/protocol.md#the-end), or finds itself alone in one that has lost agents: it fetches what it
        fetches."""
        if self._over:
            self.grant(self._fetched_keys())

    def returned(self, process: Process) -> None:
        """A process is back with its disk."""
        kept = self._kept.pop(process.name, set())
        self._back.setdefault(process.name, set()).update(kept & process.returned_done)

    def look(self) -> None:
        """A view was seen complete: the moment may be a settled one. A page that somebody is loading keeps its token:
        the load began when its done mark was still on the disk that has come back.
        """
        self.gone.agree()
        if not self.losses.look():
            return
        self.gone.settled()
        loading = {key_of(url) for _, _, url in self.loads.values()}
        for process in self.world.alive():
            for pair in self._back.pop(process.name, set()):
                if pair[0] not in loading:
                    self.tokens[pair] = max(0, self.tokens[pair] - 1)

    # -- the end

    def over(self, process: Process) -> None:
        """An agent has found the crawl to be over. P6: then nobody whom it knows has anything left to do."""
        if self._over:
            return
        self._over = True
        if self.world.outside is not None:
            self.world.outside.over(process)
        # Somebody may have come between the read that shows the end and the word that nothing came from outside.
        view_history = process.agent.view_history
        view = view_history.view if view_history.released or view_history.complete is None else view_history.complete
        if view is view_history.view and not self.losses.too_many:  # else a leaver may have told some of the keepers
            self._equal_notes(process)
            if self.world.rounds:
                self._equal_rows(process)
        members = view.members
        for other in self.world.all:
            agent = other.agent
            known = other.name in members and members[other.name].incarnation == agent.incarnation
            if other.up and known:
                waiting = {e for s in other.frontier.states() for e in s.undone() if e.key not in s.closing}
                waiting |= {record.entry for record in owed(agent) if record.entry is not None}
                waiting |= {visit.entry for visit in other.visits}
                left = [e.url for e in waiting if not self.fetched[e.url]]
                left += [row.entry.url for row in _rows(other) if row.due and not self.visited[_next_of(row)]]
                if left:
                    raise Violation(
                        f"P6: over for {process.name} at {self.world.now:.2f}, but {other.name} knows {left[:3]}"
                    )
            elif other.up:  # away; should it go on after the end of a crawl that lost agents, it knows only old things
                states = {state.host: state for state in other.frontier.states()}
                self.grant(
                    (key_of(url), generation)
                    for url, generation in self.visited
                    if (state := states.get(self.world.host_of(url))) is None
                    or not _visited(state, key_of(url), generation)
                )
            elif other.name in self._kept and self.world.processes[other.name] is other:
                self.grant(self._fetched_keys() - other.disk.done_keys())

    def _equal_rows(self, process: Process) -> None:
        """When all is quiet the keepers of a host hold the same rows. See `_equal_notes`."""
        members, rows, late, there = process.agent.view.members, {}, set(), set()
        for other in self.world.alive():
            if other.name in members and members[other.name].incarnation == other.agent.incarnation:
                there.add(other.name)
                late |= {state.host for state in other.frontier.states() if state.dirty}
                for row in _rows(other):
                    rows.setdefault(self.world.host_of(row.entry.url), {}).setdefault(other.name, {})[row.key] = row
        for host in rows.keys() - late:
            keepers = [name for name in process.agent.keeping.keepers_of(host) if name in there]
            kept = [rows[host].get(name, {}) for name in keepers]
            if any(one != kept[0] for one in kept):
                few = [{key: row[:2] for key, row in one.items() if row != kept[0].get(key)} for one in kept]
                raise Violation(f"rows of {host} at the end differ between {keepers}: {few}")

    def _equal_notes(self, process: Process) -> None:
        """When all is quiet the keepers of a host hold the same notes, and nobody holds later ones.

        A dirty copy was told of by an agent outside the view, which came back after the reads that show the end: a
        member has none then, and mail of members that is not answered would have kept its sender from being passive.
        """
        members = process.agent.view.members
        there = {
            other.name: other
            for other in self.world.alive()
            if other.name in members and members[other.name].incarnation == other.agent.incarnation
        }
        notes: dict[str, dict[str, Notes]] = {}
        told_late: set[str] = set()
        for name, other in there.items():
            for state in other.frontier.states():
                notes.setdefault(state.host, {})[name] = state.notes
                if state.dirty:
                    told_late.add(state.host)
        for host in notes.keys() - told_late:
            held = notes[host]
            latest = reduce(Notes.merged, held.values())
            for keeper in process.agent.keeping.keepers_of(host):
                if keeper in there and held.get(keeper, NOTHING) != latest:
                    raise Violation(f"notes of {host} at the end: {held}, of which {keeper} keeps the host")

    def _fetched_keys(self) -> set[Pair]:
        return {(key_of(url), generation) for url, generation in self.visited}

    def forgotten(self) -> None:
        """Redis has forgotten everything: who comes after the end cannot know that it was one."""
        self.anything = self.anything or self._over

    def closed(self, process: Process, reason: str) -> None:
        """An agent closed by itself."""
        self.ends[process.name] = reason
        # Where Redis has forgotten the last words of the lost, who comes back cannot know how far these had come.
        if process.alarm and not self.gone.may_be(process.agent.view) and self.world.redis.memory == 1:
            raise Violation(
                f"alarm: {process.name} says that {process.alarm} are lost, and no more are than have copies"
            )
        if reason == "left" and process.returns:  # all are back before anybody may go on without it: no excuse
            self.gone.crashed(process)
            self._kept.setdefault(process.name, set())
        elif reason == "left":
            if process.went_clean:
                self.losses.left(process.name)
                self.gone.left(process)
                self.gone.agree()  # those who stay, without those who are held dead: all is with them now
                members = process.agent.view.members
                self._vanished = bool(members) and not self.world.living and not self.world.awaited
                if not members:  # nobody to hand over to: its done marks stay on its disk
                    self.grant(self._only_there(process))
                    # Who was lost had all that it had, and its own disk is going: both copies are away.
                    self.gone.excused = self.gone.excused or bool(self.losses.lost)
                elif self.losses.lost and not self._heirs(process):  # they died when they had it all, and it is going
                    self.losses.too_many = self.gone.excused = True
                    self.grant(self._only_there(process))
            else:
                self.crashed(process, keep=process.keeps)

    def _heirs(self, leaver: Process) -> list[Process]:
        """Who has been handed all that this agent had, and lives."""
        members = leaver.agent.view.members
        return [
            heir
            for heir in self.world.alive()
            if heir.name in members and members[heir.name].incarnation == heir.agent.incarnation
        ]

    def hung(self) -> None:
        """P6: with faults over, the crawl ends. Where a letter has three records, one is under way at a time and
        hundreds wait, it may take longer than any limit; but then less and less is left. So once the crawl is late this
        is asked again and again: since the last time more pages were fetched, or somebody has learned of a page or that
        it is done, or less mail and fewer done marks wait. None of these can go on for ever.
        """
        alive, copies = self.world.alive(), self.world.config.replication + 1
        for process in alive:
            for state in process.frontier.states():
                self._learned.update((process.name, entry.key, 0) for entry in state.undone())
                for key in state.told_done():
                    row = state.told_row(key)
                    self._learned.add((process.name, key, row.generation if row is not None else 1))
        waits = sum(len(process.agent.outbox) + copies * len(process.agent.closing) for process in alive)
        now = (len(self.visited), len(self._learned), -waits)
        if now <= self._late:
            left = "; ".join(f"{p.name}: {_told(p)}" for p in alive)
            raise Violation(f"P6: not over after {self.world.now:.0f} s: {left}")
        self._late = now

    def judge_outage(self) -> None:
        """An outage of Redis that hits everybody alike ends without anybody being declared dead
        (docs/explanation/protocol.md#membership)."""
        rejoined = [process.name for process in self.world.all if process.agent.counters.rejoins]
        if rejoined:
            raise Violation(f"outage: {rejoined} were declared dead though Redis was away for everybody")

    def _is_unknown(self, lost: Process) -> bool:
        """Whether nobody can know of this process: no disk that is left has heard of it, nor does Redis know it."""
        redis, life = self.world.redis, lost.agent.incarnation
        if any(life in text for text in (*redis.beats.values(), *redis.profiles.values())):
            return False
        gone = {id(process.disk) for process in self.losses.blamed}
        return all(life not in p.disk.heard for p in self.world.all if id(p.disk) not in gone)

    def judge_pauses(self) -> None:
        """Where nothing goes wrong but that agents stand still, loads are cancelled by those alone that others hold
        dead: what is cancelled is fetched again (P4)."""
        if self.given_up:
            raise Violation(f"P4: loads cancelled, as far as was known by none that is held dead: {self.given_up}")

    def judge(self) -> None:
        """P3, when all is over: every page, unless too many disks were lost; and then somebody has said so."""
        outside = self.world.outside
        want = self.world.web.reachable([*self.world.seeds, *(outside.sure if outside is not None else ())])
        missing = want - self.fetched.keys()
        missing |= {url for url in want if not self.visited[url, self.world.rounds + 1]}
        if not missing or self._vanished:
            return
        if not self.losses.too_many:
            raise Violation(f"P3: {len(missing)} of {len(want)} pages never fetched, e.g. {sorted(missing)[:3]}")
        if self.losses.blamed and all(map(self._is_unknown, self.losses.blamed)):
            return
        ended = any(process.agent.end.finished for process in self.world.all)
        if not any(process.alarm or (not ended and process.lossy) for process in self.world.all):
            raise Violation(f"P3: {len(missing)} pages were lost with too many disks, and nobody said so")


def _visited(state: HostState, key: int, generation: int) -> bool:
    """Whether a host's state knows of that visit of a page."""
    if not state.is_done(key):
        return False
    row = state.visit_row(key)
    return generation <= (row.generation if row is not None else 1)


def _rows(process: Process) -> Iterator[VisitRow]:
    """All rows that an agent has."""
    for state in process.frontier.states():
        if state.visits.count:
            yield from (row for key in [*state.told_done()] if (row := state.visit_row(key)) is not None)


def _next_of(row: VisitRow) -> tuple[str, int]:
    return row.entry.url, row.generation + 1


def _told(process: Process) -> str:
    agent = process.agent
    return (
        f"{agent.beat.line(0)} outbox={len(agent.outbox)} out={agent.work.out} unsent={len(agent.closing.unsent)} "
        f"custody={len(agent.inbound.custody)} syncs={len(agent.handover.open)} "
        f"pending={len(agent.handover.pending)} orphans={len(agent.outbox.orphans)} "
        f"lease={agent.group.lease.holds(process.now())} released={agent.view_history.released}"
    )
