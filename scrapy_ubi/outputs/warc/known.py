"""Payloads that earlier crawls have archived, by the indexes (CDXJ) beside their files: they are not written again.

Rules of this module:

* The indexes are read once, when the first page is written: each line gives 28 bytes of a sorted file in the agent's
  directory, which has no name and is looked up by halves. In memory are `MOST_ROWS` rows at a time, some 40 MB, while
  it is made, and nothing after; what the system caches of the file it may drop.
* Lines are data from outside. What is no line of a response with a digest of this algorithm, an http URL and a time is
  refused, and counted. Lines of revisits are passed over: what they refer to has a line of its own, or none.
* The line itself is read again when its digest is met: what is not there any more, as it was, is not referred to.
"""

from __future__ import annotations

import base64
import heapq
import json
import logging
import mmap
import re
import struct
import tempfile
import time
from binascii import unhexlify
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from datetime import datetime
from pathlib import Path
from typing import IO, NamedTuple

from scrapy_ubi.outputs.warc.cdxj import REVISIT
from scrapy_ubi.outputs.warc.met import Met

logger = logging.getLogger("scrapy_ubi")

MOST_ROWS = 400_000  # in memory, while the file is made
MOST_LINES = 100_000_000  # of all indexes: 2.8 GB of the file
MOST_LINE = 65_536  # bytes
SIZES = {"sha1": 20, "sha256": 32}  # bytes of a digest, by the name of its algorithm

_ROW = struct.Struct("!16sIQ")  # the beginning of the digest, number of the index, offset there
_KEY = 16
_url = re.compile(r"https?://[^\s\x00-\x20\x7f]{1,8192}")
_stamp = re.compile(r"[0-9]{14}", re.ASCII)


class Refused(Exception):
    """A line that does not hold: why, in one word."""


class KnownLine(NamedTuple):
    """What a line says of a response: the bytes of its payload's digest, its date as WARC has it, its URL."""

    digest: bytes
    date: str
    url: str


class KnownPayloads:
    """Those of these indexes, if any, whose digests are of this algorithm. For the writer's thread."""

    def __init__(self, paths: Sequence[Path], algorithm: str) -> None:
        self._paths = paths
        self._algorithm = algorithm
        self._rows: mmap.mmap | bytes | None = None if paths else b""
        self.refused: Counter[str] = Counter()  # lines, by reason

    def read_indexes(self, place: Path) -> None:
        """Read the indexes once, into a file in this directory. Raises OSError."""
        if self._rows is not None:
            return
        began = time.monotonic()
        self.refused.clear()
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=place) as file:
            for row in _sorted(self._read(), place):
                file.write(row)
            file.flush()
            size = file.tell()
            self._rows = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) if size else b""
        number, refused, took = size // _ROW.size, self.refused.total(), time.monotonic() - began
        logger.info("%d payloads of earlier crawls are known (%.0f s); %d lines are refused.", number, took, refused)

    def find(self, digest: str) -> Met | None:
        """The record that has this payload, without its name; None where none is known."""
        rows = self._rows
        if not rows:
            return None
        wanted = digest_bytes(digest, self._algorithm)
        key, low, high = wanted[:_KEY], 0, len(rows) // _ROW.size
        while low < high:
            middle = (low + high) // 2
            if _key(rows, middle) < key:
                low = middle + 1
            else:
                high = middle
        while low < len(rows) // _ROW.size and _key(rows, low) == key:
            _, number, offset = _ROW.unpack_from(rows, low * _ROW.size)
            with suppress(OSError, Refused), self._paths[number].open("rb") as index:
                index.seek(offset)
                line = read_line(index.readline(MOST_LINE), self._algorithm)
                if line is not None and line.digest == wanted:
                    return Met("", line.date, digest, line.url)
            low += 1
        return None

    def _read(self) -> Iterator[bytes]:
        """The rows of all indexes. One that cannot be read is refused."""
        count = 0
        for number, path in enumerate(self._paths):
            try:
                with path.open("rb") as index:
                    for offset, found in self._read_one(index):
                        if count >= MOST_LINES:
                            self.refused["number"] += 1
                            continue
                        count += 1
                        yield _ROW.pack(found.digest[:_KEY], number, offset)
            except OSError as error:
                logger.warning("The index %s cannot be read (%s): what is in it is archived again.", path, error)
                self.refused["unreadable"] += 1

    def _read_one(self, index: IO[bytes]) -> Iterator[tuple[int, KnownLine]]:
        offset = 0
        while line := index.readline(MOST_LINE):
            try:
                found = read_line(line, self._algorithm)
            except Refused as refused:
                self.refused[str(refused)] += 1
            else:
                if found is not None:
                    yield offset, found
            offset += len(line)


def read_line(line: bytes, algorithm: str) -> KnownLine | None:
    """Read a line of an index; None for one of a revisit, or none of a record. Raises Refused."""
    if not line.strip() or line.startswith(b"!"):
        return None
    try:
        _, stamp, text = line.decode().split(" ", 2)
        fields = json.loads(text)
        url, mime, digest = fields["url"], fields.get("mime", ""), fields["digest"]
        if not line.endswith(b"\n") or not _stamp.fullmatch(stamp) or not _url.fullmatch(url):
            raise Refused("malformed")
        when = datetime(int(stamp[:4]), *(int(stamp[at : at + 2]) for at in (4, 6, 8, 10, 12)))  # type: ignore[arg-type]
        date = f"{when.isoformat()}Z"
        if mime == REVISIT:
            return None
        return KnownLine(digest_bytes(digest, algorithm), date, url)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Refused("malformed") from error


def digest_bytes(text: str, algorithm: str) -> bytes:
    """The bytes of a digest, in base32 or hex; without a label it is SHA-1. Raises Refused, ValueError."""
    label, _, value = text.rpartition(":")
    if (label or "sha1").lower() != algorithm:
        raise Refused("algorithm")
    size = SIZES[algorithm]
    found = unhexlify(value) if len(value) == 2 * size else base64.b32decode(value + "=" * (-len(value) % 8))
    if len(found) != size:
        raise Refused("malformed")
    return found


def _key(rows: mmap.mmap | bytes, number: int) -> bytes:
    return rows[number * _ROW.size : number * _ROW.size + _KEY]


def _sorted(rows: Iterable[bytes], place: Path) -> Iterator[bytes]:
    """Rows in their order: those that do not fit into memory by stretches on disk. Raises OSError."""
    kept = list[bytes]()
    with ExitStack() as runs:
        files = list[IO[bytes]]()
        for row in rows:
            kept.append(row)
            if len(kept) >= MOST_ROWS:
                file = runs.enter_context(tempfile.TemporaryFile(dir=place))
                file.writelines(sorted(kept))
                file.seek(0)
                files.append(file)
                kept.clear()
        kept.sort()
        yield from heapq.merge(*map(_rows_of, files), kept)


def _rows_of(file: IO[bytes]) -> Iterator[bytes]:
    while row := file.read(_ROW.size):
        yield row
