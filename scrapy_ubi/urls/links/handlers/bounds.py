"""What a handler is given, what it may take, and how it says that it has left something out.

Rules of this module:

* A handler that meets a bound raises `LinksCut` behind the links that it has given: those count.
* One that can make nothing of a document raises `Unreadable`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

MOST_LINKS = 50_000  # of one document: as many as sitemaps.org allows
MOST_URL = 8_192  # characters: servers take no longer ones
MOST_DEPTH = 100  # of elements in each other
MOST_SECONDS = 5.0  # of reading one document in this process
CHUNK = 65_536  # bytes that are read between two turns of the loop, at most

Values = Iterator[str | None]  # links as written; None: the loop may have its turn


class LinksCut(Exception):
    """There may be more links: `reason` is the bound that was met, in one word."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class Unreadable(LinksCut):
    """No links at all could be read: `reason` says why, in one word."""


class FetchedBody(NamedTuple):
    """What was received: the address that answered, the content type in small letters without its parameters, the
    header fields by their names in small letters, several of one name joined by ", "."""

    url: str
    content_type: str
    headers: Mapping[str, str]
    body: bytes
