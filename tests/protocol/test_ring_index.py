"""The circle under the ring, where its own limits lie; what it finds is tested through the ring (test_ring.py)."""

from __future__ import annotations

from array import array
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.protocol import ring_index
from scrapy_ubi.protocol.ring_index import SIZE, Circle


def spread(count: int, first: int = 0) -> list[int]:
    return [SIZE // count * i + first for i in range(count)]


def test_holders_that_come_and_go_do_not_use_up_the_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ring_index, "BISECT", 6)
    some = Circle.from_points(array("Q", spread(4)), ["a", "b", "c", "d"])
    for i in range(20):
        more = some.with_points(spread(3, first=1000 + i), f"guest{i}")
        more.check_invariants()
        assert more.nearest(1000 + i) == f"guest{i}"
        some = more.without_points(spread(3, first=1000 + i))
        some.check_invariants()
    assert some.holders == ["a", "b", "c", "d"]


def test_there_can_be_too_many_holders() -> None:
    most = ring_index.BISECT
    full = Circle.from_points(array("Q", spread(most)), [str(i) for i in range(most)])
    assert full.nearest(SIZE // most * 60_000) == "60000"
    assert full.nearest(SIZE // most * (most - 1)) == str(most - 1)
    with pytest.raises(ValueError, match="65536 agents are more than the 65535"):
        full.with_points([1], "one more")


def test_many_points_in_one_cell() -> None:
    close = Circle.from_points(array("Q", [*range(500), SIZE // 2]), [str(i % 7) for i in range(501)])
    close.check_invariants()
    assert [close.nearest(i) for i in range(500)] == close.holders[:500]
    fewer = close.without_points(list(range(0, 500, 7)))
    fewer.check_invariants()
    fewer.with_points(list(range(0, 500, 7)), "new").check_invariants()


def test_without_points_there_is_nobody() -> None:
    nobody = Circle.from_points(array("Q"), [])
    nobody.check_invariants()
    assert list(nobody.arcs()) == [(SIZE - 1, None)]
    with pytest.raises(IndexError):
        nobody.nearest(0)
    nobody.with_points([5], "a").check_invariants()


class Counted(list[str]):
    """Holders that count how often they are asked for."""

    asked = 0

    def __getitem__(self, place: Any) -> Any:
        self.asked += 1
        return super().__getitem__(place)


@given(st.lists(st.integers(0, SIZE - 1), min_size=5, max_size=60, unique=True), st.integers(0, SIZE - 1))
def test_the_long_way_finds_whom_the_walk_finds(numbers: list[int], number: int) -> None:
    points = sorted(numbers)
    holders = ["a" if i % 7 else "bcde"[i // 7 % 4] for i in range(len(points))]
    count = len({*holders})
    for at in {number, *points, *((low + high) // 2 for low, high in pairwise(points))}:
        expected = Circle.from_points(array("Q", points), [*holders]).outward(at, count)
        with patch.multiple(ring_index, WALK=1, WALK_EACH=0):
            some = Circle.from_points(array("Q", points), [*holders])
            assert [some.outward(at, n) for n in range(count + 1)] == [expected[:n] for n in range(count + 1)]


def test_who_has_next_to_no_points_is_found_without_passing_those_of_others() -> None:
    """A group of which one agent has nearly everything asks for owner and successor of each host it holds."""
    points = spread(20_000)
    holders = ["b" if i == 7 else "c" if i == 9_000 else "a" for i in range(20_000)]
    some = Circle.from_points(array("Q", points), holders)
    some.holders = counted = Counted(holders)
    assert some.outward(points[3_000] + 1, 2) == ("a", "b")
    counted.asked = 0
    assert some.outward(points[6_000] + 1, 3) == ("a", "c", "b")
    assert some.outward(points[19_000] + 1, 2) == ("a", "b"), "around zero"
    assert counted.asked < 1_000
