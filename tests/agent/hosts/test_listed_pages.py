"""What sitemaps say of pages: believed by what visits found, and then a page is due earlier."""

from __future__ import annotations

from typing import Any

from scrapy_ubi.agent.crawl.revisits import past_of
from scrapy_ubi.agent.hosts.listed_pages import MOST_LISTED, ListedPages
from scrapy_ubi.policy.recrawl import VisitSeen, read_recrawl
from scrapy_ubi.protocol.entry import Entry
from scrapy_ubi.protocol.host_visits import HostVisits
from scrapy_ubi.protocol.visit_row import VisitRow

NOW, DAY = 1_800_000_000, 86_400
KEY = 7


def row(**changes: Any) -> VisitRow:
    entry = Entry(KEY, "http://a.example/", 0, 0, "")
    usual = VisitRow(3, NOW + 30 * DAY, 0, 3, 2, NOW - DAY, DAY, 2 * DAY, 5, "", "", entry)
    return usual._replace(**changes)


class Visits(HostVisits):
    """The visits of a host with one row."""

    def __init__(self, one: VisitRow | None) -> None:
        super().__init__()
        self.one, self.count = one, 1

    def row(self, key: int) -> VisitRow | None:
        return self.one if key == KEY else None


class World:
    """Stands for a host's state, its notes, and the frontier."""

    def __init__(self, one: VisitRow | None = None) -> None:
        self.visits = Visits(one)
        self.noted: Any = None
        self.kept: list[VisitRow] = []
        rule = read_recrawl("sitemap(1d, 1h, 30d)")
        assert rule is not None
        self.pages = ListedPages(rule, self, lambda: NOW)  # type: ignore[arg-type]

    def get(self, state: object, section: str) -> Any:
        return self.noted

    def put(self, state: object, section: str, value: Any) -> None:
        assert section == "sitemap"
        self.noted = value

    def keep_row(self, state: object, row: VisitRow) -> bool:
        self.kept.append(row)
        return True

    def listed(self, lastmod: float, key: int = KEY) -> bool:
        return self.pages.listed(self, self, key, lastmod)  # type: ignore[arg-type]

    def judged(self, changed: bool) -> VisitSeen:
        return self.pages.judged(self, KEY, past_of(row()), VisitSeen(NOW, changed))  # type: ignore[arg-type]


def test_a_page_of_a_believed_sitemap_is_due_when_it_says_so() -> None:
    world = World(row())
    world.noted = [3, 0]
    assert world.listed(NOW - 60)
    (kept,) = world.kept
    assert (kept.generation, kept.due) == (4, NOW) and kept._replace(generation=3, due=row().due) == row()


def test_a_sitemap_that_is_not_believed_and_one_without_news_change_nothing() -> None:
    for noted, lastmod in (([2, 0], NOW - 60), (None, NOW - 60), ([3, 0], NOW - 2 * DAY), ("x", NOW - 60)):
        world = World(row())
        world.noted = noted
        assert not world.listed(lastmod) and not world.kept


def test_pages_that_are_out_closing_unknown_or_over_stay_as_they_are() -> None:
    for world in (World(row()), World(row()), World(None), World(row(due=0)), World(row(due=NOW))):
        world.noted = [5, 0]
        if world.visits.one == row() and not world.visits.out:
            world.visits.out = {KEY: row()}
        assert not world.listed(NOW - 60) and not world.kept
    world = World(row())
    world.noted = [5, 0]
    world.visits.close(KEY, None)
    assert not world.listed(NOW - 60)


def test_visits_judge_the_sitemap_and_the_host_keeps_the_belief() -> None:
    world = World(row())
    assert world.judged(True).believed is False and world.noted is None  # not listed
    world.listed(NOW - 60)
    assert [world.judged(True).believed for _ in range(3)] == [False, False, True]
    assert world.noted == [3, 0]
    assert world.judged(False).believed is False and world.noted == [3, 1]


def test_what_is_remembered_has_a_bound() -> None:
    world = World(None)
    for key in range(MOST_LISTED + 10):
        world.listed(NOW, key + 100)
    assert world.pages.remembered == MOST_LISTED
