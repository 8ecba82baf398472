"""Pages that the link extractor has parsed, for those that read them once more: a store of links, after the spider.

Rules of this module:

* Nothing is kept until somebody asks for it (`wanted`). Trees are shared to be read, never to be changed.
* What is kept is bounded: all its pages have `MOST` characters together, which come to some 5 MB, and 13 at worst.
  Those parsed first go first.
* Used in one thread only. A page is known by the object that it was parsed from, for as long as that lives.
"""

from __future__ import annotations

from weakref import ReferenceType, ref

from scrapy_ubi.urls.links.page import Page

MOST = 400_000  # characters


class SharedPages:
    """Parsed pages, by what they were parsed from."""

    __slots__ = ("_characters", "_pages", "wanted")

    def __init__(self) -> None:
        self.wanted = False
        self._pages: dict[int, tuple[ReferenceType[object], Page, int]] = {}
        self._characters = 0

    def keep(self, source: object, page: Page, characters: int) -> None:
        """What `source` was parsed into, and how long it is."""
        self.take_page(source)
        if characters > MOST:
            return
        self._pages[id(source)] = ref(source), page, characters
        self._characters += characters
        while self._characters > MOST:
            self._characters -= self._pages.pop(next(iter(self._pages)))[2]

    def take_page(self, source: object) -> Page | None:
        """What `source` was parsed into, if that is known: from then on it is not."""
        found = self._pages.pop(id(source), None)
        if found is None:
            return None
        self._characters -= found[2]
        return found[1] if found[0]() is source else None


shared = SharedPages()
