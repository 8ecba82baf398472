"""The store of the link graph: per page the keys of what it leads to, and a text for each key that is news.

Rules of this module:

* Links are those that the callback yields, as requests or plain links, also those that a filter refuses; and redirects.
  Links of a page that its spider does not ask for are none: nothing is parsed here.
* Keys and texts are of normal forms under UBI_NORMALISE, as the frontier knows the pages. What has no normal form (not
  http or https) is no node.
* Which texts a part has is remembered in a table of fixed size: a text that has dropped out of it is written again.
  Every part is read by itself: where one is lost, the others name all that they speak of.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scrapy.settings import BaseSettings

from scrapy_ubi.outputs.graph.page_record import LINK, REDIRECT, Keys, keys_of, packed
from scrapy_ubi.outputs.part_writer import Part
from scrapy_ubi.outputs.stores import Page, Store

ENDING = "graph"
SLOTS = 1 << 18  # texts remembered, at most: 2 MB

_MASK = np.uint64(SLOTS - 1)
_WEB = ("http://", "https://")


class _Payload(NamedTuple):
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

    def page(self, page: Page) -> _Payload | None:
        """Where a page leads to; nothing where nothing came."""
        if (page.response is None and page.received is None) or not page.normal.startswith(_WEB):
            return None
        came = page.response if page.response is not None else page.received
        links, moved = page.links, page.moved_to
        types = bytes((LINK,)) * len(links) + bytes((REDIRECT,)) * len(moved)
        status = came.status if came is not None else 0
        return _Payload([page.normal, *links, *moved], types, status, page.depth, page.ended)

    def write(self, payload: _Payload, part: Part) -> None:
        """In the writer's thread."""
        keys = keys_of(payload.forms)
        slots, texts = self._named.news(payload.forms, keys, part)
        part.append(ENDING, packed(keys, payload.types, texts, payload.status, payload.depth, payload.ended))
        self._named.wrote(slots, keys, part)


class _Named:
    """Which texts a part has, as far as is remembered."""

    def __init__(self) -> None:
        self._empty: Keys = ~np.arange(SLOTS, dtype=np.uint64)  # no key of that slot
        self._table = self._empty.copy()
        self._part: Part | None = None
        self._end = 0

    def news(self, forms: Sequence[str], keys: Keys, part: Part) -> tuple[NDArray[np.int64], list[str]]:
        """The slots of the keys, and the texts that the part has not, as far as is known."""
        if part is not self._part or part.end_of(ENDING) != self._end:  # another part, or something was taken back
            self._part, self._table = part, self._empty.copy()
        slots = (keys & _MASK).view(np.int64)  # by signed numbers numpy takes half the time
        unknown = (self._table.take(slots) != keys).nonzero()[0]
        return slots, [forms[number] for number in unknown.tolist()]

    def wrote(self, slots: NDArray[np.int64], keys: Keys, part: Part) -> None:
        """The part has them now."""
        self._table[slots] = keys
        self._end = part.end_of(ENDING)
