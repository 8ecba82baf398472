"""The scorers that come with the package: words of a link, its depth, its path, a date in its URL.

Rules of this module:

* A scorer is made of the arguments of its text in UBI_SCORE (`from_arguments`), and says by `FilterError` what is
  wrong with them.
* Cheap: each takes a microsecond or two a link, however hostile the link is. Of a URL the first `MOST_URL` characters
  are looked at, of a text the first `MOST_ANCHOR`; nothing is tried again and again at each place of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from functools import lru_cache
from urllib.parse import unquote

from scrapy_ubi.urls.filters.base import one, only
from scrapy_ubi.urls.filters.filter_text import Arguments, FilterError
from scrapy_ubi.urls.scores.link_batch import LinkBatch, number

MOST_URL, MOST_ANCHOR = 2_048, 1_000  # characters
WEIGHT = "10"
DAYS = "365"  # in which the worth of a date halves
_DAY = 86_400

_IN_HOST = len("https://")
_date = re.compile(
    r"(?<![0-9])((?:19|20)[0-9]{2})(?:([/_.-]?)(0[1-9]|1[0-2])(?:\2(0[1-9]|[12][0-9]|3[01]))?)?(?![0-9])"
).search


class KeywordScore:
    """`keywords(crawler, "web archive", weight=10)`: so much for each of these that a link's URL or text has.

    A keyword is found at the beginning of a word, in any case: `crawl` in `crawling`, not in `recrawl`. Between the
    words of one with spaces anything may stand that is neither letter nor digit: `web-archive`. A URL is unescaped.
    """

    def __init__(self, keywords: tuple[str, ...], weight: float) -> None:
        texts = list(dict.fromkeys(" ".join(keyword.lower().split()) for keyword in keywords))
        if not texts or not all(texts):
            raise FilterError("lacks keywords, or has an empty one", "name some, as in 'keywords(crawler, weight=10)'")
        self._weight = weight
        # The first word of each, which most links do not have, is looked for in a twentieth of the time.
        self._each = [(text.split()[0], _at_a_word(text)) for text in texts]

    @classmethod
    def from_arguments(cls, arguments: Arguments) -> KeywordScore:
        only(arguments, "", "weight")
        return cls(arguments.get("", ()), number(one(arguments, "weight", WEIGHT)))

    def __call__(self, links: LinkBatch) -> list[float]:
        return [self._one(url, anchor) for url, anchor in zip(links.urls, links.anchors, strict=True)]

    def _one(self, url: str, anchor: str) -> float:
        url = url[:MOST_URL]
        text = f"{unquote(url) if '%' in url else url} {anchor[:MOST_ANCHOR]}".lower()
        count = 0
        for first, found in self._each:
            if first in text and found(text):
                count += 1
        return self._weight * count


def _at_a_word(text: str) -> Callable[[str], object]:
    """Looks for these words, the first of them at its beginning."""
    words = r"[\W_]+".join(map(re.escape, text.split()))
    return re.compile(rf"(?<![^\W_]){words}").search


class DepthScore:
    """`depth(-1)`: so much for each link between a seed and this one."""

    def __init__(self, each: float) -> None:
        self._each = each

    @classmethod
    def from_arguments(cls, arguments: Arguments) -> DepthScore:
        only(arguments, "")
        return cls(number(one(arguments, "", "")))

    def __call__(self, links: LinkBatch) -> list[float]:
        return [self._each * links.depth] * len(links.urls)


class PathScore:
    """`path(/docs/=5, */tag/=-5)`: so much where path and query begin so; several may add up.

    As in robots.txt (RFC 9309, section 2.2.3) `*` stands for any characters, and `$` at the end for the end.
    """

    def __init__(self, patterns: Mapping[str, float]) -> None:
        if not patterns:
            raise FilterError("lacks patterns", "give some, as in 'path(/docs/=5, /tag/=-5)'")
        for pattern in patterns:
            if not pattern.startswith(("/", "*")):
                raise FilterError(f"has the pattern {pattern!r}", "begin it with / or *")
        self._patterns = [(_matcher(pattern), value) for pattern, value in patterns.items()]

    @classmethod
    def from_arguments(cls, arguments: Arguments) -> PathScore:
        if "" in arguments:
            raise FilterError(f"has {arguments[''][0]!r} without a number", "give some, as in 'path(/docs/=5)'")
        return cls({pattern: number(one(arguments, pattern, "")) for pattern in arguments})

    def __call__(self, links: LinkBatch) -> list[float]:
        return [self._one(_target(url[:MOST_URL])) for url in links.urls]

    def _one(self, target: str) -> float:
        found = 0.0
        for matches, value in self._patterns:
            if matches(target):
                found += value
        return found


def _target(url: str) -> str:
    """Path and query of a URL as found."""
    url = url.partition("#")[0]
    path = url.find("/", _IN_HOST)
    query = url.find("?", _IN_HOST)
    if 0 <= query < path or (path < 0 <= query):
        return f"/{url[query:]}"
    return url[path:] if path >= 0 else "/"


def _matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a path and query match the pattern: piece by piece, never going back."""
    ends = pattern.endswith("$")
    first, *others = pattern.removesuffix("$").split("*")
    starred = bool(others)
    last = others.pop() if ends and others else ""

    def matches(target: str) -> bool:
        if not target.startswith(first):
            return False
        at = len(first)
        for piece in others:
            at = target.find(piece, at)
            if at < 0:
                return False
            at += len(piece)
        if not ends:
            return True
        return len(target) - at >= len(last) and target.endswith(last) if starred else at == len(target)

    return matches


class FreshScore:
    """`fresh(10, days=365)`: so much for a link with today's date in its path, half for one that is so many days older.

    Dates are `2026/11/27`, `2026-11-27`, `20261127`, and the same without day or month: the last day counts that is
    meant. A date to come counts for nothing: calendars have them.
    """

    def __init__(self, weight: float, days: float) -> None:
        self._weight = weight
        self._days = days

    @classmethod
    def from_arguments(cls, arguments: Arguments) -> FreshScore:
        only(arguments, "", "days")
        return cls(number(one(arguments, "", WEIGHT)), number(one(arguments, "days", DAYS), 0.01, 100_000))

    def __call__(self, links: LinkBatch) -> list[float]:
        today = int(links.now // _DAY)
        return [self._one(_target(url[:MOST_URL]).partition("?")[0], today) for url in links.urls]

    def _one(self, path: str, today: int) -> float:
        found = _date(path) if "20" in path or "19" in path else None
        if found is None:
            return 0.0
        first, last = _days(found[1], found[3] or "", found[4] or "")
        if first > today + 1:  # where the page is it may be tomorrow
            return 0.0
        return self._weight * math.exp2(-max(0, today - last) / self._days)


@lru_cache(4_096)
def _days(year: str, month: str, day: str) -> tuple[int, int]:
    """The first and last day that is meant, in days of unix time. The 31st of a short month is its last day."""
    low = date(int(year), int(month or 1), 1)
    high = date(int(year) + (not month or month == "12"), 1 if not month or month == "12" else int(month) + 1, 1)
    first = _number(low)
    last = _number(high) - 1
    if not day:
        return first, last
    exact = min(first + int(day) - 1, last)
    return exact, exact


def _number(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() // _DAY)
