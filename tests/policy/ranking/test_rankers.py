"""The rankers of the package: what they say of candidates after some pages, and what UBI_RANK may be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.policy.ranking import Page, PageLink, Ranker, read_rank
from scrapy_ubi.policy.ranking.rankers import ALL_CASH, Backlinks, HostTables, Opic, ShortestPath

HOST = "h.example"


class Waiting(NamedTuple):
    """A candidate."""

    key: int
    url: str = ""
    depth: int = 0


class Own:
    """A ranker of a user's: the last digit of a key, times a factor."""

    def __init__(self, factor: str = "1", names: tuple[str, ...] = ()) -> None:
        self.factor, self.names = int(factor), names

    def page(self, host: str, page: Page) -> None: ...

    def scores(self, host: str, candidates: Sequence[Waiting]) -> list[float]:
        return [self.factor * (candidate.key % 10) for candidate in candidates]


own = Own("2")


def page(key: int, *links: int, depth: int = 0) -> Page:
    return Page(key, f"http://{HOST}/{key}", depth, 200, [PageLink(to, f"http://{HOST}/{to}") for to in links])


def told(ranker: Ranker, *pages: Page, host: str = HOST) -> Ranker:
    for each in pages:
        ranker.page(host, each)
    return ranker


def scores(ranker: Ranker, *keys: int, host: str = HOST) -> list[float]:
    return [*ranker.scores(host, [Waiting(key) for key in keys])]


def test_backlinks_count_pages_not_links() -> None:
    ranker = told(Backlinks(), page(1, 2, 2, 3, 1), page(2, 3, 1))
    assert scores(ranker, 1, 2, 3, 4) == [1, 1, 2, 0]


def test_backlinks_of_one_host_are_not_those_of_another() -> None:
    ranker = told(told(Backlinks(), page(1, 2)), page(1, 2), page(3, 2), host="other.example")
    assert scores(ranker, 2) == [1] and scores(ranker, 2, host="other.example") == [2]


def test_shortest_path_counts_from_the_page_by_which_the_host_was_entered() -> None:
    ranker = told(ShortestPath(), page(1, 2, 3), page(3, 4), page(2, 3, 4, 5))
    assert scores(ranker, 2, 3, 4, 5, 9) == [-1, -1, -2, -2, 0]
    assert scores(told(ranker, page(9, 5)), 5) == [-1], "a nearer entrance"


def test_opic_gives_what_a_page_has_to_its_links() -> None:
    ranker = told(Opic(), page(1, 2, 3))
    assert scores(ranker, 2, 3) == [ALL_CASH / 2, ALL_CASH / 2]
    told(ranker, page(2, 3, 1, 4, 5))
    assert scores(ranker, 3, 4, 5) == [ALL_CASH * 5 / 8, ALL_CASH / 8, ALL_CASH / 8]
    told(ranker, page(3))  # has all that is left for the bank, and what page 1 was given by page 2
    told(ranker, page(4, 5))
    assert scores(ranker, 5) == [ALL_CASH], "nothing is lost"


def test_keywords_and_depth() -> None:
    urls = ["http://h.example/crawler/x", "http://h.example/other"]
    ranker = read_rank("keywords(crawler, weight=7)")
    assert ranker.scores(HOST, [Waiting(1, url) for url in urls]) == [7, 0]
    assert read_rank("bfs").scores(HOST, [Waiting(1, "", 3), Waiting(2, "", 1)]) == [-3, -1]


def test_a_sum_is_weighted_and_tells_all_its_rankers() -> None:
    ranker = told(read_rank('composite(backlinks, "keywords(a, weight=1)", weights=2, 10)'), page(1, 2), page(3, 2))
    assert ranker.scores(HOST, [Waiting(2, "http://h.example/a"), Waiting(4, "http://h.example/a")]) == [14, 10]
    assert scores(told(read_rank("composite(backlinks, bfs)"), page(1, 2)), 2) == [1]


def test_rankers_of_ones_own() -> None:
    assert scores(read_rank(f"{__name__}.Own(3)"), 12) == [6]
    assert scores(read_rank((f"{__name__}.Own", 3, {"names": ["a", "b"]})), 12) == [6]
    assert scores(read_rank(f"{__name__}.own"), 12) == [4]


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("nothing", "names the ranker 'nothing'.*the rankers are backlinks, bfs, composite"),
        ("backlinks(3)", "has an argument without a key"),
        ("backlinks; opic", "names 2 rankers where one is meant.*composite"),
        ("", "names 0 rankers"),
        ("keywords()", "lacks keywords"),
        ("composite()", "names 0 rankers to add up"),
        ("composite(bfs, opic, weights=1)", "has 1 weights for 2 rankers"),
        ("composite(bfs, weights=x)", "has the argument 'x'"),
        ("composite(nothing)", "names the ranker 'nothing'"),
        ("no.such.Ranker", "cannot be loaded"),
        (f"{__name__}.Waiting(1)", r"has no page\(\) and scores\(\)"),
        (f"{__name__}.own(1)", "gives arguments to what is no class"),
        (7, "is no ranker"),
    ],
    ids=lambda value: None if isinstance(value, str) and "." in value else str(value)[:20],
)
def test_what_does_not_hold_is_said_with_the_remedy(entry: Any, says: str) -> None:
    with pytest.raises(UbiSettingError, match=f"(?s)UBI_RANK.*{says}"):
        read_rank(entry)


def test_tables_of_the_host_asked_for_longest_ago_go_first() -> None:
    tables: HostTables[int] = HostTables(most=4)
    for host in ("a", "b"):
        for key in (1, 2):
            tables.put(tables.get_table(host), key, key)
    tables.put(tables.get_table("a"), 3, 3)
    assert tables.get_table("b") == {} and tables.get_table("a") == {1: 1, 2: 2, 3: 3} and tables.held == 3


def test_of_one_host_alone_no_more_keys_are_taken_but_those_there_go_on() -> None:
    ranker = told(Backlinks(most=2), page(1, 2, 3), page(2, 4, 5), page(4, 2, 3))
    assert sorted(scores(ranker, 2, 3)) == [2, 2] and scores(ranker, 4, 5) == [0, 0]
