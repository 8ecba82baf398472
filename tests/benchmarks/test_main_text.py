"""The pages that `benchmarks/main_text.py` makes: of each kind our way finds the main text."""

from __future__ import annotations

from collections import defaultdict
from statistics import mean

import pytest

from benchmarks.main_text import as_words, f1, ours, words
from benchmarks.main_text_pages import made_pages

pytest.importorskip("html_to_markdown")


@pytest.mark.parametrize("seed", [1, 2])
def test_the_main_text_of_pages_of_ten_kinds_is_found(seed: int) -> None:
    scores: dict[str, list[float]] = defaultdict(list)
    for page in made_pages(seed):
        scores[page.kind].append(f1(ours(page.html, page.url), page.text))
    assert len(scores) == 10 and all(len(found) == 10 for found in scores.values())
    assert min(map(mean, scores.values())) > 0.98 and min(map(min, scores.values())) > 0.9


def test_what_is_counted_are_words() -> None:
    assert words("One two-two, 日本") == {"one": 1, "two": 2, "日": 1, "本": 1}
    assert as_words("1. see [this](http://a/(b)c) now").split() == ["see", "[this]", "now"]
    assert f1("a b", "a b") == 1.0 and f1("a", "b") == 0.0 and f1("", "") == 1.0
