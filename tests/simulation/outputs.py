"""Simulated outputs (P9): an agent's file beside its disk, what of it its flushes hold, and the checker of the promise.

A record is a page's; it waits in memory, is written to the file, and counts once a flush holds the length that the file
has with it. A crash may leave any part of what waits, the last one torn. At a start the file is cut to what counts.
What is collected of all files is by production's rule which records of a page count (`collect.chosen`).

The checker knows the pages that are done on the disks that are there at the end: each has one record that counts,
unless it had one on a disk that is lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import TYPE_CHECKING

from scrapy_ubi.outputs.choice import Claim, chosen
from tests.simulation.checkers import Violation

if TYPE_CHECKING:
    from tests.simulation.world import World

TORN, BROKEN = -1, -2


class Outputs:
    """The outputs of one disk: keys of pages; `TORN` for a record that is not whole, `BROKEN` for what follows it."""

    def __init__(self) -> None:
        self.waiting: list[int] = []
        self.file: list[int] = []
        self.held = 0
        self.lost = False

    def page(self, key: int) -> None:
        """A page's callback is through, and the page is done next."""
        self.waiting.append(key)

    def write(self) -> None:
        """Before a flush. What is appended to a torn record is torn, too."""
        if self.waiting and self.file and self.file[-1] == TORN:
            self.waiting[0] = BROKEN
        self.file += self.waiting
        self.waiting = []

    def close(self) -> None:
        """The process ends by itself."""
        self.write()

    def flushed(self) -> None:
        """A flush holds the length of the file."""
        self.held = len(self.file)

    def crash(self, random: Random) -> None:
        """The process is gone: so much of what waited was written."""
        some = self.waiting[: random.randint(0, len(self.waiting))]
        self.waiting = []
        if some and random.random() < 0.7:
            some[-1] = TORN
        self.file += some

    def cut(self) -> None:
        """A process starts with this disk."""
        del self.file[self.held :]


def judge(world: World) -> None:
    """P9, when all is over."""
    there = [outputs for outputs in world.outputs if not outputs.lost]
    gone = {key for outputs in world.outputs if outputs.lost for key in (*outputs.file, *outputs.waiting)}
    claims: dict[int, list[Claim]] = {}
    for place, outputs in enumerate(there):
        for offset, key in enumerate(outputs.file):
            claims.setdefault(key, []).append(Claim("ok", 0, place, offset))
    done = {key for process in world.all for key, _ in process.disk.done_keys() if not process.disk.outputs.lost}
    for key in done - gone:
        found = chosen(claims.get(key, []))
        if len(found) != 1:
            url, where = world.keys.get(key, f"{key:016x}"), sources(claims.get(key, ()))
            raise Violation(f"P9: {url} is done, and has its outputs {len(found)} times: {where}")


def sources(claims: Iterable[Claim]) -> list[tuple[int, int]]:
    """Where records are: the number of the file, and the place there."""
    return [(claim.part, claim.place) for claim in claims]
