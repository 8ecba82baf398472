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


def survey(page: bytes) -> tuple[int, int]:
    """What a parser finds in a page (in UTF-8, without NUL), at least: the depth, up to DEEP + 1, as far as elements
    are ended in their turn; and the most formatting elements that were open at once, with those not ended so."""
    open_: list[bytes] = []
    foreign, shapes = -1, False  # where in them the first of _FOREIGN stands; whether only _SHAPES have come since
    patience, left, most_left, depth = PATIENCE, 0, 0, 0
    for data, end, name, last in _TAG.findall(page):
        if data and foreign >= 0:
            return DEEP + 1, most_left  # where it ends, and so what is a tag, depends on what it is in
        name = name.lower()
        whole = last.endswith(b"/") and not end and (shapes or name == b"svg") and name in _SHAPES
        if not name or whole or (foreign < 0 and name in _VOID):
            continue
        shapes = (shapes or name == b"svg") and name in _SHAPES and not (end and name == b"svg")
        if end:
            left -= name in NAMES and open_[-1:] == [name]
            patience -= _close(open_, name)
            foreign = foreign if foreign < len(open_) else -1
        elif foreign >= 0 or not (open_ and open_[-1] == name and name in _ENDED_BY_THE_NEXT):
            if foreign < 0 and name in _FOREIGN:
                foreign = len(open_)
            open_.append(name)
            left += name in NAMES
            depth, most_left = max(depth, len(open_)), max(left, most_left)
        if depth > DEEP or patience < 0:
            return DEEP + 1, most_left
    return depth, most_left


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
