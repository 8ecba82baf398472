"""The record of one page's links, in bytes.

Rules of this module:

* A record is a head of 40 bytes (little endian): `UG`, version 1, reserved 0, status (16 bits), depth (16), numbers of
  links and of texts, bytes of the texts (32 each), time of the end of the load (64-bit float, unix time), key of the
  page (64 bits), 4 bytes of zeros. Then the keys of the targets (64 bits each), their types (a byte each: 0 link,
  1 frame, 2 redirect), texts, and the CRC-32 of all before it.
* A key is `urls.url_key` of a URL in normal form. Texts are such URLs, a line each: those that this part had not named
  before, the page's own among them. A text says its key by itself.
* What is not whole, or does not add up, is refused (`BadRecord`): it comes from a disk.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from mmh3 import hash_bytes
from numpy.typing import NDArray

from scrapy_ubi.urls.key import URL_SEED

LINK, FRAME, REDIRECT = 0, 1, 2
HEAD = struct.Struct("<2sBBHHIIIdQ4x")
MAGIC, VERSION = b"UG", 1
MOST_STATUS, MOST_DEPTH = 999, 0xFFFF

Keys = NDArray[np.uint64]

_SUM = struct.Struct("<I")
_WRITTEN = struct.Struct("<2sBBHHIIId8s4x")  # HEAD, with the key in bytes
_TEXT = re.compile(rb"https?://[!-~]+").fullmatch
_odd_types = re.compile(rb"[^\x00-\x02]").search


class BadRecord(ValueError):
    """These bytes are no whole record."""


class GraphRecord(NamedTuple):
    """What was found on a page. `targets` are keys, 8 bytes each, `types` a byte each, `texts` URLs."""

    key: int
    status: int
    depth: int
    ended: float
    targets: bytes
    types: bytes
    texts: list[bytes]


def keys_of(forms: Sequence[str | bytes]) -> Keys:
    """The keys of URLs in normal form: `url_key("GET", form)` of each."""
    digests = b"".join([hash_bytes(form, URL_SEED) for form in forms])
    return np.frombuffer(digests, "<u8")[::2]  # the lower half of each: MurmurHash3 x64 gives it first


def key_of(form: str) -> bytes:
    """The key of a URL in normal form, as records have it."""
    return hash_bytes(form, URL_SEED)[:8]


def packed(keys: bytes, types: bytes, texts: Sequence[str], status: int, depth: int, ended: float) -> bytes:
    """A record. `keys`, 8 bytes each: the page's own, then those of the targets, of which `types` has one byte each."""
    names = "\n".join(texts).encode("ascii")
    head = _WRITTEN.pack(
        MAGIC, VERSION, 0, min(status, MOST_STATUS), min(depth, MOST_DEPTH), len(types), len(texts), len(names), ended,
        keys[:8],
    )  # fmt: skip
    data = b"".join((head, keys[8:], types, names))
    return data + _SUM.pack(zlib.crc32(data))


def unpacked(data: bytes) -> GraphRecord:
    """Raises BadRecord."""
    if len(data) < HEAD.size + _SUM.size:
        raise BadRecord("it is shorter than its head")
    magic, version, _, status, depth, links, texts, length, ended, key = HEAD.unpack_from(data)
    if magic != MAGIC or version != VERSION:
        raise BadRecord("it is no record of this version")
    types_at = HEAD.size + 8 * links
    texts_at = types_at + links
    end = texts_at + length
    if end + _SUM.size != len(data):
        raise BadRecord("its lengths do not add up")
    if _SUM.unpack_from(data, end)[0] != zlib.crc32(memoryview(data)[:end]):
        raise BadRecord("its sum is wrong")
    types, named = data[types_at:texts_at], data[texts_at:end].split(b"\n") if length else []
    if len(named) != texts or not all(map(_TEXT, named)) or _odd_types(types):
        raise BadRecord("it has texts that are no URLs, or types that are none")
    return GraphRecord(key, status, depth, _time(ended), data[HEAD.size : types_at], types, named)


def _time(ended: Any) -> float:
    """Raises BadRecord where that is no time."""
    if not 0 <= ended < 1e11:
        raise BadRecord("its time is none")
    return float(ended)


def without_texts(record: GraphRecord) -> bytes:
    """The same record, shorter: its texts are known. `stripped` reads it."""
    head = HEAD.pack(MAGIC, VERSION, 0, record.status, record.depth, len(record.types), 0, 0, record.ended, record.key)
    return head + record.targets + record.types


class Stripped(NamedTuple):
    """What `without_texts` has left of a record."""

    key: bytes
    status: int
    depth: int
    ended: float
    targets: bytes
    types: bytes


def stripped(data: bytes) -> Stripped:
    """Of what `without_texts` made."""
    _, _, _, status, depth, links, _, _, ended, _ = HEAD.unpack_from(data)
    at = HEAD.size + 8 * links
    return Stripped(data[HEAD.size - 12 : HEAD.size - 4], status, depth, ended, data[HEAD.size : at], data[at:])
