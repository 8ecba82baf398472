"""How long a crawl still takes: one estimate, of what its agents publish. Pure functions, no clock.

Everything that says how near the end is (`scrapy ubi status`, `report`, the web page, the metrics) asks `remaining`.

Rules of this module:

* A host needs `queued x (delay + mean load time) / loads at once`, and what is left of its present pause: a rest, a
  Retry-After, the wait for its robots.txt; and no less than its rate (UBI_RATES) allows. Hosts that ask for pauses
  again and again (`every`) are expected to go on.
* A crawl needs no less than its slowest host, and no less than all that waits at the pace that its agents had lately:
  the best pace of the windows that hold the last `LATELY` of its pages, since a pause is no pace.
* More is found while what waits is fetched. How much follows from the curve of URLs known over URLs done, judged over
  the last pages, a share of all that are done: so the window fits the crawl, however old it is, and its ramp leaves it.
* That there is no end in sight is said only where the queue grows faster than it is fetched, and more waits than was
  ever fetched. In the second half of a crawl that ends what waits is at most what is done: it is never said there.
* Ages of points are seconds in which the crawl went on: a pause, and the time between two processes, are no part of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

FIRST_AGO = 15.0  # s; each further point of a curve is twice as old as the one before
LATELY = 0.2  # of all pages done
WINDOW = 0.125  # of all pages done: of two such windows it is seen how growth changes
FEW = 20  # pages: a window has no less, where there are more
SURE = 4.0  # times what waits or is done: an extrapolation beyond that is none
THIN, FINDS = 0.2, 0.6  # of what is done: where less waits, and nearly as much is found as is fetched, who can tell
SOON = 20.0  # s: before that, nothing can be told
STILL = 0.05  # URLs found for each that is done: the web is known

# Kinds of an estimate.
ABOUT = "about"  # `seconds` more
OPEN = "open"  # there is no end in sight
UNSURE = "unsure"  # `seconds` at least; more cannot be told, as each page leads to about one new
EARLY = "early"  # too early to tell
ENDLESS = "endless"  # the crawl does not end by itself: `seconds` for what waits now
NOTHING = "nothing"  # nothing waits


class Point(NamedTuple):
    """So many seconds `ago`, so many URLs of the hosts an agent owns were done, and so many known."""

    ago: float
    done: float
    known: float


class SlowHost(NamedTuple):
    """What the host that takes longest needs. `delay`: seconds between two loads; `load`: how long one takes; `loads`:
    how many at once; `rest`: what is left of its present pause (s), and `why`; `every`: seconds of pauses a page that
    it has asked for again and again; `each`: seconds a page by its rate (0: none), which has room for `free` now."""

    host: str
    queued: int
    delay: float = 0.0
    load: float = 0.0
    loads: int = 1
    rest: float = 0.0
    why: str = ""
    every: float = 0.0
    each: float = 0.0
    free: int = 0

    @property
    def pace(self) -> float:
        """Seconds a page takes. The delay of a host with several loads at once counts from start to start."""
        if self.loads > 1:
            return max(self.delay, self.load / self.loads) + self.every
        return self.delay + self.load + self.every

    def needs(self, growth: float = 1.0) -> float:
        """Seconds for what waits, and for what is found meanwhile: `growth` times as much."""
        pages = self.queued * growth
        return self.rest + max(self.pace * pages, self.each * (pages - self.free))


class Ahead(NamedTuple):
    """What one agent, or all of them, have before them. `waits`: URLs queued and in flight; `curve`: the youngest point
    first; `most_pages`, `most_seconds`: what the limits of the crawl still allow (None: no limit); `endless`: the
    setting by which the crawl does not end by itself."""

    waits: int
    done: int
    curve: Sequence[Point] = ()
    slowest: SlowHost | None = None
    most_pages: int | None = None
    most_seconds: float | None = None
    endless: str = ""


class Remaining(NamedTuple):
    """How long a crawl still takes. `pages`: URLs that are expected to be fetched yet; `host`: the host that decides,
    where one does; `pace`: URLs a second that its agents fetch at most, as of late; `growth`: URLs found for each that
    was done, as of late."""

    kind: str
    seconds: float | None = None
    pages: int | None = None
    host: SlowHost | None = None
    pace: float | None = None
    growth: float | None = None
    endless: str = ""


def remaining(of: Ahead) -> Remaining:
    """The estimate."""
    if not of.waits or of.most_pages == 0:
        return Remaining(NOTHING, 0.0, 0, endless=of.endless)
    growth, left = found_ahead(of)
    pace = best_pace(of)
    old = of.curve[-1].ago if of.curve else 0.0
    if pace is None or old < SOON:
        return _bounded(of, Remaining(EARLY, None, None, of.slowest, pace, growth))
    if of.endless:
        return _seconds(of, Remaining(ENDLESS, None, of.waits, None, pace, growth, of.endless))
    if of.most_pages is not None and (left is None or left > of.most_pages):
        left = float(of.most_pages)
    if left is not None:
        return _bounded(of, _seconds(of, Remaining(ABOUT, None, round(left), None, pace, growth)))
    if of.waits > of.done:
        return _bounded(of, Remaining(OPEN, None, None, of.slowest, pace, growth))
    return _bounded(of, _seconds(of, Remaining(UNSURE, None, of.waits, None, pace, growth)))


def _seconds(of: Ahead, told: Remaining) -> Remaining:
    """The longer of what the slowest host needs and what all of it does at the pace of late."""
    assert told.pages is not None and told.pace is not None
    share = told.pages / of.waits
    all_of_it = told.pages / told.pace if told.pace else math.inf
    alone = of.slowest.needs(share) if of.slowest is not None else 0.0
    if of.slowest is not None and (alone >= all_of_it or all_of_it == math.inf):
        return told._replace(seconds=alone, host=of.slowest)
    return told._replace(seconds=all_of_it if all_of_it < math.inf else None)


def _bounded(of: Ahead, told: Remaining) -> Remaining:
    """No longer than the limit of the crawl's time allows."""
    if of.most_seconds is None or (told.seconds is not None and told.seconds <= of.most_seconds):
        return told
    return told._replace(kind=ABOUT, seconds=max(0.0, of.most_seconds), host=None)


def found_ahead(of: Ahead) -> tuple[float | None, float | None]:
    """How many URLs are found for each that is done, as of late (None: not known), and how many are expected to be
    fetched until nothing is left (None: that cannot be told)."""
    line = _by_done(of.curve)
    if len(line) < 2:
        return None, float(of.waits)
    done, known = line[-1]
    window = max(WINDOW * done, min(FEW, done / 2))
    middle = _at(line, done - window)
    late = (known - middle) / window
    before = (middle - _at(line, done - 2 * window)) / window
    now = max(0.0, late + (late - before) / 2)  # both are those of the middle of their windows
    if now <= STILL:
        return late, float(of.waits)
    if of.waits < THIN * done and late > FINDS:  # page leads to page, as in a list
        newest = _found_lately(line)
        return (late, None) if newest is None or newest > STILL else (newest, float(of.waits))
    left = _crossing(of.waits, now, (late - before) / window)
    if left is not None and left <= SURE * max(of.waits, done):
        return late, max(left, float(of.waits))
    if THIN * done <= of.waits <= done:  # past the half what is left is at most what was done; before it, who knows
        return late, math.sqrt(of.waits * done)
    return late, None


def _found_lately(line: Sequence[tuple[float, float]]) -> float | None:
    """URLs found for each of the last pages done, of the shortest time in which these were not few; None where all are
    few. The window of `found_ahead` lies further back, where a slow host is the last one."""
    done, known = line[-1]
    for before, knew in reversed(line[:-1]):
        if done - before >= FEW:
            return (known - knew) / (done - before)
    return None


def _crossing(waits: float, found: float, change: float) -> float | None:
    """How many are fetched until nothing waits, where `found` URLs are found for each that is done, and that changes by
    `change` for each; None where that never comes. As the web becomes known, what is found dies away: it falls in
    proportion to what is found yet."""
    if change >= 0 or found <= 0:
        return waits / (1 - found) if found < 1 else None
    falls = -change / found  # by which share what is found falls for each page done
    if waits + found / falls < 1:
        return waits
    low, high = waits, waits + found / falls
    for _ in range(60):
        middle = (low + high) / 2
        if waits + found * (1 - math.exp(-falls * middle)) / falls > middle:
            low = middle
        else:
            high = middle
    return high


def best_pace(of: Ahead) -> float | None:
    """URLs a second: the best of the windows in which the last pages were done. None where nothing is known yet."""
    if len(of.curve) < 2:
        return None
    now, best = of.curve[0], 0.0
    for point in of.curve[1:]:
        done = now.done - point.done
        if point.ago > now.ago and done >= min(FEW, now.done / 2):
            best = max(best, done / (point.ago - now.ago))
        if done >= LATELY * now.done and best:
            break
    return best or None


def _by_done(curve: Sequence[Point]) -> list[tuple[float, float]]:
    """(done, known), ascending by done, from the very beginning."""
    line: list[tuple[float, float]] = []
    for point in reversed(curve):
        if not line or point.done > line[-1][0]:
            line.append((point.done, max(point.known, point.done)))
        elif point.done == line[-1][0]:
            line[-1] = (point.done, max(point.known, point.done))
    return line


def _at(line: Sequence[tuple[float, float]], done: float) -> float:
    """How many were known when so many were done; between two points as on a straight line."""
    before = line[0]
    if done <= before[0]:
        return before[1]
    for point in line:
        if point[0] >= done:
            share = (done - before[0]) / (point[0] - before[0]) if point[0] > before[0] else 1.0
            return before[1] + share * (point[1] - before[1])
        before = point
    return before[1]


# -- curves


def shifted(curve: Sequence[Point], by: float) -> list[Point]:
    """The curve of an agent that went away so many seconds ago: what it had is with others since."""
    if not curve:
        return []
    return [Point(0.0, 0, 0), Point(by, 0, 0), *(point._replace(ago=point.ago + by + 0.1) for point in curve)]


def summed(curves: Iterable[Sequence[Point]]) -> list[Point]:
    """The curve of all agents together."""
    known = [curve for curve in curves if curve]
    if len(known) < 2:
        return [*known[0]] if known else []
    oldest = max(curve[-1].ago for curve in known)
    total = []
    for ago in _agos(oldest):
        at = [_when(curve, ago) for curve in known]
        total.append(Point(ago, sum(one.done for one in at), sum(one.known for one in at)))
    return total


def _agos(oldest: float) -> Iterator[float]:
    yield 0.0
    ago = FIRST_AGO
    while ago < oldest:
        yield ago
        ago *= 2
    yield oldest


def _when(curve: Sequence[Point], ago: float) -> Point:
    """So long ago, on a straight line between two points; before its first point an agent had nothing."""
    young = curve[0]
    for point in curve:
        if point.ago >= ago:
            share = (ago - young.ago) / (point.ago - young.ago) if point.ago > young.ago else 0.0
            between = (a + share * (b - a) for a, b in zip(young[1:], point[1:], strict=True))
            return Point(ago, *between)
        young = point
    return Point(ago, 0.0, 0.0)
