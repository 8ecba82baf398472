"""Entries of sitemaps and of indexes of them (sitemaps.org): XML, or text with a URL a line; also packed by gzip.

Rules of this module:

* Of each entry the first `loc` and the first `lastmod` count; one without a `loc` is an entry without a URL. Pictures,
  videos, news and other languages are left out.
* A sitemap may have 50 MB, unpacked, by sitemaps.org: what is behind them is not read. One that declares entities is
  refused whole.
"""

from __future__ import annotations

from collections.abc import Mapping

from scrapy_ubi.urls.links.handlers.bounds import Unreadable
from scrapy_ubi.urls.links.handlers.sitemap import MOST_BYTES, OWNERS, ROOTS, is_xml, url_lines
from scrapy_ubi.urls.links.handlers.xml_reader import XmlReader, values
from scrapy_ubi.urls.listings.entries import Entries, Listed, declares_entities


def sitemap_entries(body: bytes, most: int = MOST_BYTES) -> Entries:
    """Yield the entries in the first `most` bytes of a sitemap, and None where the loop may have its turn. Raises
    LinksCut behind what could be read, Unreadable for what is no sitemap."""
    if not is_xml(body):
        for line in url_lines(body, most):
            yield None if line is None else Listed(line)
        return
    if declares_entities(body):
        raise Unreadable("entities")
    yield from values(body, _SitemapReader(), most)


class _SitemapReader(XmlReader[Listed]):
    roots, texts = ROOTS, frozenset(["loc", "lastmod"])

    def __init__(self) -> None:
        super().__init__()
        self._url = self._changed = ""

    def begins(self, name: str, attributes: Mapping[str, str]) -> None:
        if name in OWNERS:
            self._url = self._changed = ""

    def ends(self, name: str, text: str) -> None:
        if len(self.path) > 1 and self.path[-2] in OWNERS:
            if name == "loc":
                self._url = self._url or text
            else:
                self._changed = self._changed or text

    def left(self, name: str) -> None:
        if name in OWNERS:
            self.found.append(Listed(self._url, self._changed, name == "sitemap"))
            self._url = ""
