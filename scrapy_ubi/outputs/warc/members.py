"""Records of WARC files: written as one gzip member each, and read back out of a stretch of a file.

Rules of this module:

* A record is a head, lines of `Name: value`, and a block of `Content-Length` bytes; two line ends close it (WARC 1.1).
* Each record is a gzip member of its own: a file that is cut between members is whole, and each can be read by its
  offset and length.
* isal compresses four times as fast as zlib; where it is not installed (extra `[warc]`), zlib does.
* What is read are files that we wrote: anything else is a ValueError.
"""

from __future__ import annotations

import os
import time
import zlib
from binascii import b2a_base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from hashlib import sha1, sha256
from importlib import import_module

VERSION = b"WARC/1.1"
LEVEL = 1  # of isal, whose highest is 3, and of zlib
GZIP = 31  # window bits that ask for a gzip member

# Of an integer of 32 groups of 5 bits, steps that put a bit between all of them: what stays, what moves, how far. Then
# Python's base64 (in C) makes it text, whose letters are those of base32 but for the last six.
_SPREAD = [
    (
        sum(((1 << 5 * half) - 1) << 12 * half * block for block in range(16 // half)),
        sum(((1 << 5 * half) - 1) << 12 * half * block + 5 * half for block in range(16 // half)),
        half,
    )
    for half in (16, 8, 4, 2, 1)
]
_BASE32 = bytes.maketrans(b"abcdef", b"234567")
_VARIANT = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}

Fields = list[tuple[str, str]]
Compress = Callable[[bytes], bytes]


def by_zlib(data: bytes) -> bytes:
    """A gzip member, made by Python's own library."""
    return zlib.compress(data, LEVEL, GZIP)


def by_isal() -> Compress | None:
    """What makes a gzip member with isal; None where that is not installed."""
    try:
        compress = import_module("isal.isal_zlib").compress
    except ImportError:
        return None
    return partial(compress, level=LEVEL, wbits=GZIP)


def new_id() -> str:
    """A name that no other record has: a random UUID (version 4) as a URN."""
    return new_ids(1)[0]


def new_ids(count: int) -> list[str]:
    """So many of them: random bits are asked for once."""
    text = os.urandom(16 * count).hex()
    return [
        f"<urn:uuid:{text[at : at + 8]}-{text[at + 8 : at + 12]}-4{text[at + 13 : at + 16]}-"
        f"{_VARIANT[text[at + 16]]}{text[at + 17 : at + 20]}-{text[at + 20 : at + 32]}>"
        for at in range(0, 32 * count, 32)
    ]


def digest(*pieces: bytes) -> str:
    """SHA-1 as archives write it, of these bytes one after the other."""
    state = sha1(pieces[0], usedforsecurity=False)
    for piece in pieces[1:]:
        state.update(piece)
    return f"sha1:{base32(state.digest())}"


def digest_sha256(*pieces: bytes) -> str:
    """SHA-256 of these bytes one after the other, in hex: in base32 it has a `=`, which the grammar of WARC forbids."""
    state = sha256()
    for piece in pieces:
        state.update(piece)
    return f"sha256:{state.hexdigest()}"


DIGESTS: dict[str, Callable[..., str]] = {"sha1": digest, "sha256": digest_sha256}  # by the label of the algorithm


def base32(digest: bytes) -> str:
    """20 bytes in base32: in half the time that Python's own library takes."""
    number = int.from_bytes(digest)
    for stays, moves, far in _SPREAD:
        number = number & stays | (number & moves) << far
    return b2a_base64(number.to_bytes(24), newline=False).translate(_BASE32).decode()


def date(when: float) -> str:
    """A unix time as WARC-Date, to the millisecond."""
    return f"{_second(int(when))}.{int(when % 1 * 1000):03d}Z"


@lru_cache(4)
def _second(when: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(when))


def record(kind: str, fields: Fields, *block: bytes) -> bytes:
    """A record as text, whose block is these bytes one after the other."""
    return framed(kind, "".join([f"{name}: {value}\r\n" for name, value in fields]), *block)


def framed(kind: str, fields: str, *block: bytes) -> bytes:
    """A record as text, whose fields are written already: each with its line end."""
    length = sum(map(len, block))
    head = f"WARC/1.1\r\nWARC-Type: {kind}\r\n{fields}Content-Length: {length}\r\n\r\n"
    return b"".join((head.encode("utf-8", "replace"), *block, b"\r\n\r\n"))


@dataclass(slots=True)
class WarcRecord:
    """A record that was read; `offset` and `length` are those of its member in the stretch that was read."""

    fields: dict[str, str]
    block: bytes
    offset: int
    length: int

    @property
    def kind(self) -> str:
        return self.fields.get("WARC-Type", "")

    @property
    def id(self) -> str:
        return self.fields.get("WARC-Record-ID", "")

    @property
    def http_head(self) -> bytes:
        """The head of an HTTP message, with the empty line behind it."""
        head, line, _ = self.block.partition(b"\r\n\r\n")
        return head + line

    @property
    def payload(self) -> bytes:
        """What follows the head of an HTTP message."""
        return self.block.partition(b"\r\n\r\n")[2]


def members(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Offset and length of each gzip member, and what is in it. Raises ValueError where one is not whole."""
    offset = 0
    while offset < len(data):
        reader = zlib.decompressobj(GZIP)
        try:
            text = reader.decompress(memoryview(data)[offset:])
        except zlib.error as error:
            raise ValueError(f"no gzip member at {offset}: {error}") from error
        if not reader.eof:
            raise ValueError(f"the gzip member at {offset} is not whole")
        length = len(data) - offset - len(reader.unused_data)
        yield offset, length, text
        offset += length


def records(data: bytes) -> Iterator[WarcRecord]:
    """The records in a stretch of a file. Raises ValueError where one is not whole, or none."""
    for offset, length, text in members(data):
        head, _, rest = text.partition(b"\r\n\r\n")
        version, *lines = head.decode("utf-8", "replace").split("\r\n")
        if version.encode() != VERSION:
            raise ValueError(f"no WARC record at {offset}")
        fields = dict(line.split(": ", 1) for line in lines if ": " in line)
        size = int(fields.get("Content-Length", "-1"))
        if not 0 <= size == len(rest) - 4:
            raise ValueError(f"the WARC record at {offset} is not whole")
        yield WarcRecord(fields, rest[:-4], offset, length)
