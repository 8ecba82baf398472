"""What the transport without Redis keeps of a crawl: what a Redis would hold, and the steps that are scripts there.

Its seeds are those of a stream of Redis, as the scripts of `seed_scripts` treat them.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from scrapy_ubi.ground import clock
from scrapy_ubi.transport.contract import (
    DEAD_LETTERS,
    LIST_AHEAD,
    LISTED,
    MOST_START_ITEMS,
    SEEDED,
    SUMMED_UP,
    EndOfCrawl,
    Fields,
    Outgoing,
    Outside,
    RawFields,
)
from scrapy_ubi.transport.delivered import InHand
from scrapy_ubi.transport.wire_text import encode, marker, size_of

Raw = dict[bytes, bytes]

_numbers = count(1_000_000)  # of all crawls, as a Redis that has forgotten goes on with the time


def _answers() -> deque[Raw]:
    return deque(maxlen=SEEDED)


@dataclass(slots=True)
class ShelfSeeds:
    """The seeds of one crawl. `readers`: who was handed a seed, and looked at it last when (s)."""

    waiting: dict[str, Raw] = field(default_factory=dict)
    readers: dict[str, tuple[str, float]] = field(default_factory=dict)
    answers: deque[Raw] = field(default_factory=_answers)
    listed: deque[bytes] = field(default_factory=deque)
    last: str = ""

    def append(self, fields: RawFields) -> str:
        """Write a seed; its id."""
        self.waiting[number := f"{next(_numbers)}-0"] = dict(fields)
        self.last = number
        return number

    def answer(self, out: Outgoing, agent: str) -> None:
        """Seeds are answered, or handed on, by this agent."""
        for answer in out.seeds_answered:
            if self.readers.pop(answer.number, None) is not None:
                names = (b"seed", b"said", b"why", b"id", b"url")
                self.answers.append({**dict(zip(names, map(encode, answer), strict=True)), b"by": encode(agent)})
            self.waiting.pop(answer.number, None)
        for number, owner in out.seeds_for:
            if number in self.readers:
                self.readers[number] = (owner, clock.now())

    def move(self, most: int) -> None:
        """Make seeds of what is listed."""
        for _ in range(min(most, LIST_AHEAD - len(self.waiting), len(self.listed))):
            self.append({LISTED.encode(): self.listed.popleft()})

    def handed_out(
        self, out: Outgoing, agent: str, hand: InHand, largest: int, idle: float
    ) -> Sequence[tuple[str, RawFields]]:
        """What an exchange reads. What it has answered or handed on is not in the agent's `hand` any longer."""
        hand.deleted([answer.number for answer in out.seeds_answered])
        hand.deleted([number for number, _ in out.seeds_for])
        if not out.read_seeds:
            return ()
        room = hand.room(out.read_seeds)
        self.move(room)
        found = self.read(agent, room, hand, largest, idle)
        hand.hand_out(number for number, _ in found)
        return found

    def read(self, agent: str, most: int, in_hand: InHand, largest: int, idle: float) -> list[tuple[str, RawFields]]:
        """Seeds for this agent to take, up to so many."""
        now, held = clock.now(), set(in_hand.held)
        found: list[tuple[str, RawFields]] = []
        for number, fields in self.waiting.items():
            reader, since = self.readers.get(number, (agent, now))
            if reader != agent and now - since <= idle:
                continue
            if number not in held:
                if len(found) >= most:
                    continue
                size = size_of(fields)
                found.append((number, marker(fields, size) if size > largest else dict(fields)))
            self.readers[number] = (agent, now)
        return found


def _dead() -> deque[Raw]:
    return deque(maxlen=DEAD_LETTERS)


@dataclass(slots=True)
class Shelf:
    """What a Redis would hold of one crawl, by the names of redis_keys.py; bytes, as there."""

    beats: Raw = field(default_factory=dict)
    agents: Raw = field(default_factory=dict)
    control: Raw = field(default_factory=dict)
    start: Raw = field(default_factory=dict)
    former_agents: Raw = field(default_factory=dict)
    former_control: Raw = field(default_factory=dict)
    inbox: defaultdict[str, dict[str, Raw]] = field(default_factory=lambda: defaultdict(dict))
    acks: defaultdict[str, Raw] = field(default_factory=lambda: defaultdict(dict))
    dead: defaultdict[str, deque[Raw]] = field(default_factory=lambda: defaultdict(_dead))
    answers: defaultdict[str, Raw] = field(default_factory=lambda: defaultdict(dict))
    seeds: ShelfSeeds = field(default_factory=ShelfSeeds)
    memories: dict[int, str] = field(default_factory=dict)
    """Mail slot -> its token."""

    @property
    def outside(self) -> Outside:
        """What is there of seeds."""
        memory, waiting = self.control.get(b"memory", b""), len(self.seeds.waiting)
        return Outside(waiting, f"{memory.decode()} {self.seeds.last}" if memory and not waiting else "")

    @property
    def over(self) -> bool:
        """Whether it is said that the present run is over."""
        run, finished = (self.control.get(name, b"").split(b" ")[0] for name in (b"run", b"finished"))
        return bool(run) and run == finished

    def end(self, end: EndOfCrawl) -> None:
        """The crawl is over, if nothing has come from outside."""
        if not self.over and end.mark and self.outside == Outside(0, end.mark):
            self.control.update({encode(name): encode(value) for name, value in end.control.items()})

    def forget(self, gone: Fields) -> None:
        """Take away line and mail of these agents, whose line still is the one given."""
        for agent, line in gone.items():
            if self.beats.get(encode(agent)) == encode(line):
                del self.beats[encode(agent)]
                self.inbox.pop(agent, None)
                self.acks.pop(agent, None)

    def publish(self, agent: str, profile: str, counts_anew: bool) -> None:
        """Put this profile there, unless what it counts may be in the sum."""
        if counts_anew or encode(agent) in self.agents or encode(SUMMED_UP) not in self.agents:
            self.agents[encode(agent)] = encode(profile)

    def sum_up(self, gone: Fields, before: str | None, after: str) -> bool:
        """Take away these profiles, and put the sum there, where all is as it is given. Return whether it was."""
        name = encode(SUMMED_UP)
        if self.agents.get(name) != (None if before is None else encode(before)):
            return False
        for agent, text in gone.items():
            if self.agents.get(encode(agent)) != encode(text) or encode(agent) in self.beats:
                return False
        for agent in gone:
            del self.agents[encode(agent)]
        self.agents[name] = encode(after)
        return True

    def change_control(self, changes: Mapping[str, tuple[str | None, str]]) -> None:
        """Change these fields of the control hash, where they are as expected."""
        for field_name, (before, after) in changes.items():
            name = encode(field_name)
            if self.control.get(name) == (None if before is None else encode(before)):
                self.control[name] = encode(after)

    def claim_items(self, claims: Mapping[str, tuple[str | None, str]]) -> list[bytes]:
        """Let this be said of items, where what is said of them is as expected; what is said then."""
        for item, (before, after) in claims.items():
            name = encode(item)
            if name not in self.start and len(self.start) >= MOST_START_ITEMS:
                continue
            if self.start.get(name) == (None if before is None else encode(before)):
                self.start[name] = encode(after)
        return [self.start.get(encode(item), b"") for item in claims]
