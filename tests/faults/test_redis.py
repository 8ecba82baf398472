"""A Redis that forgets everything: the agents send again what was under way.

Nobody is declared dead by it and nothing is fetched twice, as long as it is back within the lease. An outage that is
longer cancels the loads under way (the fence); of these, such as the web had answered already are fetched again.
"""

from __future__ import annotations

import pytest

from .conftest import FOUR, MakeGroup

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
