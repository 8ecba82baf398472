"""Bounded decompression of a response's body: its beginning, whatever is behind it.

Scrapy's own decompression is bounded too, but gives up beyond its bound. Rules of this module:

* At most `most` bytes come out, and little more than that is in memory at any moment: a bomb of a gigabyte costs what a
  page of `most` bytes costs. Where several encodings lie on each other, each of them is bounded.
* What Scrapy reads, this reads: streams that end too early (a transfer that was stopped), wrong checksums, raw deflate.
* Encodings whose module is not installed are Scrapy's matter (`can_unpack`); Scrapy 2.19 brings them all.
* Bytes that are no such stream give None: what to say of them is Scrapy's matter.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from gzip import GzipFile
from importlib import import_module
from io import BytesIO
from typing import Any


def _first_installed(*names: str) -> Any:
    """The first of these modules that there is; None where there is none. Scrapy 2.19 brings those below, older ones do
    not."""
    for name in names:
        try:
            return import_module(name)
        except ImportError:
            continue
    return None


brotli = _first_installed("brotli", "brotlicffi")
zstd = _first_installed("compression.zstd", "backports.zstd")

# The fastest way to inflate (the extra `fast`), or Python's own: 2.4 times the time.
_isal = _first_installed("isal.isal_zlib")
inflate = zlib if _isal is None else _isal
_ISAL: tuple[type[Exception], ...] = () if _isal is None else (_isal.error,)
_GZIP = 16 + zlib.MAX_WBITS  # a gzip header is read, and its check sum compared

CHUNK = 65_536  # bytes that come out at a time
MOST_LAYERS = 4  # encodings on each other; honest servers use one
BROKEN: tuple[type[Exception], ...] = (
    OSError,
    EOFError,
    struct.error,
    zlib.error,
    *([zstd.ZstdError] if zstd is not None else []),
    *([brotli.error] if brotli is not None else []),
)


def can_unpack(encodings: Sequence[str]) -> bool:
    """Whether these encodings, as Content-Encoding names them, can be undone here."""
    return len(encodings) <= MOST_LAYERS and all(encoding in _READERS for encoding in encodings)


def unpack(body: bytes, encodings: Sequence[str], most: int) -> bytes | None:
    """The first `most` bytes of a body to which these encodings were applied in this order, or all if it has fewer.

    None where it is no such stream. `can_unpack` tells of which encodings this may be asked.
    """
    for encoding in reversed(encodings):
        unpacked = at_once(encoding, body, most)
        if unpacked is None:
            unpacked = _first(_READERS[encoding](body), most)
        if unpacked is None:
            return None
        body = unpacked
    return body[:most]


def at_once(encoding: str, body: bytes, most: int) -> bytes | None:
    """The same as `unpack` for one encoding, in one step, where the stream is one whole and sound one or is longer than
    `most`; None for all else. No more than `most` bytes come out at any moment."""
    reader = _AT_ONCE.get(encoding)
    if reader is None or most <= 0:
        return None
    try:
        return reader(body, most)
    except (*BROKEN, *_ISAL):
        return None


def _gzip_at_once(body: bytes, most: int) -> bytes | None:
    stream = inflate.decompressobj(_GZIP)
    found: bytes = stream.decompress(body, most)
    return found if len(found) == most or (stream.eof and not stream.unused_data) else None


def _brotli_at_once(body: bytes, most: int) -> bytes | None:
    stream = brotli.Decompressor()
    found: bytes = stream.process(body, output_buffer_limit=most)
    return found[:most] if len(found) >= most or stream.is_finished() else None


def _zstd_at_once(body: bytes, most: int) -> bytes | None:
    stream = zstd.ZstdDecompressor()
    found: bytes = stream.decompress(body, max_length=most)
    return found if len(found) == most or (stream.eof and not stream.unused_data) else None


def _first(chunks: Iterator[bytes], most: int) -> bytes | None:
    """What comes out first: `most` bytes, or as many as there are before the stream breaks; None where none do."""
    out = bytearray()
    try:
        for chunk in chunks:
            out += chunk
            if len(out) >= most:
                break
    except BROKEN:
        if not out:
            return None
    return bytes(out[:most])


def _gzip(data: bytes) -> Iterator[bytes]:
    file = GzipFile(fileobj=BytesIO(data))
    while chunk := file.read1(CHUNK):
        yield chunk


def _deflate(data: bytes) -> Iterator[bytes]:
    stream, at = zlib.decompressobj(), CHUNK
    try:
        chunk = stream.decompress(data[:CHUNK], CHUNK)
    except zlib.error:  # some servers send it raw, without zlib's header
        stream = zlib.decompressobj(-zlib.MAX_WBITS)
        chunk = stream.decompress(data[:CHUNK], CHUNK)
    while not stream.eof:
        if chunk:
            yield chunk
        rest = stream.unconsumed_tail  # a copy: of all that is left, if all were given at once
        if not rest:
            if not chunk and at >= len(data):
                return
            rest, at = data[at : at + CHUNK], at + CHUNK
        chunk = stream.decompress(rest, CHUNK)
    yield chunk


def _brotli(data: bytes) -> Iterator[bytes]:
    stream = brotli.Decompressor()
    chunk = stream.process(data, output_buffer_limit=CHUNK)
    while chunk:
        yield chunk
        chunk = b"" if stream.is_finished() else stream.process(b"", output_buffer_limit=CHUNK)


def _zstd(data: bytes) -> Iterator[bytes]:
    file = zstd.ZstdFile(BytesIO(data))
    while chunk := file.read(CHUNK):
        yield chunk


_AT_ONCE: dict[str, Callable[[bytes, int], bytes | None]] = {
    "gzip": _gzip_at_once,
    "x-gzip": _gzip_at_once,
    **({"br": _brotli_at_once} if brotli is not None else {}),
    **({"zstd": _zstd_at_once} if zstd is not None else {}),
}
_READERS: dict[str, Callable[[bytes], Iterator[bytes]]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    **({"br": _brotli} if brotli is not None else {}),
    **({"zstd": _zstd} if zstd is not None else {}),
}
