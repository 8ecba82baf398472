"""The simulated Redis: beats, inboxes, acks and the control hash. Every method is one atomic execution there."""

from __future__ import annotations

import math
from collections import Counter
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from scrapy_ubi.transport.redis_keys import mail_place
from scrapy_ubi.transport.watched import WatchedKey

Fields = dict[str, str]

HELD = ("beats", "profiles", "inbox", "acks", "control", "lanes", "seeds", "readers", "last_seed", "watched")
MOST_LETTERS = 64  # read in one exchange


@dataclass
class Outgoing:
    """What one exchange writes."""

    letters: list[tuple[str, Fields]] = field(default_factory=list)
    answers: dict[tuple[str, str], str] = field(default_factory=dict)
    consumed: list[int] = field(default_factory=list)
    forget: list[str] = field(default_factory=list)
    control: dict[str, str] = field(default_factory=dict)
    answered: list[int] = field(default_factory=list)  # seeds
    handed: list[tuple[int, str]] = field(default_factory=list)  # seed, agent
    read_seeds: bool = False
    end: tuple[str, str] | None = None  # the mark, and how the crawl ended


class SlotState:
    """The server of one mail slot. `memory` stands for the token there; `slow`: s by which all comes later."""

    def __init__(self) -> None:
        self.up, self.full, self.slow, self.memory = True, False, 0.0, 0


class OwnMail(NamedTuple):
    """What reading a mail slot brings."""

    letters: dict[int, Fields]
    acks: dict[str, str]
    memory: str


class Incoming(NamedTuple):
    """What one exchange reads."""

    letters: dict[int, Fields]
    acks: dict[str, str]
    control: dict[str, str]
    seeds: dict[int, str]
    waiting: int
    mark: str


class Redis:
    """What agents share. `lanes` counts, for the checker of P7, the letters that lie in Redis: receiver, lane -> number
    -> how many copies. `seeds`: what came from outside, by number, until it is answered; `readers`: who has it, and
    looked at it last when (s). `idle`: after how long (s) it is another's."""

    def __init__(self, idle: float = math.inf) -> None:
        self.up, self.idle = True, idle
        self.slots: list[SlotState] = []  # where mail is in slots of its own
        self._seed_count = 0
        self._count = self.memory = 0
        self.life = 0  # which process of Redis this is
        self.ahead = 0.0  # s by which its clock was set forward
        self.forget()

    def forget(self) -> None:
        """FLUSHALL. `memory` stands for the token that the first beat writes afterwards."""
        self.memory += 1
        for slot in self.slots:
            slot.memory += 1
        self.beats: dict[str, str] = {}
        self.profiles: dict[str, str] = {}
        self.inbox: dict[str, dict[int, Fields]] = {}
        self.acks: dict[str, dict[str, str]] = {}
        self.control: dict[str, str] = {}
        self.lanes: dict[tuple[str, str, str], Counter[int]] = {}
        self.seeds: dict[int, str] = {}
        self.readers: dict[int, tuple[str, float]] = {}
        self.last_seed = 0
        self.watched = WatchedKey()

    def watched_time(self, now: float, wall: float) -> float:
        """For how long (s) this is known to have forgotten nothing, asked by an agent whose clock on the wall says
        that."""
        return self.watched.ask(str(self.life), now + self.ahead, wall).seconds

    def append_seed(self, url: str) -> int | None:
        """A seed from outside; its number, None where the crawl is over."""
        if self.control.get("finished"):
            return None
        self._seed_count += 1
        self.last_seed = self._seed_count
        self.seeds[self.last_seed] = url
        return self.last_seed

    @property
    def mark(self) -> str:
        """The mark of the transport's contract."""
        return "" if self.seeds else f"{self.memory} {self.last_seed}"

    def answer_seeds(self, numbers: list[int]) -> None:
        """These are on disks."""
        for number in numbers:
            self.seeds.pop(number, None)
            self.readers.pop(number, None)

    def end_crawl(self, mark: str, how: str) -> None:
        """The crawl is over, if nothing has come from outside."""
        if not self.control.get("finished") and mark and mark == self.mark:
            self.control["finished"] = how

    def _seeds_for(self, agent: str, now: float) -> dict[int, str]:
        """All that this agent has, and what nobody has, or somebody who looks no longer."""
        found = {}
        for number, url in self.seeds.items():
            reader, since = self.readers.get(number, (agent, now))
            if reader == agent or now - since > self.idle:
                self.readers[number] = agent, now
                found[number] = url
        return found

    def copy(self) -> dict[str, Any]:
        """All it holds."""
        return deepcopy({name: getattr(self, name) for name in HELD})

    def restore(self, held: dict[str, Any]) -> None:
        """Begin again with what was held: all connections were broken, so it counts as another memory."""
        self.memory += 1
        self.life += 1
        for slot in self.slots:
            slot.memory += 1
        for name, value in deepcopy(held).items():
            setattr(self, name, value)

    def slot_of(self, agent: str) -> SlotState:
        """The one in which this agent's mail is."""
        return self.slots[mail_place(agent, len(self.slots))]

    def empty_slot(self, place: int) -> None:
        """All mail of one slot is lost."""
        self.slots[place].memory += 1
        for mail in (self.inbox, self.acks, self.lanes):
            for key in [*mail]:
                if mail_place(key if isinstance(key, str) else key[0], len(self.slots)) == place:
                    del mail[key]

    def read_mail(self, agent: str, consumed: list[int], forget: list[str]) -> OwnMail:
        """Delete, then read, in the slot of this agent."""
        for number in consumed:
            self._delete(agent, number)
        acks = self.acks.setdefault(agent, {})
        for lane in forget:
            acks.pop(lane, None)
        box = self.inbox.setdefault(agent, {})
        letters = dict(list(box.items())[:MOST_LETTERS])
        return OwnMail(letters, dict(acks), str(self.slot_of(agent).memory))

    def append(self, receiver: str, fields: Fields) -> None:
        """A letter for an inbox."""
        self._count += 1
        self.inbox.setdefault(receiver, {})[self._count] = fields
        self.lanes.setdefault((receiver, fields["store"], fields["lane"]), Counter())[int(fields["seq"])] += 1

    def _delete(self, agent: str, number: int) -> None:
        fields = self.inbox.get(agent, {}).pop(number, None)
        if fields is not None:
            lane = self.lanes[agent, fields["store"], fields["lane"]]
            seq = int(fields["seq"])
            lane[seq] -= 1
            if not lane[seq]:
                del lane[seq]

    def claim(self, agent: str, line: str) -> None:
        """A process takes over an identifier; the mail that waits was for its predecessor."""
        self.beats[agent] = line
        for number in list(self.inbox.get(agent, ())):
            self._delete(agent, number)

    def answer(self, sender: str, lane: str, text: str) -> None:
        """An answer to the sender of letters."""
        self.acks.setdefault(sender, {})[lane] = text

    def exchange(self, agent: str, out: Outgoing, now: float = 0.0) -> Incoming:
        """Write, then read, at this time (s)."""
        for number in out.consumed:
            self._delete(agent, number)
        for receiver, fields in out.letters:
            self.append(receiver, fields)
        for (sender, lane), text in out.answers.items():
            self.answer(sender, lane, text)
        acks = self.acks.setdefault(agent, {})
        for lane in out.forget:
            acks.pop(lane, None)
        self.answer_seeds(out.answered)
        self.readers |= {number: (owner, now) for number, owner in out.handed if number in self.readers}
        self.control.update(out.control)
        if out.end is not None:
            self.end_crawl(*out.end)
        seeds = self._seeds_for(agent, now) if out.read_seeds else {}
        box = self.inbox.setdefault(agent, {})
        letters = dict(box) if len(box) <= MOST_LETTERS else dict(list(box.items())[:MOST_LETTERS])
        return Incoming(letters, dict(acks), dict(self.control), seeds, len(self.seeds), self.mark)
