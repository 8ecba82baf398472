"""What was found out of a page when it was compared with others of its host."""

from __future__ import annotations

from typing import NamedTuple

DUPLICATE_OF = "ubi_duplicate_of"  # meta key: the URL of the page that was first


class Judged(NamedTuple):
    """`digest` of the decoded body; `words` of its content; `sketch`: empty where it is not compared by words. `kind`:
    "exact" or "near" where the page is a duplicate of the one at the URL `of`, else empty, both."""

    digest: bytes
    words: int = 0
    sketch: bytes = b""
    kind: str = ""
    of: str = ""
