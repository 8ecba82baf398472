"""How many loads at once a host bears: one more while it answers as fast as it can, half when it asks to slow down."""

from __future__ import annotations

import os
import time
from random import Random

import pytest

from scrapy_ubi.agent.hosts.load_pace import FADES, SLOWER, LoadPace, answered, read_pace, slowed


def answers(pace: LoadPace, *seconds: float, most: int = 8) -> LoadPace:
    for each in seconds:
        pace = answered(pace, each, most)
    return pace


def test_one_at_first_and_one_more_after_each_round() -> None:
    pace = LoadPace()
    assert pace.loads == 1
    for loads in (1, 2, 3, 4):
        assert pace.loads == loads
        pace = answers(pace, *[0.1] * (loads - 1))
        assert pace.loads == loads, "a round is as many responses as there may be loads at once"
        pace = answers(pace, 0.1)
    assert pace.loads == 5


def test_never_more_than_is_allowed() -> None:
    assert answers(LoadPace(), *[0.1] * 1000, most=8).loads == 8


def test_no_more_where_it_answers_more_slowly_than_it_can() -> None:
    pace = answers(LoadPace(), 0.1, 0.1, 0.1)
    assert pace.loads == 3
    assert answers(pace, *[0.1 * SLOWER * 1.1] * 3).loads == 3
    assert answers(pace, *[0.1 * SLOWER * 0.9] * 3).loads == 4


def test_the_best_is_forgotten_slowly() -> None:
    pace = answers(LoadPace(), 0.001)
    rounds = 0
    while answers(pace, *[0.1] * pace.loads).loads == pace.loads:
        pace = answers(pace, *[0.1] * pace.loads)
        rounds += 1
    assert 0.001 * FADES**rounds < 0.1 / SLOWER <= 0.001 * FADES ** (rounds + 2)


@pytest.mark.parametrize(("before", "after"), [(8, 4), (5, 2), (2, 1), (1, 1)])
def test_half_when_it_asks_to_slow_down(before: int, after: int) -> None:
    assert slowed(LoadPace(before, 0.1, 3, 0.5)) == LoadPace(after, 0.1)


def test_what_survives_is_the_number_and_the_best() -> None:
    pace = LoadPace(5, 0.123, 2, 0.3)
    assert read_pace(pace.value(), 8) == LoadPace(5, 0.123)
    assert read_pace(pace.value(), 3) == LoadPace(3, 0.123), "the setting is smaller now"


@pytest.mark.parametrize(
    "value", [None, 3, [], [1], [0, 0.1], [1.5, 0.1], [True, 0.1], [2, -1], [2, float("nan")], [2, "x"], {"a": 1}]
)
def test_what_does_not_hold_is_a_host_met_first(value: object) -> None:
    assert read_pace(value, 8) == LoadPace()


def test_it_finds_the_number_that_a_host_bears() -> None:
    """A host that does `capacity` things at once and asks to slow down beyond twice of that."""
    seed = int(os.environ.get("UBI_TEST_SEED") or time.time_ns() // 1_000_000)
    random, capacity, pace = Random(seed), 6, LoadPace()
    numbers = []
    for _ in range(3000):
        if pace.loads > 2 * capacity:
            pace = slowed(pace)
        else:
            pace = answered(pace, max(1.0, pace.loads / capacity) * random.uniform(0.09, 0.11), 100)
        numbers.append(pace.loads)
    later = numbers[1000:]
    assert capacity - 1 <= sum(later) / len(later) <= 2 * capacity, f"UBI_TEST_SEED={seed}"
    assert max(numbers) <= 2 * capacity + 1, f"UBI_TEST_SEED={seed}"
