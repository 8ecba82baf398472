"""Losses: who is missing at the end, and what is read of other agents' words."""

from __future__ import annotations

import json
from collections.abc import Callable

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


def test_those_who_were_ahead_are_a_loss_of_their_own() -> None:
    """Where one of them is back, all who were lost together may be too many still."""
    book = LossBook()
    for _ in range(2):
        book.record((B, C, D), 1)
        book.record((B,), 0, ahead=True)
    assert sorted(book.losses) == sorted([GroupLoss((B, C, D), 1), GroupLoss((B,), 0)])
    assert missing([book], lambda name, life: name == "b") == ("c", "d")
    assert missing([book], lambda name, life: name != "b") == ("b",)
    book.close()
    book.record((C, D), 1)
    assert len(book.losses) == 3


def test_each_change_is_to_be_published() -> None:
    book = LossBook()
    book.count(["0123abcd"])
    assert book.is_published, "nobody publishes it"
    book.await_publishing()
    changes: list[Callable[[], None]] = [
        lambda: book.record((B, C), 1),
        lambda: book.record((B,), 0, ahead=True),
        lambda: book.miss([B], 0),
        lambda: book.count(["0000000b"]),
        lambda: book.are_safe(["0000000c"]),
        book.unpublish,
    ]
    for change in changes:
        book.publish(book.changes)
        assert book.is_published
        change()
        assert not book.is_published
    book.publish(before := book.changes)
    changes[0](), changes[3](), changes[4](), book.close()
    assert book.is_published, "it says the same"
    book.count(["0000000d"])
    book.publish(before)
    assert not book.is_published, "what was published is older"


def test_what_an_earlier_life_had_published_is_taken_over() -> None:
    """What is published next writes over it."""
    before, book = LossBook([GroupLoss((B, C), 1)]), LossBook()
    before.miss([D], 0)
    before.count(["0000000d"])
    before.are_safe(["0000000e"])
    book.await_publishing()
    for _ in range(2):
        book.take_over(LossBook.read(before.told()))
        assert book.told() == before.told()
    assert not book.is_published
    book.publish(book.changes)
    book.take_over(before)
    assert book.is_published, "it says the same"
    book.record((D,), 0)
    assert book.losses == [GroupLoss((B, C), 1), GroupLoss((D,), 0)]


def test_an_empty_book_need_not_be_published() -> None:
    book = LossBook()
    book.await_publishing()
    book.unpublish()
    assert book.is_published
