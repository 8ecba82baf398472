"""Which records of a page count, when several agents have some: the rule by which doubles go (P9).

* One whole record of those that are final: of a page that did not fail rather than of one that did, then of the last
  attempt, then of the first part. The same set of parts always gives the same.
* What earlier attempts have left, whose callback asked for its page once more ("again"): one record of each.
* Where only the newest visit of a page is wanted (`attempt_of_visit`), the number of the visit goes before that of the
  attempt: a later visit that did not fail rather than an earlier one, and of it alone what earlier attempts have left.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

KINDS = ("ok", "failed", "again")
RANKS = {kind: rank for rank, kind in enumerate(KINDS)}


ATTEMPTS = 31  # bits of an attempt's number
MOST_ATTEMPT = (1 << ATTEMPTS) - 1
MOST_VISIT = (1 << 31) - 1


class Claim(NamedTuple):
    """A record of a page: `part` and `place` say where it is."""

    kind: str
    attempt: int
    part: int
    place: int


def attempt_of_visit(visit: int, attempt: int) -> int:
    """One number for both, by which attempts of a later visit are later ones."""
    return min(visit, MOST_VISIT) << ATTEMPTS | min(attempt, MOST_ATTEMPT)


def visit_of(claim: Claim) -> int:
    """The visit that a claim is of; 0 where visits are not compared."""
    return claim.attempt >> ATTEMPTS


def order(claim: Claim) -> tuple[int, int, int, int]:
    """By this claims are sorted: what counts comes before what it makes superfluous."""
    return RANKS[claim.kind], -claim.attempt, claim.part, claim.place


def claim_of(rank: int, attempt: int, part: int, place: int) -> Claim:
    """The claim with this order."""
    return Claim(KINDS[rank], -attempt, part, place)


def chosen(claims: Iterable[Claim]) -> list[Claim]:
    """Those that count, in the order of attempts."""
    best: Claim | None = None
    again: dict[int, Claim] = {}
    for claim in sorted(claims, key=order):
        if claim.kind != "again":
            best = best or claim
        elif best is None or (claim.attempt < best.attempt and visit_of(claim) == visit_of(best)):
            again.setdefault(claim.attempt, claim)
    return [*(again[attempt] for attempt in sorted(again)), *([best] if best is not None else [])]
