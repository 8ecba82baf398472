"""The parsers in memory: what was used last stays, within a weight."""

from __future__ import annotations

from scrapy_ubi.adapter.robots.cache import WEIGHT_A_CHARACTER, WEIGHT_EACH, Cache, Known
from scrapy_ubi.policy.robots.record import RobotsRecord


def known(size: int = 0) -> Known:
    return Known(RobotsRecord(fetched=1.0), size=size)


def test_what_was_not_used_for_longest_goes() -> None:
    cache = Cache(3 * WEIGHT_EACH)
    for authority in "abc":
        cache.put(authority, known())
    assert cache.get("a")
    cache.put("d", known())
    assert [authority for authority in "abcd" if cache.get(authority)] == ["a", "c", "d"]


def test_long_ones_weigh_more_and_the_last_one_stays() -> None:
    cache = Cache(10 * WEIGHT_EACH)
    for authority in "abc":
        cache.put(authority, known())
    cache.put("long", known(size=100 * WEIGHT_EACH // WEIGHT_A_CHARACTER))
    assert len(cache) == 1 and cache.get("long")
    cache.put("d", known())
    assert len(cache) == 1 and cache.get("d") and not cache.get("long")


def test_what_is_put_again_replaces_and_weighs_once() -> None:
    cache = Cache(2 * WEIGHT_EACH)
    for _ in range(9):
        cache.put("a", known())
    cache.put("b", known())
    assert len(cache) == 2
