"""A line of the store `duplicates`: what one page is compared by.

Fields, parted by tabs: host, URL, status, words of the content (0: not counted), SHA-1 of the decoded body in hex,
sketch in base64 or `-`, `exact`, `near` or `-`, URL of the page that was first or `-`.
"""

from __future__ import annotations

import base64
import binascii
from typing import NamedTuple

from scrapy_ubi.adapter.requests.judged import Judged
from scrapy_ubi.outputs.duplicates.sketch import BINS, DIGEST

NONE = "-"
LONGEST = 1 << 17  # bytes of a line


class BadLine(ValueError):
    """A line that does not add up."""


class Compared(NamedTuple):
    """A page, and what was found out of it."""

    host: str
    url: str
    status: int
    judged: Judged


def line_of(page: Compared) -> bytes:
    """The line of a page."""
    host, url, status, (digest, words, sketch, kind, of) = page
    shown = base64.b64encode(sketch).decode() if sketch else NONE
    fields = (host, url, str(status), str(words), digest.hex(), shown, kind or NONE, of or NONE)
    return ("\t".join(" ".join(field.split()) for field in fields) + "\n").encode("utf-8", "replace")


def read_line(line: bytes) -> Compared:
    """The page of a line. Raises BadLine."""
    try:
        host, url, status, words, digest, shown, kind, of = line.decode("utf-8").rstrip("\n").split("\t")
        sketch = b"" if shown == NONE else base64.b64decode(shown, validate=True)
        judged = Judged(bytes.fromhex(digest), int(words), sketch, _said(kind), _said(of))
        found = Compared(host, url, int(status), judged)
    except (ValueError, binascii.Error) as error:
        raise BadLine(str(error)) from None
    if len(judged.digest) != DIGEST or len(sketch) not in (0, BINS) or judged.kind not in ("", "exact", "near"):
        raise BadLine("a digest, sketch or kind is none")
    return found


def _said(field: str) -> str:
    return "" if field == NONE else field
