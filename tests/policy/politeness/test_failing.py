"""Hosts that answer with errors: rounds, rests, pages that are spared, and the end."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import count, cycle, islice, repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.policy.politeness.failing import MOST_PAGES, SHORT_RESTS, Consequence, Streak, after_error, read
from scrapy_ubi.policy.politeness.health import MOST_COUNT, MOST_PAUSE, Policy

POLICY = Policy(failures=5, pause=64.0, tries=3)


def run(pages: Iterable[int], policy: Policy = POLICY, streak: Streak = Streak()) -> list[Consequence]:  # noqa: B008
    """What follows from errors of these pages in a row, until the host is given up."""
    verdicts = []
    for page in islice(pages, 1000):
        verdicts.append(after_error(streak, page, policy))
        streak = verdicts[-1].streak
        if verdicts[-1].ended:
            break
    return verdicts


def pauses(verdicts: list[Consequence]) -> list[float]:
    return [verdict.pause for verdict in verdicts if verdict.pause]


def test_errors_of_five_pages_let_a_host_rest_for_twice_as_long_each_time_until_it_is_given_up() -> None:
    verdicts = run(count())
    assert pauses(verdicts) == [1, 2, 4, 8, 16, 32, 64, 128, 256]
    assert len(verdicts) == 5 * 10 and verdicts[-1] == Consequence(Streak(9), ended=True, spared=True)
    assert [number for number, verdict in enumerate(verdicts) if verdict.pause] == list(range(4, 49, 5))


def test_one_page_that_always_fails_is_no_streak_and_keeps_none_of_its_retries() -> None:
    assert set(run(repeat(7))) == {Consequence(Streak(pages=(7,)))}
    assert not any(verdict.spared or verdict.pause for verdict in run(cycle([1, 2, 3, 4])))


def test_from_the_first_rest_on_pages_are_spared_once_a_round() -> None:
    said = [verdict.spared for verdict in run([1, 2, 3, 4, 5, 1, 1, 2, 1, 3, 4, 5, 5, 1])]
    assert said == [False] * 4 + [True] + [True, False, True, False, True, True, True] + [True, True]


def test_a_streak_ends_with_any_other_answer() -> None:
    """Whoever keeps it forgets it then."""
    assert run([1, 2, 3, 4])[-1].streak == Streak(pages=(1, 2, 3, 4))
    assert pauses(run([5, 6, 7, 8], streak=Streak())) == []


def test_few_pages_that_are_left_use_up_their_retries() -> None:
    verdicts = run(cycle([1, 2]), streak=Streak(rests=3))
    assert [verdict.spared for verdict in verdicts[:6]] == [True, True, False, False, False, False]


@pytest.mark.parametrize(("tries", "rests"), [(0, [1, 2]), (3, [1, 2, 4]), (4, [1, 2, 4, 8])])
def test_a_host_that_is_gone_rests_after_each_load_and_is_given_up_soon(tries: int, rests: list[float]) -> None:
    verdicts = run(repeat(1), Policy(5, 64.0, tries), Streak(gone=True))
    assert pauses(verdicts) == rests and len(verdicts) == len(rests) + 1
    assert verdicts[-1].ended and not any(verdict.spared for verdict in verdicts)
    assert verdicts[-2].streak.gone


@pytest.mark.parametrize(
    ("policy", "loads", "rests"),
    [
        (Policy(0, 64.0, 3), 1000, 0),
        (Policy(1, 64.0, 3), 10, 9),
        (Policy(2, 64.0, 0), 2 * (SHORT_RESTS + 1), SHORT_RESTS),
        (Policy(1_000_000, 64.0, 0), MOST_PAGES * (SHORT_RESTS + 1), SHORT_RESTS),
        (Policy(1, 0.0, 3), 10, 0),
    ],
)
def test_policies(policy: Policy, loads: int, rests: int) -> None:
    verdicts = run(count(), policy)
    assert (len(verdicts), len(pauses(verdicts))) == (loads, rests)
    assert verdicts[-1].ended is bool(policy.failures)


def test_a_rest_has_a_bound_but_may_be_as_long_as_the_policy_wants() -> None:
    assert max(pauses(run(count(), Policy(1, 64.0, 100)))) == MOST_PAUSE
    assert max(pauses(run(count(), Policy(1, 2 * MOST_PAUSE, 9)))) == 2 * MOST_PAUSE


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | st.text(), st.lists, max_leaves=5))
def test_what_another_agent_says_is_taken_or_not_and_never_an_error(value: object) -> None:
    streak = read(value)
    if streak is not None:
        assert 0 <= after_error(streak, 1, POLICY).pause <= MOST_PAUSE


def test_a_streak_travels() -> None:
    streak = run([2**64 - 1, 2, 3])[-1].streak
    assert streak.pages == (2**32 - 1, 2, 3)
    assert read(json.loads(json.dumps(streak.value()))) == streak
    assert read([MOST_COUNT + 5, 1]) == Streak(MOST_COUNT, True)
    assert read([1]) is read([1, 0, -1]) is read([True, 0]) is read([0] * (MOST_PAGES + 3)) is None
