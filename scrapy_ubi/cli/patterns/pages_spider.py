"""The spider of `scrapy ubi crawl`: it follows links and makes items by rules.

Rules of this module:

* An ordinary spider with one callback; links are handed over as plain links. Which URLs are followed is decided by the
  filters of the crawl (`crawl_settings`), so redirects are judged, too; here it is where on a page links are looked
  for, and how deep.
* A page is anything: nothing here raises because of one. What is no text gives no item.
* `title` and `text` are those of the search index (`outputs.page_text`), bounded there; `html` is bounded here.
* An expression that cannot be evaluated on a page finds nothing there; that is counted, and the first is logged.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeGuard

from scrapy.http import Response, TextResponse
from scrapy.linkextractors import IGNORED_EXTENSIONS

from scrapy_ubi.adapter.extraction.linkextractor import UbiLinkExtractor
from scrapy_ubi.adapter.extraction.plainlinks import PlainLinks
from scrapy_ubi.cli.patterns.extraction import FAULTS, has_value, read_field
from scrapy_ubi.cli.patterns.page_rules import FieldRule, PageRules, passes
from scrapy_ubi.cli.patterns.rules_source import read_json
from scrapy_ubi.outputs.documents.text_child import EXTENSIONS
from scrapy_ubi.outputs.page_text import MOST_READ, PageText, text_of
from scrapy_ubi.spiders import UbiSpider

logger = logging.getLogger("scrapy_ubi")

_TEXTS = frozenset(("title", "text", "language"))
_MEDIA = (b"image/", b"audio/", b"video/", b"font/")
_NONE = PageText("", "", "")


class PagesSpider(UbiSpider):
    """`-a rules=MARK -a _rules=FILE`: the mark tells the rules from others, in the name of the crawl and in reports;
    the file holds them."""

    name = "pages"

    def __init__(self, *args: Any, **arguments: Any) -> None:
        """Raises UbiRulesError."""
        rules = read_json(Path(arguments.pop("_rules")))
        super().__init__(*args, **arguments)
        self.start_urls = list(rules.crawl.start)
        self._depth = math.inf if rules.crawl.max_depth is None else rules.crawl.max_depth
        self._items = PageItems(rules)
        ignored = set(IGNORED_EXTENSIONS).difference(EXTENSIONS if rules.follow.documents else ())
        self._extractor = UbiLinkExtractor(
            restrict_xpaths=rules.follow.xpath, restrict_css=rules.follow.css, deny_extensions=ignored
        )

    def parse(self, response: Response, **_: Any) -> Iterator[dict[str, Any] | PlainLinks]:
        """The item of a page, and its links."""
        item = self._items.item(response)
        if item is not None:
            yield item
        if response.meta.get("depth", 0) < self._depth and 200 <= response.status < 300:
            yield self.links(response, self._extractor)


class PageItems:
    """Makes items of pages."""

    def __init__(self, rules: PageRules) -> None:
        self._rules = rules
        self._reads_text = rules.keywords is not None or bool(_TEXTS.intersection(rules.collect.page))
        self.unread = 0  # pages that would keep the parser busy for seconds: they have no title and no text
        self.faults = 0  # times that an expression could not be evaluated

    def item(self, response: Response) -> dict[str, Any] | None:
        """The item of a page; None where it gives none."""
        rules = self._rules
        if not _is_text(response) or not (rules.collect.errors or 200 <= response.status < 300):
            return None
        if not passes(response.url, rules.collect.allow, rules.collect.deny):
            return None
        page = text_of(response) if self._reads_text else _NONE
        if page.unread:
            self.unread += 1
            if self.unread == 1:
                sentence = "%.200s has no text: it would keep the parser busy for seconds. (Shown once.)"
                logger.warning(sentence, response.url)
        accuracy = rules.keywords.score(f"{page.title}\n{page.text}") if rules.keywords is not None else 0.0
        if rules.keywords is not None and accuracy < rules.keywords.accuracy:
            return None
        fields = self._fields(response)
        if fields is None:
            return None
        return {name: _fact(name, response, page, accuracy) for name in rules.collect.page} | fields

    def _fields(self, response: TextResponse) -> dict[str, Any] | None:
        """The fields of a page; None where none has a value, or a required one has none."""
        rules = self._rules.fields
        if not rules:
            return {}
        root = _root_of(response)
        values = {rule.name: self._field(rule, root, response.url) for rule in rules}
        there = {name for name, value in values.items() if has_value(value)}
        if not there or any(rule.required and rule.name not in there for rule in rules):
            return None
        return values

    def _field(self, rule: FieldRule, root: Any, url: str) -> Any:
        nothing: Any = [] if rule.many else None
        if root is None:
            return nothing
        try:
            return read_field(rule, root)
        except FAULTS as error:
            self.faults += 1
            if self.faults == 1:
                logger.warning("The field %s cannot be read on %.200s: %.200s. (Shown once.)", rule.name, url, error)
            return nothing


def _is_text(response: Response) -> TypeGuard[TextResponse]:
    """Whether a response is text: by what Scrapy finds, and, as it looks at few bytes, by what the server says."""
    kind = (response.headers.get("Content-Type") or b"").lower()
    return isinstance(response, TextResponse) and not (kind.startswith(_MEDIA) and b"xml" not in kind)


def _root_of(response: TextResponse) -> Any:
    """The root of the tree of a page; None where it has none (JSON)."""
    try:
        selector = response.selector
    except (ValueError, RecursionError):
        return None
    return selector.root if selector.type in ("html", "xml") else None


def _fact(name: str, response: TextResponse, page: PageText, accuracy: float) -> Any:
    if name == "url":
        return response.url
    if name == "status":
        return response.status
    if name == "depth":
        return response.meta.get("depth", 0)
    if name == "html":
        return response.text[:MOST_READ]
    if name == "accuracy":
        return accuracy
    return getattr(page, name)
