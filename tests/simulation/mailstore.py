"""The simulated Redis: beats, inboxes, acks and the control hash. Every method is one atomic execution there."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

Fields = dict[str, str]
Incoming = tuple[dict[int, Fields], dict[str, str], dict[str, str]]  # letters by number, acks, control

HELD = ("beats", "profiles", "inbox", "acks", "control", "lanes")
MOST_LETTERS = 64  # read in one exchange


@dataclass
class Outgoing:
    """What one exchange writes."""

    letters: list[tuple[str, Fields]] = field(default_factory=list)
    answers: dict[tuple[str, str], str] = field(default_factory=dict)
    consumed: list[int] = field(default_factory=list)
    forget: list[str] = field(default_factory=list)
    control: dict[str, str] = field(default_factory=dict)


class Redis:
    """What agents share. `lanes` counts, for the checker of P7, the letters that lie in Redis: receiver, lane -> number
    -> how many copies."""

    def __init__(self) -> None:
        self.up = True
        self._count = self.memory = 0
        self.forget()

    def forget(self) -> None:
        """FLUSHALL. `memory` stands for the token that the first beat writes afterwards."""
        self.memory += 1
        self.beats: dict[str, str] = {}
        self.profiles: dict[str, str] = {}
        self.inbox: dict[str, dict[int, Fields]] = {}
        self.acks: dict[str, dict[str, str]] = {}
        self.control: dict[str, str] = {}
        self.lanes: dict[tuple[str, str, str], Counter[int]] = {}

    def copy(self) -> dict[str, Any]:
        """All it holds."""
        return deepcopy({name: getattr(self, name) for name in HELD})

    def restore(self, held: dict[str, Any]) -> None:
        """Begin again with what was held: all connections were broken, so it counts as another memory."""
        self.memory += 1
        for name, value in deepcopy(held).items():
            setattr(self, name, value)

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

    def exchange(self, agent: str, out: Outgoing) -> Incoming:
        """Write, then read."""
        for number in out.consumed:
            self._delete(agent, number)
        for receiver, fields in out.letters:
            self.append(receiver, fields)
        for (sender, lane), text in out.answers.items():
            self.answer(sender, lane, text)
        acks = self.acks.setdefault(agent, {})
        for lane in out.forget:
            acks.pop(lane, None)
        self.control.update(out.control)
        box = self.inbox.setdefault(agent, {})
        letters = dict(box) if len(box) <= MOST_LETTERS else dict(list(box.items())[:MOST_LETTERS])
        return letters, dict(acks), dict(self.control)
