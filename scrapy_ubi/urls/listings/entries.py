"""Entries of sitemaps, of indexes of them, and of feeds, each with the page that it is about and its time.

Rules of this module:

* A time is data from outside. What cannot be read is no time, and no error.
* Sitemaps (sitemaps.org) are XML, or text with a URL a line; also packed by gzip. Of each entry the first `loc` and the
  first `lastmod` count; one without a `loc` is an entry without a URL. Pictures, videos, news and other languages are
  left out. One may have 50 MB, unpacked: what is behind them is not read.
* Feeds are RSS, RSS 1.0 (RDF), Atom and JSON Feed. Of an entry of RSS: `link`, else a `guid` that may be one; of Atom:
  `link` without a relation or as `alternate`, with `xml:base`. What a feed says of itself is left out, and so are
  media.
* What declares entities is refused whole; of JSON only whole documents are read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from scrapy_ubi.urls.links.handlers.bounds import LinksCut, Unreadable
from scrapy_ubi.urls.links.handlers.feed import MOST_BYTES as MOST_FEED
from scrapy_ubi.urls.links.handlers.feed import FeedReader
from scrapy_ubi.urls.links.handlers.sitemap import MOST_BYTES as MOST_SITEMAP
from scrapy_ubi.urls.links.handlers.sitemap import OWNERS, ROOTS, is_xml, url_lines
from scrapy_ubi.urls.links.handlers.unpacked import head
from scrapy_ubi.urls.links.handlers.xml_reader import XmlReader, values

MOST_NESTING = 3  # indexes of sitemaps in each other; sitemaps.org allows one
MOST_TIME = 40  # characters of a time
DAY = 86_400.0
_DATE = len("2026-11-28")
_HEAD = 65_536  # bytes in which a document may declare entities


class Listed(NamedTuple):
    """One entry: a URL and the time of its last change, as they are written ("": none is), and whether it leads to
    another sitemap."""

    url: str
    changed: str = ""
    is_sitemap: bool = False


Entries = Iterator[Listed | None]  # None: the loop may have its turn


def read_time(text: str) -> float:
    """Read a time as sitemaps (ISO 8601) and feeds (RFC 822) have it: unix seconds; 0 for what is none. A date alone is
    the end of that day."""
    when = _read(text.strip()[:MOST_TIME])
    if when is None:
        return 0.0
    try:
        day = DAY - 1 if len(text.strip()) == _DATE else 0
        return max((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() + day, 0.0)
    except (ValueError, OverflowError):
        return 0.0


def start_of(text: str) -> float | None:
    """Read a date, as its beginning, or a time, which is of UTC unless it says another zone: unix seconds; None for
    what is neither."""
    try:
        when = datetime.fromisoformat(text.strip()[:MOST_TIME])
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def shown_time(text: str) -> str:
    """Write such a time as ISO 8601; "" for what is none."""
    text = text.strip()[:MOST_TIME]
    when = _read(text)
    if when is None:
        return ""
    return when.date().isoformat() if len(text) == _DATE else when.isoformat()


def declares_entities(body: bytes) -> bool:
    """Whether a document in XML, which may be gzip, declares entities. No sitemap and no feed needs them; what stands
    for them would be another URL without them."""
    return b"<!ENTITY" in head(body, _HEAD).replace(b"\0", b"")


def _read(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        pass
    try:
        return parsedate_to_datetime(text) if " " in text else None
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


# -- sitemaps


def sitemap_entries(body: bytes, most: int = MOST_SITEMAP) -> Entries:
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


# -- feeds

_OWNERS = frozenset(["item", "entry"])
_TIMES = ("updated", "modified", "pubDate", "date", "published", "issued")


def feed_entries(body: bytes) -> Entries:
    """Yield the entries of a feed, and None where the loop may have its turn. Raises LinksCut behind what could be
    read, Unreadable for what is no feed."""
    if not is_xml(body):
        yield from _of_json(body)
        return
    if declares_entities(body):
        raise Unreadable("entities")
    yield from values(body, _EntryReader(), MOST_FEED)


class _EntryReader(FeedReader[Listed]):
    texts = frozenset(["link", "guid", *_TIMES])

    def __init__(self) -> None:
        super().__init__()
        self._url = self._guid = self._changed = ""

    def begins(self, name: str, attributes: Mapping[str, str]) -> None:
        super().begins(name, attributes)
        if name in _OWNERS:
            self._url = self._guid = self._changed = ""
        elif name == "link" and "href" in attributes and self._is_of_entry():
            relation = (attributes.get("rel") or "alternate").strip().lower()
            if relation == "alternate" and not self._url:
                self._url = self.joined(attributes["href"])

    def ends(self, name: str, text: str) -> None:
        if not self._is_of_entry():
            return
        if name == "link":
            self._url = self._url or (self.joined(text) if text else "")
        elif name == "guid":
            self._guid = text if self.is_link(text) else self._guid
        else:
            self._changed = self._changed or text

    def left(self, name: str) -> None:
        super().left(name)
        if name in _OWNERS:
            if url := self._url or self._guid:
                self.found.append(Listed(url, self._changed))
            self._url = self._guid = ""

    def _is_of_entry(self) -> bool:
        """Whether the open element is one of an entry."""
        return len(self.path) > 1 and self.path[-2] in _OWNERS


def _of_json(body: bytes) -> Entries:
    if len(body) > MOST_FEED:
        raise Unreadable("bytes")
    try:
        feed = json.loads(body)
    except (ValueError, RecursionError):
        raise Unreadable("malformed") from None
    version = feed.get("version") if isinstance(feed, dict) else None
    if not isinstance(version, str) or "jsonfeed.org" not in version or not isinstance(feed.get("items"), list):
        raise Unreadable("malformed")
    broken = False
    for item in feed["items"]:
        url = item.get("url") if isinstance(item, dict) else None
        if isinstance(url, str):
            changed = item.get("date_modified") or item.get("date_published")
            yield Listed(url, changed if isinstance(changed, str) else "")
        else:
            broken = broken or not isinstance(item, dict)
    if broken:
        raise LinksCut("malformed")
