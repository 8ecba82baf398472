"""The database that is searched: SQLite with FTS5, one row a page.

Rules of this module:

* It is made of the agents' files, and can be made of them again at any time. One that is damaged, or of another
  version, is made again.
* A page has one row: of two records that which `choice` would take. `parts` says how far each part was read; it is
  written in one transaction with the pages.
* FTS5 is given words that are folded already (`words`), and keeps none of them: what is shown is in `pages`. Its
  tokenizer `ascii` has only to part them at spaces.
* Memory is bounded: SQLite holds 1 MB of words before it writes them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from types import TracebackType

from scrapy_ubi.outputs.index.index_record import IndexRecord
from scrapy_ubi.outputs.index.search_index import BOOSTS, WAIT, FoundPage, Rank, SearchIndex, snippet
from scrapy_ubi.outputs.index.search_words import Query
from scrapy_ubi.outputs.index.words import folded

VERSION = 0x5542_0002  # user_version: UB, 2

_SCHEMA = f"""
CREATE TABLE parts(part TEXT PRIMARY KEY, read INTEGER NOT NULL, lines INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE pages(id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, rank INTEGER NOT NULL, newest INTEGER NOT NULL,
  part TEXT NOT NULL, place INTEGER NOT NULL, language TEXT NOT NULL, status INTEGER NOT NULL, time TEXT NOT NULL,
  digest TEXT NOT NULL, title TEXT NOT NULL, url TEXT NOT NULL, text TEXT NOT NULL);
CREATE VIRTUAL TABLE words USING fts5(title, url, text, content='', tokenize=ascii);
PRAGMA user_version = {VERSION};
"""
_PAGE = (
    "INSERT OR REPLACE INTO pages(id, name, rank, newest, part, place, language, status, time, digest, "
    "title, url, text) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)"
)
_SCORE = f"bm25(words, {', '.join(map(str, BOOSTS.values()))})"  # columns stand as in BOOSTS
_FOUND = f"""
SELECT pages.title, pages.url, pages.text, -{_SCORE}, pages.status, pages.time, pages.language, pages.digest, pages.name
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
        for table in ("parts", "pages"):
            self._db.execute(f"DELETE FROM {table}")
        self._db.execute("INSERT INTO words(words) VALUES('delete-all')")

    def read(self) -> Mapping[str, tuple[int, int]]:
        """How far each part was read: bytes of its index, and lines."""
        return {part: (end, lines) for part, end, lines in self._db.execute("SELECT part, read, lines FROM parts")}

    def has_read(self, part: str, end: int, lines: int) -> None:
        """A part was read as far as this."""
        self._db.execute("INSERT OR REPLACE INTO parts VALUES(?,?,?)", (part, end, lines))

    def put(self, record: IndexRecord, rank: Rank) -> None:
        """Take in a page; one that is there stays if its record comes before this one."""
        asked = "SELECT id, rank, newest, part, place, title, url, text FROM pages WHERE name = ?"
        there = self._db.execute(asked, (record.name,)).fetchone()
        if there is not None:
            if there[1:5] <= rank:
                return
            self._db.execute(
                "INSERT INTO words(words, rowid, title, url, text) VALUES('delete',?,?,?,?)",
                (there[0], *map(folded, there[5:])),
            )
        shown = (record.title, record.url, record.text)
        facts = (record.language, record.status, record.time, record.digest)
        row = self._db.execute(_PAGE, (there and there[0], record.name, *rank, *facts, *shown)).lastrowid
        self._db.execute("INSERT INTO words(rowid, title, url, text) VALUES(?,?,?,?)", (row, *map(folded, shown)))

    @property
    def pages(self) -> int:
        """How many there are."""
        return int(self._db.execute("SELECT count(*) FROM pages").fetchone()[0])

    def search(self, query: Query, limit: int) -> list[FoundPage]:
        """The best pages, the best first."""
        found = [FoundPage(*row) for row in self._db.execute(_FOUND, (query.fts5, limit))]
        return [page._replace(snippet=snippet(page.snippet, query.wanted)) for page in found]

    def count(self, query: Query) -> int:
        """How many pages are found."""
        return int(self._db.execute("SELECT count(*) FROM words WHERE words MATCH ?", (query.fts5,)).fetchone()[0])
