"""Pages that cost the parser of the HTML standard far more than others of their length: quadratic time, or memory.

Ordinary pages are told by counting what could make them so, most others by the ends of their formatting elements
(`growth`). What is left is looked at tag by tag (`depth`), which takes some microseconds a tag.

Four things take lexbor quadratic time: elements that stand open, at the tags that it looks through them for; options,
as it looks through their `select` at each; attributes of one tag, of which it compares each two; formatting elements
that are left open. The last are opened again and again, which takes memory as well.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import TYPE_CHECKING

from scrapy_ubi.ground.later import Later, is_loaded
from scrapy_ubi.urls.links.depth import survey
from scrapy_ubi.urls.links.growth import NAMES, left_open
from scrapy_ubi.urls.links.page import eased

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    _Places = NDArray[np.int64]
    _Bytes = NDArray[np.uint8]
else:
    np = Later("numpy")

FEW = 600  # tags: however they stand, they are parsed in a fraction of a second, into some 90,000 elements
SMALL = 20_000  # bytes: of longer pages numpy counts the tags in less time than bytes does
STEPS = 100_000_000  # elements that are looked at: a third of a second
MOST = 500_000  # elements opened again, some 160 MB
_OPTIONS = 4  # steps that an option takes for each element of its select
_ROOTS = 8  # tags of html and body: they are one element each, whose attributes are all compared
_LONG = 65_536  # bytes: in shorter pages no tag has so many attributes that comparing them takes long
_GAP = 1024  # bytes between two `>`: tags that are no longer have not, either
_FEW_QUOTED = 50  # `>` that may stand in a value
_LOWER = 0x2020  # makes two letters small


@cache
def _beginnings() -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Whether two bytes may be those behind the `<` of a formatting element."""
    found = np.zeros(1 << 16, np.bool_)
    for name in NAMES:
        for one, two in product(*({*each.lower(), *each.upper()} for each in (name[:1], name[1:2] or b" \t\n\r\f/>"))):
            found[one << 8 | two] = True
    return found


def is_costly(page: bytes) -> bool:
    """Whether a page (in UTF-8, without NUL) may take its parser seconds, or gigabytes. True may be wrong, for pages
    that leave many elements open in unusual ways."""
    if len(page) <= SMALL and page.count(b"<") <= FEW:
        return False
    if not is_loaded("numpy"):  # as the first pages may find it: what numpy counts only spares most pages this
        return _is_too_much(page)
    text = np.frombuffer(page + b"  ", np.uint8)
    places = np.flatnonzero(text == ord("<"))
    if len(page) > _LONG and _may_have_many_attributes(page, text):
        return _is_too_much(page)
    if (tags := len(places)) <= FEW:
        return False
    first = text[places + 1]
    two = (first.astype(np.uint16) << 8) | text[places + 2]
    formatting = places[_beginnings()[two]]
    opened = tags - int(np.count_nonzero(first == ord("/")))
    if len(formatting) * tags > MOST and left_open(page, formatting.tolist()) * tags > MOST:
        return _is_too_much(page)
    small = (two | _LOWER).astype(np.uint16)
    options = _count(small, b"op")
    roots = _count(small, b"bo") + _count(small, b"ht")
    if tags * opened > STEPS or options * tags * _OPTIONS > STEPS or roots > _ROOTS:
        return _is_too_much(page)
    return False


def _count(two: NDArray[np.uint16], letters: bytes) -> int:
    return int(np.count_nonzero(two == (letters[0] << 8 | letters[1])))


def _is_too_much(page: bytes) -> bool:
    found = survey(eased(page), STEPS, MOST)
    return found.steps > STEPS or found.again > MOST


def _may_have_many_attributes(page: bytes, text: _Bytes) -> bool:
    """Whether there may be a tag with more than some hundred attributes. No is certain."""
    ends = np.flatnonzero(text == ord(">"))
    edges = np.concatenate(([-1], ends, [len(page)]))
    for number in np.flatnonzero(np.diff(edges) > _GAP).tolist():
        start = int(edges[number]) + 1
        stop = int(edges[number + 1])
        blanks = sum(page.count(blank, start, stop) for blank in (b" ", b"\n", b"\t", b"\r", b"\f", b"/", b'"', b"'"))
        if blanks > _GAP // 4 and page.find(b"<", start, stop) >= 0 and _begins_tag(page, start, stop):
            return True
    return _quoted(page, text, ends, ord('"')) + _quoted(page, text, ends, ord("'")) > _FEW_QUOTED


def _begins_tag(page: bytes, start: int, stop: int) -> bool:
    at = page.find(b"<", start, stop)
    while at >= 0:
        if page[at + 1 : at + 2].isalpha():
            return True
        at = page.find(b"<", at + 1, stop)
    return False


def _quoted(page: bytes, text: _Bytes, ends: _Places, mark: int) -> int:
    """How many `>` may stand in a value between such quotation marks: the last one before it follows a `=`."""
    marks = np.flatnonzero(text == mark)
    if not len(marks):
        return 0
    at = np.searchsorted(marks, ends) - 1
    marks = marks[at[at >= 0]]
    before = text[marks - 1]  # of a mark at the very beginning: the blank that was put behind the page
    sure = int(np.count_nonzero(before == ord("=")))
    blank = marks[before <= ord(" ")].tolist()
    return sure + sum(page[max(0, place - 64) : place].rstrip(b" \t\n\r\f")[-1:] in (b"=", b"") for place in blank)
