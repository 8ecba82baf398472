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
from scrapy_ubi.urls.links.handlers.feed import MOST_BYTES, FeedReader
from scrapy_ubi.urls.links.handlers.sitemap import is_xml
from scrapy_ubi.urls.links.handlers.xml_reader import values
from scrapy_ubi.urls.listings.entries import Entries, Listed, declares_entities

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
    yield from values(body, _EntryReader(), MOST_BYTES)


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
