"""TLS over a connection, in place of asyncio's, which keeps a buffer of 256 KiB for each connection while it is open.

So thousands of connections can be kept, and most handshakes are spared. Rules of this module:

* Between the transport of the socket below and the `Connection` above: a protocol for the one, a transport for the
  other. What is written is given to the transport below at once.
* No session is resumed: Python's `ssl` copies a session when it is read and when it is used, which takes longer than
  what a resumed handshake spares (docs/decisions/0076-tls.md, benchmarks/net/handshakes.py).
* What goes wrong in the handshake ends `ready` with the error; afterwards the connection is told that it is lost, and
  why.
* Nothing is kept without a bound: records are read as they come, what cannot be written while a server of TLS 1.2
  shakes hands again is counted with what waits in the transport below, and who asks for new keys reads the answers.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Any, cast

from scrapy_ubi.fast.http.no_transport import NOBODY, NOT_CONNECTED

RECORD = 16_384  # bytes of a record at most (RFC 8446, 5.1): no read gives more
# Bytes that are given to TLS at once: it keeps the most memory that it ever needed while the connection is open, idle
# or not, and asyncio reads up to 256 KiB. In records of 16 KiB, of which a part may be waiting, that makes 33 KB.
PORTION = 8_192
MOST_UNREAD = 256 * 1024  # bytes of TLS' own, such as answers to new keys, that a peer may leave unread


class TlsTransport(asyncio.Protocol):
    """TLS of a client. `ready` is resolved after the handshake, when `above` has its transport, which is this."""

    def __init__(
        self, context: ssl.SSLContext, name: str, above: asyncio.Protocol, session: ssl.SSLSession | None = None
    ) -> None:
        """`name`: of the server, as TLS has it."""
        self._above = above
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_hostname=name, session=session)
        self._below = NOT_CONNECTED
        self._open = False
        self._unwritten: bytes = b""
        self._error: Exception | None = None
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.ready.add_done_callback(_looked_at)

    # What the transport below tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._below = cast(asyncio.Transport, transport)
        self._shake_hands()

    def data_received(self, data: bytes) -> None:
        if self._open:
            self._read(data)
        else:
            self._in.write(data)
            self._shake_hands()

    def eof_received(self) -> None:
        """The transport below closes itself."""

    def connection_lost(self, exc: Exception | None) -> None:
        above, self._above = self._above, NOBODY  # they know each other: neither would go before garbage is looked for
        if not self._open:
            self._fail(exc or ConnectionResetError("The connection was closed during the TLS handshake"))
        else:
            above.connection_lost(self._error or exc)

    def resume_writing(self) -> None:
        if self._open:
            self._above.resume_writing()

    def _shake_hands(self) -> None:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            return
        except (ssl.SSLError, ssl.CertificateError) as error:
            self._flush()  # the alert
            self._fail(error)
            self._below.abort()
            return
        self._flush()
        if self.ready.done():  # no one waits any longer
            self._below.abort()
            return
        self._open = True
        self._above.connection_made(cast(asyncio.BaseTransport, self))
        self.ready.set_result(None)
        if self._in.pending:
            self._read()

    def _fail(self, error: Exception) -> None:
        if not self.ready.done():
            self.ready.set_exception(error)

    def _read(self, data: bytes = b"") -> None:
        """Give all that has come to the connection above, in one piece. `data`: what TLS is still to be given."""
        pieces: list[bytes] = []
        ends = False
        rest, read = memoryview(data), self._tls.read
        while not ends:
            self._in.write(rest[:PORTION])
            rest = rest[PORTION:]
            try:
                while piece := read(RECORD):
                    pieces.append(piece)
                ends = True  # the peer has said that it closes
            except ssl.SSLWantReadError:
                if not rest:
                    break
            except ssl.SSLError as error:
                ends, self._error = True, error
        if self._out.pending:
            self._flush()  # new keys
            ends |= self._below.get_write_buffer_size() > MOST_UNREAD
        if pieces:
            self._above.data_received(pieces[0] if len(pieces) == 1 else b"".join(pieces))
        if ends:
            self._below.abort()
        elif self._unwritten:
            self._write_again()

    def _write_again(self) -> None:
        """What could not be written while hands were shaken again."""
        data, self._unwritten = self._unwritten, b""
        self.write(data)
        if not self._unwritten:
            self.resume_writing()

    def _flush(self) -> None:
        if self._out.pending and not self._below.is_closing():
            self._below.write(self._out.read())

    # The transport of the connection above

    def write(self, data: bytes | memoryview) -> None:
        """Encrypt and send."""
        try:
            self._tls.write(data)
        except ssl.SSLWantReadError:  # the server of TLS 1.2 has asked for another handshake
            self._unwritten += bytes(data)
        except ssl.SSLError as error:
            self._error = error
            self.abort()
        self._flush()

    def is_closing(self) -> bool:
        return self._below.is_closing()

    def abort(self) -> None:
        """Close at once, without a word."""
        self.ready.cancel()
        self._below.abort()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._below.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        return len(self._unwritten) + self._below.get_write_buffer_size()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """As asyncio's: `ssl_object` is that of this connection."""
        if name == "ssl_object":
            return self._tls
        return self._below.get_extra_info(name, default)


def _looked_at(ready: asyncio.Future[None]) -> None:
    """Asks for the error, which is no one's where the attempt was given up meanwhile: asyncio would log it."""
    if not ready.cancelled():
        ready.exception()
