"""The spider of `scrapy ubi crawl`: it follows links and makes items by rules.

Rules of this module: an ordinary spider with one callback; links are handed over as plain links. Which URLs are
followed is decided by the filters of the crawl (`crawl_settings`), so redirects are judged, too; here it is where on a
page links are looked for, and how deep.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scrapy.http import Response
from scrapy.linkextractors import IGNORED_EXTENSIONS

from scrapy_ubi.adapter.extraction.linkextractor import UbiLinkExtractor
from scrapy_ubi.adapter.extraction.plainlinks import PlainLinks
from scrapy_ubi.cli.patterns.page_items import PageItems
from scrapy_ubi.cli.patterns.rules_source import read_json
from scrapy_ubi.outputs.documents.text_child import EXTENSIONS
from scrapy_ubi.spiders import UbiSpider


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
