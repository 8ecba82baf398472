"""Losses: agents that were gone together, more of them than there are copies of what they knew.

Rules of this module:

* A loss is recorded by who sees it (`Membership`), is kept on its disk, and is told the others at the end of the crawl.
* An agent that comes back with its disk brings what it knew: it is no longer lost. So whether anything is missing is
  asked at the end (`missing`), not when the loss is seen.
* Who begins again from a disk *misses* agents whose deaths it has not seen. Where somebody was there and has counted
  such a death, that one's word stands: it has recorded a loss, or every host had its copies again.
* What is read was written by another agent: it is validated, and bounded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple

from scrapy_ubi.untrusted.checks import NAME, fits, is_count

MOST_LOSSES = 16  # recorded by one agent: the oldest are forgotten
MOST_MEMBERS = 64  # of one loss
MOST_COUNTED = 256  # deaths counted, of which one agent tells

_INCARNATION = re.compile(r"(?:[0-9a-f]{8})?")
LIFE = re.compile(r"[0-9a-f]{8}")

Back = Callable[[str, str], bool]  # name, incarnation -> whether it has come back with its disk


class GroupLoss(NamedTuple):
    """The `members` (name, incarnation; '' where that is not known) that were lost together. As many as `spare` of them
    may stay away: of what they knew there is a copy."""

    members: tuple[tuple[str, str], ...]
    spare: int


def missing(
    losses: Iterable[GroupLoss],
    back: Back,
    missed: Iterable[GroupLoss] = (),
    counted: Collection[str] = (),
) -> tuple[str, ...]:
    """The names of the agents without whom something may be missing, sorted. `losses` were seen; `missed` are those
    whom somebody missed that began again, `counted` the incarnations whose deaths others have seen and counted."""
    names: set[str] = set()
    unseen = (GroupLoss(tuple(one for one in loss.members if one[1] not in counted), loss.spare) for loss in missed)
    for loss in (*losses, *unseen):
        away = {name for name, incarnation in loss.members if not back(name, incarnation)}
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


def read_counted(value: object) -> list[str]:
    """The incarnations whose deaths an agent has counted; what does not hold is left out."""
    if not isinstance(value, list):
        return []
    return [one for one in value[-MOST_COUNTED:] if fits(one, LIFE)]


def _read(row: object) -> GroupLoss | None:
    if not isinstance(row, list) or not 2 <= len(row) <= MOST_MEMBERS + 1 or not is_count(row[0]):
        return None
    members = [tuple(one) for one in row[1:] if _is_member(one)]
    return GroupLoss(tuple(members), row[0]) if len(members) == len(row) - 1 else None


def _is_member(one: object) -> bool:
    return isinstance(one, list) and len(one) == 2 and fits(one[0], NAME) and fits(one[1], _INCARNATION)
