"""How often a large group reads beats."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.protocol.read_interval import A_LEASE, AT_ONCE, lease_wanted, reads_apart


@pytest.mark.parametrize(
    ("agents", "interval", "lease", "apart"),
    [
        (1, 1.0, 10.0, 0.0),
        (100, 1.0, 10.0, 0.0),
        (101, 1.0, 10.0, 2.0),
        (250, 1.0, 10.0, 3.0),
        (1000, 1.0, 10.0, 3.0),  # held down by the lease
        (1000, 1.0, 30.0, 10.0),
        (1000, 3.0, 15.0, 0.0),  # already as seldom as such a lease bears
        (1000, 0.1, 10.0, 1.0),
    ],
)
def test_reads_apart(agents: int, interval: float, lease: float, apart: float) -> None:
    assert reads_apart(agents, interval, lease) == pytest.approx(apart)


intervals, leases = st.floats(0.01, 60), st.floats(0.02, 600)


@given(st.integers(0, 5000), intervals, leases)
def test_a_lease_has_room_for_several_reads(agents: int, interval: float, lease: float) -> None:
    apart = reads_apart(agents, interval, lease)
    assert apart == 0.0 or apart >= 2 * interval * (1 - 1e-9)
    assert apart * A_LEASE <= lease * (1 + 1e-6)
    assert agents > AT_ONCE or apart == 0.0


@given(st.integers(AT_ONCE + 1, 5000), st.floats(0.01, 60))
def test_at_the_lease_wanted_an_interval_s_reads_are_as_many_as_those_of_a_hundred_agents(
    agents: int, interval: float
) -> None:
    apart = reads_apart(agents, interval, lease_wanted(agents, interval))
    assert agents * interval / apart <= AT_ONCE * (1 + 1e-6)
