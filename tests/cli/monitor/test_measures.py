"""The measures of UbiCrawler, on crawls small enough to compute by hand."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.agent.profile.profile import Profile
from scrapy_ubi.cli.monitor.measures import Balance, balance, expected_balance, measure, overhead, overlap
from scrapy_ubi.protocol.ring import Ring


def agent(name: str, capacity: float = 1.0, failed: dict[str, int] | None = None, **counts: int) -> Profile:
    return Profile(name, capacity=capacity, counts=counts, failed=failed or {}, seconds=10.0, pages_per_second=5.0)


def test_overlap_is_pages_fetched_again_per_unique_page() -> None:
    assert overlap(100, 100) == 0
    assert overlap(110, 100) == pytest.approx(0.1)
    assert overlap(0, 0) is None
    assert overlap(90, 100) is None  # counters of an earlier run were lost: not known, never negative


def test_overhead_is_urls_exchanged_per_page() -> None:
    assert overhead(250, 100) == 2.5
    assert overhead(5, 0) is None


def test_balance_by_hand() -> None:
    assert balance([(30, 1), (10, 1)]) == Balance(highest=1.5, deviation=0.5)
    assert balance([(30, 3), (10, 1)]) == Balance(highest=1.0, deviation=0.0)
    assert balance([]) is None
    assert balance([(0, 1), (0, 2)]) is None


@given(st.lists(st.tuples(st.integers(0, 1000), st.floats(0.1, 100)), min_size=1, max_size=20))
def test_balance_highest_is_at_least_fair(loads: list[tuple[int, float]]) -> None:
    found = balance(loads)
    if found is not None:
        assert found.highest >= 1 - 1e-9
        assert 0 <= found.deviation <= 2 * max(found.highest, 1)


@given(st.integers(1, 10**6), st.lists(st.floats(0.1, 100), min_size=1, max_size=20))
def test_balance_of_loads_in_proportion_to_capacity_is_perfect(unit: int, capacities: list[float]) -> None:
    found = balance([(unit * capacity, capacity) for capacity in capacities])
    assert found is not None
    assert found.highest == pytest.approx(1)
    assert found.deviation == pytest.approx(0, abs=1e-9)


def test_measure_sums_agents_and_merges_failures() -> None:
    of = measure(
        [
            agent("a", pages=65, done=60, unique=50, forwarded=90, hosts=6, failed={"http 404": 2}),
            agent("b", pages=45, done=50, unique=50, forwarded=20, hosts=4, failed={"http 404": 1, "timeout": 7}),
        ]
    )
    assert (of.totals["pages"], of.totals["unique"]) == (110, 100)
    assert of.overlap == pytest.approx(0.1)
    assert of.overhead == pytest.approx(1.0)
    assert of.balance_hosts == Balance(pytest.approx(1.2), pytest.approx(0.2))
    assert list(of.failed.items()) == [("timeout", 7), ("http 404", 3)]
    assert (of.pages_per_second, of.average_pages_per_second) == (10.0, 11.0)


def test_measure_of_the_dead_counts_what_they_did_but_not_what_they_had() -> None:
    of = measure([agent("a", pages=60, unique=60, hosts=10)], gone=[agent("b", pages=40, unique=35, hosts=10)])
    assert (of.totals["pages"], of.totals["unique"], of.totals["hosts"]) == (100, 60, 10)
    assert of.speeds["b"].now == 0


def test_measure_of_a_crawl_that_is_over_has_no_speed_now() -> None:
    assert measure([agent("a", pages=10)], working=False).pages_per_second == 0


def test_measure_of_nobody() -> None:
    of = measure([])
    assert (of.overlap, of.overhead, of.balance_pages, of.seconds) == (None, None, None, 0.0)


def test_the_balance_to_be_expected_is_that_of_the_ring_for_very_many_hosts() -> None:
    deviation, _ = expected_balance(1000, 200, 10**9)
    assert deviation == pytest.approx(0.04, abs=0.001)  # docs/explanation/at-scale.md measures 4.0 %
    assert expected_balance(1000, 800, 10**9)[0] == pytest.approx(deviation / 2, rel=0.01)
    few, spread = expected_balance(10, 200, 100)
    assert deviation < few < spread
    assert expected_balance(1, 200, 50) == (0.0, 0.0)


def test_a_ring_is_balanced_as_is_to_be_expected() -> None:
    ring = Ring.of({f"agent-{number}": 200 for number in range(64)})
    hosts = [f"h{number}.example" for number in range(20_000)]
    found = Counter(ring.owners(hosts))
    said = balance([(found[agent], 1.0) for agent in ring.agents])
    assert said is not None
    assert said.deviation == pytest.approx(expected_balance(64, 200, len(hosts))[0], rel=0.3)
