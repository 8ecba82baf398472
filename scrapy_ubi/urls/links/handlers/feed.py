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
from scrapy_ubi.urls.links.handlers.xml_reader import Found, XmlReader, local, values

MOST_BYTES = 10_000_000

_RELATIONS = frozenset(
    "alternate next prev previous first last next-archive prev-archive current related via replies".split()
) | {""}
_BASE = "{http://www.w3.org/XML/1998/namespace}base"
_WEB = ("http://", "https://")


def links(received: FetchedBody) -> Values:
    """The links of a feed, as written. Raises LinksCut, Unreadable."""
    return values(received.body, FeedLinks(), MOST_BYTES)


class FeedReader(XmlReader[Found]):
    """Reads a feed of any kind: follows `xml:base`, and knows which guid is a link."""

    roots = frozenset(["rss", "feed", "RDF"])

    def __init__(self) -> None:
        super().__init__()
        self._bases: list[str] = [""]  # of each element that is open
        self._may_be_link = True  # the guid that is open

    def begins(self, name: str, attributes: Mapping[str, str]) -> None:
        own = attributes.get(_BASE)
        self._bases.append(self.joined(own) if own else self._bases[-1])
        if name == "guid":
            self._may_be_link = (attributes.get("isPermaLink") or "").strip().lower() != "false"

    def left(self, name: str) -> None:
        if len(self._bases) > 1:
            self._bases.pop()

    def joined(self, value: str) -> str:
        """Join a value to the base of the open element; bases that would grow without end are left out."""
        base = self._bases[-1]
        if not base or len(base) + len(value) > MOST_URL:
            return value
        try:
            return urljoin(base, value)
        except ValueError:
            return value

    def is_link(self, guid: str) -> bool:
        """Whether the text of the guid that ends is a link."""
        return self._may_be_link and guid.startswith(_WEB)


class FeedLinks(FeedReader[str]):
    """Finds the links of a feed."""

    texts = frozenset(["link", "guid", "comments"])

    def begins(self, name: str, attributes: Mapping[str, str]) -> None:
        super().begins(name, attributes)
        if name == "link" and "href" in attributes:
            if (attributes.get("rel") or "").strip().lower() in _RELATIONS:
                self._add(attributes["href"])
        elif name == "content" and "src" in attributes:
            self._add(attributes["src"])
        elif name == "item":
            for key, value in attributes.items():
                if local(key) == "about":
                    self._add(value)

    def ends(self, name: str, text: str) -> None:
        if name != "guid" or self.is_link(text):
            self._add(text)

    def _add(self, value: str) -> None:
        if value:
            self.found.append(self.joined(value))
