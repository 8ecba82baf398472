"""What the text of a request says of its retries."""

from __future__ import annotations

import json

import pytest

from scrapy_ubi.protocol.host import MOST_RETRIES, Entry, retried, retries_of


@pytest.mark.parametrize("request_", ["", '{"retries":2,"dont_filter":true}'])
@pytest.mark.parametrize("text", ["", "{}", '{"meta":{"retry_times":1}}'])
def test_what_is_retried_says_how_often(request_: str, text: str) -> None:
    before = Entry(1, "http://h.example/a", 3, 0, request_)
    again = retried(Entry(1, "http://h.example/a", 3, -1, text), before)
    assert retries_of(again.request) == retries_of(request_) + 1
    assert json.loads(again.request) == {**json.loads(text or "{}"), "retries": retries_of(request_) + 1}


def test_retries_are_counted_to_a_bound() -> None:
    most = Entry(1, "http://h.example/a", 3, 0, f'{{"retries":{MOST_RETRIES}}}')
    assert retried(most._replace(request=""), most).request == most.request


NOT_RETRIED = [
    "",
    "{}",
    '{"meta":{},"retries":3}',
    *(f'{{"retries":{no}}}' for no in ("0", "-1", '"1"', "1.5", "1" * 10)),
]


@pytest.mark.parametrize("text", NOT_RETRIED)
def test_what_says_nothing_of_retries_at_its_start_is_not_retried(text: str) -> None:
    assert retries_of(text) == 0
