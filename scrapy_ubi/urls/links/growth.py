"""How much more the parser of the HTML standard makes of a page than it is, told before it is parsed.

A `<b>` that is left open in a paragraph is opened again in the next one, and so are all that are open by then: 20 kB of
`<p><b 1><b 2>...<p>x<p>x...` become two million elements, and 64 kB some gigabytes. Such pages are left to libxml2,
which opens nothing again.

What counts are formatting elements that are not ended in their turn: each may be opened again at each tag of the page.
(Of `a`, only one is ever open.) Most elements are told by their text, which is followed by their end.
"""

from __future__ import annotations

import re
from itertools import repeat

NAMES = frozenset(b"b big code em font i nobr s small strike strong tt u".split())

# Only attributes that are written beyond doubt, and within the text only simple elements, are sure to be what they
# look like.
_ATTRIBUTES = rb"""(?:[ \t\n]++[\w:.-]++(?:="[^"<>]*+"|='[^'<>]*+'|=[\w#.:%-]++)?+)*+[ \t\n]*+"""
_WITHIN = b"|".join(rb"<%b%b>[^<]*+</%b>" % (name, _ATTRIBUTES, name) for name in (b"span", b"a", b"code", b"em", b"i"))
_is_ended = re.compile(rb"<(\w++)%b>[^<]*+(?:(?:%b|<br%b/?>)[^<]*+)*+</\1>" % (_ATTRIBUTES, _WITHIN, _ATTRIBUTES)).match


def left_open(page: bytes, places: list[int]) -> int:
    """How many of the elements that begin in these places are not ended right behind their text. More than there are is
    possible."""
    return list(map(_is_ended, repeat(page), places)).count(None)
