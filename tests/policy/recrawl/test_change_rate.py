"""The estimated rate of change: beside the formula for even visits, and the likeliest rate for uneven ones."""

from __future__ import annotations

import math
import random
import statistics

import pytest

from scrapy_ubi.policy.recrawl import NOTHING, Past, VisitSeen
from scrapy_ubi.policy.recrawl.change_rate import first_change, rate
from scrapy_ubi.policy.recrawl.rule_contract import kept


def estimated(true: float, intervals: list[float], chance: random.Random) -> tuple[float, list[bool]]:
    """The estimate after visits at these intervals, and what they found."""
    past, at, found = kept(NOTHING, VisitSeen(1e9), 1), 1e9, []
    for interval in intervals:
        at += interval
        found.append(chance.random() < -math.expm1(-true * interval))
        past = kept(past, VisitSeen(at, found[-1]), 1)
    return rate(past.changes, past.watched), found


def likeliest(intervals: list[float], found: list[bool]) -> float:
    """The rate that solves the equation of Cho and Garcia-Molina for uneven visits."""

    def error(rate: float) -> float:
        pairs = list(zip(intervals, found, strict=True))
        waited = sum(interval for interval, changed in pairs if not changed)
        return sum(interval / math.expm1(min(rate * interval, 700)) for interval, changed in pairs if changed) - waited

    low, high = 1e-9, 1.0
    for _ in range(100):
        low, high = (low, (low + high) / 2) if error((low + high) / 2) < 0 else ((low + high) / 2, high)
    return low


@pytest.mark.parametrize("expected", [0.1, 0.3, 0.7, 1.5])
def test_for_even_visits_it_is_near_the_formula_with_its_bias_taken_away(expected: float) -> None:
    seed, visits, day = 5, 40, 86_400.0
    print("seed", seed)
    chance = random.Random(seed)
    ours, theirs = [], []
    for _ in range(300):
        found, changed = estimated(expected / day, [day] * visits, chance)
        ours.append(found * day)
        theirs.append(-math.log((visits - sum(changed) + 0.5) / (visits + 0.5)))
    assert statistics.mean(ours) == pytest.approx(expected, rel=0.1)
    assert statistics.mean(abs(one - two) for one, two in zip(ours, theirs, strict=True)) < 0.1 * expected


def test_for_uneven_visits_it_is_near_the_likeliest_rate() -> None:
    seed = 6
    print("seed", seed)
    chance = random.Random(seed)
    true, off = 1 / 86_400, []
    for _ in range(200):
        intervals = [86_400 * chance.choice([0.1, 0.5, 2.0, 4.0]) for _ in range(50)]
        found, changed = estimated(true, intervals, chance)
        off.append(found / likeliest(intervals, changed))
    assert statistics.mean(off) == pytest.approx(1.0, abs=0.1)
    assert statistics.stdev(off) < 0.25


def test_a_page_that_always_changes_is_found_to_be_fast_by_one_early_visit() -> None:
    past = Past(4, 3, 1_000_000, 86_400, 300_000)
    soon = kept(past, VisitSeen(1_000_000 + 600, True), 1)
    assert rate(soon.changes, soon.watched) >= math.log(3) / 601
    assert rate(*kept(past, VisitSeen(1_086_400, False), 1)[1::3]) < rate(past.changes, past.watched)


def test_a_page_that_never_changed_has_a_rate_that_goes_down() -> None:
    past, rates = kept(NOTHING, VisitSeen(1e9), 1), []
    for day in range(1, 50):
        past = kept(past, VisitSeen(1e9 + day * 86_400, False), 1)
        rates.append(rate(past.changes, past.watched))
    assert rates == sorted(rates, reverse=True) and rates[-1] > 0


def test_the_record_forgets_and_keeps_its_rate() -> None:
    past = Past(64, 30, 1_000_000, 3600, 200_000)
    then = kept(past, VisitSeen(1_003_600, True), 3600)
    assert then.visits < 40 and rate(then.changes, then.watched) == pytest.approx(rate(30, 200_000), rel=0.05)


def test_the_first_change_is_expected_in_the_middle_of_a_short_time_and_early_in_a_long_one() -> None:
    assert first_change(1e-9, 100.0) == pytest.approx(50.0)
    assert first_change(1.0, 1e6) == pytest.approx(1.0)
