"""One connection: bytes in, by the parser, to one load at a time.

Rules of this module:

* The right to fetch is compared right before the write: asyncio gives what is written to the kernel at once when
  nothing waits before it. A large request goes in slices, each after a comparison of its own.
* A response's head is bounded, and so is what surrounds the pieces of its body: nothing that comes is kept without a
  limit but the body, whose limits are the load's.
* A head that the parser refuses, or may take otherwise than Scrapy's handler would, is read by `HeadReader`; the parser
  then gets a plain one in its place, which says the same of the body.
* The connection is kept only after a response that ended where its own framing says, with nothing after it, when both
  sides want to go on and nobody can read its head otherwise. In doubt it is closed.
"""

from __future__ import annotations

import asyncio
from typing import cast

from httptools import HttpParserCallbackError, HttpParserError, HttpParserUpgrade, HttpResponseParser
from scrapy.exceptions import DownloadFailedError

from scrapy_ubi.adapter.scrapy_private.socket_gate import NoRight, Right
from scrapy_ubi.fast.http.head_reader import MOST_LINE, HeadReader, length_of
from scrapy_ubi.fast.http.load import UNKNOWN, Field, Load, Peer, header_name
from scrapy_ubi.fast.http.no_transport import NOT_CONNECTED
from scrapy_ubi.fast.http.pool import Pool
from scrapy_ubi.fast.http.route import Route

MOST_HEAD = 1024 * 1024  # bytes of a status line and headers, the interim responses before them included
MOST_FIELDS = 10_000  # header lines of a response
MOST_PIECES = 64  # in which a head comes to the parser, which copies what it has of a header with each
MOST_BARREN = 64 * 1024  # bytes that may come without one of the body among them: extensions of chunks, trailers
SLICE = 64 * 1024  # bytes of a request that are written at once

_BODYLESS = (204, 304)
_OF_CONNECTION = (b"Connection", b"Proxy-Connection")
# The parser refuses what is not plain, for the reader: but for Content-Length beside chunks, of which for both the
# chunks count (RFC 9112, 6.3).
_LENIENT = {"lenient_chunked_length": True}
_LONGEST = 2**63 - 1  # bytes of a body that the parser knows
_INTERIM = (100, 102, 103)  # those that the parser knows as such


class Unanswered(DownloadFailedError):
    """The connection ended before anything of a response came."""


class _NotPlain(Exception):
    """The head is to be read as Scrapy's handler does."""


class Connection(asyncio.Protocol):
    """One connection of a route, which puts itself into the pool after a load where it may be used again."""

    def __init__(self, route: Route, pool: Pool) -> None:
        self.route = route
        self.transport = NOT_CONNECTED
        self._peer = UNKNOWN
        self._pool = pool
        self._load: Load | None = None
        self._parser: HttpResponseParser | None = None
        self._unsent: bytes | memoryview = b""
        self._right: Right | None = None
        self._reset()

    def _reset(self) -> None:
        """Ready for the next response."""
        self._fields: list[Field] = []
        self._raw: list[bytes] = []  # what has come of the head
        self._raw_size = 0
        self._reader: HeadReader | None = None  # reads it, where it is not plain
        self._barren = 0
        self._headed = self._complete = self._trailing = self._surplus = self._keep = False
        self._reason = b""
        self._padded = self._interim = self._doubtful = self._until_close = False

    # What is written

    def start(self, load: Load, head: bytes, body: bytes, right: Right | None) -> None:
        """Write a request; what comes is its response. Raises `NoRight`, with nothing written, and the connection
        closed."""
        transport = self.transport
        assert self._load is None
        if transport.is_closing():
            raise Unanswered("The connection was closed")
        if self._parser is None:
            self._parser = _parser(self)
        data = head + body if body else head
        # Last of all: a process that is stopped between this and the write would write when its lease has ended.
        if right is not None and not right():
            self.abort()
            raise NoRight("The right to fetch this host has ended")
        self._load = load
        if len(data) <= SLICE:
            transport.write(data)
            return
        self._unsent, self._right = memoryview(data), right
        transport.set_write_buffer_limits(0)
        self.resume_writing()

    def resume_writing(self) -> None:
        """The transport has room: the next slices of a large request."""
        transport = self.transport
        while self._unsent and not transport.is_closing():
            if self._right is not None and not self._right():
                self._unsent = b""
                self.fail(NoRight("The right to fetch this host has ended"))
                return
            data = self._unsent[:SLICE]
            self._unsent = self._unsent[SLICE:] or b""  # an empty view would hold the body as long as this is kept
            transport.write(data)
            if transport.get_write_buffer_size():
                return

    def is_open(self) -> bool:
        """Whether a request can be written, as far as is known."""
        return not self.transport.is_closing()

    def abort(self) -> None:
        """Close at once. Nothing is told to a load that is under way."""
        self._load = None
        self._pool.forget(self)
        self.transport.abort()

    def fail(self, error: Exception) -> None:
        """Close at once, with this error for a load that is under way."""
        if self._load is not None:
            self._load.fail(error)
        self.abort()

    # What the transport tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._peer = Peer.from_transport(self.transport)

    def data_received(self, data: bytes) -> None:
        load = self._load
        if load is None:  # an answer to no request
            self.abort()
            return
        if not self._headed:
            self._raw.append(data)
            self._raw_size += len(data)
        else:
            self._barren += len(data)
        if self._reader is not None and not self._reader.done:
            self._read_head(self._reader, data)
        elif len(self._raw) > MOST_PIECES:
            self._begin_reading()
        else:
            self._feed(data)
        if self._complete or load.ended:
            self._conclude(load)
        elif self._headed:
            if self._barren > MOST_BARREN:
                load.lost(f"More than {MOST_BARREN} bytes came without one of the body")
                self.abort()
        elif self._raw_size > MOST_HEAD:
            self.fail(DownloadFailedError("The head of the response does not end"))

    def connection_lost(self, exc: Exception | None) -> None:
        load, self._load, self._parser = self._load, None, None
        if load is not None:
            if not self._headed:
                why = f"The connection was closed: {exc}" if exc else "The connection was closed"
                load.fail(DownloadFailedError(why) if self._raw else Unanswered(why))
            elif self._until_close:
                load.closed()
            else:
                load.lost("The connection was closed before the end of the body")
        self._pool.forget(self)

    # What the parser tells

    def on_message_begin(self) -> None:
        if self._complete:
            self._surplus = True

    def on_status(self, reason: bytes) -> None:
        if not self._headed:
            self._reason = reason  # of interim responses first: the last one counts

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._headed:  # trailers are not kept
            stripped = value.strip()
            if (
                stripped is not value or name[-1] <= 32
            ):  # white space: after the names that it knows the parser takes it
                self._padded = True
            self._fields.append((name, stripped))

    def on_headers_complete(self) -> None:
        load, parser, reader = self._load, self._parser, self._reader
        if load is None or parser is None or self._complete or load.ended:
            return
        if reader is not None:
            self._fields = reader.fields
            self._head_is(load, reader.status, reader.reason, reader.protocol)
            return
        status = parser.get_status_code()
        if status < 200 and status in _INTERIM and not self._fields_of(b"Content-Length", b"Transfer-Encoding"):
            self._fields = []
            self._interim = True
        elif 100 <= status < 200 or not self._is_plain():
            raise _NotPlain
        else:
            self._head_is(load, status, self._reason, "HTTP/" + parser.get_http_version())

    def _is_plain(self) -> bool:
        """Whether Scrapy's handler takes a head as the parser has: it begins with its status line, no line is too long,
        and nothing of it is white space that may mean something."""
        start = self._raw[0] if len(self._raw[0]) >= 5 else b"".join(self._raw[:5])
        if self._padded or self._interim or not start.startswith(b"HTTP/"):
            return False
        if self._raw_size <= MOST_LINE:
            return True
        most = MOST_LINE - 100  # the rest of a line is shorter
        return len(self._reason) < most and all(len(name) + len(value) < most for name, value in self._fields)

    def _head_is(self, load: Load, status: int, reason: bytes, protocol: str) -> None:
        """The head of the response has come, and its fields."""
        fields = self._fields
        if len(fields) > MOST_FIELDS:
            load.fail(DownloadFailedError(f"The response has more than {MOST_FIELDS} headers"))
            return
        codings = [] if load.bodyless or status in _BODYLESS else self._fields_of(b"Transfer-Encoding")
        # As for Scrapy's handler the first one counts, and has to be "chunked": with another coding, which no request
        # asks for, the body would be something else than it seems.
        if codings and codings[0].lower() != b"chunked":
            load.fail(DownloadFailedError(f"The response has the transfer coding {codings[0][:80]!r}, not chunked"))
            return
        if len(codings) > 1 and self._reader is None:
            raise _NotPlain  # for the parser the last one counts
        length = self._length(status, load, fields)
        self._headed = True
        self._raw.clear()
        load.head(status, reason.decode("latin-1"), protocol, fields, length, self._peer)
        if load.bodyless:
            self._complete = True
            self._keep = _goes_on(protocol, fields)
            self._parser = None  # it would wait for the body

    def _fields_of(self, *names: bytes) -> list[bytes]:
        return [value for name, value in self._fields if header_name(name) in names]

    def _length(self, status: int, load: Load, fields: list[Field]) -> int | None:
        """The length of the body, None where it is not known before."""
        if load.bodyless or status in _BODYLESS:
            return 0
        chunked = bool(self._fields_of(b"Transfer-Encoding"))
        lengths = self._fields_of(b"Content-Length")
        if chunked:
            self._doubtful |= bool(lengths)  # a proxy on the way may have read the other one
            return None
        length = length_of(lengths)
        self._doubtful |= len(lengths) > 1
        self._until_close = length is None
        return length

    def on_chunk_header(self) -> None:
        if self._complete:
            self._surplus = True
        self._trailing = True  # until there is a byte in it: the last chunk has none, and trailers follow

    def on_body(self, data: bytes) -> None:
        load = self._load
        if self._complete or load is None:
            self._surplus = True
        elif not self._headed:  # the parser knows the interim responses up to 103 as such, we all
            load.fail(DownloadFailedError("An interim response has a body"))
        elif not load.ended:
            self._barren = 0
            self._trailing = False
            load.body(data)

    def on_message_complete(self) -> None:
        if self._headed and not self._complete and self._parser is not None:
            self._complete = True
            reader = self._reader
            self._keep = self._parser.should_keep_alive() if reader is None else _goes_on(reader.protocol, self._fields)

    # How it ends

    def _feed(self, data: bytes) -> None:
        """Give what has come to the parser."""
        load, parser = self._load, self._parser
        assert load is not None and parser is not None
        try:
            parser.feed_data(data)
        except HttpParserUpgrade:
            load.fail(DownloadFailedError("The server wants another protocol"))
        except HttpParserError as error:
            if self._complete:
                self._surplus = True
            elif load.ended:
                pass
            elif isinstance(error, HttpParserCallbackError) and not isinstance(error.__context__, _NotPlain):
                load.fail(_failed(error.__context__))
            elif self._trailing:  # the body is whole
                self._complete = self._surplus = True
            elif self._headed:
                load.lost(f"The body makes no sense: {error}")
            elif self._reader is not None:
                load.fail(DownloadFailedError(f"The response makes no sense: {error}"))
            else:
                self._begin_reading()
        if load.bodyless and self._complete and not data.endswith(b"\n"):
            self._surplus = True  # the beginning of a chunk's size, of which the parser does not tell

    def _begin_reading(self) -> None:
        """The head is not plain: read it anew, from its beginning."""
        self._pool.counts["mended"] += 1
        come = b"".join(self._raw)
        self._raw = [come]
        self._reader = HeadReader()
        self._read_head(self._reader, come)

    def _read_head(self, reader: HeadReader, data: bytes) -> None:
        """Read what has come; when that is the whole head, go on with a plain one for the parser."""
        load = self._load
        assert load is not None
        try:
            reader.feed(data)
            plain = _plain_head(reader, load.bodyless) if reader.done else b""
        except ValueError as error:
            load.fail(DownloadFailedError(f"The response makes no sense: {error}"))
            return
        if reader.done:
            self._doubtful |= reader.doubtful
            self._parser = _parser(self)
            self._feed(plain + reader.rest)

    def _conclude(self, load: Load) -> None:
        """The load has what it needs: keep the connection, or close it."""
        transport = self.transport
        keep = self._keep and self._complete and not (self._surplus or self._doubtful or load.ended)
        load.complete()
        self._load = None
        if keep and not self._unsent and not transport.is_closing() and not transport.get_write_buffer_size():
            self._reset()
            self._pool.put(self)
        else:
            transport.abort()


def _goes_on(protocol: str, fields: list[Field]) -> bool:
    """Whether the server goes on after such a head: for the parser a body without a length ends with the connection."""
    closes = any(header_name(name) in _OF_CONNECTION and b"close" in value.lower() for name, value in fields)
    return protocol == "HTTP/1.1" and not closes


def _plain_head(reader: HeadReader, bodyless: bool) -> bytes:
    """A head for the parser that says of the body what this one does. Raises ValueError."""
    if bodyless or reader.status in _BODYLESS:
        return b"HTTP/1.1 204\r\n\r\n" if not bodyless else b"HTTP/1.1 200\r\n\r\n"
    fields = [(header_name(name), value) for name, value in reader.fields]
    if any(name == b"Transfer-Encoding" for name, _ in fields):
        return b"HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n"
    length = length_of([value for name, value in fields if name == b"Content-Length"])
    if length is None:
        return b"HTTP/1.1 200\r\n\r\n"
    return b"HTTP/1.1 200\r\nContent-Length: %d\r\n\r\n" % min(length, _LONGEST)


def _failed(error: BaseException | None) -> Exception:
    """What a call of the parser's raised: of a head that makes no sense Scrapy's handler says no more than this."""
    return (
        DownloadFailedError(f"The response makes no sense: {error}")
        if isinstance(error, ValueError)
        else cast(Exception, error)
    )


def _parser(connection: Connection) -> HttpResponseParser:
    parser = HttpResponseParser(connection)
    parser.set_dangerous_leniencies(**_LENIENT)
    return parser
