"""How many loads of a host may be open at once: by the setting, and by what `auto` has noted with the host."""

from __future__ import annotations

import os
import time
from random import Random

import pytest

from scrapy_ubi.agent.hosts import host_concurrency
from scrapy_ubi.agent.hosts.host_concurrency import (
    FADES,
    PACE,
    SINGLE_PAGES,
    SLOWER,
    HostConcurrency,
    LoadPace,
    answered,
    concurrency_of,
    read_pace,
    slowed,
)
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.settings.loads_at_once import LoadsByHost, read_loads
from tests.agent.hosts.test_host_notes import HOST, OTHER, House


def made(house: House, value: object) -> HostConcurrency:
    return HostConcurrency(read_loads(value), house.hosts)


def test_nothing_is_counted_where_every_host_is_loaded_one_page_at_a_time() -> None:
    house = House()
    for wanted in (LoadsByHost(), read_loads({HOST: 1}), read_loads("auto(1)")):
        assert concurrency_of(UbiSettings(host_concurrency=wanted), house.hosts) is SINGLE_PAGES
    assert concurrency_of(UbiSettings(host_concurrency=read_loads({HOST: 2})), house.hosts).counts


def test_by_host_and_for_all_others() -> None:
    house = House()
    assert made(house, 8).limit(HOST) == 8
    assert [made(house, {HOST: 3}).limit(host) for host in (HOST, OTHER)] == [3, 0]
    assert [made(house, {HOST: 1, "*": 4}).limit(host) for host in (HOST, OTHER)] == [0, 4]


def test_auto_is_noted_with_the_host_when_the_number_changes() -> None:
    house = House()
    auto, state = made(house, "auto(8)"), house.state()
    assert auto.limit(HOST) == 1
    for began in range(1 + 2 + 1):
        auto.answered(HOST, 0.1, float(began))
    assert auto.limit(HOST) == 3
    assert house.hosts.get(state, PACE) == [3, 0.1]
    assert made(house, "auto(8)").limit(HOST) == 3, "another process, or another owner, goes on from there"
    assert made(house, "auto(2)").limit(HOST) == 2


def test_people_see_the_number_where_it_is_not_one() -> None:
    house = House()
    assert [made(house, {HOST: 3}).shown(host) for host in (HOST, OTHER)] == ["3", ""]
    assert made(house, "auto(8)").shown(HOST) == "1 of auto(8)"


def test_what_comes_with_a_handoff_counts() -> None:
    house = House()
    auto, state = made(house, "auto(8)"), house.state()
    auto.answered(HOST, 0.1, 0.0)
    house.hosts.put(state, PACE, [6, 0.2])
    assert auto.limit(HOST) == 6
    house.hosts.put(state, PACE, "nonsense")
    assert auto.limit(HOST) == 1


def test_loads_that_began_before_it_was_slowed_say_nothing_more() -> None:
    house = House()
    auto = made(house, "auto(8)")
    house.hosts.put(house.state(), PACE, [8, 0.1])
    for _ in range(8):
        auto.slow_down(HOST, began=10.0, now=11.0)
    assert auto.limit(HOST) == 4
    auto.answered(HOST, 0.1, began=10.5)
    auto.slow_down(HOST, began=11.5, now=12.0)
    assert auto.limit(HOST) == 2


def test_a_fixed_number_is_not_changed_by_what_a_host_says() -> None:
    house = House()
    fixed, state = made(house, {HOST: 8}), house.state()
    fixed.slow_down(HOST, 1.0, 2.0)
    fixed.answered(HOST, 0.1, 1.0)
    assert fixed.limit(HOST) == 8
    assert house.hosts.get(state, PACE) is None


def test_rounds_are_kept_of_so_many_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_concurrency, "MOST_ROUNDS", 2)
    house = House()
    auto, hosts = made(house, "auto(8)"), [f"h{number}.example" for number in range(5)]
    for host in hosts:
        house.state(host)
        auto.answered(host, 0.1, 0.0)
    assert auto.rounds == 2
    assert [auto.limit(host) for host in hosts] == [2] * 5, "it stands in the notes"


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
