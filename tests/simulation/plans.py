"""What goes wrong in a simulated crawl, drawn from its seed: swarm testing, so that each crawl has its own few kinds
of fault.

Two phases: faults come at any moment until `CALM`, often close to each other; from then on nothing goes wrong any more,
and the crawl must end within `LIMIT`. A plan keeps to what P3 assumes (no more disks are lost than there are copies
beside the owner's, between two settled moments; the checkers count), but for the *careless* ones, whose crawls must
keep all other promises, and say that they lost something.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from scrapy_ubi.protocol.beat import MOST_PENDING
from scrapy_ubi.protocol.lane import Bounds
from scrapy_ubi.transport.watched import WatchedKey
from tests.simulation import outputs
from tests.simulation.mailstore import SlotState
from tests.simulation.outside import Outside
from tests.simulation.process import FAILURE, LEASE, Process
from tests.simulation.watchers import Watchers
from tests.simulation.world import EPOCH, STRIDE, World

CALM = 25.0  # s of simulated time from which on nothing goes wrong any more
LIMIT = 300.0  # s by which the crawl is over
CARELESS = 0.07  # of the plans
EARLY_CARELESS = 0.2  # of those with kills in the first seconds

KINDS = {
    "join": "a new agent starts",
    "leave": "an agent is asked to go",
    "crash": "an agent crashes, and its disk is lost",
    "restart": "the same, and its name comes back with an empty disk",
    "comeback": "an agent crashes, and comes back with its disk: at once, about when it is declared dead, or later",
    "blackout": "all agents crash, and come back with their disks, together or one by one",
    "pause": "an agent stands still, and goes on",
    "cut": "an agent cannot reach Redis",
    "deaf": "what Redis answers to an agent does not arrive, what it sends does",
    "amnesia": "Redis forgets everything",
    "outage": "Redis is away for all, and may have forgotten everything afterwards",
    "lossy": "messages are lost, some exchanges happen twice",
    "slow": "messages take long, and overtake each other",
    "shuffle": "exchanges arrive in pieces, in any order, some twice",
}
RARE_KINDS = (  # only where `kinds` asks for them, the second line also where Redis is watched
    *("bereave", "blink", "desert", "hurry", "kill", "power", "replace", "rewind", "shutdown"),
    *("failover", "forsake", "step"),
    *("slot_away", "slot_slow", "slot_emptied", "slot_full"),  # the last four only where mail is in slots of its own
)
SLOT_KINDS = RARE_KINDS[-4:]
EARLY_KINDS = ("kill", "kill", "kill", "power", "restart", "comeback", "leave", "join")
EARLY = 12.0  # s in which agents are killed, where that is asked for


class Plan:
    """The world of one seed, with its faults scheduled. `str()` says what was drawn."""

    def __init__(
        self,
        seed: int,
        tight: bool | None = None,
        kinds: Sequence[str] | None = None,
        on_disk: bool = False,
        loads: int | None = 1,
        shards: int | None = 1,
        rounds: int | None = 0,
        outside: int | None = 0,
        early: bool = False,
        careless: bool | None = None,
        watched: bool | None = False,
        slots: int | None = 1,
    ) -> None:
        """`kinds`: only these faults (None: drawn). `tight` (None: drawn): letters and windows so small that they are
        often full, beats that list few pending hosts or none, absences that end about when others notice them, agents
        that leave as soon as they have joined, and sometimes no copies at all. `on_disk`: with the frontier on disk,
        not the one in memory. `loads`: how many of a host may be open at once; `shards`: into how many every other host
        is cut; `rounds`: how often each page is visited again (None: drawn); `outside`: how many seeds come from
        outside at any time, and more come when the crawl is about to end (None: drawn; 0: none may come). `early`:
        small crawls whose agents are killed in the first seconds, for good or not, alone or all at once. `careless`:
        more disks may be lost at once than there are copies (None: drawn). `watched`: agents start without a wait where
        Redis is known to have forgotten nothing, and it forgets when others come (None: drawn). `slots`: over how many
        slots the mail is spread, each at a server of its own, which may be away, slow, full, or emptied (None:
        drawn)."""
        self.seed = seed
        random = self.random = Random(f"plan {seed}")
        self.tight = random.random() < 0.4 if tight is None else tight
        drawn_careless = random.random() < (EARLY_CARELESS if early else CARELESS)
        self.careless = drawn_careless if careless is None else careless
        self.early = early
        self.watched = False
        self.replication = random.choice((0, 1, 1, 2) if self.tight else (1, 1, 1, 2))
        self.agents = random.randint(1, 5)
        hosts, pages = random.choice(((4, 4), (8, 2), (2, 10)) if early else ((12, 12), (4, 30), (30, 5), (2, 60)))
        if early:
            self.agents += 1
        self.loads = Random(f"loads {seed}").choice((1, 2, 2, 4)) if loads is None else loads  # draws from no other
        concurrency = random.choice((1, 4, 8))
        self.shards = Random(f"shards {seed}").choice((1, 1, 2, 4)) if shards is None else shards  # likewise
        self.world = World(seed, hosts, pages, self.replication, concurrency, on_disk, self.loads, self.shards)
        if self.tight:
            self.world.config = self.world.config._replace(
                bounds=Bounds(window=1, records=3, size=100_000, resend=2.0),
                most_pending=Random(f"pending {seed}").choice((0, 2, MOST_PENDING)),  # draws nothing from the others
            )
        self.slots = Random(f"slots {seed}").choice((1, 1, 2, 3, 4)) if slots is None else slots  # likewise
        if self.slots > 1:
            self.world.redis.slots = [SlotState() for _ in range(self.slots)]
        self._recrawl(Random(f"recrawl {seed}"), rounds)  # draws from no other
        self.outside = Random(f"from outside {seed}").choice((0, 1, 2, 5)) if outside is None else outside  # likewise
        if self.outside:
            self.world.outside = Outside(self.world, self.outside, CALM)
        pause = Random(f"pause {seed}").choice((0.0, 0.0, 1.5))
        self.world.config = self.world.config._replace(leave_pause=pause)
        self.world.drift = random.choice((0.0, 0.0, 0.02, 0.1))
        drawn = random.sample([*KINDS], random.randint(0, 4))
        if early:
            drawn = random.choices(EARLY_KINDS, k=random.randint(1, 3))
        self.kinds = drawn if kinds is None else list(kinds)
        self.world.noting = self.world.scribe.choice((0.0, 0.1, 1.0))
        self.faults: list[tuple[float, str]] = []
        for number in range(self.agents):
            begin = random.choice((0.0, random.uniform(0, 2)))
            self.world.at(begin, lambda number=number: self.world.start(f"a{number}"))
        self._draw()
        self._watch(Random(f"watched {seed}"), watched)  # draws from no other
        if self.slots > 1 and kinds is None:
            self._draw_of_slots(Random(f"faults of slots {seed}"))

    def _watch(self, random: Random, watched: bool | None) -> None:
        """Redis is known to have forgotten nothing, or will be; and it forgets, when agents are cut off and others
        come. One clock is wrong at most: the server's, or those of agents."""
        drawn = random.choice((False, True)) if watched is None else watched
        if not drawn:
            return
        world, self.watched = self.world, True
        self._dump = world.redis.copy()  # of before the crawl
        world.watched = True
        if random.random() < 0.7:
            world.redis.watched = WatchedKey(("0", -100.0, EPOCH - 100.0))
            self._dump = world.redis.copy()
        stepped = random.random() < 0.5
        world.skews = (0.0,) if stepped else random.choice(((0.0,), (0.0, 1.5), (-20.0, 0.0, 20.0)))
        for _ in range(0 if {*self.kinds} == {"shutdown"} else random.choice((0, 1, 1, 2))):
            time = random.uniform(1, (EARLY if self.early else CALM) - 6)
            story = [(time, random.choice(("amnesia", "forsake", "forsake", "rewind", "failover", "outage")))]
            if random.random() < 0.7:
                story.append((time - random.uniform(0, 0.5), random.choice(("cut", "deaf", "slow", "pause"))))
            story += [(time + random.uniform(0, 4), "join") for _ in range(random.choice((1, 1, 2, 3)))]
            if stepped:
                story.append((time + random.uniform(-1, 3), "step"))
            for at, kind in story:
                self.faults.append((at, kind))
                self.kinds.append(kind)
                world.at(at, getattr(self, kind))

    def _draw_of_slots(self, random: Random) -> None:
        """Faults of the servers of mail, at any moment, or about when another fault comes."""
        for kind in random.choices(SLOT_KINDS, k=random.choice((0, 1, 2, 4))):
            time = random.uniform(1, (EARLY if self.early else CALM) - 1)
            if self.faults and random.random() < 0.4:
                time = max(0.1, random.choice(self.faults)[0] + random.uniform(-1, 1))
            self.faults.append((time, kind))
            self.kinds.append(kind)
            self.world.at(time, getattr(self, kind))

    def _recrawl(self, random: Random, rounds: int | None) -> None:
        """Pages are visited again, some are slow; meanwhile the crawl is paused, and its settings change."""
        world = self.world
        self.rounds = random.choice((0, 0, 1, 2, 3)) if rounds is None else rounds
        if not self.rounds:
            return
        world.rounds, world.interval = self.rounds, random.choice((1, 2, 5))
        world.web.most = self.rounds + 1
        world.watch = Watchers(world)
        for _ in range(random.choice((0, 0, 1, 2))):
            begin, seconds = random.uniform(1, CALM - 5), random.choice((0.5, 3.0, 5.0))
            world.at(begin, lambda: setattr(world, "halted", True))
            world.at(begin + seconds, lambda: setattr(world, "halted", False))
        for _ in range(random.choice((0, 1, 2))):
            interval, delay = random.choice((1, 2, 5)), random.choice((0.0, 0.0, 0.3))
            world.at(random.uniform(1, CALM), lambda i=interval, d=delay: self._steer(i, d))

    def _steer(self, interval: int, delay: float) -> None:
        """Settings of the running crawl are others from now on."""
        self.world.interval = interval
        for process in self.world.alive():
            process.frontier.delay = delay

    def _draw(self) -> None:
        """Each kind some times, at any moment, or soon after another fault."""
        random = self.random
        for kind in self.kinds:
            for _ in range(random.randint(1, 3)):
                time = random.uniform(0.1, EARLY) if self.early else random.uniform(1, CALM - 1)
                if self.faults and random.random() < 0.4:
                    time = random.choice(self.faults)[0] + random.expovariate(1.0)
                if time < CALM:
                    self.faults.append((time, kind))
                    self.world.at(time, getattr(self, kind))

    def __str__(self) -> str:
        faults = ", ".join(f"{kind} at {time:.1f}" for time, kind in sorted(self.faults))
        tight = (
            (", early" if self.early else "")
            + (", tight" if self.tight else "")
            + (", careless" if self.careless else "")
        )
        tight += f", {self.loads} loads of a host" if self.loads > 1 else ""
        tight += f", {self.shards} shards" if self.shards > 1 else ""
        tight += f", {self.rounds} rounds" if self.rounds else ""
        tight += f", {self.outside} seeds from outside" if self.outside else ""
        tight += ", watched" if self.watched else ""
        tight += f", {self.slots} mail slots" if self.slots > 1 else ""
        return f"seed {self.seed}: {self.agents} agents, t={self.replication}{tight}, {faults or 'no faults'}"

    @property
    def too_many_lost(self) -> bool:
        """Whether more disks were lost at once than there are copies."""
        return self.world.referee.losses.too_many

    def run(self, stride: int = STRIDE) -> World:
        """Run to the end and judge. `stride`: events between two checks of all invariants."""
        self.world.run(LIMIT, stride)
        self.world.check()
        if set(self.kinds) <= {"outage", "amnesia"}:
            self.world.referee.judge_outage()
        if {*self.kinds} == {"pause"}:
            self.world.referee.judge_pauses()
        self.world.referee.judge()
        if self.world.outside is not None:
            self.world.outside.judge()
        outputs.judge(self.world)
        return self.world

    # -- helpers

    def _pick(self, least: int = 1) -> Process | None:
        """A living agent that is not leaving, when there are at least so many."""
        living = [process for process in self.world.alive() if not process.stopping]
        return self.random.choice(living) if len(living) >= least else None

    def _until(self, end: Callable[[], None]) -> None:
        seconds = self._edge(self.random.choice((0.5, 2.0, FAILURE + 1, 12.0)))
        self.world.at(min(self.world.now + seconds, CALM), end)

    def _edge(self, seconds: float) -> float:
        """In a tight plan, an absence of about the failure timeout instead: some see it, some do not."""
        return self.random.uniform(FAILURE - 0.5, FAILURE + 1.5) if self.tight else seconds

    # -- the kinds of fault

    def join(self) -> None:
        if self.world.living:
            process = self.world.start(f"j{len(self.world.all)}", seeds=self.random.random() < 0.5)
            if self.tight and self.random.random() < 0.5:
                self._soon_gone(process)

    def _soon_gone(self, process: Process) -> None:
        """Who has joined leaves as soon as it has begun to fetch: some may not even have seen its view complete. Not
        while all others are on their way out: with the last one all work would be left on a disk that stays away."""
        if process.visits and any(not other.stopping for other in self.world.alive() if other is not process):
            process.leave()
        elif process.up and self.world.now < CALM:
            self.world.at(self.world.now + 0.02, lambda: self._soon_gone(process))

    def leave(self) -> None:
        if process := self._pick(least=2):
            process.leave()

    def _lose(self, again: Callable[[], None]) -> Process | None:
        """A process to crash for good, now if the promise bears it, else later; whoever is leaving may be hit, too."""
        if self.world.now < CALM and self.world.living > 1:
            process = self.random.choice(self.world.alive())
            self.world.referee.look()
            if self.careless or not self.world.referee.losses.would_be_too_many(process.name):
                process.crash()
                return process
            self.world.at(self.world.now + 0.3, again)
        return None

    def crash(self) -> None:
        self._lose(self.crash)

    def kill(self) -> None:
        """An agent is killed, and its disk is lost or comes back. Not drawn, as `blink`."""
        if self.random.random() < 0.5:
            self.crash()
        else:
            self.comeback()

    def power(self) -> None:
        """All are killed at once, or one after the other within seconds, and come back with their disks; one of them
        does not. Not drawn, as `blink`."""
        random, alive = self.random, self.world.alive()
        spread, back = random.choice((0.0, 0.0, 2.0, 12.0)), random.choice((0.5, 2.0, 8.0))
        never = random.choice(alive).name if len(alive) > 1 and random.random() < 0.7 else ""
        for process in alive:
            time = min(self.world.now + random.uniform(0, spread), CALM - 2)
            self.world.at(time, lambda process=process: self._cut_off(process, process.name == never, back))

    def _cut_off(self, process: Process, for_good: bool, back: float) -> None:
        if not process.up:
            return
        self.world.referee.look()
        for_good = for_good and self.world.living + self.world.awaited > 1  # somebody is to tell of it
        if for_good and (self.careless or not self.world.referee.losses.would_be_too_many(process.name)):
            process.crash()
        else:
            process.crash(keep=True)
            self._back_in(process, back * self.random.uniform(0.7, 1.3))

    def desert(self) -> None:
        """All go at about the same time, killed or asked to, and come back with their disks, or not; somebody comes
        with an empty disk, under one of their names or another. Not drawn, as `blink`."""
        random, alive = self.random, [process for process in self.world.alive() if not process.stopping]
        spread = random.choice((0.0, 0.5, 2.0, 12.0))
        for process in alive:
            how, time = random.choice(("crash", "leave")), self.world.now + random.uniform(0, spread)
            never, away = random.random() < 0.6, random.choice((0.5, FAILURE, 12.0))
            self.world.at(min(time, CALM - 1), lambda p=process, h=how, n=never, a=away: self._desert(p, h, n, a))
        time = min(self.world.now + spread + random.choice((0.1, FAILURE, 12.0)), CALM)
        name = random.choice([*(process.name for process in alive), "d"])
        drawn = random.random() < 0.5

        def begin() -> None:
            self.world.awaited -= 1
            seeds = drawn or self.world.referee.losses.settled is None  # where a crawl begins all know where it does
            before = self.world.processes.get(name)
            taken = before is not None and (before.up or before.keeps or before.agent.end.finished)
            if before is None or not (taken or self.world.referee.is_kept(before)):
                self.world.start(name, seeds)

        self.world.awaited += 1
        self.world.at(time, begin)

    def _desert(self, process: Process, how: str, never: bool, away: float) -> None:
        if not process.up or process.stopping:
            return
        self.world.referee.look()
        process.keeps = not (never and (self.careless or not self.world.referee.losses.would_be_too_many(process.name)))
        if how == "leave":
            process.leave(self.random.choice((0.0, 1.0, 5.0)))
            if process.keeps:
                self.world.awaited += 1
                self._left_behind(process, away)
        elif process.keeps:
            process.crash(keep=True)
            self._back_in(process, away)
        else:
            process.crash()

    def _left_behind(self, process: Process, away: float) -> None:
        """Who was asked to go comes back with its disk, where that has work still."""
        if process.up:
            self.world.at(self.world.now + 0.2, lambda: self._left_behind(process, away))
            return
        self.world.awaited -= 1
        if not process.went_clean and self.world.processes[process.name] is process:
            self._back_in(process, away)

    def restart(self) -> None:
        if process := self._lose(self.restart):
            self.world.at(self.world.now + self.random.choice((0.0, 1.0, 8.0)), lambda: self._begin_anew(process))

    def hurry(self) -> None:
        """An agent is asked to go, and has no time to hand over all. Not drawn, as `blink`."""
        if process := self._pick(least=2):
            process.leave(self.random.choice((0.0, 0.5, 1.0, 3.0)))

    def replace(self) -> None:
        """An agent is asked to go, and its name comes back with an empty disk. Not drawn, as `blink`."""
        if process := self._pick(least=2):
            process.leave()
            self._replaced(process)

    def _replaced(self, process: Process) -> None:
        if self.world.now >= CALM:
            return
        if process.up:
            self.world.at(self.world.now + self.random.choice((0.1, 0.5, 5.0)), lambda: self._replaced(process))
        elif process.went_clean:
            self._begin_anew(process)

    def _begin_anew(self, process: Process) -> None:
        if self.world.living and self.world.processes[process.name] is process:  # else its name is in use: refused
            self.world.start(process.name)

    def comeback(self) -> None:
        if self.world.now < CALM and self.world.living:
            process = self.random.choice(self.world.alive())
            process.crash(keep=True)
            seconds = self._edge(self.random.choice((0.0, 1.0, 3.0, FAILURE, 12.0)))
            self._back_in(process, self.random.uniform(0.7, 1.3) * seconds)

    def _back_in(self, process: Process, seconds: float) -> None:
        def back() -> None:
            self.world.awaited -= 1
            if self.world.processes[process.name] is process:  # else another has that name by now
                self.world.restart(process.name)

        self.world.awaited += 1
        self.world.at(max(self.world.now, min(self.world.now + seconds, CALM)), back)

    def blackout(self) -> None:
        seconds, spread = self.random.choice((0.0, 1.0, 8.0)), self.random.choice((0.0, 0.5, 5.0, 18.0))
        for process in self.world.alive():
            process.crash(keep=True)
            self._back_in(process, seconds + self.random.uniform(0, spread))

    def shutdown(self) -> None:
        """All are asked to go at once and, when the last one has ended, started again with their disks, one after the
        other but within the start wait. Alone it excuses no page that is fetched twice. Not drawn, as `blink`."""
        there = self.world.alive()
        if self.world.awaited or any(process.stopping for process in there) or not there:
            return
        for process in there:
            self.world.awaited += 1
            process.returns = True
            process.leave()
        self._all_ended(there)

    def _all_ended(self, there: Sequence[Process]) -> None:
        world = self.world
        if any(process.up for process in there):
            world.at(world.now + 0.1, lambda: self._all_ended(there))
            return
        for process in there:
            world.at(world.now + self.random.uniform(0, LEASE / 2), lambda process=process: self._start_again(process))

    def _start_again(self, process: Process) -> None:
        self.world.awaited -= 1
        if process.killed or process.agent.end.finished:  # who was killed meanwhile comes back by itself, or not at all
            return
        if self.world.processes[process.name] is process:
            self.world.restart(process.name)

    def pause(self) -> None:
        if process := self._pick():
            seconds = self.random.choice((1.0, 3.5, FAILURE + 2, 12.0))
            process.pause(min(self._edge(seconds), CALM - self.world.now))

    def cut(self) -> None:
        if process := self._pick():
            process.cut = True
            self._until(lambda: setattr(process, "cut", False))

    def deaf(self) -> None:
        if process := self._pick():
            process.deaf = True
            self._until(lambda: setattr(process, "deaf", False))

    def amnesia(self) -> None:
        self.world.forget()

    def outage(self) -> None:
        self.world.redis.up = False
        if self.random.random() < 0.7:
            self.world.forget()
        self._until(lambda: setattr(self.world.redis, "up", True))

    def _slot(self) -> tuple[int, SlotState]:
        number = self.random.randrange(self.slots)
        return number, self.world.redis.slots[number]

    def slot_away(self) -> None:
        """The server of a mail slot is away, and has forgotten everything afterwards, or not."""
        number, slot = self._slot()
        slot.up = False
        if self.random.random() < 0.5:
            self.world.redis.empty_slot(number)
        self._until(lambda: setattr(slot, "up", True))

    def slot_slow(self) -> None:
        """The server of a mail slot is slow."""
        _, slot = self._slot()
        slot.slow = self.random.choice((0.3, 2.0, 6.0))
        self._until(lambda: setattr(slot, "slow", 0.0))

    def slot_emptied(self) -> None:
        """The server of a mail slot forgets everything."""
        self.world.redis.empty_slot(self._slot()[0])

    def slot_full(self) -> None:
        """The server of a mail slot takes nothing more; what is there can be read, and deleted."""
        _, slot = self._slot()
        slot.full = True
        self._until(lambda: setattr(slot, "full", False))

    def bereave(self) -> None:
        """An agent is asked to go, and a moment later some of those crash to whom it hands over: their disks are lost.
        Not drawn, as `blink`."""
        if process := self._pick(least=2):
            process.leave()
            for _ in range(self.random.choice((1, 1, 2))):
                self.world.at(min(self.world.now + self.random.uniform(0, 5), CALM - 0.1), self.restart)

    def blink(self) -> None:
        """Redis goes, comes back for a moment, and goes again. It forgets everything both times, or only what came in
        that moment, as after kill -9. Not drawn: only where `kinds` asks for it."""
        world, random = self.world, self.random
        first, moment, second = (random.uniform(*span) for span in ((1.5, 2.9), (0.1, 0.6), (1.5, 2.9)))
        whole = random.random() < 0.5
        self._away()
        if whole:
            world.forget()
        kept = world.redis.copy()
        world.at(world.now + first, self._back)
        world.at(world.now + first + moment, self._away)
        world.at(world.now + first + moment, world.forget if whole else lambda: self._restore(kept))
        world.at(world.now + first + moment + second, self._back)

    def rewind(self) -> None:
        """Redis goes, and comes back as it was some time before, as from its file. Not drawn, as `blink`."""
        world, random = self.world, self.random
        kept, seconds, away = world.redis.copy(), random.choice((0.3, 3.0, 12.0)), random.uniform(0.0, 6.0)

        def lose() -> None:
            self._away()
            world.redis.restore(kept)
            world.forgotten()
            world.at(min(world.now + away, CALM), self._back)

        world.at(min(world.now + seconds, CALM - 1), lose)

    def failover(self) -> None:
        """A replica takes the place of Redis: it has all but what came in the last moments. Not drawn, as `blink`."""
        world, kept = self.world, self.world.redis.copy()

        def take_over() -> None:
            world.redis.restore(kept)
            world.forgotten()

        world.at(min(world.now + self.random.choice((0.1, 0.5, 2.0)), CALM - 1), take_over)

    def forsake(self) -> None:
        """Nobody who is there can beat for as long as their leases last, when Redis loses all, or begins again with
        what it held before the crawl; and others come. One of them may go at once, and the clock of Redis be set
        before the next. Not drawn, as `blink`."""
        world, random = self.world, self.random
        if not self.watched:
            return
        there = [process for process in world.alive() if not process.cut]
        for process in there:
            process.cut = True
            until = min(world.now + random.uniform(2.0, FAILURE - 1), CALM)
            world.at(until, lambda process=process: setattr(process, "cut", False))
        loss = random.choice(("flushed", "restored", "stepped"))
        if loss == "restored":
            world.redis.restore(self._dump)
            world.forgotten()
        else:
            world.forget()
        first, second = random.uniform(0, 0.3), random.uniform(1.2, 1.6)
        world.at(world.now + first, self._come)
        if loss == "stepped":
            world.at(world.now + 1.0, lambda: world.all[-1].leave(0.0))
            world.at(world.now + 1.0, self._set_forward)
        world.at(world.now + second, self._come)

    def _come(self) -> None:
        self.world.start(f"j{len(self.world.all)}")

    def _set_forward(self) -> None:
        if self.world.skews == (0.0,):  # one clock is wrong at most
            self.world.redis.ahead += 3600.0

    def step(self) -> None:
        """The clock of Redis is set. Not drawn, as `blink`."""
        self.world.redis.ahead += self.random.choice((-3.0, 5.0, 60.0, 3600.0))

    def _restore(self, kept: dict[str, Any]) -> None:
        self.world.redis.restore(kept)
        if self.world.outside is not None:
            self.world.outside.forgotten()

    def _away(self) -> None:
        self.world.redis.up = False

    def _back(self) -> None:
        self.world.redis.up = True

    def lossy(self) -> None:
        self.world.loss = self.random.choice((0.02, 0.1, 0.3))
        self.world.duplication = self.random.choice((0.0, 0.1))
        self._until(self._sound)

    def slow(self) -> None:
        self.world.slow = self.random.choice((0.05, 0.3, 0.6))
        self._until(self._sound)

    def shuffle(self) -> None:
        self.world.shuffling = self.random.choice((0.2, 0.7))
        self._until(self._sound)

    def _sound(self) -> None:
        self.world.loss = self.world.duplication = self.world.shuffling = 0.0
        self.world.slow = 0.005
