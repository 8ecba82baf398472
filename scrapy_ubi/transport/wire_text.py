"""Text to bytes and back, and the marker of a letter that is too large: the same for Redis and its twin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from scrapy_ubi.transport.contract import HEAD, RawFields

FROM = 64  # bytes of a sender's name, as long as names of agents may be


def encode(text: str) -> bytes:
    """UTF-8. A lone surrogate (half a JSON escape, from a hostile page) becomes `\\udxxx`, which is JSON's own way
    to write it; so any text can be sent."""
    return text.encode("utf-8", "backslashreplace")


def texts(raw: Iterable[tuple[bytes, bytes]], longest: int) -> tuple[dict[str, str], list[bytes]]:
    """The fields of a hash that are text, at most `longest` bytes each; and the names of the others."""
    good: dict[str, str] = {}
    bad: list[bytes] = []
    for name, value in raw:
        try:
            if len(name) > longest or len(value) > longest:
                raise ValueError
            good[name.decode()] = value.decode()
        except ValueError:  # a UnicodeDecodeError is one
            bad.append(name)
    return good, bad


def writer(line: bytes) -> bytes:
    """What names the process that wrote this beat: its beginning, up to a full stop or a space."""
    return line.partition(b" ")[0].partition(b".")[0]


def size_of(fields: RawFields) -> int:
    """Bytes of all names and values."""
    return sum(len(name) + len(value) for name, value in fields.items())


def marker(fields: Mapping[bytes, bytes], size: int) -> dict[bytes, bytes]:
    """What is handed out in place of a letter that is too large (the contract's `oversized`)."""
    head = b""
    for name, value in fields.items():
        if len(head) >= HEAD:
            break
        head += name[:HEAD] + b"=" + value[:HEAD] + b" "
    cut = {b"oversized": str(size).encode(), b"head": head[:HEAD]}
    if b"from" in fields:
        cut[b"from"] = fields[b"from"][:FROM]
    return cut
