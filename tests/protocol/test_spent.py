"""What agents have spent on a host: sums that only grow, each its agent's own."""

from __future__ import annotations

import json
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.ground.untrusted.checks import Malformed
from scrapy_ubi.protocol.notes import MOST_SPENDERS, MOST_SPENT, NOTHING, Notes, read_notes

TOO_MANY = {f"a{n}": 1 for n in range(MOST_SPENDERS + 1)}
SPENT = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 9)).map(lambda found: tuple(sorted(found.items())))
NOTES = st.builds(Notes, st.integers(1, 3), st.sampled_from(['{"x":1}', '{"y":2}', "{}"]), SPENT)


@given(NOTES, NOTES, NOTES)
def test_notes_merge_in_any_order_and_however_often(a: Notes, b: Notes, c: Notes) -> None:
    ends = {x.merged(y).merged(z) for x, y, z in permutations((a, b, c))}
    assert len(ends) == 1
    (end,) = ends
    assert end == a.merged(b.merged(c)) == end.merged(a).merged(b) == end.merged(end)
    for agent in "abcd":
        assert dict(end.spent).get(agent, 0) == max(dict(one.spent).get(agent, 0) for one in (a, b, c))
    assert (end.version, end.text) == max((one.version, one.text) for one in (a, b, c))


def test_what_two_spend_at_once_counts_once_each_whichever_note_wins() -> None:
    before = Notes(3, '{"x":1}').spend("a", 100)
    one, other = before.spend("a", 7), before._replace(version=4, text="{}").spend("b", 5)
    assert one.merged(other) == Notes(4, "{}", (("a", 107), ("b", 5)))
    assert one.merged(other).total_spent == 112


def test_who_spends_before_anything_was_noted_notes_nothing_else() -> None:
    assert NOTHING.spend("a", 5) == Notes(1, "{}", (("a", 5),))


@given(NOTES)
def test_the_text_of_notes_is_read_back(notes: Notes) -> None:
    assert read_notes(json.loads(notes.shown())) == notes
    assert (len(json.loads(notes.shown())) == 2) is (not notes.spent)


@pytest.mark.parametrize(
    "spent",
    [{}, [], {"a": -1}, {"a": 1.5}, {"a": True}, {"a": MOST_SPENT + 1}, {"no name": 1}, {"a": None}, "a", TOO_MANY],
)
def test_what_does_not_hold_is_refused(spent: Any) -> None:
    with pytest.raises(Malformed):
        read_notes([1, {}, spent])


def test_the_smallest_sums_are_forgotten_beyond_the_bound() -> None:
    notes = NOTHING
    for number in range(MOST_SPENDERS + 10):
        notes = notes.spend(f"a{number}", 1000 + number)
    assert len(notes.spent) == MOST_SPENDERS
    assert min(amount for _, amount in notes.spent) == 1010
    assert read_notes(json.loads(notes.shown())) == notes
    assert notes.spend("a5", MOST_SPENT + 5).merged(notes).spent[-1][1] <= MOST_SPENT
