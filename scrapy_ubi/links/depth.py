"""How deep the elements of a page may stand in each other, told before it is parsed.

The parser of the HTML standard looks up through all open elements at many tags. Ordinary pages are 20 to 50 deep; 70 kB
of nothing but `<ul><li>` would keep a core busy for a second. Such pages are left to libxml2, which gives up at 2,048
levels.

Tags are told apart as the standard's tokenizer does it. Where that would take its whole parser (what is text within
`textarea`, say), elements count as open that are not.
"""

from __future__ import annotations

import re

from scrapy_ubi.links.growth import NAMES

DEEP = 1_000  # levels
PATIENCE = 1_000_000  # open elements that end tags are compared with, in all: ordinary pages need few

_SPACE = rb"[ \t\n\r\f]"
# A quotation mark begins a value only right behind the `=` that follows a name, and a name may begin with `=`.
_VALUE = rb"""(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z)|[^ \t\n\r\f>"'][^ \t\n\r\f>]*+)"""
_ATTRIBUTE = rb"[ \t\n\r\f/]*+[^ \t\n\r\f/>][^ \t\n\r\f/>=]*+(?:%b*+=%b*+%b?+)?+" % (_SPACE, _SPACE, _VALUE)
# Comments and what the standard takes for one; else a tag: `/` of an end tag, name, what stands before its `>`.
_TAG = re.compile(
    rb"<!--(?!-?>).*?(?:--!?>|\Z)|<(!\[CDATA\[)|<[?!][^>]*+|</(?![a-zA-Z])[^>]*+"
    rb"|<(/?)([a-zA-Z][^ \t\n\r\f/>]*+)(?:%b)*+([ \t\n\r\f/]*+)" % _ATTRIBUTE,
    re.DOTALL,
)
_VOID = frozenset(b"area base br col embed hr img input link meta param source track wbr".split())
_OPTIONAL = frozenset(b"dd dt li option p".split())  # an end tag of what they are in ends them, too
_ROWS = frozenset(b"tbody td tfoot th thead tr".split())
_OF_ROWS = frozenset(b"table tbody tfoot thead tr".split())
_ENDED_BY_THE_NEXT = _OPTIONAL | _ROWS
_FOREIGN = frozenset((b"svg", b"math"))  # within these no element ends by itself
# Within svg `<x/>` is whole, as long as nothing but these has shown that it is still within svg.
_SHAPES = frozenset(b"circle clippath defs ellipse g line mask path polygon polyline rect stop svg symbol use".split())


class _Open:
    """The elements that stand open, as the tags of a page come one by one.

    `deepest`: of the depths so far; `left`: the most formatting elements that were open at once, with those not ended
    in their turn; `patience`: how many open elements may still be compared with.
    """

    __slots__ = ("_foreign", "_left", "_names", "_shapes", "deepest", "left", "patience")

    def __init__(self) -> None:
        self._names: list[bytes] = []
        self._foreign = -1  # where the first of _FOREIGN stands
        self._shapes = False  # whether only _SHAPES have come since
        self._left = self.left = self.deepest = 0
        self.patience = PATIENCE

    @property
    def is_foreign(self) -> bool:
        """Whether what comes is within svg or math."""
        return self._foreign >= 0

    def take(self, name: bytes, end: bytes, last: bytes) -> None:
        """A tag: its name in lower case, the `/` of an end tag, what stands before its `>`."""
        shape = name in _SHAPES and (self._shapes or name == b"svg")
        if (shape and not end and last.endswith(b"/")) or (self._foreign < 0 and name in _VOID):
            return  # it is whole
        self._shapes = shape and not (end and name == b"svg")
        if end:
            self._end(name)
        elif self._foreign >= 0 or not (name in _ENDED_BY_THE_NEXT and self._names[-1:] == [name]):
            self._begin(name)

    def _end(self, name: bytes) -> None:
        self._left -= name in NAMES and self._names[-1:] == [name]
        self.patience -= _close(self._names, name)
        if self._foreign >= len(self._names):
            self._foreign = -1

    def _begin(self, name: bytes) -> None:
        if self._foreign < 0 and name in _FOREIGN:
            self._foreign = len(self._names)
        self._names.append(name)
        self._left += name in NAMES
        self.deepest, self.left = max(self.deepest, len(self._names)), max(self._left, self.left)


def survey(page: bytes) -> tuple[int, int]:
    """What a parser finds in a page (in UTF-8, without NUL), at least: the depth, up to DEEP + 1, as far as elements
    are ended in their turn; and the most formatting elements that were open at once, with those not ended so."""
    open_ = _Open()
    for data, end, name, last in _TAG.findall(page):
        if data and open_.is_foreign:
            return DEEP + 1, open_.left  # where it ends, and so what is a tag, depends on what it is in
        if name:
            open_.take(name.lower(), end, last)
            if open_.deepest > DEEP or open_.patience < 0:
                return DEEP + 1, open_.left
    return open_.deepest, open_.left


def _close(open_: list[bytes], name: bytes) -> int:
    """End an element, if nothing stands open in it but what it ends by itself. How many elements it looked at."""
    last = at = len(open_) - 1
    while at >= 0 and open_[at] != name:
        if open_[at] not in _OPTIONAL and not (name in _OF_ROWS and open_[at] in _ROWS):
            return last - at
        at -= 1
    if at >= 0:
        del open_[at:]
    return last - at
