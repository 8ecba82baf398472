"""What the docs say there is not: each such sentence was read by somebody."""

from __future__ import annotations

from tests.docs.not_yet import LIST, found


def test_each_sentence_about_what_there_is_not_was_read() -> None:
    listed, there = set(LIST.read_text().splitlines()), set(found())
    hint = "is it true? Then python -m tests.docs.not_yet puts it on the list"
    assert not there - listed, hint
    assert not listed - there, "no longer in the docs: python -m tests.docs.not_yet takes it off the list"
