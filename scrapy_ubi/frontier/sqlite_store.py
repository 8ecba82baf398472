"""The other store on disk: SQLite, of Python itself. One directory, one file and its log, one synced write a batch.

Rules of this module:

* A batch is one transaction, in the write-ahead log and synced (synchronous=FULL) when `write` returns. Each frame of
  the log has a checksum, and those behind one that does not hold are passed over: of a torn log whole batches are kept,
  the first ones, as RocksDB does it. That some are lost the table of known URLs says (`restore`).
* The log is copied into the file before a batch when it has grown beyond `LOG`, and cut off at once: what is copied and
  still in the log would, were the log damaged later, hide newer pages behind older ones. It grows further only while
  the copying fails, and then nothing is written.
* SQLite has no checksums in its file: every row has one (CRC-32 of key and value, 4 bytes behind the value).
* `memory` bounds the caches of pages, half for the connection that writes, half for the one that reads. Nothing is
  mapped: an error of the disk would end the process.
* Between two rows Python lets other threads run and waits for its turn again, up to 5 ms where a reactor is busy: so
  many rows are one step of one statement, written and read.
* Space that was freed is used again; the file is made smaller, a piece at a time, when more than half of it is free.
* After a sync that failed nothing more is written: the kernel may have dropped what it was to write.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import threading
from collections.abc import Iterator
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TypeVar
from zlib import crc32

from scrapy_ubi.frontier.disk_room import MIB, check_room
from scrapy_ubi.frontier.store import Row, RowBatch, StoreDamaged, StoreError, StoreFull

FILE = "rows.sqlite"
LOCK = "rows.lock"
RESERVE = 32 * MIB  # free on the disk before anything is written: what the log holds has to go into the file
LEAST_MEMORY = 16 * MIB
LOG = 32 * MIB
VERSION = 1  # of what the file holds
_PAGE = 4096
_CHUNKS = (256, 64, 16, 4, 1)  # rows of one statement: a text for each is kept parsed
FREED = 2048  # pages that the file is made smaller by at once

_FULL = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))
_DENIED = ("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH")
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_IOERR_SHORT_READ")
_UNSYNCED = ("SQLITE_IOERR_FSYNC", "SQLITE_IOERR_DIR_FSYNC")

_Changes = dict[bytes, bytes | None]  # None: deleted
_Range = tuple[bytes, bytes]
T = TypeVar("T")


class SqliteBatch:
    """Changes in order: those between two ranges together, of which the last of a key counts."""

    __slots__ = ("_changes", "_count", "pieces")

    def __init__(self) -> None:
        self._count = 0
        self._changes: _Changes = {}
        self.pieces: list[_Changes | _Range] = [self._changes]

    def put(self, key: bytes, value: bytes) -> None:
        """Set a row."""
        self._changes[key] = value
        self._count += 1

    def delete(self, key: bytes) -> None:
        """Delete a row, if it is there."""
        self._changes[key] = None
        self._count += 1

    def delete_range(self, begin: bytes, end: bytes) -> None:
        """Delete every row with begin <= key < end."""
        self._changes = {}
        self.pieces += [(begin, end), self._changes]
        self._count += 1

    def len(self) -> int:
        """How many changes."""
        return self._count

    def take(self) -> list[_Changes | _Range]:
        """The changes, once. Raises `StoreError`."""
        pieces, self.pieces = self.pieces, []
        if not pieces:
            raise StoreError("This batch was written already.")
        return pieces


class SqliteStore:
    """An SQLite database in the directory `path`, which is made where there is none."""

    def __init__(self, path: Path, memory: int = 64 * MIB, reserve: int = RESERVE) -> None:
        """Open it. Blocks: what its log holds is read. `memory` and `reserve` are bytes.

        Raises `StoreDamaged`, `StoreFull`, `StoreError`.
        """
        self.path = path
        self._file = path / FILE
        self._log_file = path / f"{FILE}-wal"
        self._reserve = reserve
        self._cache = max(memory, LEAST_MEMORY) // 2
        self._gate = threading.Lock()  # one reader at a time; none while the log is cut off
        self._writing = threading.Lock()
        self._broken: StoreError | None = None  # a sync has failed
        self._open: list[sqlite3.Connection] = []
        try:
            path.mkdir(parents=True, exist_ok=True)
            check_room(path, reserve, 0)
            if not self._file.exists() and any(path.glob(f"{FILE}*")):
                raise StoreDamaged(str(self._file), "it is missing")
            self._lock()
            self.writer = self._connected()
            self._make()
            self.reader = self._connected()
        except BaseException as error:
            self._let_go()
            if isinstance(error, Exception):
                raise self._named(error) from error
            raise

    def _lock(self) -> None:
        """Hold the store until it is closed: one process a store."""
        lock = self._kept(path=self.path / LOCK)
        lock.execute("PRAGMA locking_mode=EXCLUSIVE")
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname.startswith("SQLITE_BUSY"):
                raise StoreError(f"The store {self.path} cannot be used: another process has it open.") from error
            raise

    def _kept(self, path: Path) -> sqlite3.Connection:
        """A connection that is closed with the store; transactions begin where it is said."""
        made = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False, cached_statements=32)
        self._open.append(made)
        return made

    def _connected(self) -> sqlite3.Connection:
        made = self._kept(self._file)
        for pragma in (
            f"page_size={_PAGE}",
            "auto_vacuum=INCREMENTAL",  # it counts before the first table is there
            "journal_mode=WAL",
            "synchronous=FULL",
            "wal_autocheckpoint=0",
            f"cache_size={-self._cache // 1024}",
            "mmap_size=0",
            "temp_store=MEMORY",
            "secure_delete=OFF",
            "cell_size_check=ON",
        ):
            made.execute(f"PRAGMA {pragma}").fetchall()
        return made

    def _make(self) -> None:
        """Make the table where there is none; in the file, so that a log that is lost leaves an empty store."""
        (version,) = self.writer.execute("PRAGMA user_version").fetchone()
        if version not in (0, VERSION):
            raise StoreError(f"The store {self.path} cannot be used: a newer version of scrapy_ubi has written it.")
        if not version:
            self.writer.execute("BEGIN IMMEDIATE")
            self.writer.execute(
                "CREATE TABLE IF NOT EXISTS rows (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID"
            )
            self.writer.execute(f"PRAGMA user_version={VERSION}")
            self.writer.execute("COMMIT")
            self._copy_log()
            _sync_names(self.path)
            _sync_names(self.path.parent)

    def batch(self) -> RowBatch:
        """An empty batch."""
        return SqliteBatch()

    def write(self, batch: RowBatch) -> None:
        """Make a batch durable."""
        assert isinstance(batch, SqliteBatch)
        with self._writing:
            coming = 0
            try:
                self._check_open()
                pieces = batch.take()
                coming = sum(_size(piece) for piece in pieces)
                self._check_there()
                check_room(self.path, self._reserve, coming)
                if self.log_size() > LOG:
                    self._copy_log()
                    self._shrink()
                self._write(pieces)
            except Exception as error:
                raise self._named(error, coming) from error

    def _write(self, pieces: list[_Changes | _Range]) -> None:
        execute = self.writer.execute
        execute("BEGIN IMMEDIATE")
        try:
            for piece in pieces:
                if isinstance(piece, tuple):
                    execute("DELETE FROM rows WHERE key >= ? AND key < ?", piece)
                    continue
                deleted = sorted(key for key, value in piece.items() if value is None)
                for some in _chunks(deleted):
                    execute(_DELETE[len(some)], some)
                put = sorted([(key, value) for key, value in piece.items() if value is not None])
                for rows in _chunks(put):
                    execute(_PUT[len(rows)], [part for key, value in rows for part in (key, _checked(key, value))])
            execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):  # SQLite may have done it already
                execute("ROLLBACK")
            raise

    def _check_there(self) -> None:
        """Raises `StoreDamaged` where somebody has removed a file: SQLite would go on with what has no name."""
        for file in (self._file, self._log_file):
            if not file.exists():
                raise StoreDamaged(str(file), "it is missing")

    def log_size(self) -> int:
        """How many bytes the log has."""
        return self._log_file.stat().st_size if self._log_file.exists() else 0

    def _copy_log(self) -> None:
        """Have what the log holds in the file, synced, and cut the log off. Raises what SQLite does."""
        self.writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()  # beside readers: this takes the time
        with self._gate:
            self.writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _shrink(self) -> None:
        """Make the file smaller by some pages when more than half of it is free."""
        (free,), (pages,) = (
            self.writer.execute(f"PRAGMA {name}").fetchone() for name in ("freelist_count", "page_count")
        )
        if free > max(FREED, pages // 2):
            self.writer.executescript(f"PRAGMA incremental_vacuum({FREED})")  # `execute` would free one page

    def get(self, key: bytes) -> bytes | None:
        """The value of a row."""
        with self._gate:
            try:
                self._check_open()
                found = self.reader.execute("SELECT value FROM rows WHERE key = ?", (key,)).fetchall()
            except Exception as error:
                raise self._named(error) from error
        return self._value(key, found[0][0]) if found else None

    def scan(self, start: bytes, end: bytes, most: int) -> list[Row]:
        """The first rows from start on, before end."""
        with self._gate:
            try:
                self._check_open()
                try:
                    rows = self._joined(start, end, most)
                except sqlite3.DataError:  # together they are longer than a value may be
                    rows = self.reader.execute(_SCAN, (start, end, most)).fetchall()
            except Exception as error:
                raise self._named(error) from error
        if any(one[0] >= other[0] for one, other in pairwise(rows)):
            raise StoreDamaged(str(self._file), "its rows are out of order")
        value = self._value
        return [(key, value(key, checked)) for key, checked in rows]

    def _joined(self, start: bytes, end: bytes, most: int) -> list[Row]:
        """The rows of a scan, as SQLite has them, in one step."""
        ((keys, values, key_ends, value_ends),) = self.reader.execute(_JOINED, (start, end, most)).fetchall()
        if keys is None:
            return []
        return [*zip(_parts(keys, key_ends), _parts(values, value_ends), strict=True)]

    def _value(self, key: bytes, checked: bytes) -> bytes:
        value = checked[:-4]
        if crc32(value, crc32(key)).to_bytes(4, "little") != checked[-4:]:
            raise StoreDamaged(str(self._file), f"the checksum of the row {key.hex()} does not hold")
        return value

    def close(self) -> None:
        """Let go of the files. All that was written is on the disk already."""
        with self._writing, self._gate:
            self._let_go()

    def _let_go(self) -> None:
        """What goes wrong here costs nothing: what the log holds stays in it."""
        while self._open:
            with contextlib.suppress(sqlite3.Error):
                self._open.pop().close()

    def _check_open(self) -> None:
        if not self._open:
            raise StoreError(f"The store {self.path} is closed.")
        if self._broken is not None:
            raise self._broken

    def _named(self, error: Exception, coming: int = 0) -> StoreError:
        """What SQLite says, as an error of ours."""
        if isinstance(error, StoreError):
            return error
        text, name = " ".join(str(error).split()), getattr(error, "sqlite_errorname", "")
        if name.startswith("SQLITE_IOERR"):
            try:
                self._probe(coming)
            except OSError as refused:
                error = refused
                text = f"{text}: {refused.strerror or refused}"
        if name == "SQLITE_FULL" or (isinstance(error, OSError) and error.errno in _FULL):
            return StoreFull(f"The disk of {self.path} is full: make room, and the crawl goes on ({text}).")
        if name.startswith(_DAMAGED):
            return StoreDamaged(str(self._file), text)
        if isinstance(error, OSError) or name.startswith(_DENIED):
            text += ": see that this user may write there, or set UBI_DIR to a directory where it may"
        named = StoreError(f"The store {self.path} cannot be used: {text}.")
        if name in _UNSYNCED:
            self._broken = named
        return named

    def _probe(self, coming: int) -> None:
        """Write as much as was to be written where it was to be: SQLite does not say why it could not. Raises
        OSError."""
        probe = self.path / "rows.probe"
        at = max(self.log_size(), self._file.stat().st_size)
        try:
            with open(probe, "wb") as file:
                file.seek(at)
                file.write(bytes(min(coming, MIB) + 2 * _PAGE))
        finally:
            probe.unlink(missing_ok=True)


def _placeholders(one: str, count: int) -> str:
    return ",".join([one] * count)


_PUT = {count: f"REPLACE INTO rows VALUES {_placeholders('(?,?)', count)}" for count in _CHUNKS}
_DELETE = {count: f"DELETE FROM rows WHERE key IN ({_placeholders('?', count)})" for count in _CHUNKS}
_SCAN = "SELECT key, value FROM rows WHERE key >= ? AND key < ? ORDER BY key LIMIT ?"
# Of bytes `group_concat` makes a text of these bytes, which is bytes again by CAST: the file is in UTF-8.
_JOINED = (
    "SELECT CAST(group_concat(key, '') AS BLOB), CAST(group_concat(value, '') AS BLOB), "
    f"group_concat(length(key)), group_concat(length(value)) FROM ({_SCAN})"
)


def _parts(joined: bytes, lengths: str) -> Iterator[bytes]:
    at = 0
    for end in accumulate(map(int, lengths.split(","))):
        yield joined[at:end]
        at = end


def _chunks(rows: list[T]) -> Iterator[list[T]]:
    """These rows in pieces for which there are statements."""
    at = 0
    for count in _CHUNKS:
        while len(rows) - at >= count:
            yield rows[at : at + count]
            at += count


def _checked(key: bytes, value: bytes) -> bytes:
    return value + crc32(value, crc32(key)).to_bytes(4, "little")


def _size(piece: _Changes | _Range) -> int:
    """Bytes of what is put."""
    return sum(len(key) + len(value or b"") for key, value in piece.items()) if isinstance(piece, dict) else 0


def _sync_names(directory: Path) -> None:
    """Have the names in a directory on the disk; where that cannot be, it is the file system's."""
    with contextlib.suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
