"""Pages that were parsed ahead, in another thread, for the link extractor (`fast.second_core`).

Rules of this module:

* Nothing is kept until somebody parses ahead (`wanted_by`), and a page only as long as its response lives.
* What is parsed ahead is a guess: a body, taken for the UTF-8 that the page's text becomes. It is used only where the
  bytes that would be parsed are these very bytes.
* Whether pages of a callback are to be parsed ahead is told by credit: a large page that the extractor parses, or finds
  parsed, gives one; a page that is parsed ahead takes one. A callback that never asks soon has none.
* Used in the loop's thread only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple
from weakref import WeakKeyDictionary

from scrapy import Request
from scrapy.http import Response

from scrapy_ubi.urls.links.page import Page

LEAST = 30_000  # bytes of a page: to hand over a smaller one costs as much as its parse
MOST_CREDIT = 32
MOST_CALLBACKS = 100


class ParsedPage(NamedTuple):
    """A page that was parsed. `page`: None where that may take seconds or gigabytes."""

    written: bytes
    page: Page | None


class ParsedAhead:
    """The pages of this process that were parsed ahead."""

    __slots__ = ("credit", "_pages", "wanted_by")

    def __init__(self) -> None:
        self.wanted_by: set[object] = set()  # several crawls of a process may
        self._pages: WeakKeyDictionary[Response, tuple[ParsedPage, Callable[[], object]]] = WeakKeyDictionary()
        self.credit: dict[str, int] = {}

    def spend_credit(self, request: Request) -> bool:
        """Whether the callback of this request is likely to ask for the parsed page, which is going to be parsed."""
        name = _callback_of(request)
        credit = self.credit.get(name, 0)
        if credit <= 0:
            return False
        self.credit[name] = credit - 1
        return True

    def keep(self, response: Response, parsed: ParsedPage, taken: Callable[[], object]) -> None:
        """Keep a parsed page for its response; `taken` is called when the extractor takes it."""
        self._pages[response] = parsed, taken

    def take(self, response: Response, written: bytes) -> ParsedPage | None:
        """What these bytes of this response were parsed into, where they were."""
        if len(written) >= LEAST and response.request is not None:
            name = _callback_of(response.request)
            if name in self.credit or len(self.credit) < MOST_CALLBACKS:
                self.credit[name] = min(self.credit.get(name, 0) + 1, MOST_CREDIT)
        found, taken = self._pages.pop(response, (None, None))
        if found is None or taken is None or found.written != written:
            return None
        taken()
        return found


def _callback_of(request: Request) -> str:
    return getattr(request.callback, "__qualname__", "")


parsed_ahead = ParsedAhead()
