"""The rankers that come with the package, and the one of a crawl, as UBI_RANK names it: one of these, a weighted sum of
several, or one of the user's.

Rules of this module:

* The text is in the grammar of UBI_FILTERS and UBI_SCORE, or a tuple of a name and its arguments. What is malformed is
  a `UbiSettingError` at the start that names UBI_RANK and the remedy.
* A ranker of the user's is a class, or an object, with `page` and `scores`, named by its dotted path.
* A ranker is made of the arguments of its text in UBI_RANK (`from_arguments`), and says by `FilterError` what is
  wrong with them.
* Each takes a microsecond or less a link and a candidate, so that what a ranking takes is the reading of rows.

What a ranker keeps of hosts is bounded over all hosts (`HostTables`): at most `MOST_KEYS` keys are held. Where one more
is wanted, the tables of the host that was asked for longest ago go; where that is the only one, the key is not taken,
and those that are there go on. A host whose tables went begins again: its queue is ranked by what its pages teach from
then on.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from math import fsum
from typing import Generic, TypeVar

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.policy.ranking.ranker_contract import Candidate, Page, Ranker
from scrapy_ubi.urls.filters.base import only
from scrapy_ubi.urls.filters.filter_text import (
    Arguments,
    Call,
    FilterError,
    calls_of,
    made_of,
    parse_calls,
)
from scrapy_ubi.urls.scores import LinkBatch
from scrapy_ubi.urls.scores.link_batch import number
from scrapy_ubi.urls.scores.scorers import KeywordScore

MOST_KEYS = 500_000  # over all hosts: some 50 MB

Number = TypeVar("Number", int, float)


class HostTables(Generic[Number]):
    """Tables by host, from the one asked for longest ago to the last one."""

    def __init__(self, most: int = MOST_KEYS) -> None:
        self._most = most
        self._tables: OrderedDict[str, dict[int, Number]] = OrderedDict()
        self.held = 0

    def get_table(self, host: str) -> dict[int, Number]:
        """The table of a host, to be read; keys are put in by `put`."""
        table = self._tables.get(host)
        if table is None:
            table = self._tables[host] = {}
        self._tables.move_to_end(host)
        return table

    def put(self, table: dict[int, Number], key: int, value: Number) -> None:
        """Put a number into the table that was asked for last, if there is room."""
        if key not in table:
            while self.held >= self._most and len(self._tables) > 1:
                _, dropped = self._tables.popitem(last=False)
                self.held -= len(dropped)
            if self.held >= self._most:
                return
            self.held += 1
        table[key] = value

    def __len__(self) -> int:
        return len(self._tables)


class BreadthFirst:
    """`bfs`: less its depth. What was found first comes first of one depth."""

    @classmethod
    def from_arguments(cls, arguments: Arguments) -> BreadthFirst:
        only(arguments)
        return cls()

    def page(self, host: str, page: Page) -> None:
        """Teaches nothing."""

    def scores(self, host: str, candidates: Sequence[Candidate]) -> list[float]:
        return [-candidate.depth for candidate in candidates]


class KeywordRank:
    """`keywords(crawler, "web archive", weight=10)`: so much for each of these that the URL has, as in UBI_SCORE."""

    def __init__(self, score: KeywordScore) -> None:
        self._score = score

    @classmethod
    def from_arguments(cls, arguments: Arguments) -> KeywordRank:
        return cls(KeywordScore.from_arguments(arguments))

    def page(self, host: str, page: Page) -> None:
        """Teaches nothing."""

    def scores(self, host: str, candidates: Sequence[Candidate]) -> list[float]:
        urls = [candidate.url for candidate in candidates]
        return self._score(LinkBatch(urls, [""] * len(urls), 0, "", 0.0))


class Backlinks:
    """`backlinks`: how many loaded pages of the host link to it (Cho, Garcia-Molina, Page, 1998)."""

    def __init__(self, most: int = MOST_KEYS) -> None:
        self._counts: HostTables[int] = HostTables(most)

    @classmethod
    def from_arguments(cls, arguments: Arguments) -> Backlinks:
        only(arguments)
        return cls()

    def page(self, host: str, page: Page) -> None:
        counts, put = self._counts.get_table(host), self._counts.put
        for key in {link.key for link in page.links} - {page.key}:
            put(counts, key, counts.get(key, 0) + 1)

    def scores(self, host: str, candidates: Sequence[Candidate]) -> list[float]:
        counts = self._counts.get_table(host)
        return [counts.get(candidate.key, 0) for candidate in candidates]


class ShortestPath:
    """`shortest_path`: less the number of links inside the host from the page by which the host was entered.

    The distance of a page's links is one more than that of the page when it was taken. What no page of the host links
    to is an entrance.
    """

    def __init__(self) -> None:
        self._distances: HostTables[int] = HostTables()

    @classmethod
    def from_arguments(cls, arguments: Arguments) -> ShortestPath:
        only(arguments)
        return cls()

    def page(self, host: str, page: Page) -> None:
        distances, put = self._distances.get_table(host), self._distances.put
        far = distances.get(page.key, 0) + 1
        for key, _ in page.links:
            if key != page.key and far < distances.get(key, far + 1):
                put(distances, key, far)

    def scores(self, host: str, candidates: Sequence[Candidate]) -> list[float]:
        distances = self._distances.get_table(host)
        return [-distances.get(candidate.key, 0) for candidate in candidates]


ALL_CASH = 1_000_000.0  # of a host: 10,000 candidates have 100 on average
_BANK = -1  # in place of a key
_LOADED = -1.0  # in place of cash


class Opic:
    """`opic`: the cash that a page has got from those that link to it (Abiteboul, Preda, Cobena: OPIC, 2003), in one
    host.

    * The pages of a host have `ALL_CASH` together. It begins with the first page; a page that is loaded gives its cash
      to its links, in equal parts. The score of a candidate is its cash.
    * Each page is loaded once. What a loaded page is given, and what one without links has, goes to the *bank* of the
      host, which gives all of it to the next page that is loaded: the virtual page of OPIC, that all pages link to and
      that links to all.
    * Cash is not told other hosts: known links are not told to their hosts at all, which is what makes a crawl of many
      agents cheap.
    """

    def __init__(self) -> None:
        self._cash: HostTables[float] = HostTables()

    @classmethod
    def from_arguments(cls, arguments: Arguments) -> Opic:
        only(arguments)
        return cls()

    def page(self, host: str, page: Page) -> None:
        cash, put = self._cash.get_table(host), self._cash.put
        own = cash.get(page.key, 0.0) if cash else ALL_CASH
        if own == _LOADED:
            return
        own += cash.get(_BANK, 0.0)
        put(cash, _BANK, 0.0)
        put(cash, page.key, _LOADED)
        to = [key for key in dict.fromkeys(link.key for link in page.links) if key != page.key]
        share = own / max(1, len(to))
        rest = 0.0 if to else own
        for key in to:
            before = cash.get(key, 0.0)
            if before == _LOADED:
                rest += share
                continue
            put(cash, key, before + share)
            rest += 0.0 if key in cash else share
        put(cash, _BANK, rest)

    def scores(self, host: str, candidates: Sequence[Candidate]) -> list[float]:
        cash = self._cash.get_table(host)
        return [max(0.0, cash.get(candidate.key, 0.0)) for candidate in candidates]


SETTING = "UBI_RANK"
MOST_PARTS = 20  # of a sum

SUITE: dict[str, Callable[[Arguments], Ranker]] = {
    "bfs": BreadthFirst.from_arguments,
    "keywords": KeywordRank.from_arguments,
    "backlinks": Backlinks.from_arguments,
    "shortest_path": ShortestPath.from_arguments,
    "opic": Opic.from_arguments,
}
SUM = "composite"
EXAMPLE = "give one ranker, such as 'backlinks', 'keywords(crawler, weight=10)', or the dotted path of your own"
SUM_EXAMPLE = "write them as in 'composite(backlinks, opic, weights=10, 0.001)'"


class WeightedSum:
    """`composite(backlinks, "keywords(crawler)", weights=1, 10)`: so much of what each of these says.

    The sum is exact before it is rounded, so that the order of the rankers does not matter.
    """

    def __init__(self, rankers: Sequence[Ranker], weights: Sequence[float]) -> None:
        self._rankers = tuple(rankers)
        self._weights = tuple(weights)

    @classmethod
    def from_arguments(cls, arguments: Arguments) -> WeightedSum:
        only(arguments, "", "weights")
        texts = arguments.get("", ())
        if not 1 <= len(texts) <= MOST_PARTS:
            raise FilterError(f"names {len(texts)} rankers to add up, and 1 to {MOST_PARTS} can be", SUM_EXAMPLE)
        weights = [number(text) for text in arguments.get("weights", ("1",) * len(texts))]
        if len(weights) != len(texts):
            raise FilterError(f"has {len(weights)} weights for {len(texts)} rankers", SUM_EXAMPLE)
        return cls([_only_one(parse_calls(text)) for text in texts], weights)

    def page(self, host: str, page: Page) -> None:
        for ranker in self._rankers:
            ranker.page(host, page)

    def scores(self, host: str, candidates: Sequence[Candidate]) -> list[float]:
        columns = [ranker.scores(host, candidates) for ranker in self._rankers]
        weights = self._weights
        return [fsum(map(float.__mul__, map(float, each), weights)) for each in zip(*columns, strict=True)]


def read_rank(entry: object) -> Ranker:
    """The ranker of UBI_RANK. Raises UbiSettingError."""
    try:
        return _only_one(calls_of(entry, "is no ranker", EXAMPLE))
    except FilterError as error:
        raise UbiSettingError(SETTING, f"has {entry!r:.200}, which {error.problem}", error.remedy) from error


def _only_one(calls: list[Call]) -> Ranker:
    if len(calls) != 1:
        raise FilterError(f"names {len(calls)} rankers where one is meant", f"for several, {SUM_EXAMPLE}")
    return _make(calls[0])


def _make(call: Call) -> Ranker:
    if call.name == SUM:
        return WeightedSum.from_arguments(call.arguments)
    if (known := SUITE.get(call.name)) is not None:
        return known(call.arguments)
    found: Ranker = made_of(call, (*SUITE, SUM), "ranker")
    if not (callable(getattr(found, "page", None)) and callable(getattr(found, "scores", None))):
        raise FilterError(
            f"names {call.name!r}, which has no page() and scores()",
            "give a class with page(host, page) and scores(host, candidates)",
        )
    return found
