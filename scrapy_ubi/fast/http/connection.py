"""One connection: bytes in, by the parser, to one load at a time.

Rules of this module:

* The right to fetch is compared right before the write: asyncio gives what is written to the kernel at once when
  nothing waits before it. A large request goes in slices, each after a comparison of its own.
* A response's head is bounded, and so is what surrounds the pieces of its body: nothing that comes is kept without a
  limit but the body, whose limits are the load's.
* The connection is kept only after a response that ended where its own framing says, with nothing after it, when both
  sides want to go on and no line of it had to be mended. In doubt it is closed.
"""

from __future__ import annotations

import asyncio
from typing import cast

from httptools import HttpParserCallbackError, HttpParserError, HttpParserUpgrade, HttpResponseParser
from scrapy.exceptions import DownloadFailedError

from scrapy_ubi.adapter.scrapy_private.socket_gate import NoRight, Right
from scrapy_ubi.fast.http.load import UNKNOWN, Field, Load, Peer, header_name
from scrapy_ubi.fast.http.mending import after_interim, may_end, mend
from scrapy_ubi.fast.http.no_transport import NOT_CONNECTED
from scrapy_ubi.fast.http.pool import Pool
from scrapy_ubi.fast.http.route import Route

MOST_HEAD = 256 * 1024  # bytes of a status line and headers, the interim responses before them included; as Chrome's
MOST_FIELDS = 1000  # header lines of a response
MOST_PIECES = 4096  # in which a head may come: the parser copies what it has of a header with each
MOST_BARREN = 64 * 1024  # bytes that may come without one of the body among them: extensions of chunks, trailers
SLICE = 64 * 1024  # bytes of a request that are written at once

_BODYLESS = (204, 304)
_OF_CONNECTION = (b"Connection", b"Proxy-Connection")
# What servers do wrong without leaving it open where a response ends.
_LENIENT = {
    "lenient_headers": True,
    "lenient_chunked_length": True,  # Content-Length beside chunks: the chunks count (RFC 9112, 6.3)
    "lenient_optional_cr_before_lf": True,
    "lenient_spaces_after_chunk_size": True,
    "lenient_version": True,
}


class Unanswered(DownloadFailedError):
    """The connection ended before anything of a response came."""


class _SeveralCodings(Exception):
    """Several lines say different transfer codings: for the parser the last one counts."""


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
        self._tail = b""  # the end of it, while it waits to be mended
        self._barren = 0
        self._headed = self._complete = self._trailing = self._surplus = self._keep = False
        self._reason = b""
        self._broken = self._mended = self._doubtful = self._until_close = False

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

    def certificate_names(self) -> tuple[str, str] | None:
        """Issuer and subject of the peer's certificate, None without one."""
        return self._peer.certificate_names()

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
        if self._broken:
            self._mend(data)
        else:
            self._feed(data)
        if self._complete or load.ended:
            self._conclude(load)
        elif self._headed:
            if self._barren > MOST_BARREN:
                load.lost(f"More than {MOST_BARREN} bytes came without one of the body")
                self.abort()
        elif self._raw_size > MOST_HEAD or len(self._raw) > MOST_PIECES:
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
            self._fields.append((name, value.strip()))

    def on_headers_complete(self) -> None:
        load, parser = self._load, self._parser
        if load is None or parser is None or self._complete or load.ended:
            return
        status = parser.get_status_code()
        if status < 100:
            load.fail(DownloadFailedError(f"The response has the status {status}, which is none"))
            return
        if status == 101:  # no request asks for one
            load.fail(DownloadFailedError("The server wants another protocol"))
            return
        if status < 200:
            self._fields = []
            return
        fields = self._fields
        if len(fields) > MOST_FIELDS:
            load.fail(DownloadFailedError(f"The response has more than {MOST_FIELDS} headers"))
            return
        codings = self._codings(status, load, fields)
        if codings[:1] not in ([], [b"chunked"]):
            load.fail(DownloadFailedError(f"The response has the transfer coding {codings[0][:80]!r}, not chunked"))
            return
        if len(set(codings)) > 1:
            raise _SeveralCodings
        self._headed = True
        self._raw.clear()
        length = self._length(status, load, fields)
        version = parser.get_http_version()
        load.head(status, self._reason.decode("latin-1"), version, fields, length, self._peer)
        if load.bodyless:
            self._complete = True
            self._keep = parser.should_keep_alive() or _goes_on(version, fields)
            self._parser = None  # it would wait for the body

    def _codings(self, status: int, load: Load, fields: list[Field]) -> list[bytes]:
        """The lines of Transfer-Encoding. As for Scrapy's handler the first one counts, and has to be "chunked": with
        another coding, which no request asks for, the body would be something else than it seems."""
        if load.bodyless or status in _BODYLESS:
            return []
        return [value.strip().lower() for name, value in fields if header_name(name) == b"Transfer-Encoding"]

    def _length(self, status: int, load: Load, fields: list[Field]) -> int | None:
        """The length of the body, None where it is not known before."""
        if load.bodyless or status in _BODYLESS:
            return 0
        length, chunked = None, False
        for name, value in fields:
            key = header_name(name)
            if key == b"Transfer-Encoding":
                chunked = True
            elif key == b"Content-Length" and value.isdigit():
                length = int(value)
        self._until_close = length is None and not chunked
        if not chunked:
            return length
        self._doubtful |= length is not None  # a proxy on the way may have read the other one
        return None

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
            self._keep = self._parser.should_keep_alive()

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
            elif isinstance(error, HttpParserCallbackError) and not isinstance(
                error.__context__, _SeveralCodings | type(None)
            ):
                load.fail(cast(Exception, error.__context__))
            elif self._trailing:  # the body is whole
                self._complete = self._surplus = True
            elif self._headed:
                load.lost(f"The body makes no sense: {error}")
            elif self._mended:
                load.fail(DownloadFailedError(f"The response makes no sense: {error}"))
            else:
                self._broken = self._mended = self._doubtful = True
                self._pool.counts["mended"] += 1
                self._mend(b"".join(self._raw))
        if load.bodyless and self._complete and not data.endswith(b"\n"):
            self._surplus = True  # the beginning of a chunk's size, of which the parser does not tell

    def _mend(self, data: bytes) -> None:
        """The head cannot be read as it is: try again with a mended one, once it is whole. `data`: what is new."""
        load = self._load
        assert load is not None
        self._tail = (self._tail + data)[-len(data) - 3 :]
        if not may_end(self._tail):
            return
        come = after_interim(b"".join(self._raw))
        self._raw = [come]  # an interim response is looked at once, however many there are
        if (mended := mend(come, load.bodyless)) is not None:
            self._broken = False
            self._fields = []
            self._parser = _parser(self)
            self._feed(mended)

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


def _goes_on(version: str, fields: list[Field]) -> bool:
    """Whether the server goes on after a head that has no body: for the parser a body without a length ends with the
    connection."""
    closes = any(header_name(name) in _OF_CONNECTION and b"close" in value.lower() for name, value in fields)
    return version == "1.1" and not closes


def _parser(connection: Connection) -> HttpResponseParser:
    parser = HttpResponseParser(connection)
    parser.set_dangerous_leniencies(**_LENIENT)
    return parser
