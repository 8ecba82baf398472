"""Which proxy a host has, what a ban is, and which proxies rest."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.policy.politeness.proxies import (
    MOST_BAN,
    MOST_BANS,
    MOST_FAILED,
    MOST_REST,
    REST,
    Bans,
    ProxyHealth,
    choose,
    name_of,
    read_bans,
)


def test_a_proxy_is_known_by_host_and_port_and_two_users_are_two() -> None:
    assert name_of("http://gate.example:8000") == name_of("http://GATE.example:8000/") == "gate.example:8000"
    one, other = name_of("http://a:secret@gate.example:8000"), name_of("http://b:secret@gate.example:8000")
    assert one != other and one.startswith("gate.example:8000#") and "secret" not in one


@pytest.mark.parametrize(
    "text",
    ["", "gate.example:8000", "socks5://gate.example:1", "http://", "http://a:99999", "http://a b:1", "http://a/p"],
)
def test_what_is_no_address_of_a_proxy_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        name_of(text)


@given(st.sets(st.text(min_size=1, max_size=5), min_size=2, max_size=9), st.text(max_size=9))
def test_a_host_keeps_its_proxy_while_others_come_and_go(names: set[str], host: str) -> None:
    chosen = choose(names, host, "")
    assert chosen in names
    assert choose({chosen, *list(names)[:1]}, host, "") == chosen
    assert choose(names, host, min(names)) == min(names)
    assert choose(names - {chosen}, host, chosen) != chosen


def test_a_ban_ends_doubles_and_is_believed_no_longer_than_it_was_set() -> None:
    bans = Bans(at="a").banned("a", 1000.0, 60.0)
    assert bans.at == "" and bans.is_banned("a", 1059.0) and not bans.is_banned("a", 1061.0)
    again = bans.banned("a", 1061.0, 60.0)
    assert again.bans["a"].seconds == 120.0
    assert not again.is_banned("a", 100.0), "a clock was ahead"
    for _ in range(40):
        again = again.banned("a", 1061.0, 60.0)
    assert again.bans["a"].seconds == MOST_BAN


def test_bans_survive_as_json_and_are_few() -> None:
    bans = Bans(at="x")
    for number in range(3 * MOST_BANS):
        bans = bans.banned(f"p{number}", 1000.0 + number, 60.0)
    assert len(bans.bans) == MOST_BANS and read_bans(bans.value()) == bans


@given(
    st.recursive(
        st.none() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["at", "bans", "a"]), inner),
    )
)
def test_whatever_is_noted_is_read(value: object) -> None:
    bans = read_bans(value)
    assert not any(bans.is_banned(name, 1000.0) and ban.seconds <= 0 for name, ban in bans.bans.items())


def test_a_proxy_rests_after_some_loads_without_an_answer_for_longer_each_time() -> None:
    health = ProxyHealth()
    assert [health.failed("a", 0.0) for _ in range(MOST_FAILED)] == [False] * (MOST_FAILED - 1) + [True]
    assert health.rests("a", 1.0) == REST - 1 and health.rests("b", 1.0) == 0.0
    assert health.failed("a", 100.0) and health.rests("a", 100.0) == 2 * REST
    assert not health.failed("a", 101.0) and health.rests("a", 100.0) == 2 * REST, "that was under way before"
    now = 200.0
    for _ in range(20):
        health.failed("a", now)
        now += MOST_REST
    assert health.rests("a", now - MOST_REST) == MOST_REST
    health.answered("a")
    assert not health.rests("a", now) and not health.failed("a", now)


def test_what_others_say_lasts_and_a_proxy_that_is_gone_is_forgotten() -> None:
    health = ProxyHealth()
    health.heard("a", 50.0, 0.0)
    health.heard("a", 10.0, 0.0)
    health.heard("b", 1e9, 0.0)
    assert health.rests("a", 0.0) == 50.0 and health.rests("b", 0.0) == MOST_REST
    health.keep(["b"])
    assert not health.rests("a", 0.0) and health.rests("b", 0.0)
