"""How deep the elements of a page may stand in each other, told before it is parsed.

The parser of the HTML standard looks up through all open elements at every new one. Ordinary pages are 20 to 50 deep;
200 kB of nothing but `<ul><li>` would keep a core busy for ten seconds. Such pages are left to libxml2, which gives
up at 2,048 levels.
"""

from __future__ import annotations

import re

FEW = 8_000  # elements: however they stand, they are parsed in a fraction of a second
DEEP = 1_000  # levels

# Comments and what the standard takes for one; else a tag with its attributes, as tags may stand in their values.
_TAG = re.compile(
    r"""<!--(?!-?>).*?(?:--!?>|\Z)|<[?!][^>]*|</[^a-zA-Z][^>]*
    |<(/?)([a-zA-Z][^\s/>]*)[^>"']*+(?:(?:"[^"]*"|'[^']*')[^>"']*+)*+""",
    re.DOTALL | re.VERBOSE,
)
_VOID = frozenset("area base br col embed hr img input link meta param source track wbr".split())
_OPTIONAL = frozenset("dd dt li option p".split())  # an end tag of what they are in ends them, too
_ROWS = frozenset("tbody td tfoot th thead tr".split())
_OF_ROWS = frozenset("table tbody tfoot thead tr".split())


def may_be_deep(page: bytes) -> bool:
    """Whether a page (in UTF-8) has more than FEW elements, and they may stand more than DEEP levels deep. True may be
    wrong, for pages that leave many elements open."""
    if len(page) <= 3 * FEW:
        return False  # counting is a twentieth of a small page's time
    tags = page.count(b"<")  # three times as fast as in a text
    return tags > FEW and tags - page.count(b"</") > FEW and _depth(page.decode("utf-8", "replace")) > DEEP


def _depth(text: str) -> int:
    """At least the depth that a parser finds, up to DEEP + 1, as far as elements are ended in their turn."""
    open_: list[str] = []
    for end, name in _TAG.findall(text):
        name = name.lower()
        if not name or name in _VOID:
            continue
        if end:
            _close(open_, name)
        elif not (open_ and open_[-1] == name and (name in _OPTIONAL or name in _ROWS)):
            open_.append(name)
            if len(open_) > DEEP:
                break
    return len(open_)


def _close(open_: list[str], name: str) -> None:
    """End an element, if nothing stands open in it but what it ends by itself."""
    at = len(open_) - 1
    while at >= 0 and open_[at] != name:
        if open_[at] not in _OPTIONAL and not (name in _OF_ROWS and open_[at] in _ROWS):
            return
        at -= 1
    if at >= 0:
        del open_[at:]
