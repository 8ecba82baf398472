"""The rankers that come with the package, but for those that need a page of their own.

Rules of this module:

* A ranker is made of the arguments of its text in UBI_RANK (`from_arguments`), and says by `FilterError` what is
  wrong with them.
* Each takes a microsecond or less a link and a candidate, so that what a ranking takes is the reading of rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from scrapy_ubi.policy.ranking.host_tables import MOST_KEYS, HostTables
from scrapy_ubi.policy.ranking.ranker_contract import Candidate, Page
from scrapy_ubi.urls.filters.base import only
from scrapy_ubi.urls.filters.filter_text import Arguments
from scrapy_ubi.urls.scores import LinkBatch
from scrapy_ubi.urls.scores.scorers import KeywordScore


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

    def __init__(self, most: int = MOST_KEYS) -> None:
        self._distances: HostTables[int] = HostTables(most)

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
