"""The callbacks that Scrapy's spiders choose by themselves: of a spider that names none; of the rules of a CrawlSpider,
asked for all links of a rule together.

| name | used for |
| --- | --- |
| `Spider._parse` | Scrapy's default callback: it calls `parse`, or in a CrawlSpider the rules |
| `CrawlSpider`: `_requests_to_follow`, `_build_request`, `_rules`, `_callback`, `_errback` | links of a rule as one |
| `scrapy.spiders.crawl._identity_process_request` | whether a rule's `process_request` is the default one |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from scrapy import Spider
from scrapy.http import HtmlResponse, Response
from scrapy.link import Link
from scrapy.spiders import CrawlSpider, crawl


def parse_is_default(spider: type[Spider]) -> bool:
    """Whether a request without a callback goes to the spider's `parse`. A class that has its own default callback
    (CrawlSpider) is none of those."""
    usual = getattr(Spider, "_parse", None)  # without it nothing is known
    return usual is not None and spider._parse is usual


_identity: Any = getattr(crawl, "_identity_process_request", None)
_NAMES = ("_requests_to_follow", "_build_request", "_callback", "_errback")  # of the class; `_rules` of its spiders
_knows = _identity is not None and all(hasattr(CrawlSpider, name) for name in _NAMES)


class RulesByPage(CrawlSpider):
    """A CrawlSpider that is asked what to yield for all links of a rule, instead of yielding a request for each."""

    def links_of_rule(
        self, rule: int, links: list[Link], callback: Callable[..., Any], errback: Callable[..., Any]
    ) -> Any:
        """What to yield for the links that the rule of this number has found on a page."""
        raise NotImplementedError

    def _requests_to_follow(self, response: Response) -> Iterable[Any]:
        if not _knows or not hasattr(self, "_rules"):
            yield from super()._requests_to_follow(response)  # a request of each link; `left_out` says so
            return
        if not isinstance(response, HtmlResponse):
            return
        builds = type(self)._build_request is not CrawlSpider._build_request
        seen: set[Link] = set()
        for index, rule in enumerate(self._rules):
            links = [link for link in rule.link_extractor.extract_links(response) if link not in seen]
            chosen = list(rule.process_links(links))  # type: ignore[operator]
            seen.update(chosen)
            if not builds and rule.process_request is _identity:
                yield self.links_of_rule(index, chosen, self._callback, self._errback)
                continue
            for link in chosen:
                yield rule.process_request(self._build_request(index, link), response)  # type: ignore[operator]
