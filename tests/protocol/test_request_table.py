"""Requests of a letter: written once, read back as they were, and never more of them than a letter may stand for."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.protocol import request_table
from scrapy_ubi.protocol.request_table import MOST_REPEATED, RequestReader, Written

texts = st.sampled_from(['{"method":"POST"}', '{"callback":"page"}', "{}", '{"meta":{"a":[1,null,"\\u00fc"]}}'])


def travelled(written: list[str | int]) -> list[object]:
    """As JSON brings them."""
    body: list[object] = json.loads("[" + ",".join(map(str, written)) + "]")
    return body


@given(st.lists(texts, max_size=30))
def test_what_is_written_is_read_back_and_each_text_is_there_once(requests: list[str]) -> None:
    writing, reading = Written(), RequestReader()
    written = [writing.write(request) for request in requests]
    assert [reading.read(value) for value in travelled(written)] == requests
    assert sorted(text for text in written if isinstance(text, str)) == sorted({*requests})


@pytest.mark.parametrize("number", [0, -1, 1, 10**30])
def test_a_number_that_nothing_before_it_has_is_refused(number: int) -> None:
    reading = RequestReader()
    if number == 1:
        reading.read({})
    with pytest.raises(ValueError, match="no request before it"):
        reading.read(number)


@pytest.mark.parametrize("value", [None, True, 0.0, "0", []])
def test_what_is_neither_an_object_nor_a_number_is_refused(value: object) -> None:
    reading = RequestReader()
    reading.read({})
    with pytest.raises(ValueError, match="not an object"):
        reading.read(value)


def test_numbers_stand_for_so_many_characters_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_table, "MOST_REPEATED", 40)
    writing, reading = Written(), RequestReader()
    text = '{"method":"POST"}'  # 17 characters
    written = [writing.write(text) for _ in range(5)]
    assert written == [text, 0, 0, text, text], "then it is written out"
    assert [reading.read(value) for value in travelled(written)] == [text] * 5
    with pytest.raises(ValueError, match="more than 40"):
        reading.read(0)
    assert MOST_REPEATED > 10**6


def test_a_request_of_several_entries_together_counts_for_all_but_where_it_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(request_table, "MOST_REPEATED", 100)
    writing, reading = Written(), RequestReader()
    text = '{"method":"POST"}'  # 17 characters
    assert writing.fits(text, 5) and not writing.fits(text, 6)
    assert [writing.write(text, 3), writing.write(text, 3)] == [text, 0]
    assert not writing.fits(text, 1), "15 of 100 are left"
    assert reading.read({"method": "POST"}) == text
    reading.repeat(text, 2)
    assert reading.read(0) == text
    reading.repeat(text, 2)
    with pytest.raises(ValueError, match="more than 100"):
        reading.read(0)
