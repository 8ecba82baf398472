"""How often a page changes, estimated from what its visits found.

Visits tell only *whether* a page has changed since the one before, not how often nor when. A page that changes by a
Poisson process of rate r has changed within t with probability 1 - exp(-rt). For visits at one interval Cho and
Garcia-Molina (2003) give the estimate -log((n - X + 0.5) / (n + 0.5)) / interval of n comparisons with X changes; for
irregular ones the likeliest rate solves a sum over all of them. That sum is solved here one comparison at a time, so
that two numbers of a page suffice: how many changes, in how much *watched* time. A visit that found no change has
watched the whole interval. One that found a change has watched up to the first one, whose expected moment follows from
the rate so far. The rate is then changes by watched time, with half an interval more as in their formula; a page that
never changed has half a change.
"""

from __future__ import annotations

import math

MOST_VISITS = 64  # of a record, before its older half counts half: rates change, too
HALF = 0.5  # a change, of a page without any; and an interval, so that one which always changed has a finite rate
_TINY = 1e-6
_HUGE = 700.0  # exp() ends beyond


def rate(changes: int, watched: float) -> float:
    """Changes a second. `watched` is above 0."""
    return max(changes, HALF) / watched


def exposure(changes: int, watched: float, seconds: float, *, changed: bool) -> float:
    """The watched time that a comparison over so many seconds adds; the first one of a page adds half of it besides."""
    prior = 0.0 if watched else HALF * seconds
    if not changed:
        return prior + seconds
    return prior + first_change(rate(changes, watched or seconds), seconds)


def longest_watched(changes: int, seconds: float) -> float:
    """The watched time of a page that has changed each time, and now within so many seconds: its rate is no less than
    the formula's for this comparison alone, for what long intervals have said of such a page is no upper bound."""
    return max(changes, HALF) * seconds / math.log(3)


def first_change(changes_a_second: float, seconds: float) -> float:
    """The expected moment of the first change within so many seconds, where there was one."""
    expected = changes_a_second * seconds
    if expected < _TINY:
        return seconds / 2
    return 1 / changes_a_second - seconds / math.expm1(min(expected, _HUGE))
