"""The store on disk: RocksDB, by rocksdict. One directory, few files, one synced write a batch.

Rules of this module:

* `memory` bounds what RocksDB keeps for itself: memtables, and a cache for blocks, indexes and filters.
* At most `OPEN_FILES` table files are open at once, and half a dozen others (log, manifest, lock).
* A disk that is nearly full is found before RocksDB hits the wall: beneath `RESERVE` bytes free nothing is written, for
  RocksDB itself needs room to sort what it has. Where it does hit the wall it refuses every further write; then it is
  opened again as soon as there is room.
* What RocksDB says is wrong is told apart by its texts, which name the file. Tests provoke each of them.
* Its logs are looked at before RocksDB reads them (`mend_logs`): from one kind of damage it does not come back.
"""

from __future__ import annotations

import contextlib
import os
import re
import struct
import threading
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from rocksdict import (
    BlockBasedOptions,
    Cache,
    DBCompressionType,
    DBRecoveryMode,
    Options,
    Rdict,
    ReadOptions,
    WriteBatch,
    WriteOptions,
)

from scrapy_ubi.frontier.disk_room import MIB, check_room
from scrapy_ubi.frontier.store import Row, RowBatch, StoreDamaged, StoreError, StoreFull

BLOCK = 32 * 1024
FULL = 1  # the kind of a record that is whole
ENDLESS = frozenset((5, 6, 7, 8, 11))  # kinds of recycled logs
_HEADER = struct.Struct("<IHB")
_LOGS = ("*.log", "MANIFEST-*")

OPEN_FILES = 40  # table files; with the others below 50, so that an agent stays below 64
RESERVE = 32 * MIB  # free on the disk before anything is written: two memtables and what they are sorted into
LEAST_MEMORY = 16 * MIB
_MOST_MEMTABLE = 16 * MIB
_BLOCK = 8192  # bytes before compression: a head of a queue is about one
TABLE_FILE = 64 * MIB  # what a table file has at least

_FULL = ("No space left on device", "Disk quota exceeded", "File too large", "Out of space", "NoSpace")
_DENIED = ("Permission denied", "Read-only file system")
_FORKED = (
    "This process was forked by one that has crawled before, and RocksDB's threads were not forked with it: start it "
    "by 'spawn' (multiprocessing), or let the process that forks crawl nothing itself."
)
_FILE_NAME = re.compile(r"(?:\S*/)?(?:\d{6,}\.(?:sst|log|ldb|blob)|MANIFEST-\d+|CURRENT|OPTIONS-\d+)")

_users: set[int] = set()  # processes that have had a store: this one, and those that it was forked by


def mend_logs(directory: Path) -> int:
    """Make the logs of the store in this directory ones that can be read to their ends. How many records were
    overwritten. Raises OSError.

    A log (the write-ahead log, the manifest) is made of blocks of 32 KiB, and these of records: a checksum (4 bytes), a
    length (2 bytes, little-endian), a kind (1 byte), and the data (RocksDB's wiki, "Write Ahead Log File Format"). Some
    kinds are those of logs that are written over older ones, which ours never are. Where RocksDB (rocksdict 0.3.29)
    meets one of them behind a record of another kind, it takes it for bad, does not go on behind it, and reads it
    again, without end.

    Such a kind is overwritten by the usual one. Either the record is whole with it, or its checksum does not hold: then
    RocksDB does what it does about all damage, in the log and in those behind it. A log that is whole is only read.
    What is no record, or torn, is passed over as RocksDB does: up to the next block.
    """
    return sum(_mend(log) for pattern in _LOGS for log in sorted(directory.glob(pattern)))


def _mend(log: Path) -> int:
    bad: list[int] = []
    with open(log, "rb") as file:
        while block := file.read(BLOCK):
            base = file.tell() - len(block)
            bad += [base + at for at in _endless(block)]
    if bad:
        with open(log, "r+b") as file:
            for at in bad:
                file.seek(at + _HEADER.size - 1)
                file.write(bytes([FULL]))
    return len(bad)


def _endless(block: bytes) -> list[int]:
    """Where in a block the first record of such a kind begins, if there is one: RocksDB reads no further in it."""
    at = 0
    while at + _HEADER.size <= len(block):
        _, length, kind = _HEADER.unpack_from(block, at)
        if kind in ENDLESS:
            return [at]
        if not kind and not length:  # not written, as files are made longer ahead
            break
        at += _HEADER.size + length
    return []


class RocksStore:
    """A RocksDB in the directory `path`, which is made where there is none."""

    def __init__(self, path: Path, memory: int = 64 * MIB, reserve: int = RESERVE) -> None:
        """Open it. Blocks: what its log holds is read. `memory` and `reserve` are bytes.

        Raises `StoreDamaged`, `StoreFull`, `StoreError`.
        """
        if _users - {os.getpid()}:
            raise StoreError(_FORKED)  # else it is opened, and hangs when it is to be closed
        _users.add(os.getpid())
        self.path = path
        self._reserve = reserve
        self._options = _options(max(memory, LEAST_MEMORY))
        self._synced = WriteOptions()
        self._synced.sync = True
        self._gate = threading.Lock()  # no reader is inside while it is opened again
        self._stuck = False  # it refuses all writes since the disk was full
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._named(error) from error
        self._db: Rdict | None = self._opened()

    def _opened(self) -> Rdict:
        try:
            check_room(self.path, self._reserve, 0)
            mend_logs(self.path)  # else some damage is never done with
            # named, else rocksdict takes the options that the store had last, with a cache of 8 MB
            return Rdict(str(self.path), self._options, column_families={"default": self._options})
        except Exception as error:  # rocksdict raises nothing more particular
            raise self._named(error) from error

    def batch(self) -> RowBatch:
        """An empty batch."""
        return WriteBatch(raw_mode=True)

    def write(self, batch: RowBatch) -> None:
        """Make a batch durable."""
        assert isinstance(batch, WriteBatch)
        try:
            check_room(self.path, self._reserve, batch.size_in_bytes())
            if self._stuck:
                self._open_anew()
            self._handle().write(batch, self._synced)
        except Exception as error:  # rocksdict raises nothing more particular
            named = self._named(error)
            self._stuck = self._stuck or not isinstance(error, StoreError)  # RocksDB's own: it no longer writes
            raise named from error

    def get(self, key: bytes) -> bytes | None:
        """The value of a row."""
        with self._gate:
            try:
                value: bytes | None = self._handle().get(key)
            except Exception as error:  # rocksdict raises nothing more particular
                raise self._named(error) from error
        return value

    def scan(self, start: bytes, end: bytes, most: int) -> list[Row]:
        """The first rows from start on, before end."""
        bounds = ReadOptions()
        bounds.set_iterate_upper_bound(end)  # else the end of a queue would be sought behind all that was deleted there
        # Rows of queues are read once, but their blocks stayed in memory when they were gone. The stub lacks the value.
        bounds.fill_cache(False)  # type: ignore[call-arg]
        with self._gate:
            try:
                items: Iterator[Any] = self._handle().items(from_key=start, read_opt=bounds)
                found: list[Row] = list(islice(items, most))
                if len(found) < most:  # is that all? `items` does not tell the end from damage
                    rest = self._handle().iter(bounds)
                    rest.seek(found[-1][0] + b"\0" if found else start)
                    while len(found) < most and rest.valid():
                        found.append((rest.key(), rest.value()))
                        rest.next()
                    rest.status()
            except Exception as error:  # rocksdict raises nothing more particular
                raise self._named(error) from error
        return found

    def close(self) -> None:
        """Let go of the files. All that was written is on the disk already."""
        with self._gate:
            db, self._db = self._db, None
            if db is not None:
                _close(db)

    def _handle(self) -> Rdict:
        if self._db is None:
            raise StoreError(f"The store {self.path} is closed.")
        return self._db

    def _open_anew(self) -> None:
        with self._gate:
            _close(self._handle())
            self._db = None
            self._db = self._opened()
            self._stuck = False

    def _named(self, error: Exception) -> StoreError:
        """What RocksDB says, as an error of ours."""
        if isinstance(error, StoreError):
            return error
        text = " ".join(str(error).split())
        if any(sign in text for sign in _FULL):
            return StoreFull(f"The disk of {self.path} is full: make room, and the crawl goes on ({text}).")
        if "Corruption" in text or ("No such file" in text and self.path.name in text):
            named = _FILE_NAME.search(text)
            return StoreDamaged(str(self.path / Path(named[0]).name if named else self.path), text)
        if isinstance(error, UnicodeEncodeError):
            text = "its path is no UTF-8 text: set UBI_DIR to one that is, or start this with PYTHONUTF8=1"
        elif isinstance(error, OSError) or any(sign in text for sign in _DENIED):
            text += ": see that this user may write there, or set UBI_DIR to a directory where it may"
        return StoreError(f"The store {self.path} cannot be used: {text}.")


def _close(db: Rdict) -> None:
    """What goes wrong here costs nothing: all that was written is on the disk. (Its directory is gone, or full.)"""
    with contextlib.suppress(Exception):  # rocksdict raises nothing more particular
        db.close()


def _options(memory: int) -> Options:
    """Half of the memory, at most, for two memtables; the rest caches blocks."""
    memtable = min(memory // 4, _MOST_MEMTABLE)
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_paranoid_checks(True)
    options.set_wal_recovery_mode(DBRecoveryMode.point_in_time())
    options.set_max_open_files(OPEN_FILES)
    options.set_table_cache_num_shard_bits(0)  # else each of 64 shards may have one more open
    options.set_keep_log_file_num(2)  # RocksDB's own notes for people
    options.set_max_log_file_size(MIB)
    options.set_write_buffer_size(memtable)
    options.set_max_write_buffer_number(2)
    options.set_allow_concurrent_memtable_write(False)  # there is one writer
    options.set_max_total_wal_size(4 * memtable)
    options.set_target_file_size_base(TABLE_FILE)
    options.set_max_bytes_for_level_base(4 * TABLE_FILE)
    options.set_level_compaction_dynamic_level_bytes(True)
    options.set_compression_type(DBCompressionType.lz4())
    options.set_bottommost_compression_type(DBCompressionType.zstd())
    options.set_bottommost_compression_options(-14, 1, 0, 0, True)  # level 1: 2 % larger than 3, in 0.7 of the CPU
    options.set_max_background_jobs(2)
    options.set_bytes_per_sync(MIB)
    options.set_block_based_table_factory(_tables(memory - 2 * memtable))
    return options


def _tables(cache: int) -> BlockBasedOptions:
    tables = BlockBasedOptions()
    tables.set_block_cache(Cache(cache))
    tables.set_cache_index_and_filter_blocks(True)
    tables.set_pin_l0_filter_and_index_blocks_in_cache(True)
    tables.set_block_size(_BLOCK)
    tables.set_format_version(5)
    return tables
