"""Hosts on one address: who may be loaded from, and when it is the turn of the others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.agent.hosts.ip_politeness import IpPoliteness

IP = "192.0.2.1"


@pytest.fixture
def known() -> IpPoliteness:
    """Three hosts of one address, one of another."""
    addresses = IpPoliteness()
    for host in "abc":
        addresses.learn(host, IP)
    addresses.learn("other", "192.0.2.2")
    return addresses


def test_a_host_of_an_unknown_address_waits_for_nobody() -> None:
    addresses = IpPoliteness()
    addresses.taken("a", 10.0)
    assert addresses.turn("a", 10.0) == 10.0
    addresses.freed("a", 11.0, 1.0)


def test_while_one_is_loaded_from_the_others_wait_and_after_that_for_its_delay(known: IpPoliteness) -> None:
    known.taken("a", 10.0)
    assert known.turn("b", 10.0) > 10.0
    assert known.turn("other", 10.0) == 10.0
    known.freed("a", 11.0, 2.0)
    assert known.turn("b", 12.9) > 12.9
    assert known.turn("c", 13.0) == 13.0


def test_everybody_has_a_turn_of_its_own(known: IpPoliteness) -> None:
    known.taken("a", 10.0)
    known.freed("a", 11.0, 1.0)  # loads take a while
    known.taken("a", 12.0)
    turns = [known.turn(host, 12.0) for host in "bcb"]
    assert turns == sorted(set(turns))
    assert turns[0] > 12.0


def test_an_address_that_is_learned_during_the_load_is_free_after_it() -> None:
    addresses = IpPoliteness()
    addresses.taken("a", 10.0)
    addresses.learn("a", IP)
    addresses.learn("b", IP)
    addresses.freed("a", 11.0, 1.0)
    assert addresses.turn("b", 11.5) > 11.5
    assert addresses.turn("b", 12.0) == 12.0


def test_a_host_with_several_loads_at_once_neither_waits_nor_keeps_others_waiting() -> None:
    addresses = IpPoliteness({"several": 2, "one": 0}.__getitem__)
    for host in ("several", "one"):
        addresses.learn(host, IP)
    addresses.taken("several", 10.0)
    assert addresses.turn("one", 10.0) == 10.0
    addresses.freed("several", 11.0, 5.0)
    addresses.taken("one", 11.0)
    assert addresses.turn("several", 11.0) == 11.0
    addresses.freed("one", 12.0, 1.0)
    assert addresses.turn("one", 12.5) > 12.5


def test_a_host_that_moves_during_its_load_frees_the_address_it_came_from(known: IpPoliteness) -> None:
    known.taken("a", 10.0)
    known.learn("a", "192.0.2.9")
    known.freed("a", 11.0, 0.0)
    assert known.turn("b", 11.0) == 11.0


def test_what_is_known_is_bounded() -> None:
    addresses = IpPoliteness(most=20)
    addresses.learn("x", IP)
    addresses.taken("x", 0.0)
    for number in range(100):
        addresses.learn(f"h{number}", f"192.0.2.{number}")
        assert len(addresses) <= 20
    addresses.freed("x", 1.0, 0.0)
    assert addresses.addresses <= 21


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0.01, 5)), max_size=60), st.floats(0, 2))
def test_one_at_a_time_with_its_delay_between_and_nobody_waits_for_ever(
    steps: list[tuple[str, float]], delay: float
) -> None:
    addresses, now, ended = IpPoliteness(), 0.0, -10.0
    for host in "abc":
        addresses.learn(host, IP)
    for host, takes in steps:
        for _ in range(1000):
            turn = addresses.turn(host, now)
            if turn <= now:
                break
            now = turn
        else:
            raise AssertionError("it never has its turn")
        assert now >= ended + delay - 1e-9
        addresses.taken(host, now)
        assert addresses.turn("b", now) > now
        now = ended = now + takes
        addresses.freed(host, now, delay)
