"""Losses: who is missing at the end, and what is read of other agents' words."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.protocol.losses import MOST_LOSSES, MOST_MEMBERS, GroupLoss, LossBook, missing, read_losses, written

B, C, D = ("b", "0000000b"), ("c", "0000000c"), ("d", "0000000d")


@pytest.mark.parametrize(
    ("losses", "back", "names"),
    [
        ([], (), ()),
        ([GroupLoss((B, C), 1)], (), ("b", "c")),
        ([GroupLoss((B, C), 1)], (B,), ()),
        ([GroupLoss((B, C, D), 1)], (B,), ("c", "d")),
        ([GroupLoss((B,), 0)], (), ("b",)),
        ([GroupLoss((B, C), 1), GroupLoss((C, D), 1)], (B,), ("c", "d")),
    ],
)
def test_who_is_missing(losses: list[GroupLoss], back: tuple[tuple[str, str], ...], names: tuple[str, ...]) -> None:
    book = LossBook(losses)
    assert missing([book], lambda name, incarnation: (name, incarnation) in back) == names


members = st.tuples(st.from_regex(r"[A-Za-z0-9_.:-]{1,64}", fullmatch=True), st.sampled_from(["", "0123abcd"]))
some = st.lists(
    st.builds(GroupLoss, st.lists(members, min_size=1, max_size=4).map(tuple), st.integers(0, 8)), max_size=4
)


@given(some)
def test_what_is_written_is_read(losses: list[GroupLoss]) -> None:
    assert read_losses(json.loads(json.dumps(written(losses)))) == losses


@pytest.mark.parametrize(
    "value",
    [
        *(None, 7, {}, [1], [[]], [[0]], [[-1, ["a", ""]]], [["0", ["a", ""]]], [[0, ["a"]]], [[0, ["a b", ""]]]),
        *([[0, ["a", "XYZ"]]], [[0, ["a", 7]]], [[0, *[["a", ""]] * (MOST_MEMBERS + 1)]], [[True, ["a", ""]]]),
    ],
)
def test_what_does_not_hold_is_left_out(value: object) -> None:
    assert read_losses(value) == []


def test_no_more_are_read_than_one_agent_records() -> None:
    assert len(read_losses([[0, ["a", ""]]] * (MOST_LOSSES + 1))) == MOST_LOSSES
