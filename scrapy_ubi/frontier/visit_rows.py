"""Rows of visits: what stands in an agent's store of pages that are visited again, as bytes.

| key | value |
| --- | --- |
| `v` hid key | the visit row of a page that is done: numbers, validators, request |
| `u` hid due key | nothing: that page is due at that time (unix s, 4 bytes) |
| `w` hid | of a host: how many rows it has, the XOR of their fingerprints, and a time before which none is due |

Whatever is read is validated; what does not hold raises `StoreDamaged` naming the row.
"""

from __future__ import annotations

import struct

from scrapy_ubi.frontier import queue_rows
from scrapy_ubi.frontier.rows import damaged
from scrapy_ubi.protocol.entry import Entry
from scrapy_ubi.protocol.visit_row import MOST_TIME, VisitRow

VISIT, DUE, VISITS = b"v", b"u", b"w"

# generation, due, failures, compared, changes, last, interval, watched, digest; bytes of ETag, Last-Modified; depth
_ROW = struct.Struct(">IIBBBIIIQBBB")
_LONG = 255  # a depth that has no room: depth and priority follow
_DEPTH = struct.Struct(">Iq")
_HOST = struct.Struct(">IQI")
_DUE_ROW = 17  # bytes


def visit_key(hid: bytes, key: int) -> bytes:
    """Where the visit row of a page stands."""
    return VISIT + hid + key.to_bytes(8, "big")


def due_key(hid: bytes, due: int, key: int) -> bytes:
    """Where it stands when a page is due."""
    return DUE + hid + due.to_bytes(4, "big") + key.to_bytes(8, "big")


def dues_of(hid: bytes) -> tuple[bytes, bytes]:
    """The first of these rows that a host may have, and one behind the last."""
    return DUE + hid, DUE + hid + b"\xff" * 13


def read_due(row: bytes) -> tuple[int, int]:
    """When a page is due, and its key. Raises `StoreDamaged`."""
    if len(row) != _DUE_ROW:
        raise damaged(row, ValueError(f"{len(row)} bytes"))
    return int.from_bytes(row[5:9], "big"), int.from_bytes(row[9:], "big")


def visit_value(host: str, row: VisitRow) -> bytes:
    """The value of a visit row."""
    etag, modified = row.etag.encode(), row.modified.encode()
    entry = row.entry
    usual = not entry.priority and entry.depth < _LONG
    head = _ROW.pack(*row[:9], len(etag), len(modified), entry.depth if usual else _LONG)
    rest = b"" if usual else _DEPTH.pack(entry.depth, entry.priority)
    text = queue_rows.queued(b"\0\0\0\0", host, entry, 0)[queue_rows.ROW + 8 :]  # flag, URL, request
    return b"%b%b%b%b%b" % (head, rest, etag, modified, text)


def read_visit(host: str, row: bytes, value: bytes) -> VisitRow:
    """The visit row that stands there. Raises `StoreDamaged`."""
    try:
        *numbers, etag, modified, depth = _ROW.unpack_from(value)
        at, priority = _ROW.size, 0
        if depth == _LONG:
            depth, priority = _DEPTH.unpack_from(value, at)
            at += _DEPTH.size
        end = at + etag + modified
        if len(row) != 13 or len(value) <= end or not numbers[0]:
            raise ValueError(f"{len(row)} and {len(value)} bytes")
        texts = value[at : at + etag].decode(), value[at + etag : end].decode()
        found = queue_rows.read_queue(host, queue_rows.place(row[1:5], 0, 0, 0) + row[5:] + value[end:])
    except (ValueError, struct.error) as error:
        raise damaged(row, error) from error
    return VisitRow._make([*numbers, *texts, Entry(found.key, found.url, depth, priority, found.request)])


def host_value(count: int, xor: int, due: int) -> bytes:
    """The value of a host's row."""
    return _HOST.pack(count, xor, min(due, MOST_TIME))


def read_host(key: bytes, value: bytes) -> tuple[bytes, int, int, int]:
    """The number of a host, and what its row says. Raises `StoreDamaged`."""
    if len(key) != 5 or len(value) != _HOST.size:
        raise damaged(key, ValueError(f"{len(key)} and {len(value)} bytes"))
    return key[1:], *_HOST.unpack(value)
