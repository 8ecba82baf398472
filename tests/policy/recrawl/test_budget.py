"""What a budget of visits is worth, by benchmarks/freshness.py in small; and what its price is made of."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.policy.recrawl import NOTHING, Past, VisitSeen, read_recrawl
from scrapy_ubi.policy.recrawl.budget import (
    FEWEST,
    Budget,
    Class,
    best_interval,
    changes_worth,
    freshness,
    gain,
    price_of,
)

DAY, HOUR = 86_400.0, 3600.0
BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import freshness as module

    yield module
    sys.modules.pop("freshness")


@given(st.floats(1e-9, 0.999999))
def test_changes_worth_is_the_inverse_of_gain(part: float) -> None:
    assert gain(changes_worth(part)) == pytest.approx(part, rel=1e-4, abs=1e-9)


@given(st.lists(st.floats(0.01, 10.0), min_size=1, max_size=8), st.floats(1.0, 10.0), st.integers(0, 100))
def test_no_other_plan_of_as_many_visits_is_fresher(each_day: list[float], each: float, number: int) -> None:
    rates, loads = [rate / DAY for rate in each_day], each * len(each_day) / DAY
    classes = [Class(1, rate) for rate in rates]
    price = price_of(classes, loads, 1.0, 1e12)
    best = [best_interval(rate, 1.0, price, 1.0, 1e12) for rate in rates]
    spent = math.fsum(1 / interval for interval in best)
    assert spent == pytest.approx(loads, rel=0.5)  # pages that are just worth visits or not go together
    loads = spent
    ours = math.fsum(map(freshness, rates, best))
    # all alike, and one that takes a part of the visits of one page for another
    assert ours >= math.fsum(freshness(rate, len(rates) / loads) for rate in rates) - 1e-3
    visits = [1 / interval for interval in best]
    giver, taker = number % len(rates), (number // len(rates)) % len(rates)
    moved = visits[giver] / 10
    visits[giver] -= moved
    visits[taker] += moved
    assert (
        ours
        >= math.fsum(freshness(rate, 1 / max(many, 1e-12)) for rate, many in zip(rates, visits, strict=True)) - 1e-3
    )


@pytest.mark.parametrize("web", ["lognormal", "log-uniform", "exponential", "two kinds", "pareto"])
@pytest.mark.parametrize("rule", ["budget({pages}/d, 1h, 30d)", "budget({many}/d, 10m, 30d)"])
def test_a_budget_is_fresher_than_uniform_and_near_the_optimum(bench: ModuleType, web: str, rule: str) -> None:
    seed = 11
    print("seed", seed)
    found = bench.result(rule, bench.web(bench.DISTRIBUTIONS[web], 60, seed), seed, learning=20.0, days=30.0)
    assert found.rule >= found.uniform - 0.005, found
    assert found.rule >= 0.95 * found.optimum, found
    assert found.loads <= (1.1 if "{pages}" in rule else 5.5), found


def test_until_something_is_known_all_pages_share_alike() -> None:
    rule = Budget(1000 / HOUR, HOUR, 30 * DAY)
    rule.settle(24_000)
    assert rule.alike == DAY
    past = rule.plan_first(VisitSeen(1e9), 7).past
    assert rule.plan_next(past, VisitSeen(1e9 + DAY, False)).due == 1e9 + 2 * DAY
    rule.settle(24_000, share=0.5)  # of two agents each has half of the pages, and half of the budget
    assert rule.alike == 2 * DAY


def told(rule: Budget, pages: int, changed: bool, at: float = 1e9) -> list[Past]:
    pasts = []
    for page in range(pages):
        past = rule.plan_first(VisitSeen(at), page).past
        rule.told(NOTHING, VisitSeen(at))
        for visit in range(1, 4):
            seen = VisitSeen(at + visit * DAY, changed)
            rule.told(past, seen)
            past = rule.plan_next(past, seen, page).past
        pasts.append(past)
    return pasts


def test_pages_are_counted_once_however_often_they_are_visited() -> None:
    rule = Budget(100 / HOUR, HOUR, 30 * DAY)
    told(rule, 100, False)
    assert sum(each.pages for each in rule.census.classes()) == 100
    rule.settle(100)
    assert rule.price == 0.0  # 100 visits an hour are enough to visit 100 pages each hour


def test_a_restart_begins_with_what_it_meets_and_does_not_overspend() -> None:
    before = Budget(10 / HOUR, HOUR, 30 * DAY)
    pasts = told(before, FEWEST, False)
    before.settle(FEWEST)
    after = Budget(10 / HOUR, HOUR, 30 * DAY)
    after.settle(FEWEST)
    seen = VisitSeen(1e9 + 4 * DAY, False)
    assert after.price is None
    assert after.plan_next(pasts[0], seen).due - seen.at == FEWEST / (10 / HOUR)
    for past in pasts:
        after.told(past, seen)
    after.settle(FEWEST)
    assert before.price is not None and after.price == pytest.approx(before.price, rel=0.7)


def test_important_pages_are_visited_more_often() -> None:
    rule = read_recrawl("budget(20/h, 1h, 30d)")
    assert isinstance(rule, Budget)
    pasts = told(rule, FEWEST, False)
    rule.settle(FEWEST * 10)
    waits = [
        rule.plan_next(pasts[0], VisitSeen(1e9 + 4 * DAY, False, importance=importance)).due
        for importance in (0.1, 1.0, 10.0)
    ]
    assert waits == sorted(waits, reverse=True) and waits[0] > waits[-1]


def test_a_page_that_always_changed_is_tried_early_once_and_then_left_alone() -> None:
    rule = Budget(200 / DAY, HOUR, 30 * DAY)
    told(rule, FEWEST, False)
    rule.settle(FEWEST)
    rule.early = True  # as if those visits had been within the budget
    at, plan = 1e9, rule.plan_first(VisitSeen(1e9), 3)
    waits = []
    for _ in range(12):
        at += max(plan.due - at, 1.0)
        plan = rule.plan_next(plan.past, VisitSeen(at, True), 3)
        waits.append(plan.due - at)
    assert min(waits) <= 2 * HOUR  # to see whether it changes so fast
    assert waits[-1] <= 30 * DAY + 1
