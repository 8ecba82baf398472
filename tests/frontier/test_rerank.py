"""A host's queue in another order: which requests come next, in memory and on disk, flushed or not."""

from __future__ import annotations

from collections.abc import Sequence
from unittest.mock import patch

import pytest

from scrapy_ubi.frontier import rerank
from scrapy_ubi.protocol.host import Entry
from tests.frontier.frontiers import Reading, Tight, popped, resting


def highest(entries: Sequence[Entry]) -> list[int]:
    """The highest key first."""
    return [entry.key for entry in entries]


def lowest(entries: Sequence[Entry]) -> list[int]:
    return [100 - entry.key for entry in entries]


def ranked(frontier: Reading, priorities: object = highest) -> list[str]:
    """Give the queue of h its order; what was told of the end."""
    state, told = frontier.find("h"), list[str]()
    assert state is not None
    frontier.reorder(state, priorities, lambda: told.append("done"))  # type: ignore[arg-type]
    frontier.load(0.0, lambda state: True)
    frontier.check_invariants()
    return told


@pytest.mark.parametrize("kind", [Reading, Tight])
@pytest.mark.parametrize("flushes", [False, True])
def test_the_highest_priority_comes_first(kind: type[Reading], flushes: bool) -> None:
    frontier, _ = resting(kind, 9)
    for priorities in (highest, lowest, highest):  # back where it was before
        assert ranked(frontier, priorities) == ["done"]
        if flushes:
            frontier.flush()
    assert popped(frontier) == [9, 8, 7, 6, 5, 4, 3, 2, 1]


@pytest.mark.parametrize("flushes", [False, True])
def test_what_waits_behind_the_first_ones_keeps_its_place(flushes: bool) -> None:
    frontier, _ = resting(keys=9)
    with patch.object(rerank, "RANKED", 4):
        ranked(frontier)
        if flushes:
            frontier.flush()
        ranked(frontier, lowest)  # of the same four: they come before the others
    assert popped(frontier) == [1, 2, 3, 4, 5, 6, 7, 8, 9]


def test_what_no_answer_is_given_for_stays() -> None:
    frontier, _ = resting(keys=3)
    assert ranked(frontier, lambda entries: None) == ["done"]
    assert popped(frontier) == [1, 2, 3]


def test_a_queue_that_is_being_copied_stays_as_it_is() -> None:
    """One who reads it in pieces would miss what moves past where he has come to."""
    frontier, state = resting(keys=3)
    copied = state.undone()
    first = next(copied)
    assert ranked(frontier) == ["done"]
    assert {first.key, *(entry.key for entry in copied)} == {1, 2, 3}
    assert ranked(frontier) == ["done"] and popped(frontier) == [3, 2, 1]
