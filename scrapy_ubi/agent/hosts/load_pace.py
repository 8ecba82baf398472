"""How many loads at once a host bears, found out by trying: the rule of `auto(n)`. No clock, no host, no I/O.

Rules of this module (additive increase, multiplicative decrease, as TCP has it):

* It begins with one load at a time. The responses of a *round*, as many as there may be loads at once, are looked at
  together: where their mean time is less than `SLOWER` x the best mean of a round so far, there may be one more.
* Slower than that: as many as before. More loads would only wait in the queue of the host.
* The best mean is forgotten slowly (`FADES`): else a round of short error pages would be the measure of all others.
* A response that asks to slow down (429, 503) and a load that does not end in time halve the number, and begin a new
  round. Loads that began before that are of the former number: they say nothing more, else eight time-outs at once
  would count as eight.
* What is known is noted with the host as a list of two numbers, so that it survives a handoff and a restart.
"""

from __future__ import annotations

from typing import NamedTuple

from scrapy_ubi.ground.untrusted.checks import is_number, is_whole

SLOWER = 1.5  # x the best mean: beyond that there is no room for one more
FADES = 1.02  # the best mean grows so much a round
MOST_SECONDS = 86_400.0  # of a mean, as noted


class LoadPace(NamedTuple):
    """What is known of one host. `loads`: how many may be open at once; `best`: the shortest mean of a round (s; 0 for
    none yet). Of the round under way: how many responses came, and their sum (s)."""

    loads: int = 1
    best: float = 0.0
    came: int = 0
    took: float = 0.0

    def value(self) -> list[float]:
        """As JSON has it: what is to survive."""
        return [self.loads, round(self.best, 3)]


def read_pace(value: object, most: int) -> LoadPace:
    """The pace in a JSON value, that of a host met first where it holds none; never more than `most` at once."""
    if not isinstance(value, list) or len(value) != 2:
        return LoadPace()
    loads, best = value
    if not is_whole(loads, 1, 1_000_000) or not is_number(best, MOST_SECONDS) or best < 0:
        return LoadPace()
    return LoadPace(min(loads, most), float(best))


def answered(pace: LoadPace, seconds: float, most: int) -> LoadPace:
    """A load has ended with a response, after so many seconds; at most `most` at once are wanted."""
    came, took = pace.came + 1, pace.took + seconds
    if came < pace.loads:
        return pace._replace(came=came, took=took)
    mean = took / came
    best = min(mean, pace.best * FADES) if pace.best else mean
    more = pace.loads < most and mean <= best * SLOWER
    return LoadPace(pace.loads + more, best)


def slowed(pace: LoadPace) -> LoadPace:
    """The host has asked to slow down, or has not answered in time."""
    return LoadPace(max(1, pace.loads // 2), pace.best)
