"""A body as it may have been compressed as a file (`sitemap.xml.gz`), in chunks.

Rules of this module: a chunk has at most `CHUNK` bytes, whatever it is made of, so a bomb costs what is read of it. A
stream that ends too early, or is broken, gives what came before.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from scrapy_ubi.urls.links.handlers.bounds import CHUNK, LinksCut

GZIP = b"\x1f\x8b"
_WBITS = 16 + zlib.MAX_WBITS  # gzip's header


def chunks(body: bytes, most: int) -> Iterator[bytes]:
    """The body, unpacked if it is gzip. Raises LinksCut behind its first `most` bytes where it has more."""
    left = most
    for chunk in _gunzipped(body) if body.startswith(GZIP) else _parts(body):
        if len(chunk) > left:
            yield chunk[:left]
            raise LinksCut("bytes")
        left -= len(chunk)
        yield chunk


def head(body: bytes, most: int) -> bytes:
    """The first `most` bytes, at most `CHUNK`, unpacked if it is gzip."""
    return next(chunks(body[: CHUNK + most], CHUNK), b"")[:most]


def _parts(body: bytes) -> Iterator[bytes]:
    for at in range(0, len(body), CHUNK):
        yield body[at : at + CHUNK]


def _gunzipped(body: bytes) -> Iterator[bytes]:
    """Members of gzip, one behind the other."""
    stream = zlib.decompressobj(_WBITS)
    at = 0
    rest = b""
    try:
        while rest or at < len(body):
            if not rest:
                rest = body[at : at + CHUNK]
                at += CHUNK
            chunk = stream.decompress(rest, CHUNK)
            rest = stream.unconsumed_tail
            if stream.eof:
                rest = stream.unused_data
                stream = zlib.decompressobj(_WBITS)
            if chunk:
                yield chunk
        if last := stream.decompress(b"", CHUNK):
            yield last
    except zlib.error:
        return
