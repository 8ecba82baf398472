"""Spiders that hand over all links of a page as one object, `PlainLinks`. With the add-on that is several times as fast
as a request for each link; without it they crawl as spiders do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

from scrapy import Spider
from scrapy.http import HtmlResponse, Response, TextResponse
from scrapy.link import Link
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings
from selectolax.lexbor import LexborHTMLParser

from scrapy_ubi.adapter.components.expand_middleware import INNERMOST, PlainLinksMiddleware
from scrapy_ubi.adapter.components.place_component import place_component
from scrapy_ubi.adapter.extraction.content_links import ContentLinks, Extractor, urls_of, with_texts
from scrapy_ubi.adapter.extraction.linkextractor import UbiLinkExtractor, lexbor_page
from scrapy_ubi.adapter.extraction.plainlinks import Method, PlainLinks, find_method
from scrapy_ubi.adapter.scrapy_private.spider_callbacks import RulesByPage

_USUAL = UbiLinkExtractor()


class _Linking(Spider):
    """What spiders of either kind have. `link_extractor`: what finds links where nothing else is given."""

    link_extractor: ClassVar[Extractor] = _USUAL
    _by_content: ContentLinks | None = None  # None also where UBI_LINKS_OF asks for HTML only
    _has_looked = False  # at UBI_LINKS_OF: settings are not whole when a spider is made

    @classmethod
    def update_settings(cls, settings: BaseSettings) -> None:
        super().update_settings(settings)
        name = "SPIDER_MIDDLEWARES"
        place_component(settings, name, PlainLinksMiddleware, INNERMOST)
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
        """The links of a page, to be yielded; none where the page is no text, unless UBI_LINKS_OF has a handler for it.
        `anchors`: with the text of each link, for UBI_SCORE; to read them takes longer. Other arguments: see
        `PlainLinks`.

        Raises ValueError for a callback or errback that is no method of the spider's.
        """
        for method, kind in ((callback, "callback"), (errback, "errback")):
            find_method(self, method, kind)
        if not self._has_looked:
            self._look()
        urls: Iterable[str] | dict[str, str]
        if (content := self._by_content) is not None:
            urls = content.urls(response, extractor or self._own_extractor(content), anchors)
        elif not isinstance(response, TextResponse):
            urls = {}
        elif anchors:
            urls = with_texts(extractor or self.link_extractor, response)
        else:
            urls = urls_of(extractor or self.link_extractor, response)
        texts = urls.values() if anchors and isinstance(urls, dict) else None
        return PlainLinks(urls, callback, errback, cb_kwargs, meta, priority, headers, referer, anchors=texts)

    def lexbor(self, response: HtmlResponse) -> LexborHTMLParser:
        """The page as lexbor reads it, a parser that takes a third of the time that lxml takes: for fields, by CSS
        (`css_first`, `css`, `tags`: see selectolax). It is parsed once for this and for `links`. To be read, not to be
        changed.

        Raises ValueError for a page that may take lexbor seconds or gigabytes (see docs/reference/link-extractor.md).
        """
        return lexbor_page(response)

    async def links_of(
        self,
        response: Response,
        extractor: Extractor | None = None,
        callback: Method | None = None,
        errback: Method | None = None,
        anchors: bool = False,
        **others: Any,
    ) -> PlainLinks:
        """As `links`, in callbacks that are `async def`: `yield await self.links_of(response)`. It gives the links of
        PDF, too, and lets others have their turns while a large document is read."""
        if not self._has_looked:
            self._look()
        if (content := self._by_content) is None:
            return self.links(response, extractor, callback, errback, anchors=anchors, **others)
        for method, kind in ((callback, "callback"), (errback, "errback")):
            find_method(self, method, kind)
        urls = await content.read_urls(response, extractor or self._own_extractor(content), anchors)
        return PlainLinks(urls, callback, errback, anchors=urls.values() if anchors else None, **others)

    def _look(self) -> None:
        """Read UBI_LINKS_OF. A spider without a crawler, as in users' tests, has no settings."""
        self._has_looked = True
        if (crawler := getattr(self, "crawler", None)) is not None:
            self._by_content = ContentLinks.from_crawler(crawler)

    def _own_extractor(self, content: ContentLinks) -> Extractor:
        """The spider's own extractor; where it has none, one that lets pass what handlers read."""
        return content.extractor if self.link_extractor is _USUAL else self.link_extractor


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
