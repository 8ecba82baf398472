"""What each rule says: its intervals, its bounds whatever it is told, and when it ends."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.policy.recrawl import NEVER, NOTHING, Past, Rule, VisitSeen, read_past, read_recrawl
from scrapy_ubi.policy.recrawl.change_rate import MOST_VISITS
from scrapy_ubi.policy.recrawl.rule_contract import LATEST, kept

HOUR, DAY = 3600, 86_400
NOW = 1_800_000_000.0
BOUNDS = {
    "every(1d)": (DAY / 2, DAY),
    "adaptive(1d, 1h, 30d)": (HOUR, 30 * DAY),
    "nutch": (60, 365 * DAY),
    "stormcrawler": (HOUR, 14 * DAY),
    "budget(100/h, 1h, 30d)": (HOUR, 30 * DAY),
    "sitemap(1d, 1h, 30d)": (HOUR, 30 * DAY),
    "new(1d)": (DAY / 2, DAY),
}

times = st.integers(0, LATEST - 1)
counts = st.integers(1, MOST_VISITS)
pasts = st.one_of(
    st.just(NOTHING),
    st.builds(
        lambda visits, part, *rest: Past(visits, min(part, visits - 1), *rest), counts, counts, times, times, times
    ),
)
sights = st.builds(
    VisitSeen,
    st.floats(1.0, 1e11),
    st.booleans(),
    st.floats(0.0, 1e11),
    st.just(False),
    st.booleans(),
    st.floats(1e-9, 1e9),
    st.booleans(),
)


def rule_of(text: str) -> Rule:
    rule = read_recrawl(text)
    assert rule is not None
    return rule


def visits(rule: Rule, *changes: bool, at: float = NOW, **seen: Any) -> list[int]:
    """The seconds that a page waits behind each visit, from the second one on."""
    plan = rule.plan_first(VisitSeen(at), 7)
    waits = []
    for changed in changes:
        at = float(plan.due)
        plan = rule.plan_next(plan.past, VisitSeen(at, changed, **seen), 7)
        waits.append(round(plan.due - at))
    return waits


@pytest.mark.parametrize("text", BOUNDS)
@given(past=pasts, seen=sights, key=st.integers(0, 2**64 - 1), pages=st.integers(0, 10**9))
def test_bounds_hold_whatever_a_rule_is_told(text: str, past: Past, seen: VisitSeen, key: int, pages: int) -> None:
    rule, (least, most) = rule_of(text), BOUNDS[text]
    for _ in range(2):
        for plan in (rule.plan_first(seen, key), rule.plan_next(past, seen, key)):
            assert least <= plan.due - seen.at + 1e-4 and plan.due - seen.at <= most + 1
            assert plan.due - seen.at <= max(rule.longest(plan.past), rule.longest(past)) + 1
            assert read_past(list(plan.past)) == plan.past or max(plan.past) >= LATEST
        rule.told(past, seen)
        rule.settle(pages)


@pytest.mark.parametrize("text", BOUNDS)
@given(past=pasts, seen=sights, key=st.integers(0, 2**64 - 1))
def test_a_rule_says_the_same_to_the_same(text: str, past: Past, seen: VisitSeen, key: int) -> None:
    assert rule_of(text).plan_next(past, seen, key) == rule_of(text).plan_next(past, seen, key)


@pytest.mark.parametrize("text", BOUNDS)
def test_the_first_due_times_of_a_host_are_spread(text: str) -> None:
    due = sorted(rule_of(text).plan_first(VisitSeen(NOW), key * 4).due for key in range(1000))
    width = due[-1] - due[0]
    assert width > 0.4 * (due[-1] - NOW)
    tenths = [sum(1 for each in due if tenth <= (each - due[0]) * 10 / (width + 1) < tenth + 1) for tenth in range(10)]
    assert min(tenths) > 60, tenths


def test_adaptive_halves_and_grows_between_its_bounds() -> None:
    rule = rule_of("adaptive(1d, 1h, 2d)")
    assert visits(rule, True, True, True, True, True, True) == [12 * HOUR, 6 * HOUR, 3 * HOUR, 5400, HOUR, HOUR]
    assert visits(rule, False, False, False) == [1.5 * DAY, 2 * DAY, 2 * DAY]


def test_nutch_and_stormcrawler_have_their_factors() -> None:
    assert visits(rule_of("nutch"), False, True) == [42 * DAY, round(33.6 * DAY)]
    assert visits(rule_of("stormcrawler"), False, True) == [1.5 * DAY, 0.75 * DAY]


def test_nutch_shifts_towards_the_change_that_the_page_tells() -> None:
    past = Past(3, 1, int(NOW - 30 * DAY), 30 * DAY, 60 * DAY)
    plan = rule_of("nutch").plan_next(past, VisitSeen(NOW, True, lastmod=NOW - 10 * DAY))
    assert plan.due - NOW == pytest.approx(24 * DAY - 3 * DAY, abs=1) and plan.past.interval == 24 * DAY
    still = rule_of("nutch").plan_next(past, VisitSeen(NOW, False, lastmod=NOW - 100 * DAY))  # as it was for 100 days
    assert still.past.interval == 100 * DAY and still.due - NOW == pytest.approx(70 * DAY, abs=1)


def test_a_visit_that_failed_changes_no_interval_and_counts_for_nothing() -> None:
    past = Past(5, 2, int(NOW - DAY), 2 * DAY, 9 * DAY)
    for text, wait in (("adaptive", 2 * DAY), ("stormcrawler", 2 * HOUR), ("every(1d)", DAY)):
        plan = rule_of(text).plan_next(past, VisitSeen(NOW, failed=True))
        assert plan.due - NOW == wait
        assert plan.past[:3] == past[:3] and plan.past.watched == past.watched


def test_new_visits_lists_again_and_never_a_page_with_items() -> None:
    rule = rule_of("new(1d)")
    assert rule.plan_first(VisitSeen(NOW, items=True), 7).due == NEVER
    plan = rule.plan_first(VisitSeen(NOW), 7)
    assert NOW < plan.due <= NOW + DAY
    assert rule.plan_next(plan.past, VisitSeen(plan.due)).due == plan.due + DAY
    assert rule.plan_next(plan.past, VisitSeen(plan.due, items=True)).due == NEVER


def test_a_rule_is_never_early_and_a_second_late_at_most() -> None:
    assert rule_of("every(1d)").plan_next(Past(2, 0, int(NOW), DAY, DAY), VisitSeen(NOW + 0.25)).due == NOW + DAY + 1


@given(st.lists(st.tuples(st.floats(1, 1e7), st.booleans(), st.booleans()), max_size=200))
def test_a_record_stays_small_and_whole(seen: list[tuple[float, bool, bool]]) -> None:
    past, at = NOTHING, NOW
    for wait, changed, failed in seen:
        at += wait
        past = kept(past, VisitSeen(at, changed, failed=failed), 1)
    assert read_past(list(past)) == past and past.visits <= MOST_VISITS


def test_records_from_outside_are_judged_whole() -> None:
    assert read_past([3, 1, 100, 5, 10]) == Past(3, 1, 100, 5, 10)
    for wrong in (None, [], [1, 2, 3], [1, 1, 0, 0, 0], [-1, 0, 0, 0, 0], [1.0, 0, 0, 0, 0], [True, 0, 0, 0, 0]):
        assert read_past(wrong) is None, wrong
    for wrong in ([MOST_VISITS + 1, 0, 0, 0, 0], [1, 0, LATEST, 0, 0], [1, 0, 0, math.inf, 0], [1, 0, 0, 0, "5"]):
        assert read_past(wrong) is None, wrong
