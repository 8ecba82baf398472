"""Payloads that this agent has met, and pages: what is there already becomes a revisit record.

A page with the same content as one before is a revisit of that (identical-payload-digest); one that the server says
not to be modified is a revisit of its own record (server-not-modified).

Rules of this module:

* What is remembered are the last `MOST` different payloads of this process, and as many pages where pages are visited
  again: a few dozen MB at most. It is not kept
  across starts: a revisit refers to a record that this process has written, before it in the order of pages, so that
  after a crash either both count or the revisit does not (P9).
* A record counts as written when the next one is asked for: what could not be written is taken back (`Part.undo`).
"""

from __future__ import annotations

from typing import NamedTuple

from scrapy_ubi.outputs.part_writer import Part

MOST = 65_536
PROFILE = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
NOT_MODIFIED = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"


class Met(NamedTuple):
    """The record that has a payload: its name, '' where that is not known, its date and URL, and the digest of the
    payload."""

    id: str
    date: str
    digest: str
    url: str

    @property
    def fields(self) -> str:
        """Those of a record that refers to it."""
        named = f"WARC-Refers-To: {self.id}\r\n" if self.id else ""
        return f"{named}WARC-Refers-To-Target-URI: {self.url}\r\nWARC-Refers-To-Date: {self.date}\r\n"


class Payloads:
    """Records by the digests of their payloads, or by the names of their pages, those met last at the end."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._known: dict[str, bytes] = {}
        self._last: tuple[Part, str, int, str, Met] | None = None

    def find(self, what: str) -> Met | None:
        """The record of this payload, or page."""
        self._settle()
        text = self._known.pop(what, None)
        if text is None:
            return None
        self._known[what] = text
        return Met(*text.decode().split(" ", 3))

    def wrote(self, what: str, met: Met, part: Part, name: str) -> None:
        """The record was put at the end of that file of the part."""
        self._settle()
        self._last = part, name, part.end_of(name), what, met

    def _settle(self) -> None:
        if self._last is None:
            return
        part, name, end, what, met = self._last
        self._last = None
        if part.end_of(name) < end:
            return
        self._known[what] = " ".join(met).encode()
        if len(self._known) > self._most:
            del self._known[next(iter(self._known))]
