"""What the parser of the HTML standard makes of a page, told before it is parsed: the tags, one by one.

Ordinary pages are 20 to 50 deep; 70 kB of nothing but `<ul><li>` would keep a core busy for a second. Tags are told
apart as the standard's tokenizer does it. What is text depends on which elements are open (`OpenElements`); where that
is not sure, and makes a difference, the page counts as costly.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from scrapy_ubi.urls.links.open_elements import RAW, OpenElements

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
    begin = open_.begin
    end = open_.end
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
