"""WARC files as an archive: the answer to a method and a URL.

Rules of this module:

* Where a `.cdxj` lies beside a file, its lines are believed as hints: what lies at their offsets is read, and has to be
  the record that was asked for. Other files are walked through once. The index is a table on disk (a private file of
  sqlite's, that ends with the process): memory does not grow with the archive.
* Of several answers the last one counts that can be read. A request record beside it (before or behind, as crawlers
  write them) says its method and body; without one it was a GET without a body.
* A revisit has the body of the record with its payload digest. One that says "not modified" is passed over, for the
  answer before it.
* What does not hold is counted in `broken`, and the next answer is tried; at most `TRIED` of one URL.
* Everything here blocks: it runs in one thread, which is not the loop's.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from scrapy_ubi.outputs.warc.foreign import BrokenRecord, ForeignRecord, HttpMessage, http_message, read_at, walk
from scrapy_ubi.outputs.warc.warc_collector import index_of

TRIED = 64
ANSWERS = ("response", "revisit")
BEGINNING = 1 << 12  # bytes of a block that are looked at in a walk
MOST_LINE = 1 << 16  # bytes of a line of an index
_NONE = -1  # no request record belongs to it
_BEHIND = -2  # it is not known whether one lies behind it

_TABLE = """
CREATE TABLE answers (url INTEGER, digest INTEGER, date TEXT, file INTEGER, place INTEGER, length INTEGER,
                      request INTEGER, revisit INTEGER)
"""


class _Row(NamedTuple):
    file: int
    offset: int
    length: int
    request: int


@dataclass(slots=True)
class Answer:
    """The response that an archive has to a request. `head` is that of the WARC record."""

    head: dict[str, str]
    message: HttpMessage


class Archive:
    """The answers in some WARC files; `most` bounds the bytes of a record."""

    def __init__(self, paths: list[Path], most: int) -> None:
        self.broken = 0  # records and lines that do not hold
        self.records = 0
        self._paths = paths
        self._most = most
        self._table = sqlite3.connect("", check_same_thread=False, isolation_level=None)

    def build_index(self) -> None:
        """Make the index. Raises OSError."""
        self._table.execute("PRAGMA journal_mode = OFF")
        self._table.execute(_TABLE)
        self._table.execute("BEGIN")
        for number, path in enumerate(self._paths):
            index = index_of(path)
            rows = self._indexed(number, index) if index.exists() else self._walked(number, path)
            self._table.executemany("INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
        self._table.execute("CREATE INDEX by_url ON answers (url)")
        self._table.execute("CREATE INDEX by_digest ON answers (digest) WHERE NOT revisit")
        self._table.execute("COMMIT")
        (self.records,) = self._table.execute("SELECT count(*) FROM answers").fetchone()

    def close(self) -> None:
        """The index is gone."""
        self._table.close()

    def find_answer(self, method: str, url: str, body: bytes) -> Answer | None:
        """The answer to a request, None where there is none. Raises OSError."""
        url = url.partition("#")[0]
        for row in self._rows("url", _number(url)):
            try:
                record = self._read(row)
                if record.url != url or record.kind not in ANSWERS:
                    raise BrokenRecord("an index names the record of another URL")
                if self._asked(row, record) == (method, body) and (found := self._answer(record)) is not None:
                    return found
            except BrokenRecord:
                self.broken += 1
        return None

    def _answer(self, record: ForeignRecord) -> Answer | None:
        message = http_message(record.block)
        if record.kind == "response":
            return Answer(record.fields, message)
        if "server-not-modified" in record.fields.get("warc-profile", ""):
            return None
        digest = record.fields.get("warc-payload-digest", "")
        for row in self._rows("NOT revisit AND digest", _number(digest)):
            referred = self._read(row)
            if digest and referred.kind == "response" and referred.fields.get("warc-payload-digest") == digest:
                message.body = http_message(referred.block).body
                return Answer(record.fields, message)
        raise BrokenRecord("a revisit refers to what is not in the files")

    def _asked(self, row: _Row, record: ForeignRecord) -> tuple[str, bytes]:
        """Method and body of the request that a record answers."""
        asked = ("GET", b"")
        if row.request == _NONE:
            return asked
        with self._paths[row.file].open("rb") as file:
            try:
                request = read_at(
                    file, row.offset + record.length if row.request == _BEHIND else row.request, self._most
                )
            except BrokenRecord:
                return asked
        if request.kind != "request" or request.url != record.url:
            return asked
        message = http_message(request.block)
        return message.line[0].decode("latin-1"), message.body

    def _read(self, row: _Row) -> ForeignRecord:
        with self._paths[row.file].open("rb") as file:
            return read_at(file, row.offset, self._most)

    def _rows(self, where: str, number: int) -> list[_Row]:
        found = self._table.execute(
            f"SELECT file, place, length, request FROM answers WHERE {where} = ? "
            "ORDER BY date DESC, file DESC, place DESC LIMIT ?",
            (number, TRIED),
        )
        return [_Row(*row) for row in found]

    # -- the index

    def _indexed(self, number: int, index: Path) -> Iterator[tuple[object, ...]]:
        with index.open("rb") as lines:
            while line := lines.readline(MOST_LINE):
                row = _of_line(number, line)
                if row is None:
                    self.broken += 1
                else:
                    yield row

    def _walked(self, number: int, path: Path) -> Iterator[tuple[object, ...]]:
        def broken() -> None:
            self.broken += 1

        before: ForeignRecord | None = None
        for record in walk(path, BEGINNING, broken):
            if record.kind in ANSWERS:
                is_asked = before is not None and before.kind == "request" and before.url == record.url
                request = before.offset if before is not None and is_asked and _belong(before, record) else _BEHIND
                digest = record.fields.get("warc-payload-digest", "")
                yield (
                    _number(record.url), _number(digest), record.stamp, number, record.offset, record.length, request,
                    record.kind == "revisit",
                )  # fmt: skip
            before = record


def _belong(request: ForeignRecord, answer: ForeignRecord) -> bool:
    """Whether a request that lies before an answer is its own, and not that of the answer before."""
    mine, other = (record.fields.get("warc-record-id", "") for record in (request, answer))
    said = {request.fields.get("warc-concurrent-to", ""), answer.fields.get("warc-concurrent-to", "")} - {""}
    return not said or bool(said & {mine, other})


def _of_line(number: int, line: bytes) -> tuple[object, ...] | None:
    """A row of the index, of a line of a CDXJ; None where it does not hold."""
    try:
        _, date, text = line.decode().split(" ", 2)
        fields = json.loads(text)
        url, digest = fields["url"], fields.get("digest", "")
        offset, length = int(fields["offset"]), int(fields["length"])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    if not isinstance(url, str) or not isinstance(digest, str) or not 0 <= offset < 1 << 62 or not 0 < length < 1 << 62:
        return None
    is_revisit = fields.get("mime") == "warc/revisit"
    return _number(url.partition("#")[0]), _number(digest), date[:14], number, offset, length, _BEHIND, is_revisit


def _number(text: str) -> int:
    """A number of 64 bits that stands for a text."""
    return int.from_bytes(blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), signed=True)
