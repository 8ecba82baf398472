"""Joining what a page says to the page's address: the URLs of Scrapy's link extractor, letter by letter.

Scrapy joins by RFC 3986 (urllib), then lets w3lib's `safe_url_string` escape what is no URL character, the query in the
encoding of the page, and joins again. That takes 25 microseconds a link. For nine links in ten it changes nothing and
means no more than putting two strings together: they are told by one regular expression, and everything else (spaces,
letters beyond ASCII, dot segments in the middle, empty parts, user names, capitals in host names, other schemes) goes
the long way.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from urllib.parse import urljoin

from w3lib.url import safe_url_string

# Possessive (`++`), as going back never helps here; names spelt out, as `\w` in a set takes twice as long.
_WORD = "A-Za-z0-9_"
QUERY = rf"\?[{_WORD}~!$&()*+,;=:@%/?.-]++"  # w3lib escapes the apostrophe here, and only here
FRAGMENT = rf"\#[{_WORD}~!$&'()*+,;=:@%/?.-]++"
# What names in paths are made of. `;` is missing: urllib drops an empty parameter. Empty queries and fragments are
# dropped, too.
NAME = f"-{_WORD}~!$&'()*+,=@%"
PATH = f"{NAME}./"
WEB = ("http://", "https://")
ORIGIN = "https?://[a-z0-9.-]++(?::[1-9][0-9]{0,3}+)?+"
_PLAIN = re.compile(rf"([{PATH}:]*+)({QUERY})?+({FRAGMENT})?+\Z")
_ORIGIN = re.compile(rf"{ORIGIN}(?=/|\Z)")
_OF_QUERIES = "ABCXYZabcxyz0189&=%"
_LEVELS = re.compile(r"\./|(?:\.\./)++")

Process = Callable[[str], object]


class Joiner:
    """Makes URLs of what stands in the attributes of one page.

    `base`: what links are relative to; `address`: the page's own URL; `encoding`: the name of the codec that the page
    was read with, for the letters in queries; `process`: a user's function that changes a joined URL, or returns None.
    """

    __slots__ = (
        "_base",
        "_address",
        "_encoding",
        "_process",
        "root",
        "_page",
        "search",
        "folder",
    )

    def __init__(self, base: str, address: str, encoding: str, process: Process | None = None) -> None:
        self._base = base
        self._address = address
        self._encoding = _for_queries(encoding)
        self._process = process
        # The site, the folder of relative links and the page without query, each with what joins it to a path; empty
        # where the base is unusual.
        self.root = self.folder = self.search = ""
        found = _ORIGIN.match(base)
        parts = _PLAIN.match(base)
        if found is not None and parts is not None:
            path = parts[1][found.end() :]
            query = parts[2] or ""
            if "//" not in path and "/." not in path and (path or not query):
                self.root = origin = found[0]
                self.search = origin + (path or "/")
                self._page = origin + path + query
                self.folder = origin + path[: path.rfind("/") + 1] if path else origin + "/"

    def reads_queries_as(self, encoding: str) -> bool:
        """Whether letters in queries are in this encoding, that of the page, as Scrapy has it."""
        return self._encoding == encoding

    def join(self, value: str) -> str | None:
        """The URL that `value` means on this page, None where it means none. Raises only what `process` raises."""
        joined = self.shortly(value)
        if joined is not None and self._process is None:
            return joined
        return self._at_length(value, joined)

    def special(self, value: str) -> str:
        """The URL of what begins with `../`, `?` or `#` and is otherwise plain, where `folder` is not empty."""
        if value[0] != ".":
            return (self._page if value[0] == "#" else self.search) + value
        rest = value.lstrip("./")
        return self._above((len(value) - len(rest)) // 3) + rest

    def _above(self, levels: int) -> str:
        """The folder that is so many levels up; the highest one where there are not so many."""
        top = len(self.root)
        end = len(self.folder) - 1
        while levels and end > top:
            end = self.folder.rfind("/", top, end)
            levels -= 1
        return self.folder[: end + 1]

    def shortly(self, value: str) -> str | None:
        """The URL, where no more than putting strings together is needed; else None."""
        found = _PLAIN.match(value)
        if found is None or not self.root:
            return None
        path = found[1]
        if not path:
            return self.special(value) if value else None
        first = path[0]
        if "/." in path or "//" in path or first == "." or (":" in path and first != "/"):
            return self._by_parts(value, path, found[2])
        return self.root + value if first == "/" else self.folder + value

    def _by_parts(self, value: str, path: str, query: str | None) -> str | None:
        """The URL of a whole one, or of one that begins with levels up; None for what is neither."""
        if path[0] == ".":
            levels = _LEVELS.match(path)
            if levels is None or _unusual(rest := path[levels.end() :]) or ":" in rest:
                return None
            return self._above(levels.end() // 3) + value[levels.end() :]
        origin = _ORIGIN.match(path)
        if origin is None or "//" in (rest := path[origin.end() :]) or "/." in rest or (query and not rest):
            return None
        return value

    def _at_length(self, value: str, joined: str | None) -> str | None:
        """As Scrapy does it. `joined` is the URL if it is known already."""
        try:
            whole = urljoin(self._base, value) if joined is None else joined
        except ValueError:
            return None
        made = whole if self._process is None else self._process(whole)
        if made is None:
            return None
        if made == joined:
            return joined
        try:
            return urljoin(self._address, safe_url_string(made, encoding=self._encoding))  # type: ignore[arg-type]
        except ValueError:
            return None


@lru_cache(64)
def _for_queries(encoding: str) -> str:
    """The encoding of letters in queries: the page's, but UTF-8 for one that does not keep ASCII (UTF-16), as in a
    browser."""
    try:
        return encoding if _OF_QUERIES.encode(encoding) == _OF_QUERIES.encode() else "utf-8"
    except UnicodeError:
        return "utf-8"


def plain(url: str) -> bool:
    """Whether this is a whole URL that Scrapy's way of making them safe leaves as it is. No may be wrong."""
    origin = _ORIGIN.match(url)
    parts = _PLAIN.match(url)
    return origin is not None and parts is not None and (len(parts[1]) > origin.end() or not parts[2])


def _unusual(path: str) -> bool:
    """Whether a relative path has empty parts, or parts that begin with a dot."""
    return path[:1] in (".", "/") or "/." in path or "//" in path
