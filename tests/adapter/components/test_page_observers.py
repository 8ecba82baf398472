"""Which observers an agent has: those of what its settings turn on, in their order."""

from __future__ import annotations

from typing import Any

import pytest

from scrapy_ubi.adapter.downloads.page_room import PageRoom
from scrapy_ubi.adapter.process.error_log import ErrorWatch
from scrapy_ubi.adapter.requests.observers import PageObserver
from scrapy_ubi.adapter.robots.sitemaps import Sitemaps, SitemapsOnly
from scrapy_ubi.adapter.scheduling.sessions import Sessions
from scrapy_ubi.adapter.scheduling.small_observers import LearnedContent, RankedPages, StartHosts
from scrapy_ubi.adapter.scheduling.visited_pages import VisitedPages
from scrapy_ubi.outputs.duplicates.judge import DuplicateLinks
from scrapy_ubi.settings.values import RecrawlUse, SitemapUse
from tests.adapter.components.unit import Unit

USUAL = [PageRoom, Sessions, StartHosts, ErrorWatch]
ALL = [
    PageRoom, Sessions, VisitedPages, StartHosts, DuplicateLinks, RankedPages, LearnedContent, ErrorWatch, Sitemaps,
    SitemapsOnly,
]  # fmt: skip


def there(unit: Unit) -> list[type[PageObserver]]:
    return [cls for cls in ALL if unit.observers.find_observer(cls) is not None]


@pytest.mark.parametrize(
    ("settings", "more", "less"),
    [
        ({}, [], []),
        ({"private_hosts": "allow"}, [], [StartHosts]),
        ({"sitemaps": SitemapUse("first")}, [Sitemaps], []),
        ({"sitemaps": SitemapUse("only")}, [Sitemaps, SitemapsOnly], []),
        ({"recrawl": RecrawlUse("every(1h)")}, [VisitedPages], []),
    ],
)
def test_only_what_is_on_looks_at_pages(
    settings: dict[str, Any], more: list[type[PageObserver]], less: list[type[PageObserver]]
) -> None:
    assert set(there(Unit(**settings))) == {*USUAL, *more} - set(less)


def test_what_nothing_is_on_for_has_an_empty_list() -> None:
    observers = Unit().observers
    assert not observers.refuses and not observers.yielded and not observers.passes_over and not observers.marks
