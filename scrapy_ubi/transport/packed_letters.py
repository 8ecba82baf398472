"""Letters in few bytes, for a line that is long: there what is lost on the way is what mail waits for, and the more
bytes, the more of that.

Rules of this module:

* The fields of a stream entry are one field then, `z`, beside the sender's name. It holds, compressed, each name and
  the length of its value, and then all values.
* Whoever writes decides, entry by entry; whoever reads takes both.
* Nothing that arrives is trusted: no more is unpacked than a letter may have, and what is not packed so stays as it is.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping

from scrapy_ubi.transport.contract import Fields, RawFields
from scrapy_ubi.transport.wire_text import FROM, encode, size_of

FAR = 0.01  # s of a round trip from which on letters are packed: nearer, the processor's time is worth more
LEAST = 1000  # bytes that are worth it
LEVEL = 1
MOST_FIELDS = 256
PACKED, SENDER = b"z", b"from"


def packed(fields: Fields) -> Mapping[bytes, bytes]:
    """These fields as one, where that is shorter."""
    raw = {encode(name): encode(value) for name, value in fields.items()}
    before = size_of(raw)
    if before < LEAST or len(raw) > MOST_FIELDS or any(b" " in name or b"\n" in name for name in raw):
        return raw
    head = b" ".join([part for name, value in raw.items() for part in (name, b"%d" % len(value))])
    small = {
        SENDER: raw.get(SENDER, b"")[:FROM],
        PACKED: zlib.compress(b"\n".join((head, b"".join(raw.values()))), LEVEL),
    }
    return small if size_of(small) < before else raw


def unpacked(fields: RawFields, most: int) -> RawFields | None:
    """The fields that were packed so; any others as they are. None where they would have more than `most` bytes."""
    small = fields.get(PACKED)
    if small is None or not fields.keys() <= {PACKED, SENDER}:
        return fields
    unpacking = zlib.decompressobj()
    try:
        whole = unpacking.decompress(small, most + 1)
        if len(whole) > most:
            return None
        head, _, values = whole.partition(b"\n")
        parts = head.split(b" ")
        if len(parts) > 2 * MOST_FIELDS or not unpacking.eof:
            return fields
        found, at = {}, 0
        for name, length in zip(parts[::2], parts[1::2], strict=True):
            if not length.isdigit() or len(length) > 10:
                return fields
            found[name] = values[at : at + int(length)]
            at += int(length)
    except (zlib.error, ValueError):
        return fields
    return found if at == len(values) else fields
