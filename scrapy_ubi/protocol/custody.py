"""Custody: when a discovery letter may be acknowledged (docs/explanation/protocol.md#mail).

Custody of a URL leaves its sender only when the owner and the owner's successors have it. The owner merges a letter
at once, tells its successors on the state lane, and holds the letter here until what it had told them by then is
acknowledged. On a change of view every held letter is judged again: hosts this agent does not own any more are refused
after all (they are handed on besides), and the others wait for their present successors. Of many letters some are
judged a tick: where all of a large group send, there are hundreds of thousands of hosts in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from scrapy_ubi.protocol.answer import Outcome
from scrapy_ubi.protocol.lane import LaneIn
from scrapy_ubi.protocol.outbox import Outbox

JUDGED = 5_000  # hosts judged again a tick, about: some tens of milliseconds


@dataclass(slots=True)
class Held:
    """A discovery letter that is merged and not acknowledged. `need`: successor -> flush by which it has been told."""

    lane: str
    seq: int
    hosts: list[str]
    refused: dict[str, str]
    need: dict[str, int]
    view_no: int


Judge = Callable[[str], tuple[str, ...]]  # host -> its keepers, owner first


class Custody:
    """Letters held; `lanes` are the receiving ends in which their outcomes are written."""

    def __init__(self, me: str, lanes: dict[str, LaneIn]) -> None:
        self.me = me
        self.lanes = lanes
        self.held: list[Held] = []

    def __len__(self) -> int:
        return len(self.held)

    def hold(self, held: Held) -> None:
        """Hold a letter that was just merged, and judged by the view that it names."""
        self.held.append(held)

    def _judge(self, held: Held, keepers: Judge, flush: int, view_no: int) -> None:
        held.need, held.view_no = {}, view_no
        kept = []
        for host in held.hosts:
            owner, *successors = keepers(host) or ("",)
            if owner != self.me:
                held.refused[host] = owner
                continue
            kept.append(host)
            for successor in successors:
                held.need[successor] = flush
        held.hosts = kept

    def release(
        self, outbox: Outbox, keepers: Judge, busy: Callable[[Iterable[str]], bool], flush: int, view_no: int
    ) -> list[str]:
        """Acknowledge what may be; the names of the lanes with a new answer. `busy`: whether one of these hosts is
        still to be brought to its keepers after a change of view."""
        answered: list[str] = []
        still = []
        judged = 0
        for held in self.held:
            if held.view_no != view_no:
                if judged >= JUDGED:
                    still.append(held)
                    continue
                judged += len(held.hosts)
                self._judge(held, keepers, flush, view_no)
            if busy(held.hosts) or not all(_told(outbox, s, f) for s, f in held.need.items()):
                still.append(held)
                continue
            lane = self.lanes.get(held.lane)
            if lane is not None and held.seq in lane.outcomes:
                lane.outcomes[held.seq] = Outcome(held.refused, ())
                answered.append(held.lane)
        self.held = still
        return answered


def _told(outbox: Outbox, successor: str, flush: int) -> bool:
    oldest = outbox.state_oldest(successor)
    return oldest is None or oldest > flush
