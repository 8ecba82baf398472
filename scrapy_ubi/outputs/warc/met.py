"""Payloads that this agent has met: a page with the same content becomes a revisit record (identical-payload-digest).

Rules of this module:

* What is remembered are the last `MOST` different payloads of this process: a few dozen MB at most. It is not kept
  across starts: a revisit refers to a record that this process has written, before it in the order of pages, so that
  after a crash either both count or the revisit does not (P9).
* A record counts as written when the next one is asked for: what could not be written is taken back (`Part.undo`).
"""

from __future__ import annotations

from typing import NamedTuple

from scrapy_ubi.outputs.part_writer import Part

MOST = 65_536
PROFILE = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"


class Met(NamedTuple):
    """The record that has a payload: its name, date and URL."""

    id: str
    date: str
    url: str


class Payloads:
    """Digests of payloads, those met last at the end."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._known: dict[str, bytes] = {}
        self._last: tuple[Part, str, int, str, Met] | None = None

    def find(self, digest: str) -> Met | None:
        """The record of this payload."""
        self._settle()
        text = self._known.pop(digest, None)
        if text is None:
            return None
        self._known[digest] = text
        return Met(*text.decode().split(" ", 2))

    def wrote(self, digest: str, met: Met, part: Part, name: str) -> None:
        """The record was put at the end of that file of the part."""
        self._settle()
        self._last = part, name, part.end_of(name), digest, met

    def _settle(self) -> None:
        if self._last is None:
            return
        part, name, end, digest, met = self._last
        self._last = None
        if part.end_of(name) < end:
            return
        self._known[digest] = f"{met.id} {met.date} {met.url}".encode()
        if len(self._known) > self._most:
            del self._known[next(iter(self._known))]
