"""What a rule of re-crawl is told and asked; and the record of a page's visits that it decides by.

Rules of this module:

* Times are unix seconds, intervals are seconds; those that are kept are whole. `NEVER` (0) as a due time: the page is
  not visited again. A due time is rounded up: it may be a second behind what its bounds say, and is never before.
* A rule decides by its arguments and its own text alone: no clock, no chance, no I/O. `budget` decides by its price as
  well, which moves in `settle` only, by what was counted in `told`, and by how many first visits there were.
* What it says keeps its bounds whatever it is told: clocks that went back, records of another rule, any key.
* The pages of a host are first seen at about one time: `plan_first` spreads their next visits by the page's key.
* A record has a bounded size and forgets: of `MOST_VISITS` visits the older half counts half.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

from scrapy_ubi.ground.untrusted.checks import is_count
from scrapy_ubi.policy.recrawl.change_rate import HALF, MOST_VISITS, exposure, longest_watched

NEVER = 0
LATEST = 1 << 40  # s: more than any time that is meant


class VisitSeen(NamedTuple):
    """What a visit has seen. `changed`: other content than at the visit before (of no meaning at the first).

    `lastmod`: when the page says it was changed, or its sitemap does; 0: not known. `items`: the page gave some.
    `failed`: no page was had, so nothing could be compared. `importance`: of the page beside the others, above 0.
    `believed`: a sitemap lists the page, and has predicted the changes of its host so far.
    """

    at: float
    changed: bool = True
    lastmod: float = 0.0
    items: bool = False
    failed: bool = False
    importance: float = 1.0
    believed: bool = False


class Past(NamedTuple):
    """What is kept of a page's visits: five numbers.

    `visits`: those that could be compared, with the first; `changes`: those of them that found other content; `last`:
    when; `interval`: what the rule had planned behind it; `watched`: seconds in which a change would have been noticed.
    """

    visits: int = 0
    changes: int = 0
    last: int = 0
    interval: int = 0
    watched: int = 0


NOTHING = Past()


class Plan(NamedTuple):
    """When the page is due again, and what is kept of its visits from now on."""

    due: int
    past: Past


class Rule(Protocol):
    """What UBI_RECRAWL names. Its text, `str(rule)`, reads back to an equal rule, and equal rules have equal texts."""

    def plan_first(self, seen: VisitSeen, key: int) -> Plan:
        """The plan after the first visit of the page with this key."""

    def plan_next(self, past: Past, seen: VisitSeen, key: int = 0) -> Plan:
        """The plan after another visit. Where `past` is `NOTHING` it is a first one."""

    def announced(self, past: Past, lastmod: float, at: float, *, believed: bool) -> int:
        """A sitemap that was read at `at` says that this page was changed at `lastmod`; `believed`: it predicted
        changes of its host so far. The new due time, NEVER where the one that is planned stands."""

    def longest(self, past: Past) -> float:
        """How long (s) after a visit that left this record the next one can be due at most."""

    def rate(self, share: float) -> float | None:
        """So many pages are visited again a second at most, by an agent with this share of the crawl; None for no
        bound. The frontier keeps to it, however much is due."""

    def told(self, past: Past, seen: VisitSeen) -> None:
        """The visit that `plan_next` was asked about has ended. To be called once for each."""

    def settle(self, pages: int, share: float = 1.0) -> None:
        """This agent has so many pages, which are this share of all of the crawl. To be called once a minute or so."""


class Settled:
    """Base of the rules that decide by their text alone."""

    def announced(self, past: Past, lastmod: float, at: float, *, believed: bool) -> int:
        """Sitemaps decide nothing."""
        return NEVER

    def rate(self, share: float) -> float | None:
        """No bound."""
        return None

    def told(self, past: Past, seen: VisitSeen) -> None:
        """Teaches nothing."""

    def settle(self, pages: int, share: float = 1.0) -> None:
        """Changes nothing."""

    def __repr__(self) -> str:
        return f"<{self}>"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


def share_of(key: int) -> float:
    """A number from 0 to 1, without it, that is the key's own: keys that are near each other get distant ones."""
    return ((key * 0x9E3779B97F4A7C15 + 0x7F4A7C15) % (1 << 64) >> 11) / (1 << 53)


def plan(past: Past, seen: VisitSeen, wait: float, interval: float) -> Plan:
    """The plan after a visit behind which the rule waits so long; `interval` is what it keeps of that."""
    return Plan(math.ceil(seen.at + wait), kept(past, seen, math.ceil(interval)))


def kept(past: Past, seen: VisitSeen, interval: int) -> Past:
    """The record after a visit behind which this interval was planned."""
    if seen.failed:
        return past._replace(interval=interval)
    if not past.visits:
        return Past(1, 0, int(seen.at), interval)
    changes = past.changes + seen.changed
    watched = past.watched + exposure(past.changes, past.watched, elapsed(past, seen), changed=seen.changed)
    if always_changed(past) and seen.changed:
        watched = min(watched, longest_watched(changes, elapsed(past, seen)))
    visits = past.visits + 1
    if visits > MOST_VISITS:  # the rate that follows from them stays
        fewer = changes // 2
        visits, changes, watched = visits // 2, fewer, watched * max(fewer, HALF) / max(changes, HALF)
    return Past(visits, changes, max(int(seen.at), past.last), interval, max(round(watched), 1))


def always_changed(past: Past) -> bool:
    """Whether every visit that was compared has found a change: the page may change much more often than that."""
    return past.changes == past.visits - 1


def elapsed(past: Past, seen: VisitSeen) -> float:
    """Seconds since the last visit; a second at least, whatever the clocks say."""
    return max(seen.at - past.last, 1.0)


def read_past(value: object) -> Past | None:
    """A record that came from outside, as the list of its numbers; None for what is none."""
    if not isinstance(value, list | tuple) or len(value) != len(NOTHING):
        return None
    visits, changes, *times = value
    if not is_count(visits, MOST_VISITS + 1) or not is_count(changes, max(visits, 1)):
        return None
    return Past(*value) if all(is_count(each, LATEST) for each in times) else None
