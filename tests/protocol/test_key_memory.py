"""The memory of keys against a dict: what it says was met was met, and little is forgotten."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.protocol.key_memory import DEEPEST, KeyMemory

KEYS = st.integers(0, 40) | st.integers(0, (1 << 64) - 1) | st.integers(0, 40).map(lambda high: high << 58 | 3)


@given(st.lists(st.tuples(KEYS, st.integers(0, 300)), max_size=200), st.sampled_from([0, 1, 2, 3, 10, 1 << 20]))
def test_what_is_said_to_be_told_was_told_as_deep_at_most(told: list[tuple[int, int]], most: int) -> None:
    table, depths = KeyMemory(most), dict[int, int]()
    for key, depth in told:
        if not table.has(key, depth):
            assert table.add(key, depth)
            depths[key] = min(depth, depths.get(key, depth))
            assert table.has(key, depth) == (depth <= DEEPEST and most > 0)
        else:
            assert depths[key] <= depth and not table.add(key, depth)
            if depth == 7:
                table.discard(key)
                del depths[key]
                assert key not in table
    for key, least in depths.items():
        assert not least or not table.has(key, least - 1)
        assert key not in table or most
    assert len(table) <= max(2, 2 * most) * (most > 0)
    table.clear()
    assert not any(key in table for key in depths) and len(table) == 0


def test_the_last_key_is_kept_whatever_comes_before_it() -> None:
    table, chance = KeyMemory(4), Random(1)
    for _ in range(1000):
        table.add(key := chance.getrandbits(64), 1)
        assert key in table


def test_a_shorter_way_is_remembered() -> None:
    table = KeyMemory(100)
    table.add(5, 9)
    table.add(5, 2)
    assert table.has(5, 2) and not table.has(5, 1)


@pytest.mark.parametrize("came", [200, 3_000, 40_000])
def test_while_it_grows_few_keys_are_forgotten(came: int) -> None:
    chance = Random(came)
    table, keys = KeyMemory(1_000_000), [chance.getrandbits(64) for _ in range(came)]
    for key in keys:
        table.add(key, 3)
    assert sum(key in table for key in keys) > 0.98 * came


def test_it_never_takes_more_places_than_it_may() -> None:
    chance, table = Random(3), KeyMemory(1000)
    for _ in range(50_000):
        table.add(chance.getrandbits(64), 0)
    assert len(table) == 1024
