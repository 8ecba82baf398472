"""Signs of a crawler trap: a path that repeats itself, a path or query out of measure, URLs of one kind without end.

Heritrix has rules for the first two (PathologicalPathDecideRule, TooManyPathSegmentsDecideRule), and so has BUbiNG
(DuplicateSegmentsLessThan). The numbers are Heritrix's; of the arguments, ours.

How many URLs of one kind an agent lets through ends a calendar of query parameters (`Combinations`). URLs of one *kind*
differ only in the values of their arguments: host, path and the names of the arguments are the same. A link counts
where the page it was found on is of the same host and has an argument of one of these names itself: a month links to
the next month, while a list of products, by `page`, links to products, by `id`. Rules of it:

* Of each kind the first `most` different URLs pass; these pass ever after, and no other does.
* In memory are the hashes (64 bits) of URLs that passed: `MOST_URLS` of all kinds, and `MOST_KINDS` kinds. Beyond that
  the kind that was asked about longest ago is forgotten: its count starts from zero.
* It is one agent's count, and starts from zero with the process. Links of a host's own pages are found by its owner.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter, OrderedDict

from mmh3 import hash64

from scrapy_ubi.urls.filters.base import Link, SuiteFilter, host_of, one, only, target_of, whole_number
from scrapy_ubi.urls.filters.filter_text import Arguments
from scrapy_ubi.urls.normal import normal_form

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
        if query and self.combinations and "?" in link.page and self._passed.is_one_too_many(link.normal, link.page):
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


MOST_URLS = 200_000  # about 15 MB
MOST_KINDS = 10_000  # about 5 MB
KIND_SEED, URL_SEED = 0x6B696E64, 0x75726C73  # "kind", "urls"


class Combinations:
    """The URLs that passed, by kind; `most` of each."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._growing: OrderedDict[int, set[int]] = OrderedDict()
        self._full: OrderedDict[int, array[int]] = OrderedDict()  # sorted
        self._urls = 0
        self._page: tuple[str, str, frozenset[str]] = ("", "", frozenset())  # the last one asked about

    def is_one_too_many(self, normal: str, page: str) -> bool:
        """Whether this URL, a normal form with a query, is one too many of its kind."""
        before, _, query = normal.partition("?")
        names = frozenset(part.partition("=")[0] for part in query.split("&"))
        if not self._counts(normal, names, page):
            return False
        kind = hash64("&".join((before, *sorted(names))), KIND_SEED, signed=False)[0]
        url = hash64(normal, URL_SEED, signed=False)[0]
        full = self._full.get(kind)
        if full is not None:
            self._full.move_to_end(kind)
            at = bisect_left(full, url)
            return at == len(full) or full[at] != url
        self._add(kind, url)
        return False

    def _counts(self, normal: str, names: frozenset[str], page: str) -> bool:
        if page != self._page[0]:
            form = normal_form(page) or ""
            query = form.partition("?")[2]
            theirs = frozenset(part.partition("=")[0] for part in query.split("&")) if query else frozenset()
            self._page = (page, host_of(form), theirs)
        return not names.isdisjoint(self._page[2]) and host_of(normal) == self._page[1]

    def _add(self, kind: int, url: int) -> None:
        urls = self._growing.setdefault(kind, set())
        self._growing.move_to_end(kind)
        if url in urls:
            return
        urls.add(url)
        self._urls += 1
        if len(urls) >= self._most:
            self._full[kind] = array("Q", sorted(self._growing.pop(kind)))
        while self._urls > MOST_URLS or len(self._growing) + len(self._full) > MOST_KINDS:
            # What is full is a trap, probably: it is kept for longer. The last that grows is the one asked about.
            table = self._growing if len(self._growing) > 1 else self._full or self._growing
            self._urls -= len(table.popitem(last=False)[1])

    @property
    def kinds(self) -> int:
        """How many kinds of URLs are remembered."""
        return len(self._growing) + len(self._full)

    def __len__(self) -> int:
        return self._urls
