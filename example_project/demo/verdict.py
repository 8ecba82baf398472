"""What the web itself says about a crawl, held against the truth. Pure functions."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from demo.record import ABORTED, DOCUMENTS, TRY_AGAIN

WIDEST = 80  # columns
SHOWN = 3  # URLs named of those that were missed, or should not have been asked for


class Check(NamedTuple):
    """One thing that must hold, what was found, and whether it does."""

    name: str
    found: str
    holds: bool


class Kill(NamedTuple):
    """Which agent was killed, and when (s of the log's clock)."""

    agent: str
    at: float


def judge(
    truth: set[str],
    visits: Mapping[str, int],
    stats: Mapping[str, Any],
    exits: Mapping[str, int | None],
    log: Iterable[Mapping[str, Any]] = (),
    kill: Kill | None = None,
) -> list[Check]:
    """`visits`, `stats` and `log` are the web's (record.py); `exits` the exit statuses of the agents that were not
    killed, None if ended by force.
    """
    missed, strange = sorted(truth - visits.keys()), sorted(visits.keys() - truth)
    bad = [f"{name}: {'did not end' if status is None else status}" for name, status in exits.items() if status != 0]
    return [
        Check(
            "coverage",
            f"{len(truth) - len(missed):,} of {len(truth):,} reachable pages fetched{_some(', missed', missed)}",
            not missed,
        ),
        Check("nothing else", f"{len(strange)} pages that are not reachable{_some(':', strange)}", not strange),
        _duplicates(stats, log, kill),
        Check(
            "one at a time",
            f"{stats['most_simultaneous']} request at once at any host, at most"
            + (f" ({stats['violations']} times more than one)" if stats["violations"] else ""),
            stats["violations"] == 0,
        ),
        Check("robots.txt", f"{stats['robots_violations']} forbidden pages fetched", stats["robots_violations"] == 0),
        Check(
            "the end",
            f"{len(exits) - len(bad)} of {len(exits)} agents{' that were not killed' if kill else ''} ended by "
            f"themselves with exit status 0{_some(';', bad)}",
            not bad,
        ),
    ]


def of_items(log: Iterable[Mapping[str, Any]], items: Mapping[str, int]) -> Check:
    """Each page gives one item; `items`: how many were collected, by URL."""
    pages = {f"http://{row['host']}{row['path']}" for row in log if row["kind"] == "page" and row["status"] == 200}
    missing, more = sorted(pages - items.keys()), sorted(url for url, n in items.items() if n > 1 or url not in pages)
    found = f"{len(pages) - len(missing):,} of {len(pages):,} pages have their item in the result"
    found += _some(", missing", missing) + _some("; more than once", more) + ("" if missing or more else ", each once")
    return Check("items", found, not missing and not more)


def _duplicates(stats: Mapping[str, Any], log: Iterable[Mapping[str, Any]], kill: Kill | None) -> Check:
    """Nothing is fetched twice, but for what a killed agent had fetched and nobody had heard of: that once more."""
    number = f"{stats['duplicates']} pages fetched again"
    if kill is None:
        return Check("duplicates", number, stats["duplicates"] == 0)
    fetches: dict[str, list[Mapping[str, Any]]] = {}
    broken_off = 0
    for row in log:
        broken_off += row["agent"] == kill.agent and row["kind"] in DOCUMENTS and row["status"] == ABORTED
        if row["kind"] in DOCUMENTS and row["status"] not in (ABORTED, TRY_AGAIN):
            fetches.setdefault(f"http://{row['host']}{row['path']}", []).append(row)
    again = {url: rows for url, rows in fetches.items() if len(rows) > 1}
    wrong = sorted(url for url, rows in again.items() if len(rows) > 2 or rows[0]["agent"] != kill.agent)
    if wrong:
        return Check("duplicates", number + _some(", without need", wrong), False)
    if again:
        span = kill.at - min(rows[0]["start"] for rows in again.values())
        number += f": {kill.agent} had fetched them in its last {span:.1f} s, and no other agent knew of it"
    else:
        number += f": the other agents knew of all that {kill.agent} had fetched"
    if broken_off:
        number += f"; {broken_off} loads that the kill broke off were begun again"
    return Check("duplicates", number, True)


def lines(checks: list[Check]) -> list[str]:
    """The verdict as text: for each check a line, or more where it is long."""
    wide = max(len(check.name) for check in checks)
    found = []
    for check in checks:
        first, *more = textwrap.wrap(check.found, WIDEST - wide - 10, break_long_words=False)
        found.append(f"  {'ok  ' if check.holds else 'FAIL'}  {check.name:{wide}}  {first}")
        found += [" " * (wide + 10) + line for line in more]
    return found


def _some(what: str, of: list[str]) -> str:
    if not of:
        return ""
    return f"{what} {', '.join(of[:SHOWN])}" + (f" and {len(of) - SHOWN} more" if len(of) > SHOWN else "")
