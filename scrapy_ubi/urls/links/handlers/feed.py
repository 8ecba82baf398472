"""Links of feeds: RSS 0.9 to 2.0, RSS 1.0 (RDF), Atom.

Rules of this module:

* Of RSS: `link`, `comments` and `guid` (unless it says that it is none) of channel and items, and `rdf:about` of items.
* Of Atom, also within RSS: `link` with the relations that lead to pages, `content` that is elsewhere. Enclosures
  (media), and what a feed says of itself, are left out. `xml:base` holds.
* Texts of entries are not read as HTML.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urljoin

from scrapy_ubi.urls.links.handlers.bounds import MOST_URL, FetchedBody, Values
from scrapy_ubi.urls.links.handlers.xml_reader import XmlLinks, local, values

MOST_BYTES = 10_000_000

_RELATIONS = frozenset(
    "alternate next prev previous first last next-archive prev-archive current related via replies".split()
) | {""}
BASE = "{http://www.w3.org/XML/1998/namespace}base"


def links(received: FetchedBody) -> Values:
    """The links of a feed, as written. Raises LinksCut, Unreadable."""
    return values(received.body, FeedLinks(), MOST_BYTES)


class FeedLinks(XmlLinks):
    """Of a feed."""

    texts = frozenset(["link", "guid", "comments"])

    def __init__(self) -> None:
        super().__init__()
        self._bases: list[str] = [""]  # of each element that is open
        self._is_link = True  # whether the guid that is open may be one

    def begins(self, name: str, attributes: Mapping[str, str]) -> None:
        base = self._bases[-1]
        if own := attributes.get(BASE):
            base = join_base(base, own)
        self._bases.append(base)
        if len(self.path) == 1:
            self.is_one = name in ("rss", "feed", "RDF")
        if name == "link" and "href" in attributes:
            if (attributes.get("rel") or "").strip().lower() in _RELATIONS:
                self._add(attributes["href"])
        elif name == "content" and "src" in attributes:
            self._add(attributes["src"])
        elif name == "guid":
            self._is_link = (attributes.get("isPermaLink") or "").strip().lower() != "false"
        elif name == "item":
            for key, value in attributes.items():
                if local(key) == "about":
                    self._add(value)

    def ends(self, name: str, text: str) -> None:
        if name == "guid" and not (self._is_link and text.startswith(("http://", "https://"))):
            return
        self._add(text)

    def left(self, name: str) -> None:
        if len(self._bases) > 1:
            self._bases.pop()

    def _add(self, value: str) -> None:
        if value:
            self.found.append(join_base(self._bases[-1], value))


def join_base(base: str, value: str) -> str:
    """Join a value to its xml:base; bases that would grow without end are left out."""
    if not base or len(base) + len(value) > MOST_URL:
        return value
    try:
        return urljoin(base, value)
    except ValueError:
        return value
