"""The lease: until when fetches may start."""

from __future__ import annotations

from scrapy_ubi.protocol.lease import Lease

LEASE = 10.0


def test_lease_tells_whether_a_beat_sent_later_was_acknowledged() -> None:
    lease = Lease(LEASE)
    assert not lease.heard_since(99.0), "nobody was told of this agent yet"
    lease.acknowledged(100.0)
    assert lease.heard_since(99.0) and not lease.heard_since(100.0)


def test_lease_holds_for_its_time_from_the_sending_of_the_beat() -> None:
    lease = Lease(LEASE)
    assert not lease.holds(100.0), "nobody was told of this agent yet"
    lease.acknowledged(100.0)
    assert lease.holds(100.0)
    assert lease.holds(100.0 + LEASE - 0.001)
    assert not lease.holds(100.0 + LEASE)
    assert not lease.torn


def test_loads_under_way_outlast_the_lease_by_its_grace() -> None:
    lease = Lease(LEASE, grace=0.5)
    assert lease.lost(100.0)
    lease.acknowledged(100.0)
    assert not lease.lost(100.0 + LEASE) and not lease.holds(100.0 + LEASE)
    assert lease.lost(100.5 + LEASE)
    lease.acknowledged(100.4 + LEASE)
    assert (lease.gaps, lease.losses) == (1, 0)
    lease.acknowledged(101.0 + 2 * LEASE)
    assert (lease.gaps, lease.losses) == (2, 1)


def test_a_beat_in_time_prolongs_the_lease() -> None:
    lease = Lease(LEASE)
    for number in range(5):
        lease.acknowledged(100.0 + number * LEASE)
        assert lease.holds(100.0 + number * LEASE + 1)
    assert not lease.torn
    assert lease.gaps == 0


def test_a_gap_outlasts_the_next_beat_until_it_is_mended() -> None:
    lease = Lease(LEASE)
    lease.acknowledged(100.0)
    lease.acknowledged(100.5 + LEASE)
    assert lease.torn
    assert not lease.holds(101.0 + LEASE)
    lease.acknowledged(101.5 + LEASE)
    assert not lease.holds(101.5 + LEASE)
    lease.mend(lease.gaps)
    assert not lease.torn
    assert lease.holds(101.6 + LEASE)
    assert not lease.holds(101.5 + 2 * LEASE), "mending does not prolong it"


def test_mending_one_gap_does_not_mend_the_next() -> None:
    lease = Lease(LEASE)
    for sent in (100.0, 200.0, 300.0):
        lease.acknowledged(sent)
    assert lease.gaps == 2
    lease.mend(1)
    assert lease.torn
    assert not lease.holds(300.0)
    lease.mend(2)
    assert lease.holds(300.0)
