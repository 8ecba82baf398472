"""Entries of feeds: RSS, RSS 1.0 (RDF), Atom and JSON Feed, each with the page that it is about and its time.

Rules of this module:

* Of an entry of RSS: `link`, else a `guid` that may be one; of Atom: `link` without a relation or as `alternate`, with
  `xml:base`. What a feed says of itself is left out, and so are media.
* A feed that declares entities is refused whole; of JSON only whole documents are read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from scrapy_ubi.urls.links.handlers.bounds import LinksCut, Unreadable
from scrapy_ubi.urls.links.handlers.feed import BASE, MOST_BYTES, join_base
from scrapy_ubi.urls.links.handlers.sitemap import is_xml
from scrapy_ubi.urls.links.handlers.xml_reader import XmlReader, values
from scrapy_ubi.urls.listings.entries import Entries, Listed, declares_entities

_OWNERS = frozenset(["item", "entry"])
_TIMES = ("updated", "modified", "pubDate", "date", "published", "issued")
_WEB = ("http://", "https://")


def feed_entries(body: bytes) -> Entries:
    """Yield the entries of a feed, and None where the loop may have its turn. Raises LinksCut behind what could be
    read, Unreadable for what is no feed."""
    if not is_xml(body):
        yield from _of_json(body)
        return
    if declares_entities(body):
        raise Unreadable("entities")
    yield from values(body, _FeedReader(), MOST_BYTES)


class _FeedReader(XmlReader[Listed]):
    texts = frozenset(["link", "guid", *_TIMES])

    def __init__(self) -> None:
        super().__init__()
        self._bases: list[str] = [""]  # of each element that is open
        self._url = self._guid = self._changed = ""
        self._is_link = True  # whether the guid that is open may be one

    def begins(self, name: str, attributes: Mapping[str, str]) -> None:
        base = self._bases[-1]
        if own := attributes.get(BASE):
            base = join_base(base, own)
        self._bases.append(base)
        if len(self.path) == 1:
            self.is_one = name in ("rss", "feed", "RDF")
        elif name in _OWNERS:
            self._url = self._guid = self._changed = ""
        elif self.path[-2] not in _OWNERS:
            return
        elif name == "link" and "href" in attributes:
            if (attributes.get("rel") or "alternate").strip().lower() == "alternate":
                self._url = self._url or join_base(base, attributes["href"])
        elif name == "guid":
            self._is_link = (attributes.get("isPermaLink") or "").strip().lower() != "false"

    def ends(self, name: str, text: str) -> None:
        if len(self.path) < 2 or self.path[-2] not in _OWNERS:
            return
        if name == "link":
            self._url = self._url or (join_base(self._bases[-1], text) if text else "")
        elif name == "guid":
            if self._is_link and text.startswith(_WEB):
                self._guid = text
        else:
            self._changed = self._changed or text

    def left(self, name: str) -> None:
        if len(self._bases) > 1:
            self._bases.pop()
        if name in _OWNERS:
            if url := self._url or self._guid:
                self.found.append(Listed(url, self._changed))
            self._url = self._guid = ""


def _of_json(body: bytes) -> Entries:
    if len(body) > MOST_BYTES:
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
