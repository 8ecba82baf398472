"""What scorers add up to: in any order, within bounds, and whatever a scorer of the user's does."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.urls.scores import MOST_SCORE, LinkBatch, ScoreChain
from scrapy_ubi.urls.scores.link_batch import Scorer

NUMBERS = st.floats(allow_nan=False) | st.integers()


class Length:
    """A scorer of a user's: so much for each character."""

    def __init__(self, each: str, most: str = "9") -> None:
        self.each, self.most = float(each), float(most)

    def __call__(self, links: LinkBatch) -> Iterable[float]:
        return (min(self.most, self.each * len(url)) for url in links.urls)


def words(links: LinkBatch) -> list[float]:
    return [len(anchor.split()) for anchor in links.anchors]


def batch(*urls: str) -> LinkBatch:
    return LinkBatch(urls, [""] * len(urls), 0, "", 0.0)


def fixed(*values: Any) -> Scorer:
    """Says these of the links whose URLs are their numbers."""
    return Scorer("fixed", "fixed", lambda links: [values[int(url)] for url in links.urls])


@given(values=st.lists(st.lists(NUMBERS, min_size=3, max_size=3), max_size=5), order=st.randoms())
def test_the_order_of_scorers_does_not_matter_and_bounds_hold(values: list[list[float]], order: Any) -> None:
    urls = batch("0", "1", "2")
    scorers = [fixed(*each) for each in values]
    scores = ScoreChain(scorers).scores(urls)
    assert all(type(score) is int and abs(score) <= MOST_SCORE for score in scores)
    order.shuffle(scorers)
    assert ScoreChain(scorers).scores(urls) == scores


def test_sums_are_exact_rounded_and_cut() -> None:
    assert ScoreChain([fixed(0.1)] * 10).scores(batch("0")) == [1]
    assert ScoreChain([fixed(math.inf), fixed(5)]).scores(batch("0")) == [MOST_SCORE]
    assert ScoreChain([fixed(-1e300), fixed(MOST_SCORE)]).scores(batch("0")) == [0]
    assert ScoreChain([]).scores(batch("a", "b")) == [0, 0]


def test_scorers_of_the_user_by_dotted_path() -> None:
    module = __name__
    chain = ScoreChain.read([f"{module}.Length(2, most=7) {module}.words", (f"{module}.Length", "1")])
    assert [scorer.name for scorer in chain.scorers] == ["length", "words", "length"]
    assert chain.scores(LinkBatch(["abc", "abcd"], ["x y", ""], 0, "", 0.0)) == [6 + 2 + 3, 7 + 0 + 4]
    assert str(ScoreChain.read([str(chain)])) == str(chain)


def boom(links: LinkBatch) -> list[float]:
    raise RuntimeError(links.urls)


@pytest.mark.parametrize(
    ("score", "reason"),
    [
        (boom, "raised"),
        (lambda links: [math.nan for _ in links.urls], "nan"),
        (lambda links: ["5" for _ in links.urls], "answer"),
        (lambda links: [1], "answer"),
        (lambda links: [10**400 for _ in links.urls], "answer"),
        (lambda links: None, "raised"),
    ],
    ids=["raises", "nan", "text", "too few", "too large", "none"],
)
def test_a_scorer_that_fails_adds_nothing_and_is_reported(score: Any, reason: str) -> None:
    told: list[tuple[str, str]] = []
    chain = ScoreChain([Scorer("mine", "my.mine", score), fixed(3, 4)], lambda by, why, _: told.append((by.name, why)))
    if reason == "answer" and score(batch("0", "1")) == [1]:
        assert chain.scores(batch("0", "1")) == [4, 5]  # asked for each alone, it answers
        assert not told
        return
    assert chain.scores(batch("0", "1")) == [3, 4]
    assert told == [("mine", reason)] * 2


@given(wrong=st.sets(st.integers(0, 5)))
def test_what_fails_for_some_links_is_right_for_the_others(wrong: set[int]) -> None:
    def picky(links: LinkBatch) -> list[float]:
        return [1 / (int(url) not in wrong) for url in links.urls]

    urls = batch(*map(str, range(6)))
    assert ScoreChain([Scorer("picky", "picky", picky)]).scores(urls) == [int(n not in wrong) for n in range(6)]
