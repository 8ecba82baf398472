"""`budget(1000/h, 1h, 30d)`: so many visits an hour of the whole crawl, spent where they keep most pages fresh.

Rules of this module:

* The interval of a page follows from its estimated rate of change, its importance and the *price* of a visit, within
  `least` and `most`. Each agent finds the price for its own pages and its share of the budget.
* The price comes from a *census*: how many pages there are of each rate. A page that was visited since the census began
  is in it by the rate that its record then had, so a visit moves it: no list of pages is needed. A restart begins a new
  one. Pages that this agent does not have any more stay in it: it counts by parts of the number of pages.
* In any time at most the budget's number of pages are visited again (`rate`), however many are due. How many pages
  there will be is not known: so the pages that are found are due one after the other, the budget apart, and no sooner
  than `least`.
* Until `FEWEST` visits are counted, and for pages that were not compared yet, all pages share alike: the interval is
  the number of pages by the budget.
* A page that has changed at every visit may change a little or a lot more often than it is visited, and only in the
  former case is it worth its visits. So the next visit of such a page comes early, until one finds no change, as long
  as the visits lately were not many more than the budget.
* A page that the census has not met waits at least as long as the census has lasted: it is taken to need that.

What visits are worth: a page that changes by a Poisson process of rate r and is visited each t seconds is as it was
when visited for (1 - exp(-rt)) / rt of the time: its *freshness* (Cho and Garcia-Molina 2003). More visits of it gain
less and less. In the best plan of many pages under one budget of visits a second the gain of one more visit, times the
importance of the page, is the same for all pages: the *price* of a visit (a Lagrange multiplier). So each page's
interval follows from its own rate and that one number, and a page whose visits gain less than the price waits as long
as it may: pages that change too fast are not worth visiting. Azar, Horvitz, Lubetzky, Peres and Shahaf (2018) show the
same for visits at random times; visits at even ones are worth more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from scrapy_ubi.policy.recrawl import durations
from scrapy_ubi.policy.recrawl.change_rate import rate
from scrapy_ubi.policy.recrawl.intervals import DAY, HOUR, check_bounds, spread, times
from scrapy_ubi.policy.recrawl.rule_contract import NOTHING, Past, Plan, Settled, VisitSeen, always_changed, kept, plan
from scrapy_ubi.urls.filters.base import only
from scrapy_ubi.urls.filters.filter_text import Arguments, Call, FilterError, write

FEWEST = 200  # visits of the census before it has a price
BINS = 40  # of rates, evenly spaced in their logarithm
BEYOND = 16.0  # the outermost bins are for rates so far beyond the bounds of intervals
LEAST_IMPORTANCE, MOST_IMPORTANCE = 1e-3, 1e3


TOO_ALIKE = 2  # changes, and no visit without one
OVERSPENT = 1.25  # times the budget, beyond which there are no early visits
PROBE = 0.7  # changes that are expected until the next visit of such a page


class Census:
    """How many pages there are of each rate, by the visits since the first one that was told."""

    def __init__(self, least: float, most: float) -> None:
        self.visits = 0
        self.fresh = 0  # pages that were not compared yet
        self._low = math.log(1 / (BEYOND * most))
        self._step = (math.log(BEYOND / least) - self._low) / (BINS - 1)
        self._pages = [0] * BINS
        self._important = [0.0] * BINS
        self._begun = math.inf
        self._at = 0.0

    @property
    def age(self) -> float:
        """Seconds in which pages could be met."""
        return max(self._at - self._begun, 1.0)

    def count_page(self, past: Past, now: Past, importance: float) -> None:
        """A visit of a page has made of its record what it is now."""
        self._begun, self._at = min(self._begun, now.last), max(self._at, now.last)
        if past.visits and past.last >= self._begun:
            self._put(past, -1, importance)
        self._put(now, 1, importance)
        self.visits += 1

    def _put(self, past: Past, pages: int, importance: float) -> None:
        if not past.watched:
            self.fresh = max(self.fresh + pages, 0)
            return
        place = round((math.log(rate(past.changes, past.watched)) - self._low) / self._step)
        place = min(max(place, 0), BINS - 1)
        if self._pages[place] + pages >= 0:  # it is below 0 of pages that another agent has met
            self._pages[place] += pages
            self._important[place] += pages * importance

    def classes(self) -> list[Class]:
        """The pages that were compared, by rate."""
        return [
            Class(pages, math.exp(self._low + place * self._step), _bounded(important / pages))
            for place, (pages, important) in enumerate(zip(self._pages, self._important, strict=True))
            if pages
        ]


class Lately:
    """How many visits there were lately, beside a budget of so many a second."""

    def __init__(self, budget: float) -> None:
        self.budget = budget
        self._visits = 0.0
        self._at = 0.0

    def count_visit(self, at: float) -> None:
        """A visit."""
        if at > self._at:
            self._visits *= math.exp((self._at - at) * self.budget / FEWEST)
            self._at = at
        self._visits += 1

    @property
    def within(self) -> bool:
        """Whether they were not many more than the budget."""
        return self._visits <= FEWEST * OVERSPENT


_STEPS = 60  # of a search for a number of changes
_HALVINGS = 40  # of one for a price


class Class(NamedTuple):
    """So many pages that change at this rate (a second), and their importance."""

    pages: float
    rate: float
    importance: float = 1.0


def freshness(rate: float, interval: float) -> float:
    """The part of the time that a page is as it was when it was visited last."""
    expected = rate * interval
    return -math.expm1(-expected) / expected if expected > 1e-12 else 1.0


def gain(expected: float) -> float:
    """What one more visit a change would gain, where so many changes come between two: 0 to 1."""
    return -math.expm1(-expected) - expected * math.exp(-expected)


def changes_worth(part: float) -> float:
    """The number of changes between two visits at which one more gains this: the inverse of `gain`."""
    if part <= 0:
        return 0.0
    if part >= 1:
        return math.inf
    low, high = 0.0, 40.0
    expected = min(math.sqrt(2 * part), high)  # gain(x) is about x * x / 2 near 0
    for _ in range(_STEPS):  # Newton's, held by the bracket
        error = gain(expected) - part
        low, high = (low, expected) if error > 0 else (expected, high)
        slope = expected * math.exp(-expected)
        step = expected - error / slope if slope > 0 else low
        new = step if low < step < high else (low + high) / 2
        if abs(new - expected) <= 1e-9 * expected:
            return new
        expected = new
    return expected


def best_interval(rate: float, importance: float, price: float, least: float, most: float) -> float:
    """The interval at which one more visit of the page gains as much as it costs, within its bounds."""
    expected = changes_worth(price * rate / importance)
    return min(max(expected / rate, least), most)


def price_of(classes: Sequence[Class], budget: float, least: float, most: float) -> float:
    """The price at which the pages of all classes together are visited `budget` times a second; 0 where even `least`
    for all costs less, the highest that tells pages apart where even `most` costs more. Where a class as a whole is
    just worth visits or not, the price that comes nearer to the budget.
    """

    def visits(price: float) -> float:
        return math.fsum(each.pages / best_interval(each.rate, each.importance, price, least, most) for each in classes)

    if not classes or visits(0.0) <= budget:
        return 0.0
    top = max(each.importance / each.rate for each in classes)  # beyond it no page is worth a visit
    low, high = math.log(top) - 60.0, math.log(top)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if visits(math.exp(middle)) > budget else (low, middle)
    lower, higher = math.exp(low), math.exp(high)
    return lower if visits(lower) - budget < budget - visits(higher) else higher


class Budget(Settled):
    """The best use of a number of visits a second, as far as it is known how often pages change."""

    def __init__(self, budget: float, least: float = HOUR, most: float = 30 * DAY) -> None:
        check_bounds(math.sqrt(least * most), least, most)
        self.budget = budget
        self.least = least
        self.most = most
        self.price: float | None = None  # None: not known yet
        self.alike = math.sqrt(least * most)  # the interval of what is not known; so long until pages were counted
        self.census = Census(least, most)
        self._lately = Lately(budget)
        self.early = True
        self._slot = 0.0  # when the next page that is visited for the first time is due again at the earliest

    @classmethod
    def from_arguments(cls, arguments: Arguments) -> Budget:
        only(arguments, "")
        text, *bounds = arguments.get("", ()) or ("",)
        budget = durations.read_rate(text)
        least, most = times({"": tuple(bounds)}, HOUR, 30 * DAY)
        if not least < most:
            raise FilterError(f"has the bounds {', '.join(bounds)}", "give the least interval and the most: 1h, 30d")
        return cls(budget, least, most)

    def plan_first(self, seen: VisitSeen, key: int) -> Plan:
        wait = max(spread(self.alike, key), self._slot - seen.at)
        return plan(NOTHING, seen, self._bound(wait), self.alike)

    def plan_next(self, past: Past, seen: VisitSeen, key: int = 0) -> Plan:
        if not past.visits and not seen.failed:
            return self.plan_first(seen, key)
        interval = self._interval(kept(past, seen, 0), seen.importance)
        return plan(past, seen, interval, interval)

    def longest(self, past: Past) -> float:
        return self.most

    def told(self, past: Past, seen: VisitSeen) -> None:
        self._lately.count_visit(seen.at)
        if not past.visits and not seen.failed:
            self._slot = max(self._slot, seen.at + self.least) + 1 / self._lately.budget
        if not seen.failed:
            self.census.count_page(past, kept(past, seen, 0), _bounded(seen.importance))

    def rate(self, share: float) -> float | None:
        return self.budget * min(max(share, 1e-9), 1.0)

    def settle(self, pages: int, share: float = 1.0) -> None:
        budget = self.budget * min(max(share, 1e-9), 1.0)
        self._lately.budget, self.early = budget, self._lately.within
        self.alike = self._bound(pages / budget)
        census = self.census
        if census.visits < FEWEST:
            return
        classes = census.classes()
        met = census.fresh + math.fsum(each.pages for each in classes)
        unmet = max(pages - met, 0) / max(self.alike, census.age)
        left = budget * max(met / max(pages, 1), 1) - unmet - census.fresh / self.alike
        self.price = price_of(classes, max(left, budget / 10), self.least, self.most)

    def _interval(self, past: Past, importance: float) -> float:
        if self.price is None or not past.watched:
            return self._bound(self.alike)
        changes_a_second = rate(past.changes, past.watched)
        best = best_interval(changes_a_second, _bounded(importance), self.price, self.least, self.most)
        if past.changes >= TOO_ALIKE and always_changed(past) and self.early:
            return min(best, self._bound(PROBE / changes_a_second))
        return best

    def _bound(self, seconds: float) -> float:
        return min(max(seconds, self.least), self.most)

    def __str__(self) -> str:
        bounds = map(durations.write, (self.least, self.most))
        return write(Call("budget", {"": (durations.write_rate(self.budget), *bounds)}))


def _bounded(importance: float) -> float:
    return min(max(importance, LEAST_IMPORTANCE), MOST_IMPORTANCE)
