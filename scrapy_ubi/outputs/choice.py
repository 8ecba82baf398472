"""Which records of a page count, when several agents have some: the rule by which doubles go (P9).

* One whole record of those that are final: of a page that did not fail rather than of one that did, then of the last
  attempt, then of the first part. The same set of parts always gives the same.
* What earlier attempts have left, whose callback asked for its page once more ("again"): one record of each.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

KINDS = ("ok", "failed", "again")
RANKS = {kind: rank for rank, kind in enumerate(KINDS)}


class Claim(NamedTuple):
    """A record of a page: `part` and `place` say where it is."""

    kind: str
    attempt: int
    part: int
    place: int


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
        elif best is None or claim.attempt < best.attempt:
            again.setdefault(claim.attempt, claim)
    return [*(again[attempt] for attempt in sorted(again)), *([best] if best is not None else [])]
