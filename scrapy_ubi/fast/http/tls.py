"""TLS over a connection, in place of asyncio's: less memory, fewer steps, and sessions that are resumed.

asyncio's TLS has a buffer of 256 KiB for each connection, kept as long as it is open, and gives no way to resume a
session. Rules of this module:

* Between the transport of the socket below and the `Connection` above: a protocol for the one, a transport for the
  other. What is written is given to the transport below at once.
* A session is resumed once, with the host and port that it was made with, and only by the context that made it: its
  certificates were judged then. What a server gives for the next time is kept after it has said something.
* What goes wrong in the handshake ends `ready` with the error; afterwards the connection is told that it is lost.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import OrderedDict
from typing import Any, cast

MOST_SESSIONS = 2000  # hosts whose last session is kept, in some 4 kB each
RECORD = 16_384  # bytes of a record at most (RFC 8446, 5.1): no read gives more

Host = tuple[str, int]


class Sessions:
    """The last TLS session of each host, of one context; those used longest ago go first."""

    def __init__(self, most: int = MOST_SESSIONS) -> None:
        self._most = most
        self._known: OrderedDict[Host, ssl.SSLSession] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def take(self, host: Host) -> ssl.SSLSession | None:
        """A session to be resumed, once (RFC 8446, C.4); None where there is none."""
        return self._known.pop(host, None)

    def put(self, host: Host, session: ssl.SSLSession | None) -> None:
        """Keep the session of a connection that has been answered."""
        if session is None or not session.has_ticket:
            return
        self._known[host] = session
        self._known.move_to_end(host)
        if len(self._known) > self._most:
            self._known.popitem(last=False)


class TlsTransport(asyncio.Protocol):
    """TLS of a client. `ready` is resolved after the handshake, when `above` has its transport, which is this."""

    def __init__(
        self, context: ssl.SSLContext, name: str, host: Host, above: asyncio.Protocol, sessions: Sessions
    ) -> None:
        """`name`: of the server, as TLS has it; `host`: whose session it is."""
        self._above, self._host, self._sessions = above, host, sessions
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        session = sessions.take(host)
        self._tls = context.wrap_bio(self._in, self._out, server_hostname=name, session=session)
        self._below: asyncio.Transport | None = None
        self._open = self._kept = False
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    # What the transport below tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._below = cast(asyncio.Transport, transport)
        self._shake_hands()

    def data_received(self, data: bytes) -> None:
        self._in.write(data)
        if self._open:
            self._read()
        else:
            self._shake_hands()

    def eof_received(self) -> None:
        """The transport below closes itself."""

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._open:
            self._fail(exc or ConnectionResetError("The connection was closed during the TLS handshake"))
        else:
            self._above.connection_lost(exc)

    def resume_writing(self) -> None:
        if self._open:
            self._above.resume_writing()

    def _shake_hands(self) -> None:
        assert self._below is not None
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

    def _read(self) -> None:
        """Give all that has come to the connection above, in one piece."""
        assert self._below is not None
        pieces, ends = [], False
        try:
            while piece := self._tls.read(RECORD):
                pieces.append(piece)
            ends = True  # the peer has said that it closes
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError:
            ends = True
        if self._out.pending:
            self._flush()  # new keys
        if pieces:
            if not self._kept:  # tickets come before the first answer, or with it
                self._kept = True
                self._sessions.put(self._host, self._tls.session)
            self._above.data_received(pieces[0] if len(pieces) == 1 else b"".join(pieces))
        if ends:
            self._below.abort()

    def _flush(self) -> None:
        if self._out.pending and self._below is not None and not self._below.is_closing():
            self._below.write(self._out.read())

    # The transport of the connection above

    def write(self, data: bytes | memoryview) -> None:
        """Encrypt and send."""
        self._tls.write(data)
        self._flush()

    def is_closing(self) -> bool:
        return self._below is None or self._below.is_closing()

    def abort(self) -> None:
        """Close at once, without a word."""
        self.ready.cancel()
        if self._below is not None:
            self._below.abort()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        assert self._below is not None
        self._below.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        return 0 if self._below is None else self._below.get_write_buffer_size()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """As asyncio's: `ssl_object` is that of this connection."""
        if name == "ssl_object":
            return self._tls
        return default if self._below is None else self._below.get_extra_info(name, default)

    @property
    def resumed(self) -> bool:
        """Whether the handshake took up a former session."""
        return bool(self._tls.session_reused)
