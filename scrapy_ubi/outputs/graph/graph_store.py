"""The store of the link graph: per page the keys of what it leads to, and a text for each key that is news.

Rules of this module:

* Links are those that the callback yields, as requests or plain links, also those that a filter refuses; and redirects.
  Links of a page that its spider does not ask for are none: nothing is parsed here.
* Keys and texts are of normal forms under UBI_NORMALISE, as the frontier knows the pages. What has no normal form (not
  http or https) is no node.
* Which texts a part has is remembered in a table of fixed size: a text that has dropped out of it is written again.
  Every part is read by itself: where one is lost, the others name all that they speak of.
* The keys of the texts met last are remembered as well: most links of a page are also on the pages before it, and a
  look takes a third of what hashing takes.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import ClassVar, NamedTuple

import numpy as np
from scrapy.settings import BaseSettings

from scrapy_ubi.outputs.graph.page_record import REDIRECT, key_of, packed
from scrapy_ubi.outputs.part_writer import Part
from scrapy_ubi.outputs.stores import Page, Store

ENDING = "graph"
SLOTS = 1 << 18  # texts remembered, at most: 2 MB
FORMS = 1 << 14  # keys remembered: 3 MB

_MASK = SLOTS - 1
_WEB = ("http://", "https://")
_REDIRECT = bytes((REDIRECT,))


class GraphPayload(NamedTuple):
    """What a page gives to the store."""

    forms: list[str]  # the page's own, links, redirects
    types: bytes
    status: int
    depth: int
    ended: float


class GraphStore(Store):
    """`graph`: where each page leads to."""

    name: ClassVar[str] = "graph"
    wants_pages: ClassVar[bool] = True
    wants_links: ClassVar[bool] = True

    def __init__(self, arguments: dict[str, tuple[str, ...]], settings: BaseSettings) -> None:
        super().__init__(arguments, settings)
        self._named = _Named()

    def page(self, page: Page) -> GraphPayload | None:
        """Where a page leads to; nothing where nothing came."""
        came = page.response if page.response is not None else page.received
        if came is None or not page.normal.startswith(_WEB):
            return None
        links, moved = page.links, page.moved_to
        types = bytes(len(links)) + _REDIRECT * len(moved)  # a link is 0
        return GraphPayload([page.normal, *links, *moved], types, came.status, page.depth, page.ended)

    def write(self, payload: GraphPayload, part: Part) -> None:
        """In the writer's thread."""
        forms, types, status, depth, ended = payload
        keys, texts = self._named.keys_of(forms, part)
        part.append(ENDING, packed(keys, types, texts, status, depth, ended))
        self._named.wrote(part)


class _Named(dict[str, bytes]):
    """The keys of texts that a part has, as far as is remembered: of one that is asked for and not there, `__missing__`
    makes the key, and notes the text where it is news to the part."""

    def __init__(self) -> None:
        super().__init__()
        self._none = (np.arange(SLOTS, dtype="=u8") ^ np.uint64(1)).tobytes()  # no key of that slot
        self._table = array("Q")
        self._part: Part | None = None
        self._end = -1
        self._news: list[str] = []

    def keys_of(self, forms: Iterable[str], part: Part) -> tuple[bytes, list[str]]:
        """The keys of these, 8 bytes each, and the texts that the part has not, as far as is known."""
        if part is not self._part or part.end_of(ENDING) != self._end:  # another part, or something was taken back
            self._part, self._table = part, array("Q", self._none)
            self.clear()
        self._end, self._news = -1, []  # until it is written
        return b"".join(map(self.__getitem__, forms)), self._news

    def __missing__(self, form: str) -> bytes:
        key = key_of(form)
        number = int.from_bytes(key, "little")
        slot = number & _MASK
        if self._table[slot] != number:
            self._table[slot] = number
            self._news.append(form)
        if len(self) >= FORMS:
            self.clear()
        self[form] = key
        return key

    def wrote(self, part: Part) -> None:
        """The part has them now."""
        self._end = part.end_of(ENDING)
