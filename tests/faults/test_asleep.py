"""Agents that were asleep for longer than their lease: what they were loading is loaded once, where no other agent
holds them dead (decision 0137)."""

from __future__ import annotations

import pytest

from tests.faults.conftest import MakeGroup
from tests.support.group import Group

pytestmark = [pytest.mark.processes, pytest.mark.faults]

LONG = 8.0  # s: longer than the failure time-out of the project, 5 s
SMALL = {"hosts": 20, "pages": 200}


@pytest.mark.parametrize("redis", [False, True], ids=["no_redis", "redis"])
def test_a_callback_that_holds_the_loop_of_a_lone_agent_costs_nothing(make_group: MakeGroup, redis: bool) -> None:
    """Without a Redis beats come from the loop that the callback holds: the lease ends."""
    group = make_group(latency=0.1, **SMALL)
    more = {} if redis else {"UBI_REDIS_URL": None}
    group.start("a0", spider="sleeper", arguments={"seconds": str(LONG)}, **more)
    verdict = group.end().judge()
    assert "awake" in verdict.logs["a0"]


def stand_still(group: Group, *names: str) -> None:
    """These processes are stopped, and go on when their lease has long ended."""
    for name in names:
        group.pause(name)
    group.until_quiet(LONG)
    for name in names:
        group.resume(name)


@pytest.mark.parametrize("names", [("a0",), ("a0", "a1")], ids=["alone", "both"])
def test_all_agents_stand_still_and_it_costs_nothing(make_group: MakeGroup, names: tuple[str, ...]) -> None:
    group = make_group(latency=0.1, **SMALL)
    group.start_together(*names)
    group.until_served(0.2)
    stand_still(group, *names)
    group.end().judge()
    counters = group.counters()
    assert all(one["fences"] and not one["rejoins"] for one in counters.values()), counters
