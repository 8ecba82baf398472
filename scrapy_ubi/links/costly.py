"""Pages that cost the parser of the HTML standard far more than others of their length: quadratic time, or memory.

Ordinary pages are told by counting their tags, most others by the ends of their formatting elements (`growth`). What is
left is looked at tag by tag (`depth`), which takes as long as parsing it.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from scrapy_ubi.links.depth import DEEP, survey
from scrapy_ubi.links.growth import NAMES, left_open

FEW = 600  # tags: however they stand, they are parsed in a fraction of a second, into some 90,000 elements
SMALL = 20_000  # bytes: of longer pages numpy counts the tags in less time than bytes does
STEPS = 100_000_000  # elements opened, times tags: what a deep page may cost, a fraction of a second as well
MOST = 500_000  # elements opened again, some 160 MB


def _beginnings() -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Whether two bytes may be those behind the `<` of a formatting element."""
    found = np.zeros(1 << 16, np.bool_)
    for name in NAMES:
        for one, two in product(*({*each.lower(), *each.upper()} for each in (name[:1], name[1:2] or b" \t\n\r\f/>"))):
            found[one << 8 | two] = True
    return found


_begins = _beginnings()


def is_costly(page: bytes) -> bool:
    """Whether a page (in UTF-8, without NUL) may take its parser seconds, or gigabytes. True may be wrong, for pages
    that leave many elements open."""
    if len(page) <= SMALL and page.count(b"<") <= FEW:
        return False
    text = np.frombuffer(page + b"  ", np.uint8)
    places = np.flatnonzero(text == ord("<"))
    if (tags := len(places)) <= FEW:
        return False
    first = text[places + 1]
    formatting = places[_begins[(first.astype(np.uint16) << 8) | text[places + 2]]]
    opened = tags - int(np.count_nonzero(first == ord("/")))
    grows = len(formatting) * tags > MOST and left_open(page, formatting.tolist()) * tags > MOST
    if not grows and tags * opened <= STEPS:
        return False
    depth, left = survey(page)
    return (tags * opened > STEPS and depth > DEEP) or left * tags > MOST
