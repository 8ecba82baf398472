"""Pages that cost the parser of the HTML standard far more than others of their length: quadratic time, or memory.

Ordinary pages are told by counting what could make them so, most others by the ends of their formatting elements
(`growth`), or as their tags nest (`nesting`). What is left is looked at tag by tag (`survey`), which takes some
microseconds a tag: ordinary pages are 20 to 50 deep; 70 kB of nothing but `<ul><li>` would keep a core busy for a
second. Tags are told apart as the standard's tokenizer does it. What is text depends on which elements are open
(`OpenElements`); where that is not sure, and makes a difference, the page counts as costly.

Four things take lexbor quadratic time: elements that stand open, at the tags that it looks through them for; options,
as it looks through their `select` at each; attributes of one tag, of which it compares each two; formatting elements
that are left open. The last are opened again and again, which takes memory as well.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from scrapy_ubi.ground.later import Later, is_loaded
from scrapy_ubi.urls.links.growth import NAMES, left_open
from scrapy_ubi.urls.links.nesting import ends_in_values, nesting
from scrapy_ubi.urls.links.open_elements import RAW, OpenElements
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
_BROUGHT = 2  # elements that the parser makes of one: tables lack some
_AROUND = 3  # html, body, and the `p` of a lonely end tag
_ROOTS = 8  # tags of html and body: they are one element each, whose attributes are all compared
_LONG = 65_536  # bytes: in shorter pages no tag has so many attributes that comparing them takes long
_GAP = 1024  # bytes from a tag to the `>` that ends it: tags that are no longer have not, either
_MOST_COMPARED = STEPS // 16  # two of a page's attributes: those of up to `_ROOTS` tags may be compared as those of one
_SEPARATORS = (b" ", b"\n", b"\t", b"\r", b"\f", b"/", b'"', b"'")
_tag_begins = re.compile(rb"<[a-zA-Z]")
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
    small = (two | _LOWER).astype(np.uint16)
    options = _count(small, b"op")
    roots = _count(small, b"bo") + _count(small, b"ht")
    if options * tags * _OPTIONS > STEPS or roots > _ROOTS:
        return _is_too_much(page)
    may_grow = len(formatting) * tags > MOST and left_open(page, formatting.tolist()) * tags > MOST
    if (may_grow or tags * opened > STEPS) and not _nests(page, tags):
        return _is_too_much(page)
    return False


def _nests(page: bytes, tags: int) -> bool:
    """Whether a page is as deep as its tags nest, and that is not too much."""
    found = nesting(page)
    if found is None:
        return False
    return tags * (_BROUGHT * found.depth + _AROUND) <= STEPS and tags * found.formatting <= MOST


def _count(two: NDArray[np.uint16], letters: bytes) -> int:
    return int(np.count_nonzero(two == (letters[0] << 8 | letters[1])))


def _is_too_much(page: bytes) -> bool:
    found = survey(eased(page), STEPS, MOST)
    return found.steps > STEPS or found.again > MOST


def _may_have_many_attributes(page: bytes, text: _Bytes) -> bool:
    """Whether there may be tags whose attributes take long to compare. No is certain.

    A tag ends at the first `>` that stands in no value, so it lies between two of these. An attribute is followed by
    one of `_SEPARATORS`, or is the last. Text before the first tag of such a piece, as of a long paragraph, is none.
    """
    ends = np.flatnonzero(text == ord(">"))
    is_in_value = np.zeros(len(text), np.bool_)
    for mark in b"\"'":
        is_in_value[ends_in_values(page, text, ends, mark)] = True
    edges = np.concatenate(([-1], ends[~is_in_value[ends]], [len(page)]))
    steps = 0
    for number in np.flatnonzero(np.diff(edges) > _GAP).tolist():
        stop = int(edges[number + 1])
        if (tag := _tag_begins.search(page, int(edges[number]) + 1, stop)) and stop - tag.start() > _GAP:
            attributes = sum(page.count(separator, tag.start(), stop) for separator in _SEPARATORS)
            steps += attributes * attributes // 2
    return steps > _MOST_COMPARED


PATIENCE = 4_000_000  # open elements that are looked at here, in all: ordinary pages need few
ENDLESS = 1 << 60

_SPACE = rb"[ \t\n\r\f]"
# A quotation mark begins a value only right behind the `=` that follows a name, and a name may begin with `=`.
_VALUE = rb"""(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z)|[^ \t\n\r\f>"'][^ \t\n\r\f>]*+)"""
_ATTRIBUTE = rb"[ \t\n\r\f/]*+[^ \t\n\r\f/>][^ \t\n\r\f/>=]*+(?:%b*+=%b*+%b?+)?+" % (_SPACE, _SPACE, _VALUE)
# Comments and what the standard takes for one; else a tag: `/` of an end tag, name, attributes, what stands before `>`,
# and the text of an element with nothing but text.
_TAG = re.compile(
    rb"<!--(?!-?>).*?(?:--!?>|\Z)|<!(\[CDATA\[)|<[?!][^>]*+|</(?![a-zA-Z])[^>]*+"
    rb"|<(/?)([a-zA-Z][^ \t\n\r\f/>]*+)((?:%b)*+)([ \t\n\r\f/]*+)(?:>([^<]*+)</\3>)?+" % _ATTRIBUTE,
    re.DOTALL,
)
_one_attribute = re.compile(_ATTRIBUTE)
_RAW_END = {name: re.compile(rb"</%b(?=[ \t\n\r\f/>])" % name, re.IGNORECASE) for name in RAW}
_script_begins = re.compile(rb"<script[ \t\n\r\f/>]", re.IGNORECASE)
_doctype = re.compile(rb"\s*+(?:<!--.*?-->\s*+)*+<!doctype(\s++html\s*+>)?", re.IGNORECASE | re.DOTALL)
FEW_ATTRIBUTES = 64  # bytes of them, from which they are counted


class Survey(NamedTuple):
    """What the parser has to do at most. `steps`: elements, attributes and options that it looks at; `again`:
    formatting elements that it opens again; `depth`: of the elements (without those that tables lack)."""

    steps: int
    again: int
    depth: int


def survey(page: bytes, most: int = ENDLESS, most_again: int = ENDLESS) -> Survey:
    """Look at a page (in UTF-8, without NUL), until there are more than `most` steps, or `most_again` opened again."""
    open_ = OpenElements(PATIENCE, _quirks(page))
    begin = open_.open_element
    end = open_.close_element
    at = 0
    search = _TAG.search
    while (found := search(page, at)) is not None:
        data, is_end, name, attributes, last, text = found.groups()
        if open_.waits and found.start() > at + (page[at : at + 1] == b">"):
            open_.open_again()
        at = found.end()
        if name:
            name = name.lower()
            if text is not None and (is_end or name in RAW or name == b"plaintext"):
                at = found.start(6)
                text = None
            if is_end:
                end(name)
            elif name == b"plaintext" and open_.surely_html:
                break
            else:
                if len(attributes) > FEW_ATTRIBUTES:
                    open_.steps += cost_of_attributes(attributes)
                if name in RAW and not open_.surely_foreign:
                    if (at := _behind_raw(page, at, name, open_)) < 0:
                        return Survey(ENDLESS, open_.again, open_.deepest)
                elif text is None:
                    begin(name, attributes, last.endswith(b"/"))
                elif not open_.pass_over(name):
                    begin(name, attributes, last.endswith(b"/"))
                    if text:
                        open_.open_again()
                    end(name)
            if open_.steps > most or open_.again > most_again or open_.patience < 0:
                return Survey(max(open_.steps, most + 1), open_.again, open_.deepest)
        elif data:
            if open_.surely_foreign:
                stop = page.find(b"]]>", at)
            elif open_.surely_html:
                stop = page.find(b">", at)
            else:
                return Survey(ENDLESS, open_.again, open_.deepest)
            at = len(page) if stop < 0 else stop
    if at < len(page):
        open_.open_again()
    return Survey(open_.steps, open_.again, open_.deepest)


def cost_of_attributes(attributes: bytes) -> int:
    """Each of a tag's attributes is compared with those before it."""
    count = sum(1 for _ in _one_attribute.finditer(attributes)) if len(attributes) > FEW_ATTRIBUTES else 0
    return count * count // 2


def _behind_raw(page: bytes, at: int, name: bytes, open_: OpenElements) -> int:
    """Where the text of an element ends that has no elements; -1: that is not sure."""
    found = _RAW_END[name].search(page, at)
    text = page[at : found.start() if found else len(page)]
    if not open_.surely_html and b"<" in text:
        return -1
    begins = text.find(b"<!--", max(0, text.rfind(b"-->") - 2)) if name == b"script" else -1
    if begins >= 0 and _script_begins.search(text, begins):
        return -1  # it is text up to the end of another one
    open_.text(name)
    return found.end() if found else len(page)


def _quirks(page: bytes) -> bool | None:
    found = _doctype.match(page)
    if found is None:
        return True
    return False if found[1] else None
