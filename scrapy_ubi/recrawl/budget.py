"""`budget(1000/h, 1h, 30d)`: so many visits an hour of the whole crawl, spent where they keep most pages fresh.

Rules of this module:

* The interval of a page follows from its estimated rate of change, its importance and the *price* of a visit
  (`freshness.py`), within `least` and `most`. Each agent finds the price for its own pages and its share of the budget.
* The price comes from a *census*: how many pages there are of each rate. It is taken from the visits themselves: one
  that comes t seconds behind the last stands for t / window pages, as pages that are visited seldom are met seldom. So
  it needs no bookkeeping of pages that come and go, and has no state that a restart loses but what it relearns.
* Until `FEWEST` visits are counted, and for pages that were not compared yet, all pages share alike: the interval is
  the number of pages by the budget.
* Pages that the census has not met are taken to share alike, too, so that a young one does not overspend.
"""

from __future__ import annotations

import math

from scrapy_ubi.recrawl import durations
from scrapy_ubi.recrawl.change_rate import rate
from scrapy_ubi.recrawl.freshness import Class, best_interval, price_of
from scrapy_ubi.recrawl.intervals import DAY, HOUR, check_bounds, spread, times
from scrapy_ubi.recrawl.rule_contract import NOTHING, Past, Plan, Seen, Settled, elapsed, kept, plan
from scrapy_ubi.urls.filters.base import only
from scrapy_ubi.urls.filters.filter_text import Arguments, Call, FilterError, write

FEWEST = 200  # visits of the census before it has a price
BINS = 40  # of rates, evenly spaced in their logarithm
BEYOND = 16.0  # the outermost bins are for rates so far beyond the bounds of intervals
LEAST_IMPORTANCE, MOST_IMPORTANCE = 1e-3, 1e3


class Census:
    """How many pages there are of each rate, by the visits of the last `window` seconds or so."""

    def __init__(self, least: float, most: float) -> None:
        self.window = most / 4
        self.visits = 0
        self._low = math.log(1 / (BEYOND * most))
        self._step = (math.log(BEYOND / least) - self._low) / (BINS - 1)
        self._seconds, self._important = [0.0] * BINS, [0.0] * BINS
        self._begun = self._at = 0.0

    def count(self, past: Past, seen: Seen, changes_a_second: float, importance: float) -> None:
        """A visit of a page."""
        if not self.visits:
            self._begun = self._at = past.last
        if seen.at > self._at:
            fade = math.exp((self._at - seen.at) / self.window)
            self._seconds = [each * fade for each in self._seconds]
            self._important = [each * fade for each in self._important]
            self._at = seen.at
        place = round((math.log(changes_a_second) - self._low) / self._step)
        place = min(max(place, 0), BINS - 1)
        seconds = elapsed(past, seen)
        self._seconds[place] += seconds
        self._important[place] += seconds * importance
        self.visits += 1

    def classes(self) -> list[Class]:
        """The pages, by rate."""
        age = max(self._at - self._begun, 1.0)
        window = -self.window * math.expm1(-age / self.window)
        return [
            Class(seconds / window, math.exp(self._low + place * self._step), important / seconds)
            for place, (seconds, important) in enumerate(zip(self._seconds, self._important, strict=True))
            if seconds > 0
        ]


class Budget(Settled):
    """The best use of a number of visits a second, as far as it is known how often pages change."""

    def __init__(self, budget: float, least: float = HOUR, most: float = 30 * DAY) -> None:
        check_bounds(math.sqrt(least * most), least, most)
        self.budget, self.least, self.most = budget, least, most
        self.price: float | None = None  # None: not known yet
        self.alike = math.sqrt(least * most)  # the interval of what is not known; so long until pages were counted
        self._census = Census(least, most)

    @classmethod
    def of(cls, arguments: Arguments) -> Budget:
        only(arguments, "")
        text, *bounds = arguments.get("", ()) or ("",)
        budget = durations.read_rate(text)
        least, most = times({"": tuple(bounds)}, HOUR, 30 * DAY)
        if not least < most:
            raise FilterError(f"has the bounds {', '.join(bounds)}", "give the least interval and the most: 1h, 30d")
        return cls(budget, least, most)

    def first(self, seen: Seen, key: int) -> Plan:
        return plan(NOTHING, seen, self._bound(spread(self.alike, key)), self.alike)

    def next(self, past: Past, seen: Seen, key: int = 0) -> Plan:
        if not past.visits and not seen.failed:
            return self.first(seen, key)
        interval = self._interval(kept(past, seen, 0), seen.importance)
        return plan(past, seen, interval, interval)

    def told(self, past: Past, seen: Seen) -> None:
        now = kept(past, seen, 0)
        if past.visits and now.watched and not seen.failed:
            self._census.count(past, seen, rate(now.changes, now.watched), _bounded(seen.importance))

    def settle(self, pages: int, share: float = 1.0) -> None:
        budget = self.budget * min(max(share, 1e-9), 1.0)
        self.alike = self._bound(pages / budget)
        if self._census.visits < FEWEST:
            return
        classes = self._census.classes()
        unmet = max(pages - math.fsum(each.pages for each in classes), 0.0)
        left = max(budget - unmet / self.alike, budget / 10)
        self.price = price_of(classes, left, self.least, self.most)

    def _interval(self, past: Past, importance: float) -> float:
        if self.price is None or not past.watched:
            return self._bound(self.alike)
        changes_a_second = rate(past.changes, past.watched)
        return best_interval(changes_a_second, _bounded(importance), self.price, self.least, self.most)

    def _bound(self, seconds: float) -> float:
        return min(max(seconds, self.least), self.most)

    def __str__(self) -> str:
        bounds = map(durations.write, (self.least, self.most))
        return write(Call("budget", {"": (durations.write_rate(self.budget), *bounds)}))


def _bounded(importance: float) -> float:
    return min(max(importance, LEAST_IMPORTANCE), MOST_IMPORTANCE)
