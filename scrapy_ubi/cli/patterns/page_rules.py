"""The rules of a crawl as values: what `rules.toml` and the options of `scrapy ubi crawl` say, checked."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from lxml import etree

from scrapy_ubi.cli.patterns.keywords import KeywordRule

USUAL_FACTS = ("url", "status", "depth", "title", "text")
FACTS_BESIDE_FIELDS = ("url", "status", "depth")
FACTS = (*USUAL_FACTS, "language", "html", "accuracy")  # what an item may have of the page itself

Regexes = tuple[re.Pattern[str], ...]


def passes(url: str, allow: Regexes, deny: Regexes) -> bool:
    """Whether a URL has something to allow in it, where that is asked for, and nothing to deny."""
    if any(pattern.search(url) for pattern in deny):
        return False
    return not allow or any(pattern.search(url) for pattern in allow)


@dataclass(frozen=True, slots=True)
class CrawlRule:
    """`[crawl]`. `hosts`: as they are written, empty for those of the start pages; `max_depth`: links from a start
    page, None for any number; `max_pages`: 0 for any number; `delay`: seconds, None for as long as a page took;
    `sitemaps`: no, first or only; `since`: a date, "" for none."""

    start: tuple[str, ...]
    hosts: tuple[str, ...] = ()
    max_depth: int | None = None
    max_pages: int = 0
    delay: float | None = None
    obey_robots: bool = True
    contact: str = ""
    sitemaps: str = "no"
    since: str = ""


@dataclass(frozen=True, slots=True)
class FollowRule:
    """`[follow]`. `allow`, `deny`: of URLs, as texts; `xpath`, `css`: the parts of a page whose links are followed, the
    whole page where there are none; `documents`: links to PDF and files of Office, too."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    xpath: tuple[str, ...] = ()
    css: tuple[str, ...] = ()
    documents: bool = False


@dataclass(frozen=True, slots=True)
class CollectRule:
    """`[collect]`. `page`: what an item has of the page itself; `errors`: pages with an error status give items."""

    allow: Regexes = ()
    deny: Regexes = ()
    page: tuple[str, ...] = USUAL_FACTS
    errors: bool = False


@dataclass(frozen=True, slots=True)
class FieldRule:
    """`[fields.NAME]`. `patterns`: the first that finds something counts; `exclude`: elements that are left out."""

    name: str
    patterns: tuple[etree.XPath, ...]
    many: bool = False
    text: bool = True
    required: bool = False
    exclude: tuple[etree.XPath, ...] = ()


@dataclass(frozen=True, slots=True)
class PageRules:
    """All of them."""

    crawl: CrawlRule
    follow: FollowRule = field(default_factory=FollowRule)
    collect: CollectRule = field(default_factory=CollectRule)
    fields: tuple[FieldRule, ...] = ()
    keywords: KeywordRule | None = None

    @property
    def columns(self) -> list[str]:
        """The names that an item has, in their order."""
        return list(dict.fromkeys([*self.collect.page, *(one.name for one in self.fields)]))
