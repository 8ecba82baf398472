"""Traps: repetitions, too many segments, too many arguments."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.urls.filters.traps import repeated

from .links import why


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("", ""),
        ("a/a", ""),
        ("a/a/b/a", ""),
        ("2011/11/11/", ""),
        ("a/a/a", "repeats"),
        ("x/a/a/a/y", "repeats"),
        ("a/b/a/b/a/b", "repeats"),
        ("a/b/a/b/a/c", ""),
        ("a/b/c/a/b/c/a/b/c/", "repeats"),
        ("///", "repeats"),
        ("a?b=1&b=1&c=2", ""),
        ("a?b=1&c=2&b=1&b=1", "repeats"),
        ("a?b=1&b=2&b=3", ""),
        ("/".join(map(str, range(20))) + "/", ""),
        ("/".join(map(str, range(21))), "segments"),
        ("a?" + "&".join(f"x{n}=1" for n in range(30)), ""),
        ("a?" + "&".join(f"x{n}=1" for n in range(31)), "query"),
    ],
)
def test_the_usual_bounds(path: str, reason: str) -> None:
    assert why("traps", f"http://a.example/{path}") == reason


def test_bounds_may_be_chosen_or_switched_off() -> None:
    assert why("traps(repeats=2)", "http://a.example/a/b/a/b") == "repeats"
    assert why("traps(repeats=0)", "http://a.example/a/a/a/a") == ""
    assert why("traps(segments=2)", "http://a.example/1/2/3") == "segments"
    assert why("traps(segments=0)", "http://a.example/" + "/".join(map(str, range(99)))) == ""
    assert why("traps(query=1)", "http://a.example/?a&b") == "query"
    assert why("traps(query=0)", "http://a.example/?" + "&".join(map(str, range(99)))) == ""


def slow(segments: list[str], times: int) -> bool:
    count = len(segments)
    return any(
        segments[start : start + period * times] == segments[start : start + period] * times
        for period in range(1, count // times + 1)
        for start in range(count - period * times + 1)
    )


@given(st.lists(st.sampled_from("abc"), max_size=14), st.integers(2, 4))
def test_repetitions_are_those_that_a_plain_search_finds(segments: list[str], times: int) -> None:
    assert repeated(segments, times) == slow(segments, times)
