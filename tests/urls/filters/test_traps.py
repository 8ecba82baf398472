"""Traps: repetitions, too many segments, too many arguments."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.urls.filters import UrlFilter, parse, traps
from scrapy_ubi.urls.filters.traps import Combinations, repeated
from tests.urls.filters.links import link, why


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


CAL = "http://a.example/cal"


def month(number: int) -> str:
    return f"{CAL}?m={number % 12 + 1}&y={number // 12}"


def passed(judge: UrlFilter, urls: Iterable[str], page: str) -> list[str]:
    """Those that the filter lets through, found on this page."""
    return [url for url in urls if not judge.refuses(link(url, page=page))]


def test_a_calendar_ends_after_so_many_combinations_and_what_has_passed_passes_again() -> None:
    judge = parse("traps(combinations=10)")
    months = [month(number) for number in range(30)]
    for _ in range(2):
        assert passed(judge, months, month(0)) == months[:10]
        assert passed(judge, reversed(months), month(0)) == months[9::-1]
    assert judge.refuses(link(month(20), page=month(0))) == "combinations"
    assert passed(judge, [f"{CAL}?y=20&m=1"], month(0)) == [], "in any order"


@pytest.mark.parametrize(
    ("page", "counts"),
    [
        (f"{CAL}?y=1&m=2", True),
        ("http://a.example/day?d=1&y=1", True),
        ("http://a.example:80/x?m", True),
        ("http://a.example/list?page=2", False),
        ("http://a.example/list", False),
        ("http://b.example/cal?y=1&m=2", False),
        ("nonsense?m=1", False),
        ("", False),
    ],
)
def test_what_counts_is_found_on_a_page_of_the_host_with_such_an_argument(page: str, counts: bool) -> None:
    judge = parse("traps(combinations=3)")
    assert len(passed(judge, map(month, range(9)), page)) == (3 if counts else 9)


def test_each_kind_of_urls_has_its_own_count() -> None:
    judge = parse("traps(combinations=2)")
    for place in ("http://a.example/cal?m={}", "http://a.example/cal?m={}&y=1", "http://a.example/x?m={}"):
        assert len(passed(judge, (place.format(number) for number in range(5)), month(0))) == 2
    assert passed(judge, ["http://a.example/cal", "http://a.example/cal?"], month(0)), "those without a query"
    assert len(passed(parse("traps(combinations=0)"), map(month, range(2000)), month(0))) == 2000
    assert len(passed(parse("traps"), map(month, range(2000)), month(0))) == 1000


def test_what_is_remembered_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traps, "MOST_URLS", 100)
    monkeypatch.setattr(traps, "MOST_KINDS", 12)
    kept = Combinations(10)
    trap = [month(number) for number in range(50)]
    assert sum(not kept.is_one_too_many(url, month(0)) for url in trap) == 10
    for kind in range(200):
        for number in range(9):
            assert not kept.is_one_too_many(f"http://a.example/{kind}?m={number}", month(0))
        assert len(kept) <= 100 and kept.kinds <= 12
    assert kept.is_one_too_many(month(49), month(0)), "a kind that is full is forgotten last"
    for kind in range(200, 220):
        for number in range(10):
            kept.is_one_too_many(f"http://a.example/{kind}?m={number}", month(0))
    assert len(kept) == 100 and not kept.is_one_too_many(month(49), month(0)), "its count begins anew"
