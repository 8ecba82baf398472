"""What the web itself says about a crawl, held against the truth. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

SHOWN = 3  # URLs named of those that were missed, or should not have been asked for


class Check(NamedTuple):
    """One thing that must hold, what was found, and whether it does."""

    name: str
    found: str
    holds: bool


def judge(
    truth: set[str], visits: Mapping[str, int], stats: Mapping[str, Any], exits: Mapping[str, int | None]
) -> list[Check]:
    """`visits` and `stats` are the web's (record.py); `exits` the agents' exit statuses, None if ended by force."""
    missed, strange = sorted(truth - visits.keys()), sorted(visits.keys() - truth)
    bad = [f"{name}: {'did not end' if status is None else status}" for name, status in exits.items() if status != 0]
    return [
        Check(
            "coverage",
            f"{len(truth) - len(missed):,} of {len(truth):,} reachable documents fetched{_some(', missed', missed)}",
            not missed,
        ),
        Check("nothing else", f"{len(strange)} documents that are not reachable{_some(':', strange)}", not strange),
        Check("duplicates", f"{stats['duplicates']} documents fetched again", stats["duplicates"] == 0),
        Check(
            "one at a time",
            f"{stats['most_simultaneous']} request at once at any host, at most"
            + (f" ({stats['violations']} times more than one)" if stats["violations"] else ""),
            stats["violations"] == 0,
        ),
        Check("robots.txt", f"{stats['robots_violations']} forbidden pages fetched", stats["robots_violations"] == 0),
        Check(
            "the end",
            f"{len(exits) - len(bad)} of {len(exits)} agents ended by themselves with exit status 0{_some(';', bad)}",
            not bad,
        ),
    ]


def lines(checks: list[Check]) -> list[str]:
    """The verdict as text, a line a check."""
    wide = max(len(check.name) for check in checks)
    return [f"  {'ok  ' if check.holds else 'FAIL'}  {check.name:{wide}}  {check.found}" for check in checks]


def _some(what: str, of: list[str]) -> str:
    if not of:
        return ""
    return f"{what} {', '.join(of[:SHOWN])}" + (f" and {len(of) - SHOWN} more" if len(of) > SHOWN else "")
