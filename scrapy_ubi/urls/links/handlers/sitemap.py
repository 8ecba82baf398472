"""Links of sitemaps and of indexes of them (sitemaps.org), as XML or as text with a URL a line, also packed by gzip.

Rules of this module:

* `loc` of pages and of sitemaps, and `xhtml:link` with the page in other languages; pictures and videos are left out.
* A sitemap may have 50 MB, unpacked, by sitemaps.org: what is behind them is not read.
"""

from __future__ import annotations

from collections.abc import Mapping

from scrapy_ubi.urls.links.handlers.bounds import MOST_URL, FetchedBody, Unreadable, Values
from scrapy_ubi.urls.links.handlers.unpacked import chunks, head
from scrapy_ubi.urls.links.handlers.xml_reader import XmlReader, values

MOST_BYTES = 52_428_800

_BEFORE_XML = b"\xef\xbb\xbf\xfe\xff\x00 \t\r\n"  # byte order marks, of UTF-16 too, and white space
ROOTS, OWNERS = frozenset(["urlset", "sitemapindex"]), frozenset(["url", "sitemap"])  # names of elements
_WEB = (b"http://", b"https://")


def links(received: FetchedBody) -> Values:
    """The links of a sitemap, as written. Raises LinksCut, Unreadable."""
    if is_xml(received.body):
        return values(received.body, SitemapLinks(), MOST_BYTES)
    return url_lines(received.body, MOST_BYTES)


def is_xml(body: bytes) -> bool:
    """Whether a body begins as XML does; it may be gzip."""
    return head(body, 64).lstrip(_BEFORE_XML).startswith(b"<")


class SitemapLinks(XmlReader[str]):
    """Of a sitemap in XML."""

    roots, texts = ROOTS, frozenset(["loc"])

    def begins(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "link" and self.path[-2:-1] == ["url"] and "href" in attributes:
            self.found.append(attributes["href"])

    def ends(self, name: str, text: str) -> None:
        if text and len(self.path) > 1 and self.path[-2] in OWNERS:
            self.found.append(text)


def url_lines(body: bytes, most: int) -> Values:
    """Yield the lines of a text that are whole URLs. Raises LinksCut, Unreadable."""
    rest = b""
    found = False
    for chunk in chunks(body, most):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line.strip().startswith(_WEB):
                found = True
                yield line.decode("utf-8", "replace").strip()
        rest = rest[: MOST_URL + 1]
        yield None
    if rest.strip().startswith(_WEB):
        found = True
        yield rest.decode("utf-8", "replace").strip()
    if not found:
        raise Unreadable("malformed")
