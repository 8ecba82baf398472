"""Links and filters to judge them by, and a filter such as users write."""

from __future__ import annotations

from scrapy_ubi.urls import normal_form
from scrapy_ubi.urls.filters import Arguments, Link, UrlFilter, parse


def link(url: str, *, depth: int = 0, page: str = "") -> Link:
    return Link(url, normal_form(url) or "", depth, page)


def why(text: str, url: str, *, depth: int = 0, page: str = "") -> str:
    """Why the filter of this text refuses the URL, "" when it does not."""
    return parse(text).refuses(link(url, depth=depth, page=page))


class Words(UrlFilter):
    """Refuses URLs with one of these words."""

    def __init__(self, *words: str, case: str = "yes") -> None:
        self.words, self.case = words, case

    def refuses(self, link: Link) -> str:
        return next((word for word in self.words if word in link.url), "")

    def arguments(self) -> Arguments:
        return {"": self.words, "case": (self.case,)}


class Forgetful(UrlFilter):
    """Does not give its arguments back."""

    def __init__(self, word: str = "") -> None:
        self.word = word


class Broken(UrlFilter):
    """Raises, whatever it is asked."""

    def refuses(self, link: Link) -> str:
        raise RuntimeError("broken")

    def seed(self, link: Link) -> None:
        raise RuntimeError("broken")


NO_FILTER = 3
