"""What a disk would hold of an agent beside its host states: all its changes, together."""

from __future__ import annotations

from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.protocol.journal import JournalPart
from scrapy_ubi.protocol.snapshot import Changes, GroupState, Saved, SavedLane, changes


class Ledger:
    """Changes in the order they came; `saved` is what an agent begins again from, None before the first."""

    def __init__(self) -> None:
        self.group: GroupState | None = None
        self.numbers: dict[str, int] = {}
        self.lanes_in: dict[str, SavedLane] = {}
        self.parts: dict[tuple[int, int], JournalPart] = {}

    def write(self, new: Changes) -> None:
        """Make these changes durable."""
        self.group = new.group
        self.numbers.update(new.numbers)
        for name, lane in new.lanes_in.items():
            if lane is None:
                self.lanes_in.pop(name, None)
            else:
                self.lanes_in[name] = lane
        self.parts.update({(part.flush, part.number): part for part in new.parts})
        for flush, count in new.settled:
            for number in range(count):
                del self.parts[flush, number]

    @property
    def store(self) -> str:
        """The name of the disk; empty before the first change."""
        return self.group.store if self.group is not None else ""

    @property
    def saved(self) -> Saved | None:
        """All of it."""
        if self.group is None:
            return None
        parts = tuple(part for _, part in sorted(self.parts.items()))
        return Saved(self.group, dict(self.numbers), dict(self.lanes_in), parts)


def everything(agent: Agent) -> Saved:
    """What is durable of an agent that has written nothing before."""
    ledger = Ledger()
    ledger.write(changes(agent))
    assert ledger.saved is not None
    return ledger.saved
