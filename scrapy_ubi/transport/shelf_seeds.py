"""Seeds without Redis: the stream of `MemoryHub`, its readers and their answers, as the scripts of `seed_scripts` treat
those of a Redis.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count

from scrapy_ubi.ground import clock
from scrapy_ubi.transport.beat_text import encode, marker, size_of
from scrapy_ubi.transport.contract import LIST_AHEAD, LISTED, SEEDED, Outgoing, RawFields
from scrapy_ubi.transport.delivered import InHand

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
