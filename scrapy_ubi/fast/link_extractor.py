"""Scrapy's LinkExtractor finds the same links off the same tree for a fraction of the time.

Scrapy's looks at every element of a page in Python, and takes each URL apart four times. Here lxml looks for the tags,
and most URLs are put together of two strings (`urls.links.joiner`). The page is parsed as Scrapy's extractor has it
parsed.

Rules of this module:

* Only for Scrapy's own class, with what most extractors ask for: one attribute, each URL once, no function of the
  user's. Everything else, whatever is odd about a page (its base, its encoding), and a class derived from it are
  Scrapy's matter, as before.
* What an extractor was told is looked at for each page: it may be given other expressions at any time.

| private name | used for |
| --- | --- |
| `LxmlLinkExtractor.extract_links`, `link_extractor` | what is stood for; what an extractor looks at |
| `lxmlhtml._name_matches`, `_identity` | to read off what an extractor wants, and that no function is asked |
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from lxml import etree
from scrapy.http import HtmlResponse, TextResponse
from scrapy.link import Link
from scrapy.linkextractors.lxmlhtml import LxmlLinkExtractor, LxmlParserLinkExtractor, _identity, _name_matches
from scrapy.utils.response import get_base_url
from w3lib.html import strip_html5_whitespace
from w3lib.url import canonicalize_url

from scrapy_ubi.adapter.extraction.linkextractor import links_at, unique_links
from scrapy_ubi.fast.compared import STOOD_FOR, changed
from scrapy_ubi.fast.tweaks import ProcessWide, Undo
from scrapy_ubi.urls.links import tree
from scrapy_ubi.urls.links.allowed import Allowed
from scrapy_ubi.urls.links.joiner import Joiner
from scrapy_ubi.urls.links.usual import urls

logger = logging.getLogger(__name__)


class FastLinkExtraction(ProcessWide):
    """While a spider is open, links are found here."""

    @classmethod
    def change(cls) -> Undo:
        """See the base class."""
        scrapys = LxmlLinkExtractor.extract_links
        usual: Any = LxmlLinkExtractor()
        if other := changed(usual) or changed(usual.link_extractor):
            logger.info("UBI_LEAN: links are found by Scrapy's own code (slower, same links): %s is another", other)
            return lambda: None
        readers: WeakKeyDictionary[LxmlLinkExtractor, Reader] = WeakKeyDictionary()

        def extract_links(self: LxmlLinkExtractor, response: TextResponse) -> list[Link]:
            if type(self) is LxmlLinkExtractor:
                wanted = told(self)
                reader = readers.get(self)
                if reader is None or reader.wanted != wanted:
                    reader = readers[self] = Reader(wanted)
                if (links := reader.links(response)) is not None:
                    return links
            return scrapys(self, response)

        extract_links.__doc__ = scrapys.__doc__
        LxmlLinkExtractor.extract_links = extract_links  # type: ignore[method-assign]

        def undo() -> None:
            if LxmlLinkExtractor.extract_links is extract_links:
                LxmlLinkExtractor.extract_links = scrapys  # type: ignore[method-assign]

        return undo


class Told(NamedTuple):
    """What an extractor was told, as it is now."""

    tags: tuple[str, ...]  # none where it is not for this module
    attribute: str
    strip: bool
    canonicalize: bool
    regions: tuple[str, ...]
    texts: tuple[Any, ...]
    allow: tuple[Any, ...]
    deny: tuple[Any, ...]
    allow_domains: frozenset[str]
    deny_domains: frozenset[str]
    deny_extensions: frozenset[str]


_OTHER = Told((), "", True, False, (), (), (), (), frozenset(), frozenset(), frozenset())
_METHODS = frozenset((*STOOD_FOR[LxmlLinkExtractor], *STOOD_FOR[LxmlParserLinkExtractor]))


def told(extractor: Any) -> Told:
    """What an extractor wants; without tags where only Scrapy's code can tell."""
    inner = extractor.link_extractor
    tags, attributes = _names(inner.scan_tag), _names(inner.scan_attr)
    plain = inner.unique is True and inner.process_attr is _identity
    if not plain or len(attributes) != 1 or not tree.can_read(tags, attributes[0]):
        return _OTHER
    if type(inner) is not LxmlParserLinkExtractor or not _METHODS.isdisjoint((*vars(extractor), *vars(inner))):
        return _OTHER
    return Told(
        tags, attributes[0], bool(inner.strip), bool(extractor.canonicalize), tuple(extractor.restrict_xpaths),
        tuple(extractor.restrict_text), tuple(extractor.allow_res), tuple(extractor.deny_res),
        frozenset(extractor.allow_domains), frozenset(extractor.deny_domains), frozenset(extractor.deny_extensions),
    )  # fmt: skip


def _names(scan: Any) -> tuple[str, ...]:
    """The names that this function of an extractor lets pass; none where that cannot be told."""
    if not isinstance(scan, partial) or scan.func is not _name_matches or len(scan.args) != 2:
        return ()
    allowed, denied = scan.args
    return tuple(sorted(allowed - denied))


class Reader:
    """Finds the links of pages for one extractor."""

    def __init__(self, wanted: Told) -> None:
        self.wanted = wanted
        self._allowed = Allowed(
            wanted.allow, wanted.deny, wanted.allow_domains, wanted.deny_domains, wanted.deny_extensions
        )
        self._strip = strip_html5_whitespace if wanted.strip else str

    def links(self, response: TextResponse) -> list[Link] | None:
        """The links of a page; None where Scrapy's own code is to find them. Raises what XPath of the user's raises."""
        if not self.wanted.tags or not isinstance(response, HtmlResponse):
            return None
        try:
            joiner = Joiner(get_base_url(response), response.url, response.encoding)
        except ValueError:  # as Scrapy's does
            return None
        if not joiner.folder or not joiner.reads_queries_as(response.encoding):
            return None
        links: list[Link] = []
        for root in self._roots(response):
            if not isinstance(root, etree._Element):  # an attribute, a text: Scrapy's says what is wrong
                return None
            links += self._links_below(root, joiner)
        return unique_links(links) if self.wanted.regions else links

    def _roots(self, response: HtmlResponse) -> Iterator[Any]:
        if not self.wanted.regions:
            yield response.selector.root
        for region in self.wanted.regions:
            for found in response.xpath(region):
                yield found.root

    def _links_below(self, root: Any, joiner: Joiner) -> list[Link]:
        wanted = self.wanted
        first, rels = tree.elements(root, wanted.tags, wanted.attribute)
        links = links_at(urls(first, joiner, self._allowed, self._strip), first, rels, tree.text_of)
        if wanted.texts:
            links = [link for link in links if any(pattern.search(link.text) for pattern in wanted.texts)]
        if not wanted.canonicalize:
            return links
        for link in links:
            link.url = canonicalize_url(link.url)
        return unique_links(links)
