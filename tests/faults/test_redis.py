"""A Redis that forgets everything: the agents send again what was under way.

Nobody is declared dead by it and nothing is fetched twice. An outage that is longer than the lease stops the crawl
until Redis is back; loads under way end within the grace that follows it (decision 0006).
"""

from __future__ import annotations

import time

import pytest

from tests.faults.conftest import FOUR, MakeGroup

pytestmark = [pytest.mark.processes, pytest.mark.faults]


def test_a_redis_that_was_flushed_or_replaced_costs_nothing(make_group: MakeGroup) -> None:
    group = make_group(latency=0.05)
    group.start(*FOUR)
    group.until_served(0.2)
    group.server.flush()
    group.until_settled(*FOUR)
    group.until_served(0.4)
    group.server.restart_empty()
    verdict = group.end().judge()
    assert all("Redis has forgotten everything" in text for text in verdict.logs.values())
    assert {name: counters["rejoins"] for name, counters in group.counters().items()} == dict.fromkeys(FOUR, 0)


def test_an_outage_that_is_longer_than_lease_and_failure_timeout_stops_the_crawl_and_costs_nothing(
    make_group: MakeGroup,
) -> None:
    group = make_group(latency=0.05)
    group.start(*FOUR)
    group.until_served(0.3)
    group.server.kill()
    group.until_quiet(5.5)  # s: longer than the failure timeout
    group.server.start()
    group.end().judge()
    counters = group.counters()
    assert {name: c["rejoins"] for name, c in counters.items()} == dict.fromkeys(FOUR, 0)
    assert all(c["fences"] for c in counters.values())


@pytest.mark.parametrize("away", [0.0, 4.0])
def test_a_redis_that_comes_back_from_its_file_with_former_lives_costs_nothing(
    make_group: MakeGroup, away: float
) -> None:
    """All agents were started again since it was written: the beats in it are of incarnations that are gone."""
    group = make_group(latency=0.05)
    group.start(*FOUR)
    group.until_served(0.1)
    group.until_settled(*FOUR)
    with group.server.client() as client:
        client.save()
    group.stop_all()
    group.start(*FOUR)
    group.until_served(0.3)
    group.server.kill()
    if away:
        group.until_quiet(away)
    try:
        group.server.start()
        verdict = group.end().judge()
    finally:
        group.server.forget_file()
    assert {name: counters["rejoins"] for name, counters in group.counters().items()} == dict.fromkeys(FOUR, 0)
    assert not any("Another process" in text or "lossy" in text for text in verdict.logs.values())


def test_connections_that_are_cut_all_the_time_neither_keep_a_crawl_from_its_beginning_nor_a_death_from_being_seen(
    make_group: MakeGroup,
) -> None:
    """By a proxy, or by a server that cuts idle ones, more often than the lease is long."""
    group = make_group(latency=0.05)
    last = [time.monotonic()]

    def cut(share: float) -> bool:
        if time.monotonic() - last[0] > 1.0:
            last[0] = time.monotonic()
            with group.server.client() as client:
                client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        return group.web.count() >= share * len(group.truth)

    group.start("a0", "a1")
    group.until(lambda: cut(0.3), "30 % served")
    group.kill("a1")
    group.until(lambda: cut(1.0), "all served")
    group.end().judge(lost=["a1"])
