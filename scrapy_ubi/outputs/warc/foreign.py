"""Records of WARC files that any program has written: read at an offset, or one after the other.

Rules of this module:

* Nothing in a file is trusted. Heads have at most `MOST_HEAD` bytes, what is kept of a record has the bound that the
  caller gives, and a compressed record is unpacked in pieces: one that unpacks to terabytes costs time, not memory.
* A record that does not hold is `BrokenRecord`. A walk through a file counts it, and goes on at the next beginning of a
  record that can be found.
* Files are plain (`.warc`), or have a gzip member for each record (`.warc.gz`), as all crawlers write them.
"""

from __future__ import annotations

import glob
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from scrapy_ubi.outputs.warc.members import GZIP

MOST_HEAD = 1 << 16  # bytes of the head of a record, and of that of an HTTP message
PIECE = 1 << 14
MAGIC = b"\x1f\x8b"
_BEGINNINGS = re.compile(rb"\x1f\x8b\x08|WARC/1\.\d\r?\n")
_VERSION = re.compile(r"WARC/\d\.\d")


class BrokenRecord(ValueError):
    """What lies there is no whole record, or one that is larger than what may be read."""


@dataclass(slots=True)
class ForeignRecord:
    """`fields` have their names in small letters. `block` is its beginning, `size` the bytes that it has in all;
    `offset` and `length` say where it lies in the file."""

    fields: dict[str, str]
    block: bytes
    size: int
    offset: int
    length: int

    @property
    def kind(self) -> str:
        return self.fields.get("warc-type", "")

    @property
    def url(self) -> str:
        """Some programs write it in brackets."""
        return self.fields.get("warc-target-uri", "").removeprefix("<").removesuffix(">").partition("#")[0]

    @property
    def stamp(self) -> str:
        """The date as 14 digits."""
        return re.sub(r"\D", "", self.fields.get("warc-date", ""))[:14]


def read_at(file: IO[bytes], offset: int, most: int) -> ForeignRecord:
    """The whole record at an offset. Raises BrokenRecord where it has more than `most` bytes; OSError."""
    record = _read(file, offset, most, stops=True)
    if record.size != len(record.block):
        raise BrokenRecord(f"the record at {offset} has more than {most} bytes")
    return record


def walk(path: Path, most: int, broken: Callable[[], None]) -> Iterator[ForeignRecord]:
    """The records of a file with at most so many bytes of each. Calls `broken` for each that does not hold. Raises
    OSError."""
    with path.open("rb") as file:
        size, offset = path.stat().st_size, 0
        while offset < size:
            try:
                record = _read(file, offset, most, stops=False)
            except BrokenRecord:
                broken()
                offset = _next_beginning(file, offset + 1, size)
            else:
                yield record
                offset += record.length


def _read(file: IO[bytes], offset: int, most: int, stops: bool) -> ForeignRecord:
    file.seek(offset)
    if file.read(2) == MAGIC:
        text, total, length = _unpacked(file, offset, most + MOST_HEAD, stops)
        fields, begin, size = _head(text[: MOST_HEAD + 4], offset)
        if begin + size > total:
            raise BrokenRecord(f"the record at {offset} is not whole")
    else:
        file.seek(offset)
        fields, begin, size = _head(file.read(MOST_HEAD + 4), offset)
        file.seek(offset + begin)
        text = bytes(begin) + file.read(min(size, most))
        file.seek(0, 2)
        if offset + begin + size > file.tell():
            raise BrokenRecord(f"the record at {offset} is not whole")
        file.seek(offset + begin + size)
        length = begin + size + _line_ends(file.read(4))
    return ForeignRecord(fields, text[begin : begin + min(size, most)], size, offset, length)


def _line_ends(data: bytes) -> int:
    return len(data) - len(data.lstrip(b"\r\n"))


def _unpacked(file: IO[bytes], offset: int, most: int, stops: bool) -> tuple[bytes, int, int]:
    """The beginning of what is in a gzip member, the bytes of all that is in it, and its own. `stops`: a larger one is
    refused when that is seen."""
    file.seek(offset)
    reader, kept, total, left = zlib.decompressobj(GZIP), bytearray(), 0, b""
    while not reader.eof:
        data = left or file.read(PIECE)
        try:
            text = reader.decompress(data, PIECE)
        except zlib.error as error:
            raise BrokenRecord(f"no gzip member at {offset}: {error}") from None
        if not data and not text and not reader.eof:
            raise BrokenRecord(f"the gzip member at {offset} is not whole")
        left = reader.unconsumed_tail
        kept += text[: max(0, most - len(kept))]
        total += len(text)
        if stops and total > most:
            raise BrokenRecord(f"the record at {offset} has more than {most} bytes")
    return bytes(kept), total, file.tell() - offset - len(reader.unused_data)


def _head(text: bytes, offset: int) -> tuple[dict[str, str], int, int]:
    """The fields of a record, where its block begins, and how long that is."""
    head, mark, _ = text.partition(b"\r\n\r\n")
    version, *lines = head.decode("utf-8", "replace").split("\r\n")
    fields: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        fields.setdefault(name.strip().lower(), value.strip())
    size = fields.get("content-length", "")
    if not mark or not _VERSION.fullmatch(version) or not re.fullmatch(r"[0-9]{1,18}", size):
        raise BrokenRecord(f"no WARC record at {offset}")
    return fields, len(head) + 4, int(size)


def _next_beginning(file: IO[bytes], offset: int, size: int) -> int:
    """Where the next record may begin; the end of the file where none does."""
    while offset < size:
        file.seek(offset)
        data = file.read(PIECE)
        if found := _BEGINNINGS.search(data):
            return offset + found.start()
        offset += max(1, len(data) - 10)  # a beginning may lie across two pieces
        if len(data) <= 10:
            break
    return size


@dataclass(slots=True)
class HttpMessage:
    """A message as it lies in a record: its first line, in three; its headers, in their order; what follows."""

    line: tuple[bytes, bytes, bytes]
    headers: list[tuple[bytes, bytes]]
    body: bytes


def http_message(block: bytes) -> HttpMessage:
    """Raises BrokenRecord."""
    head, mark, body = block.partition(b"\r\n\r\n")
    if not mark:
        head, mark, body = block.partition(b"\n\n")
    if (not mark and not block.endswith(b"\n")) or len(head) > MOST_HEAD:
        raise BrokenRecord("the record holds no HTTP message")
    first, *lines = re.split(rb"\r?\n", head)
    parts = (*first.split(b" ", 2), b"", b"")
    headers: list[tuple[bytes, bytes]] = []
    for line in lines:
        if line[:1] in (b" ", b"\t") and headers:
            headers[-1] = headers[-1][0], headers[-1][1] + b" " + line.strip()
        elif b":" in line:
            name, _, value = line.partition(b":")
            headers.append((name.strip(), value.strip()))
    return HttpMessage((parts[0], parts[1], parts[2]), headers, body)


_chunk = re.compile(rb"([0-9a-fA-F]{1,8})[^\r\n]{0,256}\r\n").match
_chunk_begun = re.compile(rb"(?:[0-9a-fA-F]{1,8}[^\r\n]{0,256}\r?)?").fullmatch


def unchunked(body: bytes, is_cut: bool = False) -> bytes:
    """Return a body without its chunks, where they hold; else as it is: many programs write the header without them.

    Of a body that ends before its last chunk what came, where it has a whole chunk or its record says that it `is_cut`.
    """
    pieces, at = list[bytes](), 0
    while found := _chunk(body, at):
        size, begin = int(found[1], 16), found.end()
        if not size:
            return b"".join(pieces)
        pieces.append(body[begin : begin + size])
        at = begin + size + 2
        behind = body[begin + size : at]
        if behind != b"\r\n":
            ends_here = b"\r\n".startswith(behind) and at > len(body)
            return b"".join(pieces) if ends_here and (is_cut or len(pieces) > 1) else body
    return b"".join(pieces) if pieces and _chunk_begun(body[at:]) else body


def files_of(patterns: Iterable[str]) -> tuple[list[Path], list[str]]:
    """The files that paths and globs name, each once; and those that name none."""
    found: dict[Path, None] = {}
    empty = []
    for pattern in patterns:
        paths = [Path(pattern)] if Path(pattern).is_file() else sorted(map(Path, glob.glob(pattern, recursive=True)))
        files = [path for path in paths if path.is_file()]
        if not files:
            empty.append(pattern)
        found |= dict.fromkeys(files)
    return list(found), empty
