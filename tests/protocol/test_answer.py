"""Answers: what the receiver remembers of a lane, and what it says of it."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.protocol.answer import Outcome, read_answer
from scrapy_ubi.protocol.lane import LaneIn


def test_receiver_forgets_what_is_below_the_floor() -> None:
    box = LaneIn("a")
    for seq in (1, 2, 3):
        box.outcomes[seq] = Outcome({}, ())
    box.raise_floor(3)
    assert list(box.outcomes) == [3]
    box.raise_floor(2)
    assert box.floor == 3, "a late letter does not lower it"


def test_answer_says_what_became_of_each_letter() -> None:
    box = LaneIn("a")
    box.outcomes = {
        3: Outcome({"h.example": "c", "i.example": ""}, ()),
        1: Outcome({}, ()),
        2: None,
        4: Outcome({}, ("j.example",)),
    }
    assert json.loads(box.text()) == {
        "acked": [1, 3, 4],
        "refused": {"3": {"h.example": "c", "i.example": ""}},
        "want": {"4": ["j.example"]},
    }
    assert read_answer(box.text()) == {seq: outcome for seq, outcome in box.outcomes.items() if outcome is not None}


def test_answer_that_would_be_too_long_says_first_what_became_of_the_first_letters() -> None:
    box = LaneIn("a")
    one, other = Outcome({"h.example": "c"}, ()), Outcome({}, tuple(f"h{number}.example" for number in range(30)))
    box.outcomes = {9: other, 3: one, 4: None, 5: one, 6: other, 7: one}
    assert read_answer(box.text(most=200)) == {3: one, 5: one}
    box.raise_floor(6)
    assert read_answer(box.text(most=200)) == {6: other}, "one in any case"
    box.raise_floor(7)
    assert read_answer(box.text(most=1000)) == {7: one, 9: other}


@given(st.integers(1, 100), st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=20))
def test_answer_is_as_long_as_it_may_be(number: int, letters: list[tuple[int, int]]) -> None:
    """But for what one letter has."""
    box = LaneIn("a")
    for seq, (refused, wanted) in enumerate(letters, 10**12):
        names = [f"{'h' * number}{i}.example" for i in range(max(refused, wanted))]
        box.outcomes[seq] = Outcome(dict.fromkeys(names[:refused], "n" * 64), tuple(names[:wanted]))
    most = 5000
    text = box.text(most)
    said = read_answer(text)
    assert len(said) <= 1 or len(text) <= most
    assert [*said] == [*box.outcomes][: len(said)]
    assert len(said) == len(letters) or len(box.text()) > 0.5 * most


def test_answer_of_a_lane_without_outcomes() -> None:
    assert json.loads(LaneIn("a").text()) == {"acked": []}
