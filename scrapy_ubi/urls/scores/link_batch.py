"""What a scorer is asked about, and what it answers.

Rules of this module:

* A scorer is called with a `LinkBatch` and answers with one number for each of its links, in their order. It decides by
  the batch alone: in a batch of many, a link gets what it gets in a batch of one.
* Links come from the web: URLs are as found, absolute or not, of any length; texts of links are as the page has them.
* A number is a float or an int. Each is cut to `MOST_SCORE`; what is no number is an error of that link's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from scrapy_ubi.urls.filters.filter_text import FilterError

MOST_SCORE = 1_000_000  # of one scorer and of a link; priorities have room for 10^12 on the wire


class LinkBatch(NamedTuple):
    """Links found together. `anchors`: the text of each link, as many as `urls`, "" where it is not at hand; `depth`:
    of all of them, in links from a seed; `page`: the URL that they were found on, "" where that is not known; `now`:
    unix time, seconds."""

    urls: Sequence[str]
    anchors: Sequence[str]
    depth: int
    page: str
    now: float


Score = Callable[[LinkBatch], Iterable[float]]


class Scorer(NamedTuple):
    """A scorer of a chain: its name in stats, its text in UBI_SCORE, and what is called."""

    name: str
    text: str
    score: Score


def cut(value: float) -> float:
    """A number within the bounds of a score."""
    return max(-MOST_SCORE, min(value, MOST_SCORE))


def number(text: str, low: float = -MOST_SCORE, high: float = MOST_SCORE) -> float:
    """The number of an argument. Raises FilterError."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not low <= value <= high:  # not a number compares false
        raise FilterError(f"has the argument {text!r}", f"give a number from {low:,} to {high:,}")
    return value
