"""How many URLs of one kind an agent lets through: a calendar of query parameters ends there.

URLs of one *kind* differ only in the values of their arguments: host, path and the names of the arguments are the same.
A link counts where the page it was found on is of the same host and has an argument of one of these names itself: a
month links to the next month, while a list of products, by `page`, links to products, by `id`. Rules of this module:

* Of each kind the first `most` different URLs pass; these pass ever after, and no other does.
* In memory are the hashes (64 bits) of URLs that passed: `MOST_URLS` of all kinds, and `MOST_KINDS` kinds. Beyond that
  the kind that was asked about longest ago is forgotten: its count starts from zero.
* It is one agent's count, and starts from zero with the process. Links of a host's own pages are found by its owner.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import OrderedDict

from mmh3 import hash64

from scrapy_ubi.urls.filters.base import host_of
from scrapy_ubi.urls.normal import normal_form

MOST_URLS = 200_000  # about 15 MB
MOST_KINDS = 10_000  # about 5 MB
KIND_SEED, URL_SEED = 0x6B696E64, 0x75726C73  # "kind", "urls"


class Combinations:
    """The URLs that passed, by kind; `most` of each."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._growing: OrderedDict[int, set[int]] = OrderedDict()
        self._full: OrderedDict[int, array[int]] = OrderedDict()  # sorted
        self._urls = 0
        self._page: tuple[str, str, frozenset[str]] = ("", "", frozenset())  # the last one asked about

    def refuses(self, normal: str, page: str) -> bool:
        """Whether this URL, a normal form with a query, is one too many of its kind."""
        before, _, query = normal.partition("?")
        names = frozenset(part.partition("=")[0] for part in query.split("&"))
        if not self._counts(normal, names, page):
            return False
        kind = hash64("&".join((before, *sorted(names))), KIND_SEED, signed=False)[0]
        url = hash64(normal, URL_SEED, signed=False)[0]
        full = self._full.get(kind)
        if full is not None:
            self._full.move_to_end(kind)
            at = bisect_left(full, url)
            return at == len(full) or full[at] != url
        self._add(kind, url)
        return False

    def _counts(self, normal: str, names: frozenset[str], page: str) -> bool:
        if page != self._page[0]:
            form = normal_form(page) or ""
            query = form.partition("?")[2]
            theirs = frozenset(part.partition("=")[0] for part in query.split("&")) if query else frozenset()
            self._page = (page, host_of(form), theirs)
        return not names.isdisjoint(self._page[2]) and host_of(normal) == self._page[1]

    def _add(self, kind: int, url: int) -> None:
        urls = self._growing.setdefault(kind, set())
        self._growing.move_to_end(kind)
        if url in urls:
            return
        urls.add(url)
        self._urls += 1
        if len(urls) >= self._most:
            self._full[kind] = array("Q", sorted(self._growing.pop(kind)))
        while self._urls > MOST_URLS or len(self._growing) + len(self._full) > MOST_KINDS:
            # What is full is a trap, probably: it is kept for longer. The last that grows is the one asked about.
            table = self._growing if len(self._growing) > 1 else self._full or self._growing
            self._urls -= len(table.popitem(last=False)[1])

    @property
    def kinds(self) -> int:
        """How many kinds of URLs are remembered."""
        return len(self._growing) + len(self._full)

    def __len__(self) -> int:
        return self._urls
