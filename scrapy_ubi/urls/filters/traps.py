"""Signs of a crawler trap: a path that repeats itself, a path or query out of measure, URLs of one kind without end.

Heritrix has rules for the first two (PathologicalPathDecideRule, TooManyPathSegmentsDecideRule), and so has BUbiNG
(DuplicateSegmentsLessThan). The numbers are Heritrix's; of the arguments, ours.
"""

from __future__ import annotations

from collections import Counter

from scrapy_ubi.urls.filters.base import Link, SuiteFilter, one, only, target_of, whole_number
from scrapy_ubi.urls.filters.combinations import Combinations
from scrapy_ubi.urls.filters.filter_text import Arguments

REPEATS, SEGMENTS, QUERY, COMBINATIONS = 3, 20, 30, 1000


class Traps(SuiteFilter):
    """`traps(repeats=3, segments=20, query=30, combinations=1000)`; 0 switches a part off, and the defaults need not be
    written.

    * `repeats`: refused is a path with so many equal runs of segments one after the other (`/a/b/a/b/a/b`), and a query
      with so many equal arguments;
    * `segments`: more path segments than so many;
    * `query`: more arguments than so many. A query that grows with each page ends there;
    * `combinations`: more URLs than so many that differ in the values of their arguments only, found on pages of the
      same host that have such an argument themselves. A calendar ends there. What was let through is kept.
    """

    def __init__(
        self, repeats: int = REPEATS, segments: int = SEGMENTS, query: int = QUERY, combinations: int = COMBINATIONS
    ) -> None:
        self.repeats = repeats
        self.segments = segments
        self.query = query
        self.combinations = combinations
        self._passed = Combinations(combinations)

    @classmethod
    def parse(cls, arguments: Arguments) -> Traps:
        only(arguments, "repeats", "segments", "query", "combinations")
        repeats = one(arguments, "repeats", str(REPEATS))
        return cls(
            repeats=0 if repeats == "0" else whole_number(repeats, 2, 100),
            segments=whole_number(one(arguments, "segments", str(SEGMENTS)), 0, 10_000),
            query=whole_number(one(arguments, "query", str(QUERY)), 0, 10_000),
            combinations=whole_number(one(arguments, "combinations", str(COMBINATIONS)), 0, 100_000),
        )

    def arguments(self) -> Arguments:
        given = {"repeats": self.repeats, "segments": self.segments, "query": self.query}
        given["combinations"] = self.combinations
        defaults = {"repeats": REPEATS, "segments": SEGMENTS, "query": QUERY, "combinations": COMBINATIONS}
        return {key: (str(value),) for key, value in given.items() if value != defaults[key]}

    def refuses(self, link: Link) -> str:
        path, _, query = target_of(link.normal).partition("?")
        slashes = path.count("/")
        if self.segments and slashes - path.endswith("/") > self.segments:
            return "segments"
        if query and self.query and query.count("&") >= self.query:
            return "query"
        if self.repeats and _repeats(path, slashes, query, self.repeats):
            return "repeats"
        if query and self.combinations and "?" in link.page and self._passed.refuses(link.normal, link.page):
            return "combinations"
        return ""


def _repeats(path: str, slashes: int, query: str, times: int) -> bool:
    # That many slashes and ampersands are needed before anything can repeat.
    if slashes >= times and repeated(path[1:].split("/"), times):
        return True
    return query.count("&") >= times - 1 and Counter(query.split("&")).most_common(1)[0][1] >= times


MOST_SEGMENTS = 500  # looked at for repetitions: the comparisons are about the square of that


def repeated(segments: list[str], times: int) -> bool:
    """Whether some run of segments stands so many times one after the other. An empty last segment does not count."""
    segments = segments[:-1] if segments[-1:] == [""] else segments
    segments = segments[:MOST_SEGMENTS]
    count = len(segments)
    if len(set(segments)) > count - (times - 1):
        return False
    for period in range(1, count // times + 1):
        alike = 0
        for at in range(period, count):
            alike = alike + 1 if segments[at] == segments[at - period] else 0
            if alike == period * (times - 1):
                return True
    return False
