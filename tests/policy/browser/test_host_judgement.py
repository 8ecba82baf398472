"""Whether a host's pages go to a browser: decided by two that say the same, for a week; a note of the host."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.policy.browser.host_judgement import HOLDS, HostJudgement, read_judgement, shown_judgement

NOW = 1_800_000_000.0


def judged(*pages: bool) -> HostJudgement:
    found = HostJudgement()
    for made in pages:
        found = found.with_page(made, NOW)
    return found


@pytest.mark.parametrize(
    ("pages", "decision", "shown"),
    [
        ((), "", ""),
        ((True,), "", "browser 1/1"),
        ((True, False), "", "browser 1/2"),
        ((True, True), "browser", "browser"),
        ((False, True, False), "plain", "no browser"),
        ((False, True, True), "browser", "browser"),
    ],
)
def test_two_pages_that_say_the_same_decide(pages: tuple[bool, ...], decision: str, shown: str) -> None:
    assert judged(*pages).decision == decision
    assert shown_judgement(judged(*pages).to_note(), NOW) == shown


def test_a_decision_travels_as_a_note_and_holds_for_a_week() -> None:
    note = json.loads(json.dumps(judged(True, True).to_note()))
    assert read_judgement(note, NOW + HOLDS - 1).decision == "browser"
    assert read_judgement(note, NOW + HOLDS) == HostJudgement()
    assert read_judgement(note, NOW - 86_400).decision == "browser", "of a clock that was ahead"


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | st.text(), st.lists, max_leaves=6))
def test_a_note_that_does_not_hold_counts_as_none(note: object) -> None:
    found = read_judgement(note, NOW)
    assert found == HostJudgement() or note == found.to_note()
