"""How fresh each rule of UBI_RECRAWL keeps a synthetic web, beside equal intervals and the best plan for known rates.

    python benchmarks/freshness.py [--pages 200] [--days 120] [--learning 60] [--seeds 3] [--rules 'every(1d)' ...]

Each page of the web changes by a Poisson process of a rate of its own; the rates are drawn from one of several
distributions. Time is simulated: a page is visited when the rule says that it is due, the rule is told whether it has
changed, as a crawl would tell it. Freshness is the part of the time that a page is as it was when it was visited last,
averaged over pages: its expectation is integrated, only what visits find is drawn. What is measured begins when the
learning time is over. *uniform*: all pages at one interval, with as many loads as the rule made. *optimum*: the best
intervals for these rates, if they were known, with as many loads (`policy/recrawl/budget.py`).
"""

from __future__ import annotations

import argparse
import heapq
import math
import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

from scrapy_ubi.frontier.visit_pace import LATE
from scrapy_ubi.policy.recrawl import NOTHING, Past, Rule, VisitSeen, read_recrawl
from scrapy_ubi.policy.recrawl.budget import Class, best_interval, freshness, price_of

DAY = 86_400.0
SETTLED = 3600.0  # s between two calls of settle()
ENDLESS = 1e6 * DAY

Draw = Callable[[random.Random], float]

# Changes a day of a page.
DISTRIBUTIONS: dict[str, Draw] = {
    "lognormal": lambda chance: chance.lognormvariate(0.0, 1.5),
    "log-uniform": lambda chance: 10 ** chance.uniform(-2.0, math.log10(24)),
    "exponential": lambda chance: chance.expovariate(1.0) + 1e-4,
    "two kinds": lambda chance: 12.0 if chance.random() < 0.2 else 1 / 30,
    "pareto": lambda chance: min(0.05 * chance.paretovariate(0.8), 500.0),
}
RULES = (
    "every(1d)",
    "adaptive(1d, 1h, 30d)",
    "nutch",
    "budget({few}/d, 1h, 90d)",
    "budget({pages}/d, 1h, 30d)",
    "budget({many}/d, 10m, 30d)",
)  # of `pages` pages; `few` and `many` are a fifth and five times as much


def filled(rule: str, pages: int) -> str:
    """The text of a rule for so many pages."""
    return rule.format(few=pages // 5, pages=pages, many=5 * pages)


class Result(NamedTuple):
    """Freshness from the end of the learning time on, and the loads of a page a day."""

    rule: float
    uniform: float
    optimum: float
    loads: float


def web(draw: Draw, pages: int, seed: int) -> list[float]:
    """The rates of the pages, a second."""
    chance = random.Random(f"web {seed}")
    return [draw(chance) / DAY for _ in range(pages)]


class Run:
    """A crawl of this web by this rule."""

    def __init__(self, rule: Rule, rates: Sequence[float], seed: int) -> None:
        self.rule, self.rates = rule, rates
        self.visits = 0
        self._fresh = 0.0  # seconds, of all pages
        self._chance = random.Random(f"visits {seed}")
        self._pasts: list[Past] = [NOTHING] * len(rates)
        self._visited = [0.0] * len(rates)  # when
        self._counted = [0.0] * len(rates)  # fresh time up to then is in _fresh
        self._settled = self._free = 0.0  # when there was a settle, and from when on there may be a next visit again
        self._met = 0  # pages that were visited: an agent knows of no others
        self._due: list[tuple[float, int]] = [(1.0 + page * DAY / len(rates), page) for page in range(len(rates))]

    def until(self, end: float) -> None:
        """Go on to this time."""
        while self._due[0][0] < end:
            at, page = self._due[0]
            if at - self._settled >= SETTLED:
                self._settled = at
                self.rule.settle(self._met)
            rate = self.rule.rate(1.0)
            if rate is not None and self._visited[page]:
                slot = max(self._free, at - LATE / rate)
                self._free, at = slot + 1 / rate, max(at, slot)
            self._met += not self._visited[page]
            heapq.heapreplace(self._due, (self._visit(page, at), page))

    def _visit(self, page: int, at: float) -> float:
        past, rate = self._pasts[page], self.rates[page]
        changed = self._chance.random() < -math.expm1(-rate * (at - self._visited[page]))
        seen = VisitSeen(at, changed)
        plan = self.rule.plan_next(past, seen, page)
        self.rule.told(past, seen)
        self._count(page, at)
        self._pasts[page], self._visited[page], self._counted[page] = plan.past, at, at
        self.visits += 1
        return plan.due

    def _count(self, page: int, at: float) -> None:
        """The expected fresh time of the page since it was counted last."""
        if self._visited[page]:
            rate, begin, visited = self.rates[page], self._counted[page], self._visited[page]
            self._fresh += (math.exp(-rate * (begin - visited)) - math.exp(-rate * (at - visited))) / rate

    def measure(self, begin: float, end: float) -> tuple[float, int]:
        """Freshness and visits between these times."""
        self.until(begin)
        self._count_all(begin)
        self._fresh, visits = 0.0, self.visits
        self.until(end)
        self._count_all(end)
        return self._fresh / ((end - begin) * len(self.rates)), self.visits - visits

    def _count_all(self, at: float) -> None:
        for page in range(len(self.rates)):
            self._count(page, at)
            self._counted[page] = at


def uniform(rates: Sequence[float], loads: float) -> float:
    """The freshness of pages of these rates, each loaded as often: so many loads of all a second."""
    return math.fsum(freshness(rate, len(rates) / loads) for rate in rates) / len(rates)


def optimum(rates: Sequence[float], loads: float) -> float:
    """The highest freshness that so many loads of all a second can give, by bisection for the price of a visit."""
    price = price_of([Class(1, rate) for rate in rates], loads, 1.0, ENDLESS)
    intervals = [best_interval(rate, 1.0, price, 1.0, ENDLESS) for rate in rates]
    return math.fsum(map(freshness, rates, intervals)) / len(rates)


def result(text: str, rates: Sequence[float], seed: int, learning: float, days: float) -> Result:
    """What this rule does on the web of these rates."""
    rule = read_recrawl(filled(text, len(rates)))
    assert rule is not None
    fresh, visits = Run(rule, rates, seed).measure(learning * DAY, days * DAY)
    loads = visits / ((days - learning) * DAY)
    return Result(fresh, uniform(rates, loads), optimum(rates, loads), loads * DAY / len(rates))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pages", type=int, default=200)
    parser.add_argument("--days", type=float, default=120.0)
    parser.add_argument("--learning", type=float, default=60.0, help="days before what is measured begins")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rules", nargs="+", default=list(RULES))
    parser.add_argument("--webs", nargs="+", default=list(DISTRIBUTIONS), choices=list(DISTRIBUTIONS))
    options = parser.parse_args()
    print(
        f"{options.pages} pages, {options.days:g} days, measured after {options.learning:g}; seeds 1 to {options.seeds}"
    )
    print("| web | rule | loads a page a day | freshness | uniform | optimum | of the optimum |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in options.webs:
        for text in options.rules:
            found = [
                result(text, web(DISTRIBUTIONS[name], options.pages, seed), seed, options.learning, options.days)
                for seed in range(1, options.seeds + 1)
            ]
            fresh, even, best, loads = (math.fsum(column) / len(found) for column in zip(*found, strict=True))
            lowest = min(each.rule / each.optimum for each in found)
            shown = filled(text, options.pages)
            print(
                f"| {name} | `{shown}` | {loads:.2f} | {fresh:.3f} | {even:.3f} | {best:.3f} | "
                f"{fresh / best:.1%} (lowest {lowest:.1%}) |",
                flush=True,
            )


if __name__ == "__main__":
    main()
