"""Signs of a crawler trap in one URL: its path repeats itself, or path or query have grown out of measure.

Heritrix has rules for the first two (PathologicalPathDecideRule, TooManyPathSegmentsDecideRule), and so has BUbiNG
(DuplicateSegmentsLessThan). The numbers are Heritrix's; of the arguments, ours.
"""

from __future__ import annotations

from collections import Counter

from scrapy_ubi.urls.filters.base import Link, SuiteFilter, one, only, target_of, whole_number
from scrapy_ubi.urls.filters.text import Arguments

REPEATS, SEGMENTS, QUERY = 3, 20, 30


class Traps(SuiteFilter):
    """`traps(repeats=3, segments=20, query=30)`; 0 switches a part off, and the defaults need not be written.

    * `repeats`: refused is a path with so many equal runs of segments one after the other (`/a/b/a/b/a/b`), and a query
      with so many equal arguments;
    * `segments`: more path segments than so many;
    * `query`: more arguments than so many. A query that grows with each page ends there.
    """

    def __init__(self, repeats: int = REPEATS, segments: int = SEGMENTS, query: int = QUERY) -> None:
        self.repeats, self.segments, self.query = repeats, segments, query

    @classmethod
    def parse(cls, arguments: Arguments) -> Traps:
        only(arguments, "repeats", "segments", "query")
        repeats = one(arguments, "repeats", str(REPEATS))
        return cls(
            repeats=0 if repeats == "0" else whole_number(repeats, 2, 100),
            segments=whole_number(one(arguments, "segments", str(SEGMENTS)), 0, 10_000),
            query=whole_number(one(arguments, "query", str(QUERY)), 0, 10_000),
        )

    def arguments(self) -> Arguments:
        given = {"repeats": self.repeats, "segments": self.segments, "query": self.query}
        defaults = {"repeats": REPEATS, "segments": SEGMENTS, "query": QUERY}
        return {key: (str(value),) for key, value in given.items() if value != defaults[key]}

    def refuses(self, link: Link) -> str:
        path, _, query = target_of(link.normal).partition("?")
        slashes = path.count("/")
        if self.segments and slashes - path.endswith("/") > self.segments:
            return "segments"
        if query and self.query and query.count("&") >= self.query:
            return "query"
        if not self.repeats:
            return ""
        # That many slashes and ampersands are needed before anything can repeat.
        if slashes >= self.repeats and repeated(path[1:].split("/"), self.repeats):
            return "repeats"
        if (
            query
            and query.count("&") >= self.repeats - 1
            and Counter(query.split("&")).most_common(1)[0][1] >= self.repeats
        ):
            return "repeats"
        return ""


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
