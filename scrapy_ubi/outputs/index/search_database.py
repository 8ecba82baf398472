"""The database that is searched: SQLite with FTS5, one row a page.

Rules of this module:

* It is made of the agents' files, and can be made of them again at any time. One that is damaged, or of another
  version, is made again.
* A page has one row: of two records that which `choice` would take. `parts` says how far each part was read; it is
  written in one transaction with the pages.
* Memory is bounded: SQLite holds 1 MB of words before it writes them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from types import TracebackType

from scrapy_ubi.outputs.index.index_record import IndexRecord
from scrapy_ubi.outputs.index.search_index import BOOSTS, SNIPPET, WAIT, FoundPage, Rank, SearchIndex
from scrapy_ubi.outputs.index.search_words import Query

VERSION = 0x5542_0001  # user_version: UB, 1

_SCHEMA = f"""
CREATE TABLE parts(part TEXT PRIMARY KEY, read INTEGER NOT NULL, lines INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE pages(id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, rank INTEGER NOT NULL, newest INTEGER NOT NULL,
  part TEXT NOT NULL, place INTEGER NOT NULL, language TEXT NOT NULL, status INTEGER NOT NULL, time TEXT NOT NULL,
  digest TEXT NOT NULL);
CREATE VIRTUAL TABLE words USING fts5(title, url, text, tokenize="unicode61 remove_diacritics 2");
PRAGMA user_version = {VERSION};
"""
_PAGE = (
    "INSERT OR REPLACE INTO pages(id, name, rank, newest, part, place, language, status, time, digest) "
    "VALUES(?,?,?,?,?,?,?,?,?,?)"
)
_SCORE = f"bm25(words, {', '.join(map(str, BOOSTS.values()))})"  # columns stand as in BOOSTS
_FOUND = f"""
SELECT words.title, words.url, snippet(words, 2, '', '', '…', {SNIPPET}), -{_SCORE}, pages.status,
  pages.time, pages.language, pages.digest, pages.name
FROM words JOIN pages ON pages.id = words.rowid WHERE words MATCH ? ORDER BY {_SCORE}, pages.name
LIMIT ?"""


class SearchDatabase(SearchIndex):
    """The database in a file. Raises sqlite3.Error in all it does."""

    def __init__(self, path: Path, read_only: bool = False) -> None:
        place = f"{path.absolute().as_uri()}?mode={'ro' if read_only else 'rwc'}"
        self._db = sqlite3.connect(place, timeout=WAIT, isolation_level=None, uri=True)
        try:
            self._version = self._db.execute("PRAGMA user_version").fetchone()[0]
            if not read_only:
                self._db.execute("BEGIN IMMEDIATE")
                self._make()
            elif self._version != VERSION:
                raise sqlite3.DatabaseError("it is no index of this version")
        except BaseException:
            self._db.close()
            raise

    def _make(self) -> None:
        self._version = self._db.execute("PRAGMA user_version").fetchone()[0]  # another process may have made it
        if self._version == VERSION:
            return
        if self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise sqlite3.DatabaseError("it is no index of this version")
        for statement in _SCHEMA.split(";\n"):
            self._db.execute(statement)

    def __enter__(self) -> SearchDatabase:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with closing(self._db):
            if self._db.in_transaction:
                self._db.execute("ROLLBACK" if kind else "COMMIT")

    def commit(self) -> None:
        """What was put so far stays."""
        self._db.execute("COMMIT")
        self._db.execute("BEGIN IMMEDIATE")

    def clear(self) -> None:
        """Forget all."""
        for table in ("parts", "pages", "words"):
            self._db.execute(f"DELETE FROM {table}")

    def read(self) -> Mapping[str, tuple[int, int]]:
        """How far each part was read: bytes of its index, and lines."""
        return {part: (end, lines) for part, end, lines in self._db.execute("SELECT part, read, lines FROM parts")}

    def has_read(self, part: str, end: int, lines: int) -> None:
        """A part was read as far as this."""
        self._db.execute("INSERT OR REPLACE INTO parts VALUES(?,?,?)", (part, end, lines))

    def put(self, record: IndexRecord, rank: Rank) -> None:
        """Take in a page; one that is there stays if its record comes before this one."""
        asked = "SELECT id, rank, newest, part, place FROM pages WHERE name = ?"
        there = self._db.execute(asked, (record.name,)).fetchone()
        if there is not None:
            if there[1:] <= rank:
                return
            self._db.execute("DELETE FROM words WHERE rowid = ?", there[:1])
        values = (there and there[0], record.name, *rank, record.language, record.status, record.time, record.digest)
        row = self._db.execute(_PAGE, values).lastrowid
        words = (row, record.title, record.url, record.text)
        self._db.execute("INSERT INTO words(rowid, title, url, text) VALUES(?,?,?,?)", words)

    @property
    def pages(self) -> int:
        """How many there are."""
        return int(self._db.execute("SELECT count(*) FROM pages").fetchone()[0])

    def search(self, query: Query, limit: int) -> list[FoundPage]:
        """The best pages, the best first."""
        return [FoundPage(*row) for row in self._db.execute(_FOUND, (query.fts5, limit))]

    def count(self, query: Query) -> int:
        """How many pages are found."""
        return int(self._db.execute("SELECT count(*) FROM words WHERE words MATCH ?", (query.fts5,)).fetchone()[0])
