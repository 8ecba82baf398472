"""Heads of responses that are not plain, read as Scrapy's handler reads them: what it refuses is refused, what it takes
is taken, with the same fields.

Only what the parser has refused comes here, and what it would take otherwise than Twisted does. Lines end with a line
feed; one return before it is no part of the line. Lines without a colon are left out; lines that begin with white space
continue the one before; interim responses (1xx, also an unasked 101) are passed over. Line by line, as they come: what
is none is refused at once.
"""

from __future__ import annotations

import re

Field = tuple[bytes, bytes]

MOST_LINE = 16_384  # bytes of a line, as Twisted's

_is_token = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+").fullmatch
_is_clean = re.compile(rb"[\t -~\x80-\xff]*").fullmatch


class HeadReader:
    """Reads one head. When `done`, the rest of its attributes say what it is, and `rest` what has come after it.

    `doubtful`: others may have read it otherwise, so that the connection is of no further use.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._seen = 0  # bytes of the buffer without a line feed
        self.done = self.doubtful = False
        self._begin()

    def _begin(self) -> None:
        self._begun = False
        self._line: bytes | None = None  # a field, which the next line may continue
        self.protocol, self.status, self.reason = "", 0, b""
        self.fields: list[Field] = []

    @property
    def rest(self) -> bytes:
        return bytes(self._buffer)

    def feed(self, data: bytes) -> None:
        """Take what has come. Raises ValueError for what is no head."""
        self._buffer += data
        while not self.done and (end := self._buffer.find(b"\n", self._seen)) >= 0:
            line = bytes(self._buffer[:end])
            del self._buffer[: end + 1]
            self._seen = 0
            self._take(line)
        if not self.done:
            self._seen = len(self._buffer)
            if self._seen > MOST_LINE:
                raise ValueError("a line is too long")

    def _take(self, line: bytes) -> None:
        if len(line) > MOST_LINE:
            raise ValueError("a line is too long")
        line = line.removesuffix(b"\r")
        self.doubtful |= _is_clean(line) is None
        if not self._begun:
            self._take_status(line)
        elif line[:1] in (b" ", b"\t"):
            if self._line is None:
                raise ValueError("the first field continues nothing")
            self._line += line
        else:
            self._take_field()
            self._line = line
            if not line:
                self._end()

    def _take_status(self, line: bytes) -> None:
        version, code, self.reason = (*line.split(b" ", 2), b"")[:3] if line.count(b" ") else (line, b"", b"")
        self.status = int(code)  # as Twisted does
        name, number = version.split(b"/")
        major, minor = map(int, number.split(b"."))
        if major < 0 or minor < 0:
            raise ValueError("a version is negative")
        self.protocol = f"{name.decode()}/{major}.{minor}"
        self._begun = True

    def _take_field(self) -> None:
        if self._line is None:
            return
        name, colon, value = self._line.partition(b":")
        if not colon:
            self.doubtful = True
            return
        if _is_token(name) is None:
            raise ValueError(f"{name[:80]!r} is no name of a header")
        self.fields.append((name, b" ".join(value.strip().splitlines())))

    def _end(self) -> None:
        if not 100 <= self.status < 200:
            self.done = True
            return
        goes_on = self.protocol == "HTTP/1.1" and self.status != 101
        self.doubtful |= not goes_on or any(name.lower() in _OF_CONNECTION for name, _ in self.fields)
        self._begin()


_OF_CONNECTION = frozenset({b"connection", b"content-length", b"transfer-encoding"})


def length_of(values: list[bytes]) -> int | None:
    """What lines of Content-Length say; None where there is none. Raises ValueError."""
    if not values:
        return None
    lengths = {_number(value) for value in b",".join(values).split(b",")}
    if len(lengths) != 1:
        raise ValueError(f"the lengths are {b', '.join(values)[:80]!r}")
    return lengths.pop()


def _number(value: bytes) -> int:
    digits = value.strip(b" \t")
    if not digits.isdigit():
        raise ValueError(f"{value[:80]!r} is no length")
    return int(digits)
