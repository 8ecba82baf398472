"""Losses: agents that were gone together, more of them than there are copies of what they knew.

Rules of this module:

* A loss is recorded by who sees it (`loss_counter.py`), is kept on its disk, and is told the others at the end of the
  crawl.
* An agent that comes back with its disk brings what it knew: it is no longer lost. So whether anything is missing is
  asked at the end (`missing`), not when the loss is seen.
* Who begins again from a disk *misses* agents whose deaths it has not seen. Where somebody was there and has counted
  such a death, that one's word stands: it has recorded a loss, or every host had its copies again.
* Whose disk was there when all had settled later, or who has handed on all, is *safe*: others have what it knew, and
  when that disk is lost after all, this is no part of the old loss.
* A group can have lost too many, and those who were ahead of all who live: each is a loss of its own. Where one of
  those who were ahead is back, the others may be too many still.
* Others are to read what this agent knows before the crawl is found to be over: where somebody publishes the book
  (`await_publishing`), the agent is not passive before its last change was.
* What is read was written by another agent: it is validated, and bounded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

from scrapy_ubi.ground.untrusted.checks import NAME, fits, is_count

MOST_LOSSES = 16  # recorded by one agent: the oldest are forgotten
MOST_MEMBERS = 64  # of one loss
MOST_COUNTED = 256  # deaths counted, of which one agent tells
MOST_SAFE = 256  # incarnations whose disks are safe, of which one agent tells

_INCARNATION = re.compile(r"(?:[0-9a-f]{8})?")
LIFE = re.compile(r"[0-9a-f]{8}")

Back = Callable[[str, str], bool]  # name, incarnation -> whether it has come back with its disk


class GroupLoss(NamedTuple):
    """The `members` (name, incarnation; '' where that is not known) that were lost together. As many as `spare` of them
    may stay away: of what they knew there is a copy."""

    members: tuple[tuple[str, str], ...]
    spare: int


class LossBook:
    """What one agent knows of those who were lost: `losses` that it has seen, those whom it has `missed` when it began
    again, and the lives whose deaths it has `counted`, or of which others have all that was on the disk (`safe`)."""

    def __init__(self, losses: Iterable[GroupLoss] = ()) -> None:
        self.missed: list[GroupLoss] = []
        self.counted: list[str] = []
        self.safe: list[str] = []
        self._present: dict[bool, GroupLoss] = {}  # losses to which more may be added -> whether it is of those ahead
        self._past = [*losses]
        self._without_urls: GroupLoss | None = None
        self._changes = 0  # so far
        self._published: int | None = None  # of these; None: nobody publishes them

    @property
    def losses(self) -> list[GroupLoss]:
        """The last losses, oldest first."""
        last = [self._without_urls] if self._without_urls else []
        return [*self._past, *self._present.values(), *last][-MOST_LOSSES:]

    def record(self, lost: tuple[tuple[str, str], ...], spare: int, ahead: bool = False) -> None:
        """So many were lost together, as far as is seen by now; `ahead`: of all who live."""
        before = self._present.pop(ahead, None)
        if len(lost) > spare:
            self._present[ahead] = GroupLoss(lost[-MOST_MEMBERS:], spare)
        self._changes += self._present.get(ahead) != before

    def close(self) -> None:
        """Who is lost from now on is so in another time."""
        self._past = [*self._past, *self._present.values()][-MOST_LOSSES:]
        self._present.clear()

    def lack_urls(self, lost: tuple[tuple[str, str], ...]) -> None:
        """Nobody who is there knows a URL, and one of these has to be back. No one: somebody knows some, after all."""
        before, self._without_urls = self._without_urls, GroupLoss(lost, len(lost) - 1) if lost else None
        self._changes += self._without_urls != before

    def miss(self, members: Collection[tuple[str, str]], spare: int) -> None:
        """These are not there, of whom so many may stay away."""
        self.missed = [*self.missed, GroupLoss(tuple(sorted(members))[-MOST_MEMBERS:], spare)][-MOST_LOSSES:]
        self._changes += 1

    def count(self, lives: Iterable[str]) -> None:
        """The deaths of these are counted."""
        before, self.counted = self.counted, list(dict.fromkeys((*self.counted, *filter(None, lives))))[-MOST_COUNTED:]
        self._changes += self.counted != before

    def are_safe(self, lives: Iterable[str]) -> None:
        """Others have what was on the disks of these."""
        before, self.safe = self.safe, list(dict.fromkeys((*self.safe, *lives)))[-MOST_SAFE:]
        self._changes += self.safe != before

    def take_over(self, before: LossBook) -> None:
        """An earlier incarnation of this name had published that: what is published next writes over it."""
        now = self.told()
        self._past = [*dict.fromkeys((*before.losses, *self._past))][-MOST_LOSSES:]
        self.missed = [*dict.fromkeys((*before.missed, *self.missed))][-MOST_LOSSES:]
        self.counted = [*dict.fromkeys((*before.counted, *self.counted))][-MOST_COUNTED:]
        self.safe = [*dict.fromkeys((*before.safe, *self.safe))][-MOST_SAFE:]
        self._changes += self.told() != now

    # -- others read it

    @property
    def changes(self) -> int:
        """How often it has changed so far."""
        return self._changes

    @property
    def is_published(self) -> bool:
        """Whether others can read it as it is, or nobody publishes it."""
        return self._published is None or self._published == self._changes

    def await_publishing(self) -> None:
        """Somebody publishes it from now on, and says so (`publish`)."""
        self._published = -1 if self.told() else self._changes

    def publish(self, changes: int) -> None:
        """It was published, as it was after so many changes."""
        self._published = changes

    def unpublish(self) -> None:
        """What was published is gone."""
        if self._published is not None and self.told():
            self._published = -1

    def told(self) -> dict[str, Any]:
        """The book as JSON; what there is none of is left out."""
        said = {
            "losses": written(self.losses),
            "missed": written(self.missed),
            "counted": [*self.counted],
            "safe": [*self.safe],
        }
        return {name: value for name, value in said.items() if value}

    @classmethod
    def read(cls, told: Mapping[str, Any]) -> LossBook:
        """The book of which that tells; what does not hold is left out."""
        book = cls(read_losses(told.get("losses")))
        book.missed = read_losses(told.get("missed"))
        book.counted, book.safe = read_lives(told.get("counted")), read_lives(told.get("safe"))
        return book


def missing(books: Collection[LossBook], back: Back) -> tuple[str, ...]:
    """The names of the agents without whom something may be missing, sorted, as these books say together. Who was
    missed by somebody that began again is not, where somebody else has seen that death, and counted it."""
    counted = {life for book in books for life in book.counted}
    safe = {life for book in books for life in book.safe}
    names: set[str] = set()
    unseen = (
        GroupLoss(tuple(one for one in loss.members if one[1] not in counted), loss.spare)
        for book in books
        for loss in book.missed
    )
    for loss in (*(loss for book in books for loss in book.losses), *unseen):
        away = {name for name, life in loss.members if life not in safe and not back(name, life)}
        if len(away) > loss.spare:
            names |= away
    return tuple(sorted(names))


def written(losses: Iterable[GroupLoss]) -> list[Any]:
    """Losses as JSON."""
    return [[loss.spare, *map(list, loss.members)] for loss in losses]


def read_losses(value: object) -> list[GroupLoss]:
    """What was `written`; what does not hold is left out."""
    if not isinstance(value, list):
        return []
    return [loss for row in value[:MOST_LOSSES] if (loss := _read(row)) is not None]


def read_lives(value: object) -> list[str]:
    """The lives that an agent tells of, counted or safe; what does not hold is left out."""
    if not isinstance(value, list):
        return []
    return [one for one in value[-max(MOST_COUNTED, MOST_SAFE) :] if fits(one, LIFE)]


def _read(row: object) -> GroupLoss | None:
    if not isinstance(row, list) or not 2 <= len(row) <= MOST_MEMBERS + 1 or not is_count(row[0]):
        return None
    members = [tuple(one) for one in row[1:] if _is_member(one)]
    return GroupLoss(tuple(members), row[0]) if len(members) == len(row) - 1 else None


def _is_member(one: object) -> bool:
    return isinstance(one, list) and len(one) == 2 and fits(one[0], NAME) and fits(one[1], _INCARNATION)
