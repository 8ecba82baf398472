"""One simulated agent process: its clock, its loops, its disk, its fetches.

The production agent is driven as the node drives it: beats in one loop, flushes in another, fetches in between. A
flush is first written to the disk and only then leaves (docs/explanation/protocol.md#flush-and-restart); what came in
is deleted in Redis by the drain after it was merged, so never before it is durable.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING

from scrapy_ubi.agent.group.lost_agents import lost
from scrapy_ubi.agent.mail.seed_inbox import KNOWN, SeedInbox, SeedOutcome
from scrapy_ubi.frontier.host_loads import HostLoads
from scrapy_ubi.protocol import snapshot
from scrapy_ubi.protocol.agent import Agent, Effects
from scrapy_ubi.protocol.beat import LOSSY, Beat
from scrapy_ubi.protocol.host import Entry, HostState, VisitRow
from scrapy_ubi.protocol.host_policy import FREE, HostPolicy
from scrapy_ubi.protocol.losses import LossBook
from scrapy_ubi.protocol.notes import canonical
from scrapy_ubi.protocol.rates import GroupRates
from scrapy_ubi.protocol.records import Record
from scrapy_ubi.protocol.wire import decode
from scrapy_ubi.transport.redis_keys import mail_place
from tests.simulation.checkers import Pair, Violation, key_of
from tests.simulation.disk import Change, Disk, LoggedDiskFrontier, LoggedFrontier, StoreDisk
from tests.simulation.mailstore import Fields, Incoming, Outgoing, OwnMail

if TYPE_CHECKING:
    from tests.simulation.world import World

INTERVAL, LEASE, FAILURE, FLUSH = 0.5, 3.0, 5.0, 0.2
IDLE = 0.5  # s between flushes of an agent to which nothing happens, so that waiting costs the simulator less
QUEUED = (0, 0, 0, 0.01, 0.05, 0.6)  # s that a request waits in the downloader before it is dispatched
AGAIN = 1.0  # s after which an exchange without an answer is tried again
PUBLISH = 4  # beats between two profiles
MOST_RECORDS = 10_000
RATE = "rate"  # of all pages, where the world has one


@dataclass(eq=False)
class Visit:
    """A request handed out."""

    state: HostState
    entry: Entry
    before: VisitRow | None = None  # of a page that is visited again
    load: int | None = None  # the web's number of the load, once it has begun
    ends: float = 0.0  # when the web has answered it
    freed: bool = False
    rated: bool = False  # it counts for the rate of the group
    loaded: bool = False
    cancelled: bool = False

    @property
    def generation(self) -> int:
        """The how manieth visit of its page it is."""
        return self.before.generation + 1 if self.before is not None else 1


def _pair(record: Record) -> Pair:
    assert record.done is not None
    return record.done, record.row.generation if record.row is not None else 1


def host_of(url: str) -> str:
    """The host of a page."""
    return url.split("/", 3)[2]


def entry(url: str, depth: int) -> Entry:
    """A page as an entry."""
    return Entry(key_of(url), url, depth)


class Process:
    """`disk` is the one an earlier process of this name has left, None for an empty one."""

    def __init__(self, world: World, name: str, seeds: list[str], rate: float, disk: Disk | None) -> None:
        self.world, self.name, self.rate, self.seeds = world, name, rate, seeds
        self.offset = world.random.uniform(0, 1000)
        self.up, self.paused, self.cut, self.deaf = True, False, False, False
        self.stopping = self.lossy = self.went_clean = self.killed = False
        self.keeps = False  # its disk stays when it is asked to go, and it comes back
        self.returns = False  # it is asked to go as all others are, and will be started again with its disk
        self.leaves_by = math.inf  # s
        self.skew = Random(f"wall {world.seed} {name}").choice(world.skews)  # s
        self.lingers = world.scribe.choice((0, 0, 3, 8))  # flushes
        self.deferred: list[Callable[[], None]] = []
        self.counter = self.cancels = self._written = 0
        self.said = ""  # its last beat, which may be on its way to Redis
        self.visits: list[Visit] = []
        self.disk = disk or (StoreDisk() if world.on_disk else Disk())
        self.agent, self.frontier = self._begin_agent()
        if world.rate is not None:
            rates = self.agent.talks.keep_rates({RATE: world.rate})
            rates.fresh = disk is None and not world.rated
        losses = self.agent.group.losses
        losses.book, losses.former = LossBook.read(self.disk.lost), self.disk.lives[:-1]
        losses.book.await_publishing()
        self.alarm: tuple[str, ...] = ()  # who is lost, as it says at its end
        self.returned_done = self.disk.done_keys() if disk is not None else set()
        if disk is None:
            world.outputs.append(self.disk.outputs)
        self.disk.outputs.cut()
        self.inbox = SeedInbox(self._take, lambda: None, serves=False)
        self.seeds_in_hand: set[int] = set()
        if world.outside is not None:
            self.agent.end.allow_outside_entries()
        self.slot = (
            self.agent.talks.keep_mail_slot() if world.redis.slots else None
        )  # where mail is in slots of its own
        self.owed: set[str] = set()  # agents whose server has not taken what was for them
        self.read: list[OwnMail] = []  # and what was read in the own slot, until an exchange takes it
        self.is_reading = False
        self.in_hand: dict[int, bool] = {}  # inbox entries merged and not deleted yet
        self.out: Outgoing | None = None
        self.denied = self._announced = self._said_over = False
        self.fewest = 1_000_000  # members of the smallest view in which all had settled
        self.sizes: list[int] = []  # of the views since one was complete, as last seen, of an incarnation before maybe
        self._active = -1
        self.after(0, self.join)

    def _begin_agent(self) -> tuple[Agent, LoggedFrontier | LoggedDiskFrontier]:
        world, disk, saved = self.world, self.disk, self.disk.saved
        frontier = disk.opened(-self.offset) if isinstance(disk, StoreDisk) else disk.frontier()
        if world.loads > 1:
            frontier.loads = HostLoads(lambda host: world.loads_of(host) if world.loads_of(host) > 1 else 0)
        now, policy = self.now(), self._policy()
        if saved is None:
            store = f"{world.random.getrandbits(32):08x}"
            return Agent(self.name, store, world.config, frontier, self._incarnation, now, policy), frontier
        return snapshot.restore(self.name, saved, world.config, frontier, self._incarnation, now, policy), frontier

    def _policy(self) -> HostPolicy:
        if not self.world.rounds:
            return FREE
        return HostPolicy(redone_row=lambda state, entry: self._row(entry, None))

    def _row(self, entry: Entry, before: VisitRow | None) -> VisitRow | None:
        """The row of a page that was visited a moment ago."""
        world = self.world
        if not world.rounds:
            return None
        generation = before.generation + 1 if before is not None else 1
        due = math.ceil(world.wall) + world.interval if generation <= world.rounds else 0
        etag = f'"{self.name}"' if world.scribe.random() < 0.5 else ""
        row = VisitRow(generation, due, 0, 1, 0, int(world.wall), world.interval, 0, entry.key >> 8, etag, "", entry)
        world.referee.rowed(row)
        return row

    def _incarnation(self) -> str:
        incarnation = f"{self.world.random.getrandbits(32):08x}"
        self.disk.lives.append(incarnation)
        return incarnation

    def now(self) -> float:
        """The process's own clock (s)."""
        return self.world.now * self.rate + self.offset

    def after(self, delay: float, what: Callable[[], None]) -> None:
        """Do something later, if it still runs."""
        self.world.at(self.world.now + delay, lambda: self.run(what))

    def run(self, what: Callable[[], None]) -> None:
        """Do something now, or when it is no longer paused."""
        if not self.up:
            return
        if self.paused:
            self.deferred.append(what)
            return
        what()

    @property
    def reaches_redis(self) -> bool:
        """Whether a command from here arrives there."""
        return self.world.redis.up and not self.cut

    # -- loops

    def join(self) -> None:
        """Claim the identifier, once Redis can be reached; from then on it is an agent."""
        slot = self.world.redis.slot_of(self.name) if self.slot is not None else None
        if not self.reaches_redis or (slot is not None and not slot.up):
            self.after(0.3, self.join)
            return
        before = Beat.parse(self.world.redis.beats.get(self.name, ""))
        if before is not None:
            self.agent.follow(before)
            published = json.loads(self.world.redis.profiles.get(self.name, "") or "{}")
            self.agent.group.losses.take_over(LossBook.read(published))
        self.world.redis.claim(self.name, self.agent.beat.line(0))
        self.after(0, self.beat_loop)
        self.after(0.01, self.flush_loop)
        self.after(0.02, self.begin)

    def begin(self) -> None:
        """The spider's start()."""
        for url in self.seeds:
            self.agent.discovery.discover(self.world.host_of(url), entry(url, 0))
        self.agent.end.start_exhausted = True
        self.work()

    def beat_loop(self) -> None:
        self.after(INTERVAL, self.beat_loop)
        self.beat()

    def beat(self, last: bool = False) -> None:
        """Write the beat and read everybody's."""
        world, sent = self.world, self.now()
        self.counter += 1
        counter = self.counter
        line = self.said = (self.agent.last_beat() if last else self.agent.beat).line(self.counter)
        self.lossy = self.agent.lossy or (last and LOSSY in line.split()[5])
        book = self.agent.group.losses.book
        due = last or self.counter % PUBLISH == 1 or not book.is_published
        profile, changes = self.profile(last) if due else "", book.changes if due else None

        def execute() -> None:
            if not self.reaches_redis or world.lost():
                return
            if counter > self._written:  # one thread writes them, one after the other
                self._written = counter
                world.redis.beats[self.name] = line
                if profile:
                    world.redis.profiles[self.name] = profile
            beats, memory = dict(world.redis.beats), str(world.redis.memory)
            watched = world.redis.watched_time(world.now, world.wall + self.skew) if world.watched else 0.0
            if not self.deaf and not world.lost():
                self.after(world.delay(), lambda: self.beaten(sent, beats, memory, watched, changes))

        world.at(world.now + world.delay(), execute)

    def profile(self, last: bool) -> str:
        """What it publishes of those who were lost."""
        lives = [life for life in self.disk.lives if life != self.agent.incarnation]
        told = {"incarnation": self.agent.incarnation, "former": lives, **self.agent.group.losses.book.told()}
        left = last and not self.agent.end.finished and self.went_clean
        return json.dumps({**told, "handed_over": True} if left else told)

    def _look_for_the_lost(self) -> None:
        redis, agent = self.world.redis, self.agent
        if agent.lossy or redis.control.get("finished") == "lossy":
            members = {self.name, *agent.view.members}
            book = agent.group.losses.book
            self.alarm = lost(self.name, book, members, redis.profiles, redis.beats)

    def beaten(
        self, sent: float, lines: dict[str, str], memory: str, watched: float, changes: int | None = None
    ) -> None:
        """Everybody's beats have come. `changes`: a profile was taken that has so many of what is known of losses."""
        agent, over = self.agent, self.agent.end.finished
        agent.group.lease.acknowledged(sent)
        if changes is not None:
            agent.group.losses.book.publish(changes)
        read = self.world.parse(lines)
        self.disk.heard.update(beat.incarnation for beat in read.values())
        agent.read(sent, self.now(), read, memory, watched)
        self.world.noticed(self)
        if agent.end.finished and not over:
            self.world.referee.over(self)
        if agent.end.seen is not None and self.world.outside is not None:
            self.world.outside.near_the_end()
        self.work()

    def _take(self, number: str, fields: Mapping[str, str]) -> SeedOutcome:
        """As the adapter does."""
        host = self.world.host_of(fields["url"])
        if (owner := self.agent.keeping.owner(host)) != self.name:
            return SeedOutcome(owner=owner)
        return SeedOutcome() if self.agent.discovery.discover(host, entry(fields["url"], 0)) else SeedOutcome(KNOWN)

    def take_seeds(self, seeds: Mapping[int, str]) -> None:
        """Seeds that were read."""
        news = {number: url for number, url in seeds.items() if number not in self.seeds_in_hand}
        self.seeds_in_hand |= news.keys()
        raw = [(str(number), {b"url": url.encode()}) for number, url in news.items()]
        if self.inbox.receive(raw, self.agent.journal.flush):
            self.agent.end.took_outside()

    def unsettled(self) -> set[Pair]:
        """Visits out or done here whose done marks nobody else has acknowledged: P4 lets them be made again."""
        agent = self.agent
        pairs = {(visit.entry.key, visit.generation) for visit in self.visits}
        for _, state, key in agent.closing.unsent:
            row = state.visit_row(key)
            pairs |= {(key, generation) for generation in range(1, row.generation + 1 if row is not None else 2)}
        for lane in agent.outbox.lanes.values():
            for letter in lane.unacknowledged.values():
                pairs |= {_pair(record) for record in letter.records if record.done is not None}
            pairs |= {_pair(item) for item in lane.waiting if isinstance(item, Record) and item.done is not None}
        return pairs

    def flush_loop(self) -> None:
        """Time passes; then a flush, then its mail."""
        agent = self.agent
        self.after(IDLE if agent.quiescence.activity == self._active else FLUSH, self.flush_loop)
        self._active = agent.quiescence.activity
        if self.world.rounds:
            agent.work.wake(int(self.world.wall))
        urgent = agent.tick(self.now())
        if urgent.cancels > self.cancels:
            self.cancels = urgent.cancels
            self.cancel()
        if agent.leaving and self.world.now > self.leaves_by:
            self.go()
            return
        if self.returns and self.stopping and agent.leaving and not agent.view.members:
            self.save(None)
            self.go()
            return
        if self.stopping and agent.self_status.may_go():
            if self.lingers <= 0:
                self.go()
                return
            self.lingers -= 1  # its last exchange takes its time; meanwhile it beats and reads on
        effects = agent.drain(self.now()) if self.out is None else None
        self.save(effects)
        if effects is not None:
            self.out = self._outgoing(effects)
            self.world.watch.leaves(self, self.out)
            self.send()
        self.work()

    def save(self, effects: Effects | None) -> None:
        """Make durable what has changed."""
        agent, disk = self.agent, self.disk
        changes, self.frontier.changes = self.frontier.changes, []
        if not agent.view.members and any(change == Change(change.host) for change in changes):
            raise Violation(f"P8: {self.name} was the last to leave, and has dropped what nobody else holds")
        disk.outputs.write()
        disk.flush(changes)
        disk.outputs.flushed()
        disk.merged = frozenset(self.in_hand)
        new = snapshot.changes(agent)
        disk.ledger.write(new)
        disk.lost = agent.group.losses.book.told()
        if isinstance(disk, StoreDisk):
            disk.written(self.frontier, new)

    def _outgoing(self, effects: Effects) -> Outgoing:
        control = {}
        if self.agent.end.finished:
            control["finished"] = "lossy" if self.agent.lossy else "whole"
        elif self.denied:
            control["finished"] = ""
        consumed, forget = list(self.in_hand), list(effects.forget)
        out = Outgoing(list(effects.letters), dict(effects.answers), consumed, forget, control)
        if self.world.outside is not None:
            self._with_seeds(out)
        return out

    def _with_seeds(self, out: Outgoing) -> None:
        """As the exchange does: the end is written by who sees that nothing has come from outside."""
        agent = self.agent
        out.answered = [int(answer.number) for answer in self.inbox.answers(agent.outbox.oldest())]
        out.handed = [(int(number), owner) for number, owner in self.inbox.handed()]
        out.read_seeds = not self.stopping and self.inbox.wanted(agent, MOST_RECORDS) > 0
        if agent.end.finished:
            out.control.clear()
            if not self._announced and not self._said_over:
                out.control["finished"] = "lossy" if agent.lossy else "whole"
            self._announced = True
        elif agent.end.seen is not None:
            out.end = agent.end.seen.mark, "lossy" if agent.end.seen.lossy else "whole"

    def send(self) -> None:
        """One exchange with Redis; again and again until an answer comes."""
        world, out = self.world, self.out
        assert out is not None
        rest = out
        if self.slot is not None:
            self._post(out)
            rest = replace(out, letters=[], answers={}, consumed=[], forget=[])

        def execute() -> None:
            if not self.reaches_redis or world.lost():
                return
            got = world.exchange(self.name, rest)
            if not self.deaf and not world.lost():
                self.after(world.delay(), lambda: reply(got))

        def reply(got: Incoming) -> None:
            if self.out is out:
                self.out = None
                self.exchanged(out, got)

        def again() -> None:
            if self.out is out:
                if out.end is not None:  # what was seen is old
                    self.agent.end.not_over()
                    out.end = None
                self.send()

        world.at(world.now + world.delay(), execute)
        self.after(AGAIN, again)

    def _post(self, out: Outgoing) -> None:
        """Mail to each slot by itself, and a look at the own one, unless one is under way."""
        world, parts = self.world, dict[int, Outgoing]()
        for receiver, fields in out.letters:
            parts.setdefault(mail_place(receiver, len(world.redis.slots)), Outgoing()).letters.append(
                (receiver, fields)
            )
        for to, text in out.answers.items():
            parts.setdefault(mail_place(to[0], len(world.redis.slots)), Outgoing()).answers[to] = text
        for number, part in parts.items():

            def arrive(number: int = number, part: Outgoing = part) -> None:
                taken = self.reaches_redis and not world.lost() and world.post(part, number)
                if not taken or self.deaf or world.lost():
                    self.owed |= {receiver for receiver, _ in (*part.letters, *part.answers)}

            world.at(world.now + world.delay() + world.redis.slots[number].slow, arrive)
        if not self.is_reading:
            self.is_reading = True
            slot, consumed, forget = world.redis.slot_of(self.name), list(out.consumed), list(out.forget)

            def look() -> None:
                if not self.reaches_redis or not slot.up or world.lost():
                    self.after(AGAIN, lambda: setattr(self, "is_reading", False))
                    return
                got = world.redis.read_mail(self.name, consumed, forget)
                if self.deaf or world.lost():
                    self.after(AGAIN, lambda: setattr(self, "is_reading", False))
                    return
                self.after(world.delay(), lambda: self._has_read(got, consumed))

            world.at(world.now + world.delay() + slot.slow, look)

    def _has_read(self, got: OwnMail, consumed: list[int]) -> None:
        self.is_reading = False
        self.read.append(got)
        for number in consumed:
            self.in_hand.pop(number, None)

    def _of_slots(self) -> tuple[dict[int, Fields], dict[str, str]]:
        """What was read in the own slot; and what is late is said again."""
        assert self.slot is not None
        slots, letters, acks = self.world.redis.slot_of, dict[int, Fields](), dict[str, str]()
        for got in self.read:
            letters |= got.letters
            acks |= got.acks
            self.slot.note_memory(got.memory)
        self.read = []
        late = {agent for agent in self.owed if slots(agent).up and not slots(agent).full}
        if late:
            self.owed -= late
            self.agent.mail_lost(late)
        return letters, acks

    def exchanged(self, out: Outgoing, got: Incoming) -> None:
        """An exchange has brought this."""
        agent, (inbox, acks, control) = self.agent, got[:3]
        over = agent.end.finished
        if self.slot is not None:
            inbox, acks = self._of_slots()
        for number in out.consumed if self.slot is None else ():
            self.in_hand.pop(number, None)
        for number, fields in inbox.items():
            if number not in self.in_hand:
                self.in_hand[number] = True
                agent.inbound.receive(decode(fields, self.name, MOST_RECORDS, 4096))
        for lane, text in acks.items():
            if agent.talks.hear(lane, text, self.now()):
                continue
            agent.outbound.answered(lane, text, self.now())
        self.denied = False
        self._said_over = bool(control.get("finished"))
        if control.get("finished") and not agent.end.finished:
            agent.accept_end(control["finished"] == "lossy")
            self.denied = not agent.end.finished
        if self.world.outside is not None:
            self._heard_of_seeds(out, got, over)
        if agent.end.finished:
            self.go()
        self.work()

    def _heard_of_seeds(self, out: Outgoing, got: Incoming, over: bool) -> None:
        agent = self.agent
        self.seeds_in_hand -= {*out.answered, *(number for number, _ in out.handed)}
        if agent.end.finished:
            if not over and out.end is not None and self._said_over:
                self.world.referee.over(self)
            return
        if out.end is not None:
            agent.end.not_over()
        self.take_seeds(got.seeds)
        self.inbox.note_waiting(got.waiting)
        agent.quiescence.look(got.mark, self.now())

    # -- fetches

    def work(self) -> None:
        """Take requests in hand, as many as there is room for."""
        if not self.up or self.stopping or self.world.halted:
            return
        while len(self.visits) < self.world.concurrency:
            found = self.agent.work.next(self.now())
            if found is None:
                return
            visit = Visit(*found, found[0].visits.out.get(found[1].key))
            self.visits.append(visit)
            self.after(self.world.random.choice(QUEUED), lambda visit=visit: self.dispatch(visit))

    def dispatch(self, visit: Visit) -> None:
        """A request is about to leave: the last look."""
        over = visit.state.is_over(visit.entry.key)
        if over or not self.agent.work.may_fetch(visit.state, self.now()):
            self.free(visit)
            self.visits.remove(visit)
            self.agent.work.put_back(visit.state, visit.entry.key)
            return
        if isinstance(self.agent.talks.rates, GroupRates):
            if wait := self.agent.talks.rates.start_load((RATE,), visit.state.host, self.now()):
                self.wait_for_rate(visit, wait)
                return
            visit.rated = True
            self.world.rated.append(self.world.now)
        self.world.budgets.begin(self, visit.state)
        visit.load = self.world.referee.begin(self.world.now, self.name, visit.entry.url, visit.generation)
        self.world.referee.due(self.name, visit.entry.url, visit.before)
        load, duration = visit.load, self.world.load_time()
        visit.ends = self.world.now + duration
        self.world.at(visit.ends, lambda: self.world.referee.end(load))
        self.after(duration, lambda: self.loaded(visit))

    def wait_for_rate(self, visit: Visit, seconds: float) -> None:
        """The group's rate is used up: the page goes back to its queue, and its host is put off."""
        self.free(visit)
        self.visits.remove(visit)
        self.frontier.postpone(visit.state, self.now() + seconds)
        self.agent.work.put_back(visit.state, visit.entry.key)
        self.after(seconds, self.work)

    def free(self, visit: Visit) -> None:
        """The load of a visit has ended."""
        if visit.rated:
            visit.rated = False
            assert isinstance(self.agent.talks.rates, GroupRates)
            self.agent.talks.rates.end_load((RATE,), self.now())
        if not visit.freed:
            visit.freed = True
            self.agent.work.freed(visit.state, self.now())

    def cancel(self) -> None:
        """Cut off all loads under way."""
        if any(visit.load is not None and not visit.freed for visit in self.visits):
            self.world.referee.cancelled(self)
        for visit in list(self.visits):
            if visit.load is not None and not visit.freed:
                self.world.referee.end(visit.load)
                self.free(visit)
                visit.cancelled = True
                self.visits.remove(visit)
                self.agent.work.put_back(visit.state, visit.entry.key)

    def loaded(self, visit: Visit) -> None:
        """The page is here."""
        if visit.cancelled:
            return
        self.free(visit)
        visit.loaded = True
        self.world.referee.loaded(self, visit.entry.url, visit.generation)
        self.world.budgets.loaded(self, visit.state, visit.entry.key)
        self.after(self.world.random.choice((0.0, 0.01, 0.5)), lambda: self.parsed(visit))
        self.work()

    def parsed(self, visit: Visit) -> None:
        """The spider has seen it."""
        learned: list[tuple[str, Entry]] = []
        for url in self.world.web.links(visit.entry.url, visit.generation):
            self.agent.discovery.discover(self.world.host_of(url), entry(url, visit.entry.depth + 1), learned)
        self.visits.remove(visit)
        if self.world.scribe.random() < self.world.noting:
            self.note(visit.state)
        self.disk.outputs.page(visit.entry.key)
        self.agent.work.ended(visit.state, visit.entry.key, learned, self._row(visit.entry, visit.before))
        if self.world.scribe.random() < self.world.noting / 4:
            self.note(visit.state)
        self.work()

    def note(self, state: HostState) -> None:
        """Count the notes of a host, where it is held still."""
        before = json.loads(state.notes.text or "{}")
        text = canonical(
            {"by": self.name, "count": before.get("count", 0) + 1, "a": "b" * self.world.scribe.choice((1, 999))}
        )
        if self.agent.keeping.note(state, text):
            self.world.happened["note"] += 1

    # -- ends

    def leave(self, within: float = math.inf) -> None:
        """SIGTERM: no new fetches; when those under way have ended, hand over, `within` so long (s), and go."""
        self.stopping = True

        def ready() -> None:
            if self.visits:
                self.after(0.1, ready)
            else:
                self.leaves_by = self.world.now + within
                self.agent.leave(self.now())

        ready()

    def go(self) -> None:
        """The process ends by itself."""
        undone = any(state.waiting or state.out or state.visits.awaited for state in self.frontier.states())
        handed_over = self.agent.self_status.may_go() and (bool(self.agent.view.members) or not undone)
        self.went_clean = self.agent.end.finished or handed_over
        if self.agent.end.finished:
            self._look_for_the_lost()
        self.agent.record_leave()
        self.disk.lost = self.agent.group.losses.book.told()
        self.beat(last=True)
        self.disk.outputs.close()
        self.world.ended(self)
        self.world.referee.closed(self, "finished" if self.agent.end.finished else "left")

    def crash(self, keep: bool = False) -> None:
        """kill -9. `keep`: its disk stays, as the last flush left it."""
        self.killed = True
        self._hung_up()
        self.disk.outputs.crash(self.world.clerk)
        self.disk.outputs.lost = not keep
        self.world.ended(self)
        self.world.referee.crashed(self, keep)

    def pause(self, seconds: float) -> None:
        """SIGSTOP, and SIGCONT so much later. Nobody can hang up for a process that is stopped: a load that lasts
        longer than the failure timeout may then last beside the heir's, whatever the protocol does, and is excused:
        as long as the process is stopped and, where somebody holds it dead, until it has heard of it.
        """
        self._hung_up()
        self.paused = True
        self.world.at(self.world.now + seconds, self.resume)

    def _hung_up(self) -> None:
        """The web sees the connections of this process closed."""
        for visit in self.visits:
            if visit.load is not None:
                self.world.referee.end(visit.load)

    def resume(self) -> None:
        """SIGCONT: what was due meanwhile happens at once."""
        self.paused = False
        if self.up:
            for visit in self.visits:
                if visit.load is not None and visit.ends > self.world.now:
                    self.world.referee.goes_on(visit.load, self, visit.entry.url)
        deferred, self.deferred = self.deferred, []
        for what in deferred:
            self.run(what)
