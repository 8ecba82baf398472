"""The URLs of a `srcset` attribute (HTML Living Standard, "parsing a srcset attribute"), descriptors left unread."""

from __future__ import annotations

import re

# A URL is what stands before white space; commas at its end separate it from the next one, and so does a comma after
# its descriptors. Commas within parentheses belong to a descriptor.
_CANDIDATE = re.compile(r"[ \t\n\f\r,]*([^ \t\n\f\r]+)")
_DESCRIPTORS = re.compile(r"(?:[^,(]|\([^)]*(?:\)|\Z))*")


def candidates(srcset: str) -> list[str]:
    """The URLs in their order, as they are written (`a.png 1x, b.png 2x` has two). Any text has an answer."""
    found: list[str] = []
    at = 0
    while (match := _CANDIDATE.match(srcset, at)) is not None:
        url = match[1].rstrip(",")
        at = match.end()
        if url:
            found.append(url)
        if url == match[1]:
            at = _DESCRIPTORS.match(srcset, at).end()  # type: ignore[union-attr]  # it matches nothing, too
    return found
