"""An entry of a sitemap or a feed, and its time.

Rules of this module: a time is data from outside. What cannot be read is no time, and no error.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from scrapy_ubi.urls.links.handlers.unpacked import head

MOST_NESTING = 3  # indexes of sitemaps in each other; sitemaps.org allows one
MOST_TIME = 40  # characters of a time
DAY = 86_400.0
_DATE = len("2026-11-28")
_HEAD = 65_536  # bytes in which a document may declare entities


class Listed(NamedTuple):
    """One entry: a URL and the time of its last change, as they are written ("": none is), and whether it leads to
    another sitemap."""

    url: str
    changed: str = ""
    is_sitemap: bool = False


Entries = Iterator[Listed | None]  # None: the loop may have its turn


def read_time(text: str) -> float:
    """Read a time as sitemaps (ISO 8601) and feeds (RFC 822) have it: unix seconds; 0 for what is none. A date alone is
    the end of that day."""
    when = _read(text.strip()[:MOST_TIME])
    if when is None:
        return 0.0
    try:
        day = DAY - 1 if len(text.strip()) == _DATE else 0
        return max((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() + day, 0.0)
    except (ValueError, OverflowError):
        return 0.0


def start_of(text: str) -> float | None:
    """Read a date, as its beginning, or a time, which is of UTC unless it says another zone: unix seconds; None for
    what is neither."""
    try:
        when = datetime.fromisoformat(text.strip()[:MOST_TIME])
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def shown_time(text: str) -> str:
    """Write such a time as ISO 8601; "" for what is none."""
    text = text.strip()[:MOST_TIME]
    when = _read(text)
    if when is None:
        return ""
    return when.date().isoformat() if len(text) == _DATE else when.isoformat()


def declares_entities(body: bytes) -> bool:
    """Whether a document in XML, which may be gzip, declares entities. No sitemap and no feed needs them; what stands
    for them would be another URL without them."""
    return b"<!ENTITY" in head(body, _HEAD).replace(b"\0", b"")


def _read(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        pass
    try:
        return parsedate_to_datetime(text) if " " in text else None
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
