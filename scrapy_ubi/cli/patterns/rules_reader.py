"""A document of rules, as TOML or options give it, becomes rules that hold.

Rules of this module:

* A table is read key by key: each value is checked as it is taken, and a key that is not taken is an error.
* The first thing that does not hold raises UbiRulesError, with the place of the value, its name, what is wrong with it,
  and what to write.
* All of it is read and checked before anything is fetched: expressions are compiled, names compared with known ones.
* A document may be incomplete by `crawl.start` alone: `scrapy ubi crawl` may have it from its command line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar
from urllib.parse import urlsplit

from lxml import etree

from scrapy_ubi.cli.patterns import expressions, keywords
from scrapy_ubi.cli.patterns.expressions import BadExpression
from scrapy_ubi.cli.patterns.page_rules import (
    FACTS,
    FACTS_BESIDE_FIELDS,
    USUAL_FACTS,
    CollectRule,
    CrawlRule,
    FieldRule,
    FollowRule,
    PageRules,
)
from scrapy_ubi.cli.patterns.rules_error import UbiRulesError, Where, nearest, written
from scrapy_ubi.cli.patterns.toml_lines import Path
from scrapy_ubi.urls import normal_form
from scrapy_ubi.urls.filters.names import host_name
from scrapy_ubi.urls.listings.entries import start_of

MOST_TEXTS = 10_000  # of one list
LONGEST_TEXT = 10_000  # characters

_Read = TypeVar("_Read")

MOST_FIELDS = 200
MOST_SECONDS = 86_400.0
MOST_COUNT = 1000  # that `min_count` may ask for

_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_CONTACT = re.compile(r"(https?://|mailto:)[^\s()<>]+")


class CheckedTable:
    """One table. `path`: its place in the document."""

    def __init__(self, value: object, path: Path, where: Where) -> None:
        self.path = path
        self._where = where
        if not isinstance(value, dict):
            head = f"[{written(path)}]"
            raise UbiRulesError(
                f"{where(path)}: {written(path)} is {_shown(value)}, no table: write {head} above its keys."
            )
        self._values = dict(value)
        self._known: list[str] = []

    @property
    def keys(self) -> list[str]:
        """The keys that are left."""
        return list(self._values)

    def refused(self, path: Sequence[str | int], problem: str, remedy: str = "") -> UbiRulesError:
        """The error for a value at this path below the table."""
        whole = (*self.path, *path)
        end = f": {remedy}" if remedy else ""
        return UbiRulesError(f"{self._where(whole)}: {written(whole)} {problem}{end}.")

    def refuse_rest(self, beside: Sequence[str] = ()) -> None:
        """Raise UbiRulesError for the first key that was not taken. `beside`: keys that are known as well."""
        self._known += [key for key in beside if key not in self._known]
        for key in self._values:
            whole = (*self.path, key)
            place = f" of [{written(self.path)}]" if self.path else ""
            raise UbiRulesError(f"{self._where(whole)}: {key!r:.100} is no key{place}: {nearest(key, self._known)}")

    def table(self, key: str) -> CheckedTable:
        """A table in this one; an empty one where it is missing."""
        return CheckedTable(self._take(key, {}), (*self.path, key), self._where)

    def has(self, key: str) -> bool:
        """Whether there is a value."""
        return key in self._values

    def flag(self, key: str, default: bool) -> bool:
        """The bool of a key, or this default. Raises where it is neither true nor false."""
        value = self._take(key, default)
        if not isinstance(value, bool):
            raise self.refused((key,), f"is {_shown(value)}", "write true or false")
        return value

    def whole(self, key: str, least: int) -> int | None:
        """A whole number; None where it is missing."""
        value = self._take(key, None)
        if value is not None and (type(value) is not int or value < least):
            raise self.refused((key,), f"is {_shown(value)}", f"write a whole number from {least} on")
        return value

    def number(self, key: str, least: float, most: float) -> float | None:
        """A number; None where it is missing."""
        value = self._take(key, None)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise self.refused((key,), f"is {_shown(value)}", f"write a number from {least:g} to {most:g}")
        return float(value)

    def text(self, key: str, default: str = "") -> str:
        """One text."""
        value = self._take(key, default)
        if not isinstance(value, str) or len(value) > LONGEST_TEXT:
            raise self.refused((key,), f"is {_shown(value)}", "write a text in quotes")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """One text or a list of them, none of them empty; empty where it is missing."""
        value = self._take(key, [])
        if isinstance(value, str):
            value = [value]
        if not isinstance(value, list) or len(value) > MOST_TEXTS:
            raise self.refused((key,), f"is {_shown(value)}", "write a text in quotes, or a list of texts")
        for number, one in enumerate(value):
            if not isinstance(one, str) or not one.strip() or len(one) > LONGEST_TEXT:
                raise self.refused((key, number), f"is {_shown(one)}", "write a text in quotes")
        return tuple(value)

    def each(self, key: str, read: Callable[[str], _Read]) -> tuple[_Read, ...]:
        """What `read` makes of each text of a list; it raises BadExpression, whose reason is then said."""
        single = isinstance(self._values.get(key), str)
        found: list[_Read] = []
        for number, text in enumerate(self.texts(key)):
            try:
                found.append(read(text))
            except BadExpression as reason:
                path = (key,) if single else (key, number)
                raise self.refused(path, f"{text!r:.200} {reason}".rstrip(".")) from None
        return tuple(found)

    def _take(self, key: str, default: object) -> object:
        self._known.append(key)
        return self._values.pop(key, default)


def _shown(value: object) -> str:
    """A value in a sentence."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value!r:.60}" if isinstance(value, str | int | float | list) else f"a {type(value).__name__}"


def read_rules(document: object, where: Where) -> PageRules:
    """The rules of a document. Raises UbiRulesError for the first thing that does not hold."""
    top = CheckedTable(document, (), where)
    crawl = _crawl(top.table("crawl"))
    follow = _follow(top.table("follow"))
    collect = top.table("collect")
    fields = _fields(top.table("fields"))
    words = _keywords(top.table("keywords")) if top.has("keywords") else None
    top.refuse_rest()
    usual = FACTS_BESIDE_FIELDS if fields else USUAL_FACTS
    return PageRules(crawl, follow, _collect(collect, usual + (("accuracy",) if words else ())), fields, words)


def _crawl(table: CheckedTable) -> CrawlRule:
    rule = CrawlRule(
        start=table.each("start", start_url),
        hosts=table.each("hosts", _host),
        max_depth=table.whole("max_depth", 0),
        max_pages=table.whole("max_pages", 0) or 0,
        delay=table.number("delay", 0.0, MOST_SECONDS),
        obey_robots=table.flag("obey_robots", True),
        contact=table.text("contact"),
        sitemaps=table.text("sitemaps", "no"),
        since=table.text("since"),
    )
    if rule.sitemaps not in ("no", "first", "only"):
        raise table.refused(("sitemaps",), f"is {rule.sitemaps!r:.100}", "write first, only or no")
    if rule.since and start_of(rule.since) is None:
        raise table.refused(("since",), f"is {rule.since!r:.100}", "write a date such as 2026-11-01")
    if rule.since and rule.sitemaps == "no":
        raise table.refused(("since",), "is of pages that sitemaps list", "set sitemaps to first or only as well")
    if rule.contact and not _CONTACT.fullmatch(rule.contact):
        raise table.refused(("contact",), f"is {rule.contact!r:.100}", "write an http:// or mailto: address")
    table.refuse_rest()
    return rule


def start_url(text: str) -> str:
    """A start page; without a scheme it is of http. Raises BadExpression."""
    url = text.strip()
    if "://" not in url:
        url = f"http://{url}"
    if normal_form(url) is None:
        raise BadExpression("is no address of a page: write http:// or https://, and a host")
    parts = urlsplit(url)
    return url if parts.path else parts._replace(path="/").geturl()


def _host(text: str) -> str:
    """`site.example`, `*.site.example`, `*`, or one of these with a minus."""
    name = text.strip().lower()
    bare = name.removeprefix("-").removeprefix("*.")
    if name != "*" and host_name(bare) is None:
        raise BadExpression("is no host: write site.example, *.site.example, -ads.site.example or *")
    return name


def _follow(table: CheckedTable) -> FollowRule:
    rule = FollowRule(
        allow=table.each("allow", _regex),
        deny=table.each("deny", _regex),
        xpath=table.each("xpath", partial(_zone, "xpath")),
        css=table.each("css", partial(_zone, "css")),
        documents=table.flag("documents", False),
    )
    table.refuse_rest()
    return rule


def _regex(text: str) -> str:
    """The text of a regular expression that holds."""
    expressions.compiled_regex(text)
    return text


def _zone(kind: str, text: str) -> str:
    """The text of an expression that selects parts of a page."""
    compiled = expressions.compiled_xpath(text) if kind == "xpath" else expressions.compiled_css(text)
    expressions.check_elements(kind, text, compiled)
    return text


def _collect(table: CheckedTable, usual: tuple[str, ...]) -> CollectRule:
    rule = CollectRule(
        allow=table.each("allow", expressions.compiled_regex),
        deny=table.each("deny", expressions.compiled_regex),
        page=table.each("page", _fact) if table.has("page") else usual,
        errors=table.flag("errors", False),
    )
    table.refuse_rest()
    return rule


def _fact(text: str) -> str:
    if text not in FACTS:
        raise BadExpression(f"is nothing that is known of a page: {nearest(text, FACTS)}")
    return text


def _fields(table: CheckedTable) -> tuple[FieldRule, ...]:
    names = table.keys
    if len(names) > MOST_FIELDS:
        raise table.refused((), f"has {len(names)} fields", f"name at most {MOST_FIELDS}")
    for name in names:
        if not _FIELD.fullmatch(name):
            raise table.refused((name,), "is no name of a field", "use letters, digits, _ and -, a letter first")
    return tuple(_field(name, table.table(name)) for name in names)


def _field(name: str, table: CheckedTable) -> FieldRule:
    if table.has("xpath") == table.has("css"):
        raise table.refused((), "has both xpath and css" if table.has("css") else "has no pattern", "give xpath or css")
    kind = "css" if table.has("css") else "xpath"
    compiled = expressions.compiled_css if kind == "css" else expressions.compiled_xpath

    def excluded(text: str) -> etree.XPath:
        expression = compiled(text)
        expressions.check_elements(kind, text, expression)
        return expression

    patterns = table.each(kind, compiled)
    if not patterns:
        raise table.refused((kind,), "is empty", "write a pattern")
    rule = FieldRule(
        name,
        patterns,
        many=table.flag("many", False),
        text=table.flag("text", True),
        required=table.flag("required", False),
        exclude=table.each("exclude", excluded),
    )
    table.refuse_rest(beside=("xpath", "css"))
    return rule


def _keywords(table: CheckedTable) -> keywords.KeywordRule:
    words = table.each("words", _keyword)
    accuracy = table.number("accuracy", 0.0, 100.0)
    least = table.whole("min_count", 1)
    table.refuse_rest()
    if not words:
        raise table.refused(("words",), "has no word", "write a list of words")
    if least is not None and least > MOST_COUNT:
        raise table.refused(("min_count",), f"is {least}", f"write a whole number up to {MOST_COUNT}")
    return keywords.KeywordRule(words, 1.0 if accuracy is None else accuracy, least or 1)


def _keyword(text: str) -> str:
    if not keywords.has_words(text):
        raise BadExpression("has no letter or digit")
    return text
