"""LARM's last filter: what is known already."""

from __future__ import annotations

from collections.abc import Callable

from scrapy_ubi.urls.filters.base import Link, SuiteFilter, only
from scrapy_ubi.urls.filters.filter_text import Arguments


def _nothing(link: Link) -> bool:
    """What a filter knows that belongs to no crawl."""
    return False


class Visited(SuiteFilter):
    """`visited`: no URL that this agent knows to be known. Known URLs are never fetched again, with it or without; it
    says at which place of the chain they are dropped. `is_known` is the crawl's.
    """

    def __init__(self) -> None:
        self.is_known: Callable[[Link], bool] = _nothing

    @classmethod
    def parse(cls, arguments: Arguments) -> Visited:
        only(arguments)
        return cls()

    def refuses(self, link: Link) -> str:
        return "known" if self.is_known(link) else ""
