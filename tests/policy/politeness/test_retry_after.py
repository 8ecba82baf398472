"""Retry-After: what servers write, and what becomes of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.policy.politeness.retry_after import FOREVER, MOST_PAGES, Asks, asked, longest, read, seconds

NOW = datetime(1994, 11, 6, 8, 49, 0, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (b"120", 120.0),
        (b" 0 ", 0.0),
        (b"007", 7.0),
        (b"Sun, 06 Nov 1994 08:49:37 GMT", 37.0),  # the three forms of RFC 9110, 5.6.7
        (b"Sunday, 06-Nov-94 08:49:37 GMT", 37.0),
        (b"Sun Nov  6 08:49:37 1994", 37.0),
        (b"Sun, 06 Nov 1994 09:49:37 +0100", 37.0),
        (b"Sun, 06 Nov 1994 08:48:00 GMT", 0.0),  # past
        (b"9" * 90, FOREVER),
        (b"Fri, 31 Dec 9999 23:59:59 GMT", FOREVER),
    ],
)
def test_what_a_server_asks_for(value: bytes, wanted: float) -> None:
    assert seconds(value, NOW) == wanted


@pytest.mark.parametrize(
    "value",
    [
        b"", b"-5", b"1.5", b"1e3", b"soon", b"Infinity", b"nan", b"120 s", b"\xff\xfe", "١٢".encode(), b"Sun, 99 Foo",
        b"Sun, 06 Nov 99999999999999999999 08:49:37 GMT", b"Sun, 32 Nov 1994 08:49:37 GMT", b"06 Nov 1994",
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_nothing(value: bytes) -> None:
    assert seconds(value, NOW) is None


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This machine's clock on the wall is five hours behind UTC."""
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "EST5")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize("value", [b"Sun Nov  6 08:49:37 1994", b"Sun, 06 Nov 1994 08:49:37 -0000"])
def test_a_date_without_a_zone_is_utc_wherever_the_agent_runs(value: bytes, elsewhere: None) -> None:
    assert seconds(value, NOW) == 37.0


def test_of_several_values_the_longest_counts() -> None:
    assert longest([b"3", b"nonsense", b"7", b"-9"], NOW) == 7.0
    assert longest([b"nonsense"], NOW) is None
    assert longest([], NOW) is None


@pytest.mark.parametrize(
    ("status", "values", "most", "wanted"),
    [
        (429, [b"7"], 100.0, 7.0),
        (503, [b"7", b"300"], 100.0, 100.0),
        (503, [b"0"], 100.0, 0.0),
        (200, [b"7"], 100.0, None),
        (503, [b"7"], 0.0, None),
        (503, [], 100.0, None),
        (429, [b"nonsense"], 100.0, None),
    ],
)
def test_what_a_response_asks_for_is_bounded(
    status: int, values: list[bytes], most: float, wanted: float | None
) -> None:
    assert asked(status, values, most) == wanted


@given(st.binary(max_size=200))
def test_whatever_the_bytes_it_is_a_number_of_seconds_or_nothing(value: bytes) -> None:
    found = seconds(value, NOW)
    assert found is None or 0.0 <= found <= FOREVER


@given(st.datetimes(min_value=datetime(1900, 1, 1), max_value=datetime(2900, 1, 1)))
def test_every_date_is_read_as_what_it_says(date: datetime) -> None:
    date = date.replace(microsecond=0, tzinfo=UTC)
    wanted = min(max(0.0, date.timestamp() - NOW), FOREVER)
    assert seconds(format_datetime(date, usegmt=True).encode(), NOW) == wanted


def test_how_often_a_host_has_asked_is_read_as_it_is_written() -> None:
    asks = Asks()
    for page in (7, 7, 1 << 40 | 9, None, *range(100, 200)):
        asks = asks.once_more(page)
        assert read(asks.value()) == asks and len(asks.pages) <= MOST_PAGES
    assert asks.times == 104 and asks.pages[-1] == 199


@pytest.mark.parametrize("value", [None, 3, "x", [], [-1], [1, "x"], [1] * 40, {}, [True], [1 << 40]])
def test_what_does_not_hold_is_no_ask(value: object) -> None:
    assert read(value) == Asks()
