"""What visits are worth: how fresh a page is that is visited so often, and which intervals make most of a budget.

A page that changes by a Poisson process of rate r and is visited each t seconds is as it was when visited for
(1 - exp(-rt)) / rt of the time: its *freshness* (Cho and Garcia-Molina 2003). More visits of it gain less and less. In
the best plan of many pages under one budget of visits a second the gain of one more visit, times the importance of the
page, is the same for all pages: the *price* of a visit (a Lagrange multiplier). So each page's interval follows from
its own rate and that one number, and a page whose visits gain less than the price waits as long as it may: pages that
change too fast are not worth visiting. Azar, Horvitz, Lubetzky, Peres and Shahaf (2018) show the same for visits at
random times; visits at even ones are worth more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

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
