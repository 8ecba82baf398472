"""Pulses: a beat that says the same as the one before, but for its counter, in 24 bytes of one string for all agents.

| bytes | hold                                                                                      |
| ----- | ----------------------------------------------------------------------------------------- |
| 4     | the mark: a digest of what names the process that beats (its incarnation)                 |
| 4     | the counter of its last beat                                                              |
| 4     | the version: the counter of the line that it wrote into the hash of beats last            |
| 12    | the signature of the line with that counter, where lines are signed (`UBI_SECRET`); zeros |

Each agent has a slot of that string. Rules of this module:

* A pulse counts for the line of that very process and version, and for no other: a line that was not read yet, a slot
  that was given to another agent and what a stranger wrote change nothing. Such a line counts as it stands.
* Line and pulse need not be written in one step: the line goes first.
* A reader keeps the lines that it has read, and asks for those only whose version is another one. It asks for all of
  them at first, when something does not fit together, and every `WHOLE_EVERY` reads.
* A line that is not `<name> <counter> ...` has no counter to be replaced: each of its beats is a new version.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from struct import Struct
from typing import NamedTuple
from zlib import crc32

from scrapy_ubi.transport.wire_text import texts, writer

CELL = Struct(">4sII12s")
WIDTH = CELL.size
MOST_SLOTS = 16_384  # agents of a crawl that live, or were removed from Redis less than some minutes ago
WHOLE_EVERY = 60  # reads, after which all lines are read again
FEW = 30  # lines up to which all of them are read each time: that costs no more than to look for changes

NO_SEAL = bytes(12)
_EMPTY = bytes(WIDTH)
_LINE = re.compile(rb"(\S{1,100} )(0|[1-9]\d{0,8})((?: .*)?)", re.DOTALL)
_SEAL = re.compile(rb"(.*) ~([0-9a-f]{24})", re.DOTALL)


class BeatLine(NamedTuple):
    """A beat's line in parts. `counter`: None where it has none; `version`: what a pulse calls it."""

    text: bytes
    mark: bytes
    version: int
    head: bytes = b""
    counter: int | None = None
    rest: bytes = b""
    seal: bytes = b""

    @classmethod
    def from_text(cls, text: bytes) -> BeatLine:
        """The parts of this text."""
        mark = blake2b(writer(text), digest_size=4).digest()
        sealed = _SEAL.fullmatch(text)
        found = _LINE.fullmatch(text if sealed is None else sealed[1])
        if found is None:
            return cls(text, mark, crc32(text))
        seal = b"" if sealed is None else bytes.fromhex(sealed[2].decode())
        counter = int(found[2])
        return cls(text, mark, counter, found[1], counter, found[3], seal)

    def says_as(self, other: BeatLine) -> bool:
        """Whether it is the other one but for counter and signature."""
        if self.counter is None or other.counter is None:
            return False
        return (self.head, self.rest, not self.seal) == (other.head, other.rest, not other.seal)

    def pulse(self, version: int) -> bytes:
        """The pulse of this beat, where a line of that version says the same."""
        counter = self.version if self.counter is None else self.counter
        return CELL.pack(self.mark, counter, version, self.seal or NO_SEAL)

    def at(self, counter: int, seal: bytes) -> bytes:
        """The line of a later beat, which has this counter."""
        if self.counter is None or counter <= self.counter:
            return self.text
        tail = b" ~" + seal.hex().encode() if self.seal else b""
        return b"%s%d%s%s" % (self.head, counter, self.rest, tail)


class LastHeard(NamedTuple):
    """What Redis holds of one agent: its line, its slot and the pulse there (None, b"": no slot); what they say."""

    line: bytes
    slot: int | None
    cell: bytes
    said: bytes


class Whole(NamedTuple):
    """One look at all: the string of pulses, the hash of lines, the hash of slots."""

    pulses: bytes
    lines: Mapping[bytes, bytes]
    slots: Mapping[bytes, bytes]

    def owners(self) -> dict[int, bytes]:
        """Slot -> agent."""
        return {int(slot): agent for slot, agent in self.slots.items() if is_slot(slot)}

    def found(self) -> dict[bytes, LastHeard]:
        """Agent -> what there is of it."""
        all_of = {agent: LastHeard(line, None, b"", line) for agent, line in self.lines.items()}
        for slot, agent in self.owners().items():
            if agent in self.lines and all_of[agent].said is all_of[agent].line:
                cell = cell_of(self.pulses, slot)
                all_of[agent] = LastHeard(self.lines[agent], slot, cell, said_by(self.lines[agent], cell))
        return all_of


def is_slot(text: bytes) -> bool:
    """Whether this may be the number of a slot."""
    return text.isdigit() and len(text) <= 5 and int(text) < MOST_SLOTS


def cell_of(pulses: bytes, slot: int) -> bytes:
    """What stands in a slot, b"" beyond the end."""
    return pulses[slot * WIDTH : (slot + 1) * WIDTH]


def said_by(text: bytes, cell: bytes) -> bytes:
    """What a line and the pulse in its slot say together."""
    if len(cell) != WIDTH:
        return text
    mark, counter, version, seal = CELL.unpack(cell)
    line = BeatLine.from_text(text)
    return line.at(counter, seal) if (line.mark, line.version) == (mark, version) else text


class _Known(NamedTuple):
    """The line of the agent in a slot; None while only the process is known."""

    agent: str
    mark: bytes
    version: int
    line: BeatLine | None
    text: str


class Wanted(NamedTuple):
    """What a reader lacks: lines of agents (by slot), and who is in these slots."""

    lines: Mapping[int, str]
    owners: Sequence[int]


class PulseBook:
    """The lines that one reader knows. `longest`: bytes of a line. `refused`: slots with something that is no pulse of
    the agent they belong to, or of none, so far."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._slots: dict[int, _Known] = {}
        self._slot_of: dict[str, int] = {}
        self._strange: dict[int, tuple[bytes, int]] = {}  # mark and version of a pulse that fits no line
        self._owners: dict[int, str] = {}  # slot -> agent
        self._still: dict[str, str] = {}  # lines that have no pulse
        self._age = WHOLE_EVERY  # reads since the last look at all
        self.refused = 0

    @property
    def wants_all(self) -> bool:
        """Whether the next read is to be of everything."""
        return self._age >= WHOLE_EVERY or len(self._slots) + len(self._still) <= FEW

    def forget(self) -> None:
        """What was read holds no longer."""
        self._age = WHOLE_EVERY

    def take_all(self, whole: Whole) -> tuple[dict[str, str], list[bytes]]:
        """All lines of one instant, and the fields of the hash that are none."""
        good, bad = texts(whole.lines.items(), self._longest)
        self._owners = owners = {slot: agent.decode(errors="replace") for slot, agent in whole.owners().items()}
        before, self._strange = self._strange, {}
        self._slots, self._slot_of, self._age = {}, {}, 0
        for slot, (mark, _, version, _) in enumerate(CELL.iter_unpack(_even(whole.pulses))):
            agent = owners.get(slot)
            line = BeatLine.from_text(good[agent].encode()) if agent is not None and agent in good else None
            if agent is not None and line is not None and (line.mark, line.version) == (mark, version):
                self._put(slot, _Known(agent, mark, version, line, good[agent]))
            elif mark != _EMPTY[:4] or version:
                self._refuse(slot, mark, version, agent is None and slot not in before)
        self._still = {agent: text for agent, text in good.items() if agent not in self._slot_of}
        return self.said(whole.pulses), bad

    def _put(self, slot: int, known: _Known) -> None:
        former = self._slot_of.get(known.agent, slot)
        if former != slot:  # an agent has one slot: the later one
            old = self._slots.pop(former)
            self._strange[former] = (old.mark, old.version)
        before = self._slots.get(slot)
        if before is not None and before.agent != known.agent:
            del self._slot_of[before.agent]
        self._slots[slot] = known
        self._slot_of[known.agent] = slot
        self._strange.pop(slot, None)

    def _refuse(self, slot: int, mark: bytes, version: int, counts: bool = True) -> None:
        known = self._slots.pop(slot, None)
        if known is not None:
            del self._slot_of[known.agent]
        self._strange[slot] = (mark, version)
        self.refused += counts

    def wanted(self, pulses: bytes) -> Wanted | None:
        """What lacks to understand these pulses; None where all is to be read."""
        lines: dict[int, str] = {}
        owners: list[int] = []
        slots, strange = self._slots, self._strange
        last = -1
        for last, (mark, _, version, _) in enumerate(CELL.iter_unpack(_even(pulses))):
            known = slots.get(last)
            if known is not None and known.mark == mark and known.version == version:
                continue
            if mark == _EMPTY[:4] and not version:
                if known is not None or last in strange:
                    return None  # taken away: with the line, or by who has emptied the string
            elif known is None:
                if strange.get(last) != (mark, version):
                    owners.append(last)
            elif known.mark != mark:
                owners.append(last)
            else:
                lines[last] = known.agent
        return None if slots and max(slots) > last else Wanted(lines, owners)

    def learn_lines(self, wanted: Mapping[int, str], answers: Iterable[bytes | None], pulses: bytes) -> None:
        """The lines of these agents, which were wanted for these pulses, are these."""
        for (slot, agent), text in zip(wanted.items(), answers, strict=True):
            good = texts([(b"", text)], self._longest)[0] if text is not None else {}
            if text is None or not good:
                self._refuse(slot, *_mark_of(pulses, slot))
                continue
            line = BeatLine.from_text(text)
            self._put(slot, _Known(agent, line.mark, line.version, line, good[""]))

    def learn_owners(self, slots: Iterable[int], answers: Iterable[bytes | None], pulses: bytes) -> None:
        """The agents in these slots, which were wanted for these pulses, are these: next their lines are wanted."""
        for slot, agent in zip(slots, answers, strict=True):
            mark, version = _mark_of(pulses, slot)
            if agent is None:
                self._refuse(slot, mark, version)
                continue
            name = agent.decode(errors="replace")
            if self._owners.setdefault(slot, name) != name:
                self.forget()  # the former agent was removed, with a line that may be among those without a pulse
            self._put(slot, _Known(name, mark, version - 1, None, ""))

    def said(self, pulses: bytes) -> dict[str, str]:
        """Agent -> its beat, by these pulses, of which nothing is wanted."""
        self._age += 1
        said = dict(self._still)
        slots = self._slots
        for slot, (mark, counter, version, seal) in enumerate(CELL.iter_unpack(_even(pulses))):
            known = slots.get(slot)
            if known is None or known.line is None or known.mark != mark or known.version != version:
                continue
            said[known.agent] = known.text if counter <= version else known.line.at(counter, seal).decode()
        return said


def _even(pulses: bytes) -> bytes:
    """Whole pulses only."""
    odd = len(pulses) % WIDTH
    return pulses[: len(pulses) - odd] if odd else pulses


def _mark_of(pulses: bytes, slot: int) -> tuple[bytes, int]:
    cell = cell_of(pulses, slot)
    mark, _, version, _ = CELL.unpack(cell) if len(cell) == WIDTH else CELL.unpack(_EMPTY)
    return mark, version
