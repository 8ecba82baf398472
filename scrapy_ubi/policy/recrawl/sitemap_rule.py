"""`sitemap(1d, 1h, 30d)`: sitemaps say which pages have changed, where they have been right so far.

Rules of this module:

* Of a host whose sitemap is not believed, and of pages that none lists, visits are those of `adaptive`.
* Where it is believed, a page that it lists waits for `most`, until the sitemap says that it has changed: then it is
  due at once, but `least` behind its last visit.
* A sitemap is believed by its host's `Belief`: of the visits that compared a listed page, how often did it say what
  was found? Only what it says of *changes* counts. One that always says "today" is wrong each time that nothing
  changed, one that never says a thing is wrong at each change.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from scrapy_ubi.ground.untrusted.checks import is_count
from scrapy_ubi.policy.recrawl.intervals import DAY, HOUR, Adaptive, times
from scrapy_ubi.policy.recrawl.rule_contract import NEVER, Past, Plan, VisitSeen, plan
from scrapy_ubi.urls.filters.base import only
from scrapy_ubi.urls.filters.filter_text import Arguments

MOST_JUDGED = 64  # visits of a host, before older ones count half
ENOUGH = 3  # changes that were predicted, before anything is believed
RIGHT_FOR_WRONG = 4  # so many predictions have to be right for each that was wrong


class Belief(NamedTuple):
    """How often the sitemap of a host predicted a change that was found; and how often it said one that was none, or
    said nothing of one. It is kept with the host's notes, as the list of its numbers."""

    right: int = 0
    wrong: int = 0

    @property
    def holds(self) -> bool:
        """Whether the sitemap is believed."""
        return self.right >= max(ENOUGH, RIGHT_FOR_WRONG * self.wrong)

    def judged(self, past: Past, seen: VisitSeen, listed: float) -> Belief:
        """The belief after a visit of a page whose sitemap said, before it, that it was changed at `listed`."""
        predicted = listed > past.last
        if not past.visits or seen.failed or not (predicted or seen.changed):
            return self
        right, wrong = (self.right + 1, self.wrong) if predicted and seen.changed else (self.right, self.wrong + 1)
        return Belief(right // 2, wrong // 2) if right + wrong > MOST_JUDGED else Belief(right, wrong)

    def merged(self, other: Belief) -> Belief:
        """Of two beliefs the one that rests on more: in any order, any number of times, the same."""
        return max(self, other, key=lambda each: (each.right + each.wrong, each))


def read_belief(value: object) -> Belief:
    """A belief that came from outside; that of nothing known for what is none."""
    if isinstance(value, list | tuple) and len(value) == len(Belief._fields):
        right, wrong = value
        if is_count(right, MOST_JUDGED + 1) and is_count(wrong, MOST_JUDGED + 1):
            return Belief(right, wrong)
    return Belief()


class Sitemap(Adaptive):
    """`adaptive`, but that believed sitemaps say when."""

    name = "sitemap"

    @classmethod
    def from_arguments(cls, arguments: Arguments) -> Sitemap:
        only(arguments, "")
        return cls(*times(arguments, DAY, HOUR, 30 * DAY))

    def plan_next(self, past: Past, seen: VisitSeen, key: int = 0) -> Plan:
        usual = super().plan_next(past, seen, key)
        if not seen.believed or seen.failed or not past.visits:
            return usual
        return plan(past, seen, self.most, usual.past.interval)

    def longest(self, past: Past) -> float:
        return self.most

    def announced(self, past: Past, lastmod: float, at: float, *, believed: bool) -> int:
        if not believed or not past.visits or not past.last < lastmod <= at:
            return NEVER
        return math.ceil(max(at, past.last + self.least))
