"""The health of a host: excluded after failures in a row, for longer each time, then given up."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.policy.politeness.health import MOST_COUNT, MOST_PAUSE, Health, HealthVerdict, Policy, failed, read

POLICY = Policy(failures=5, pause=60.0, tries=3)


def run(policy: Policy, most: int = 1000) -> list[HealthVerdict]:
    """What follows from failures in a row, until the host is dead."""
    verdicts = [failed(Health(), policy)]
    while not verdicts[-1].dead and len(verdicts) < most:
        verdicts.append(failed(verdicts[-1].health, policy))
    return verdicts


def test_five_failures_in_a_row_exclude_a_host() -> None:
    verdicts = run(POLICY)
    assert [verdict.pause for verdict in verdicts[:5]] == [0, 0, 0, 0, 60]
    assert not any(verdict.dead for verdict in verdicts[:5])


def test_each_failure_after_that_excludes_it_for_twice_as_long_and_the_last_is_its_end() -> None:
    assert [(verdict.pause, verdict.dead) for verdict in run(POLICY)[4:]] == [
        (60, False),
        (120, False),
        (240, False),
        (0, True),
    ]


def test_a_pause_has_a_bound_but_is_never_shorter_than_the_first() -> None:
    assert max(verdict.pause for verdict in run(Policy(1, 1.0, 100))) == MOST_PAUSE
    assert {verdict.pause for verdict in run(Policy(1, 2 * MOST_PAUSE, 5))} == {2 * MOST_PAUSE, 0}


def test_counts_of_any_size_are_no_error_and_travel_on() -> None:
    """What another agent says may be more than anybody has ever counted."""
    verdict = failed(Health(MOST_COUNT, MOST_COUNT - 1), Policy(5, 60.0, 2 * MOST_COUNT))
    assert verdict == HealthVerdict(Health(MOST_COUNT, MOST_COUNT), MOST_PAUSE)
    assert read(verdict.health.value()) == verdict.health


def test_with_no_failures_to_count_no_host_is_ever_excluded() -> None:
    assert not any(verdict.pause or verdict.dead for verdict in run(Policy(0, 60.0, 3)))


def test_without_a_try_it_is_dead_at_once() -> None:
    assert [verdict.dead for verdict in run(Policy(2, 60.0, 0))] == [False, True]


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | st.text(), st.lists, max_leaves=5))
def test_what_another_agent_says_is_taken_or_not_and_never_an_error(value: object) -> None:
    health = read(value)
    assert 0 <= health.failures <= 1_000_000
    verdict = failed(health, POLICY)
    assert 0.0 <= verdict.pause <= MOST_PAUSE


def test_health_travels() -> None:
    health = Health(7, 3)
    assert read(json.loads(json.dumps(health.value()))) == health
    assert read([True, 1]) == read([1]) == read([-1, 0]) == Health()
