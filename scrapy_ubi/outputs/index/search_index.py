"""What every kind of search index does: it takes in records of pages, and finds pages by words.

Rules of this module:

* An index is made of the agents' files, and can be made of them again at any time. One that is damaged, or of another
  version, is made again.
* Its own errors are `sqlite3.Error` where it is a database, and `TantivyError` where it is tantivy's.
* A page is there once: of two records that which `choice` would take. What is known of parts is committed with the
  pages that were read off them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import NamedTuple, Protocol, Self

from scrapy_ubi.errors import UbiError
from scrapy_ubi.outputs.index.index_record import IndexRecord
from scrapy_ubi.outputs.index.search_words import Query
from scrapy_ubi.outputs.index.words import Row, first_place

WAIT = 60.0  # seconds for another search that reads new pages in
SNIPPET, BEFORE = 200, 60  # characters that are shown of a text, and of these before the first word that was found
# A word in the title says most, then one in the address.
BOOSTS = {"title": 5.0, "url": 2.0, "text": 1.0}

Rank = tuple[int, int, str, int]  # what counts comes first: kind, attempt (negative), part, place


class UbiNoIndex(UbiError):
    """There is no index to search in, or it cannot be used."""


class FoundPage(NamedTuple):
    """A page that was found. `score`: the higher, the better (BM25)."""

    title: str
    url: str
    snippet: str
    score: float
    status: int
    time: str
    language: str
    digest: str
    name: str


class SearchIndex(Protocol):
    """A context manager: what was put is committed at its end, but for an error."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def commit(self) -> None:
        """What was put so far stays, and is found."""

    def clear(self) -> None:
        """Forget all."""

    def read(self) -> Mapping[str, tuple[int, int]]:
        """How far each part was read: bytes of its index, and lines."""

    def has_read(self, part: str, end: int, lines: int) -> None:
        """A part was read as far as this."""

    def put(self, record: IndexRecord, rank: Rank) -> None:
        """Take in a page; one that is there stays if its record comes before this one."""

    @property
    def pages(self) -> int:
        """How many there are."""

    def search(self, query: Query, limit: int) -> list[FoundPage]:
        """The best pages, the best first."""

    def count(self, query: Query) -> int:
        """How many pages are found."""


def snippet(text: str, rows: Sequence[Row]) -> str:
    """The part of a text where the first of these words is; its beginning where none is. Soft hyphens are left out."""
    start = max(0, first_place(text, rows) - BEFORE)
    start = text.rfind(" ", 0, start + 1) + 1 if start and start - text.rfind(" ", 0, start + 1) <= BEFORE else start
    stop = start + SNIPPET
    if stop < len(text):
        stop = max(text.rfind(" ", start, stop), stop - BEFORE)
    part = text[start:stop].strip().replace("\u00ad", "")
    return ("…" if start else "") + part + ("…" if stop < len(text) else "")
