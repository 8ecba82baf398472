"""The accuracy of a page, as RCrawler computes it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.cli.patterns.keywords import KeywordRule, accuracy

counts = st.lists(st.integers(0, 9), min_size=1, max_size=8)


@pytest.mark.parametrize(("times", "percent"), [(0, 0), (1, 50), (2, 70), (3, 80), (4, 90), (5, 100), (9, 100)])
def test_one_keyword(times: int, percent: float) -> None:
    """RCrawler's documentation: 50 % is one occurrence, 100 % are five."""
    assert KeywordRule(("web",)).score("Web, " * times) == percent == accuracy([times])


def test_keywords_share_the_whole() -> None:
    rule = KeywordRule(("casablanca", "master"))
    assert rule.score("A Master in Casablanca.") == 50
    assert rule.score("master " * 5) == 50
    assert rule.score("masters of casablancas") == 0
    assert KeywordRule(("a", "b", "c")).score("a b c " * 5) == 100


def test_a_keyword_of_several_words_and_of_other_letters() -> None:
    assert KeywordRule(("web site",)).score("a web-site, a WEB\n site, websites") == 70
    assert KeywordRule(("größe", "C++")).score("GRÖSSE c") == 25 + 25


def test_words_that_are_there_too_seldom_do_not_count() -> None:
    rule = KeywordRule(("a", "b"), min_count=2)
    assert rule.score("a a b") == accuracy([2, 0])
    assert KeywordRule(("a",), min_count=7).score("a " * 6) == 0
    assert KeywordRule(("a",), min_count=7).score("a " * 7) == 100


@given(counts)
def test_it_is_between_0_and_100_and_grows_with_each_word(times: list[int]) -> None:
    before = accuracy(times)
    assert 0 <= before <= 100
    assert (before == 0) == (not any(times)) and (before == 100) == all(one >= 5 for one in times)
    for place in range(len(times)):
        assert accuracy([*times[:place], times[place] + 1, *times[place + 1 :]]) >= before


def precifunc(counts: list[int]) -> float:
    """RCrawler's function, from its formula: a share, and a fifth of it for each time up to five, halved."""
    total = 0.0
    for number in counts:
        times = min(number, 5)
        score = 0.0
        if times > 0:
            score = 100 / len(counts)
        if times > 1:
            score += times * (100 / (len(counts) * 5))
        total += score / 2
    return total


@given(counts)
def test_it_is_that_of_rcrawler(times: list[int]) -> None:
    assert accuracy(times) == pytest.approx(precifunc(times), abs=0.006)
