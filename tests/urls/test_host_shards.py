"""Hosts that are cut into shards: their keys, their limits and delays, and how the setting is read."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.urls import normal_form, url_key
from scrapy_ubi.urls.host_keys import host_keys, named_key
from scrapy_ubi.urls.host_shards import HostShards, host_of_key, read_name, read_shards

CUT = HostShards({"shop.example": 8, "big.example:8080": 3}, frozenset({"big.example:8080"}))
KEY = host_keys("host", None, CUT, normal_form)


def test_urls_of_a_host_are_spread_over_its_shards_and_their_keys_over_all_numbers() -> None:
    urls = [f"http://shop.example/{number}" for number in range(8000)]
    shards = Counter(KEY(url) for url in urls)
    assert set(shards) == {f"shop.example#{number}" for number in range(8)}
    assert min(shards.values()) > 850 and max(shards.values()) < 1150
    low = Counter(url_key("GET", url) % 8 for url in urls if KEY(url) == "shop.example#3")
    assert len(low) == 8  # else tables of keys would be full in places


def test_spellings_of_a_url_are_of_one_shard_and_other_hosts_are_whole() -> None:
    assert KEY("HTTP://Shop.Example:80/a#b") == KEY("http://shop.example/a")
    assert KEY("http://shop.example:81/") == "shop.example:81"
    assert (KEY("http://big.example:8080/") or "").startswith("big.example:8080#")
    assert KEY("data:,x") is None
    assert host_of_key("shop.example#7") == "shop.example" == host_of_key("shop.example")


@pytest.mark.parametrize("key", ["shop.example#0", "shop.example#7", "big.example:8080#2", "small.example"])
def test_what_may_be_a_key(key: str) -> None:
    assert CUT.holds(key)


@pytest.mark.parametrize(
    "key", ["shop.example", "shop.example#8", "shop.example#03", "shop.example#-1", "small.example#0", "#1", "a#b#1"]
)
def test_what_may_not(key: str) -> None:
    assert not CUT.holds(key)


@given(st.integers(0, 10**6))
def test_the_shares_of_a_limit_are_the_limit(limit: int) -> None:
    shares = [CUT.share(key, limit) for key in CUT.siblings("shop.example#1")]
    assert sum(shares) == limit and max(shares) - min(shares) <= 1
    assert CUT.share("small.example", limit) == limit


def test_delays_are_as_many_times_as_long_but_for_a_host_that_is_fast() -> None:
    assert CUT.slowed("shop.example#2", 0.5) == 4.0
    assert CUT.slowed("big.example:8080#2", 0.5) == 0.5 == CUT.slowed("small.example", 0.5)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ({"shop.example": 8}, "shop.example 8"),
        ({"b.example": 2, "a.example": (3, "fast")}, "a.example 3 fast, b.example 2"),
        ('{"shop.example": [8, "fast"], "[::1]:81": 9}', "[::1]:81 9, shop.example 8 fast"),
        ({}, "none"),
    ],
)
def test_a_setting_is_read_and_its_name_as_well(value: Any, name: str) -> None:
    shards = read_shards(value)
    assert shards.name == name
    assert read_name(name) == shards


@pytest.mark.parametrize(
    "value",
    [
        8,
        "shop.example",
        "[8]",
        {"shop.example": 1},
        {"shop.example": 1025},
        {"shop.example": True},
        {"shop.example": "8"},
        {"shop.example": (8, "slow")},
        {"Shop.example": 8},
        {"http://shop.example": 8},
        {"shop.example/": 8},
        {"shop.example#1": 8},
        {8: 8},
        {f"h{number}.example": 2 for number in range(101)},
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_is_no_table_is_refused(value: Any) -> None:
    with pytest.raises(ValueError):
        read_shards(value)


@pytest.mark.parametrize("name", ["", "shop.example", "shop.example 1", "a 2, b", "a 2  fast", "a#1 2"])
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError):
        read_name(name)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("Target.Example", "target.example"),
        ("target.example:8080", "target.example:8080"),
        ("target.example:80", "target.example"),
        ("[::1]", "[::1]"),
        ("target.example#1", None),
        ("http://target.example", None),
        ("target.example/x", None),
        ("user@target.example", None),
        ("", None),
        (7, None),
        ("x" * 300, None),
        ("target.example:99999", None),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_name_of_a_host(name: object, key: str | None) -> None:
    assert named_key(name, "host", None) == key
