"""The ranker of a crawl, as UBI_RANK names it: one of the package's, a weighted sum of several, or one of the user's.

Rules of this module:

* The text is in the grammar of UBI_FILTERS and UBI_SCORE, or a tuple of a name and its arguments. What is malformed is
  a `UbiSettingError` at the start that names UBI_RANK and the remedy.
* A ranker of the user's is a class, or an object, with `page` and `scores`, named by its dotted path.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import fsum

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.policy.ranking.ranker_contract import Candidate, Page, Ranker
from scrapy_ubi.policy.ranking.rankers import Backlinks, BreadthFirst, KeywordRank, Opic, ShortestPath
from scrapy_ubi.urls.filters.base import only
from scrapy_ubi.urls.filters.filter_text import (
    Arguments,
    Call,
    FilterError,
    calls_of,
    made_with,
    named_class,
    parse_calls,
)
from scrapy_ubi.urls.scores.link_batch import number

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
    found = named_class(call.name, (*SUITE, SUM), "ranker")
    if isinstance(found, type):
        found = made_with(found, call.arguments)
    elif any(call.arguments.values()):
        raise FilterError("gives arguments to what is no class", "name a class, whose __init__ takes them")
    if not (callable(getattr(found, "page", None)) and callable(getattr(found, "scores", None))):
        raise FilterError(
            f"names {call.name!r}, which has no page() and scores()",
            "give a class with page(host, page) and scores(host, candidates)",
        )
    return found  # type: ignore[return-value]
