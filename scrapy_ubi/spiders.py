"""Spiders that hand over all links of a page as one object, `PlainLinks`. With the add-on that is several times as fast
as a request for each link; without it they crawl as spiders do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Protocol

from scrapy import Spider
from scrapy.http import Response, TextResponse
from scrapy.link import Link
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings

from scrapy_ubi.components.expand_middleware import INNERMOST, PlainLinksMiddleware
from scrapy_ubi.linkextractor import UbiLinkExtractor
from scrapy_ubi.plainlinks import Method, PlainLinks, find_method
from scrapy_ubi.scrapy_private.crawl_rules import RulesByPage


class Extractor(Protocol):
    """What a link extractor is asked for."""

    def extract_links(self, response: TextResponse) -> list[Link]: ...


class _Linking(Spider):
    """What spiders of either kind have. `link_extractor`: what finds links where nothing else is given."""

    link_extractor: ClassVar[Extractor] = UbiLinkExtractor()

    @classmethod
    def update_settings(cls, settings: BaseSettings) -> None:
        super().update_settings(settings)
        name = "SPIDER_MIDDLEWARES"
        settings.setdefault_in_component_priority_dict(name, PlainLinksMiddleware, INNERMOST)
        # Said as a spider's own setting: at the priority of defaults a runner's defaults would take its place.
        priority = max(settings.getpriority(name) or 0, SETTINGS_PRIORITIES["spider"])
        settings.set(name, settings.getdict(name), priority)

    def links(
        self,
        response: Response,
        extractor: Extractor | None = None,
        callback: Method | None = None,
        errback: Method | None = None,
        *,
        cb_kwargs: Mapping[str, Any] | None = None,
        meta: Mapping[str, Any] | None = None,
        priority: int = 0,
        headers: Mapping[str, Any] | None = None,
        referer: bool = False,
        anchors: bool = False,
    ) -> PlainLinks:
        """The links of a page, to be yielded; none where the page is no text. `anchors`: with the text of each link,
        for UBI_SCORE; to read them takes longer. Other arguments: see `PlainLinks`.

        Raises ValueError for a callback or errback that is no method of the spider's.
        """
        for method, kind in ((callback, "callback"), (errback, "errback")):
            find_method(self, method, kind)
        texts: list[str] | None = None
        if not isinstance(response, TextResponse):
            urls: Iterable[str] = []
        elif anchors:
            links = (extractor or self.link_extractor).extract_links(response)
            urls, texts = [link.url for link in links], [link.text for link in links]
        else:
            urls = _urls(extractor or self.link_extractor, response)
        return PlainLinks(urls, callback, errback, cb_kwargs, meta, priority, headers, referer, anchors=texts)


class UbiSpider(_Linking):
    """A spider with `links(response)`."""


class UbiCrawlSpider(_Linking, RulesByPage):
    """A CrawlSpider whose rules hand over all their links of a page as one object each. A rule with a `process_request`
    of its own makes requests as usual, and so do all rules of a class that overrides `_build_request`.
    """

    def links_of_rule(
        self, rule: int, links: list[Link], callback: Callable[..., Any], errback: Callable[..., Any]
    ) -> PlainLinks:
        """See the base class."""
        texts = [link.text for link in links]
        return PlainLinks([link.url for link in links], callback, errback, meta={"rule": rule}, link_texts=texts)


def _urls(extractor: Extractor, response: TextResponse) -> Iterable[str]:
    # One derived from ours may have an extract_links of its own.
    if getattr(type(extractor), "extract_links", None) is UbiLinkExtractor.extract_links:
        assert isinstance(extractor, UbiLinkExtractor)
        return extractor.extract_urls(response)
    return [link.url for link in extractor.extract_links(response)]
