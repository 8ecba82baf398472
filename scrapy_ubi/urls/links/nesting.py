"""How deep the elements of a page stand in each other, where its tags nest: each end tag ends the element opened last.

Most large pages nest, as programs write them. That, and their depth, is told in a tenth of the time that `survey` takes
(`costly`), to which all others are left.

Rules of this module:

* Where all tags nest the parser never has more elements open than are open here, but for what it adds itself (`tbody`,
  the `p` of a lonely `</p>`): an end tag that it does not take, or takes for another element, comes where its own is
  gone already.
* A tag is what the tokenizer takes for one. Comments, the text of scripts and the like, and drawings are cut out first;
  a tag with another one before its `>`, or whose `>` may stand in a value, makes the page unsure.
* A drawing (`svg`) is sure where it has nothing but elements that end nothing outside of it, written beyond doubt, that
  nest as well. In `select`, most tags are no tags. Formulas, templates and frames are not looked at.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from scrapy_ubi.ground.later import Later
from scrapy_ubi.urls.links.growth import NAMES
from scrapy_ubi.urls.links.open_elements import RAW, VOID

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    _Places = NDArray[np.int64]
    _Bytes = NDArray[np.uint8]
else:
    np = Later("numpy")

_BEHIND = rb"(?=[ \t\n\r\f/>])"  # a name
_UNSURE = frozenset(b"frameset math plaintext svg template".split())
_IN_SELECT = frozenset(b"optgroup option".split())
_SPECIAL = VOID | _UNSURE | NAMES | {b"select"}
_SPECIAL_ENDS = frozenset(b"/" + name for name in NAMES | {b"select"})
_DRAWN = b"|".join(
    b"a circle clippath defs ellipse filter g line lineargradient marker mask path pattern polygon polyline "
    b"radialgradient rect stop symbol text textpath tspan use".split()
)
_cut_begins = re.compile(rb"<!|<(svg|%b)%b" % (b"|".join(sorted(RAW)), _BEHIND), re.IGNORECASE)
_raw_ends = {name: re.compile(rb"</%b%b" % (name, _BEHIND), re.IGNORECASE) for name in RAW}
_script_begins = re.compile(rb"<script" + _BEHIND, re.IGNORECASE)
_ATTRIBUTES = rb"""(?:[ \t\n]++[\w:.-]++(?:="[^"<>]*+"|='[^'<>]*+')?+)*+[ \t\n]*+"""
_in_drawing = re.compile(rb"<(/?)(svg|%b)%b(/?)>[^<]*+" % (_DRAWN, _ATTRIBUTES), re.IGNORECASE)
_unusual = re.compile(rb"<(?:\?|/[^a-zA-Z])")  # comments of another kind
_tags = re.compile(rb"<(/?[a-z][^ \t\n\r\f/>]*+)")
_CUT = b"<!>"  # stands where something was cut out


class Nesting(NamedTuple):
    """How many elements stand open at most, and how many formatting ones (`growth.NAMES`)."""

    depth: int
    formatting: int


def nesting(page: bytes) -> Nesting | None:
    """Return how deep a page (in UTF-8, without NUL) nests; None: it does not, or that is not sure."""
    found = _cut(page)
    if found is None:
        return None
    page, drawn = found
    if _unusual.search(page) or not _has_plain_tags(page):
        return None
    within = [b""]  # the end tags that are due; the first is none
    most = 1
    formatting = most_formatting = 0
    in_select = False
    for tag in _tags.findall(page.lower()):
        if tag.startswith(b"/"):
            if within.pop() != tag:
                return None
            if tag in _SPECIAL_ENDS:
                formatting -= tag != b"/select"
                in_select = False
            continue
        if tag in _SPECIAL:  # else one of those that most are
            if tag in VOID:
                continue
            if tag in _UNSURE or in_select:
                return None
            if tag == b"select":
                in_select = True
            else:
                formatting += 1
                most_formatting = max(most_formatting, formatting)
        elif in_select and tag not in _IN_SELECT:
            return None
        within.append(b"/" + tag)
        if len(within) > most:
            most = len(within)
    return Nesting(most - 1 + drawn, most_formatting)


def _cut(page: bytes) -> tuple[bytes, int] | None:
    """Return a page without what is no tag, or is one of a drawing, and how deep its drawings are; None: not sure."""
    pieces: list[bytes] = []
    at = deepest = 0
    while found := _cut_begins.search(page, at):
        start = found.start()
        if found[1] is None:
            stop = _behind_comment(page, start)
            if stop < 0:
                return None
            pieces += (page[at:start], _CUT)
        elif (name := found[1].lower()) == b"svg":
            drawing = _behind_drawing(page, start)
            if drawing is None:
                return None
            stop, depth = drawing
            deepest = max(deepest, depth)
            pieces += (page[at:start], _CUT)
        else:
            text = page.find(b">", start) + 1
            end = _raw_ends[name].search(page, text)
            if not text or end is None:
                return None
            stop = end.start()
            begins = page.find(b"<!--", text, stop) if name == b"script" else -1
            if begins >= 0 and _script_begins.search(page, begins, stop):
                return None  # it is text up to the end of another one
            pieces.append(page[at:text])
        at = stop
    pieces.append(page[at:])
    return b"".join(pieces), deepest


def _behind_comment(page: bytes, start: int) -> int:
    """Where the comment ends, or the doctype, that begins in a place; negative: it does not, or in another way."""
    if not page.startswith(b"<!--", start):
        return page.find(b">", start) + 1 or -1
    if page.startswith((b">", b"->"), start + 4):
        return -1
    stop = page.find(b"-->", start + 4)
    return -1 if stop < 0 or page.find(b"--!>", start, stop) >= 0 else stop + 3


def _behind_drawing(page: bytes, start: int) -> tuple[int, int] | None:
    """Return where the drawing ends that begins in a place, and how deep it is; None: not sure."""
    within: list[bytes] = []
    at = start
    deepest = 0
    while found := _in_drawing.match(page, at):
        is_end, name, is_whole = found.groups()
        at = found.end()
        if is_end:
            if not within or within.pop() != name.lower():
                return None
        elif not is_whole:
            within.append(name.lower())
            deepest = max(deepest, len(within))
        if not within:
            return page.index(b">", found.start()) + 1, deepest + 1
    return None


def _has_plain_tags(page: bytes) -> bool:
    """Whether each tag ends at the first `>` behind it, before another one begins."""
    text = np.frombuffer(page + b"  ", np.uint8)
    places = np.flatnonzero(text == ord("<"))
    second = text[places + 1]
    places = places[((second | 0x20) - ord("a") < 26) | (second == ord("/")) | (second == ord("!"))]
    ends = np.flatnonzero(text == ord(">"))
    numbers = np.searchsorted(ends, places)
    if not len(places) or numbers[-1] == len(ends):
        return False
    ends = ends[numbers]
    if np.any(ends[:-1] > places[1:]):
        return False
    return not any(len(ends_in_values(page, text, ends, mark)) for mark in b"\"'")


def ends_in_values(page: bytes, text: _Bytes, ends: _Places, mark: int) -> _Places:
    """Which `>` may stand in a value between such quotation marks: the last one before it follows a `=`."""
    marks = np.flatnonzero(text == mark)
    if not len(marks):
        return marks
    last = np.searchsorted(marks, ends) - 1
    before, earlier = text[marks - 1], text[marks - 2]  # of the first ones: the blanks that were put behind the page
    is_blank = before <= ord(" ")
    opens = (before == ord("=")) | (is_blank & (earlier == ord("=")))
    is_used = np.zeros(len(marks), np.bool_)
    is_used[last[last >= 0]] = True
    for number in np.flatnonzero(is_used & is_blank & (earlier <= ord(" "))).tolist():
        place = int(marks[number])
        opens[number] = page[max(0, place - 64) : place].rstrip(b" \t\n\r\f")[-1:] in (b"=", b"")
    found: _Places = ends[opens[last] & (last >= 0)]
    return found
