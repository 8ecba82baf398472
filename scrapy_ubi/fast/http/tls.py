"""TLS over a connection, by pyOpenSSL in memory: the OpenSSL, the context and the checks of Scrapy's own handler, and a
session that all connections of a host share.

So a server sees the same handshake, and answers as it does there; and most handshakes after a host's first are resumed
(docs/decisions/0147-tls-by-pyopenssl.md, benchmarks/net/handshakes.py). Rules of this module:

* Between the transport of the socket below and the `Connection` above: a protocol for the one, a transport for the
  other. What is written is given to the transport below at once.
* A session is kept when the first bytes of an answer have come, as the tickets of TLS 1.3 come with them; never that of
  a connection that failed: then the handshake is made once more, without it (`Dialer`). OpenSSL gives a session up when
  its connection is dropped without a word: so it is told that words were said.
* What goes wrong in the handshake ends `ready` with the error; afterwards the connection is told that it is lost, and
  why.
* Nothing is kept without a bound: records are read as they come, what cannot be written while a server of TLS 1.2
  shakes hands again is counted with what waits in the transport below, who asks for new keys reads the answers, and
  sessions are those of the hosts that were dialed last.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from typing import Any, cast

from OpenSSL import SSL

from scrapy_ubi.fast.http.no_transport import NOBODY, NOT_CONNECTED
from scrapy_ubi.fast.http.scrapys import TlsMaker, is_resumed, unverifiable

RECORD = 16_384  # bytes of a record at most (RFC 8446, 5.1): no read gives more
# Bytes that are given to TLS at once: it keeps the most memory that it ever needed while the connection is open, idle
# or not, and asyncio reads up to 256 KiB. In records of 16 KiB, of which a part may be waiting, that makes 33 KB.
PORTION = 8_192
MOST_UNREAD = 256 * 1024  # bytes of TLS' own, such as answers to new keys, that a peer may leave unread
MOST_SESSIONS = 2000  # of hosts; some 5 kB each

Host = tuple[str, int]


class SessionRefused(Exception):
    """A handshake has failed in which a session was offered; without one, as Scrapy's handler shakes hands, it may
    succeed."""


class TlsClient:
    """TLS as Scrapy's settings have it, and the sessions of hosts. `counts` hears what became of handshakes."""

    def __init__(self, maker: TlsMaker, counts: Counter[str]) -> None:
        self._maker = maker
        self._counts = counts
        self._sessions: OrderedDict[Host, SSL.Session] = OrderedDict()

    def transport(self, name: str, port: int, above: asyncio.Protocol, *, anew: bool = False) -> TlsTransport:
        """TLS with a host, for a new connection. `name`: as TLS has it. `anew`: without a session."""
        host = name, port
        session = None if anew else self._sessions.get(host)
        connection = self._maker.connection(name)
        if session is not None:
            connection.set_session(session)
        return TlsTransport(connection, above, self, host, offers=session is not None)

    def shaken(self, connection: SSL.Connection) -> None:
        """A handshake has succeeded."""
        self._counts["handshakes_resumed" if is_resumed(connection) else "handshakes_full"] += 1

    def keep(self, host: Host, session: SSL.Session | None) -> None:
        """The session of a connection that works, for the next one with its host."""
        if session is not None:
            self._sessions[host] = session
            self._sessions.move_to_end(host)
            if len(self._sessions) > MOST_SESSIONS:
                self._sessions.popitem(last=False)

    def forget(self, host: Host) -> None:
        """With this session, or after it, something went wrong."""
        self._sessions.pop(host, None)


class TlsTransport(asyncio.Protocol):
    """TLS of a client. `ready` is resolved after the handshake, when `above` has its transport, which is this."""

    def __init__(
        self, tls: SSL.Connection, above: asyncio.Protocol, client: TlsClient, host: Host, *, offers: bool = False
    ) -> None:
        """`offers`: it was given a session, which the host may refuse."""
        self._above = above
        self._tls = tls
        self._client = client
        self._host = host
        self._offers = offers
        self._below = NOT_CONNECTED
        self._open = self._kept = False
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
            self._tls.bio_write(data)
            self._shake_hands()

    def eof_received(self) -> None:
        """The transport below closes itself."""

    def connection_lost(self, exc: Exception | None) -> None:
        above, self._above = self._above, NOBODY  # they know each other: neither would go before garbage is looked for
        if not self._open:
            self._fail(exc or ConnectionResetError("The connection was closed during the TLS handshake"))
        else:
            if self._offers and not self._kept:
                self._client.forget(self._host)  # nothing came: the session may be why
            self._say_goodbye()
            above.connection_lost(self._error or exc)

    def resume_writing(self) -> None:
        if self._open:
            self._above.resume_writing()

    def _shake_hands(self) -> None:
        try:
            self._tls.do_handshake()
        except SSL.WantReadError:
            self._flush()
            return
        except Exception as error:  # noqa: BLE001 - SSL.Error, or what the check of the certificate raises
            self._flush()  # the alert
            self._fail(unverifiable(self._tls) or error)
            self._below.abort()
            return
        self._flush()
        if self.ready.done():  # no one waits any longer
            self._below.abort()
            return
        self._open = True
        self._client.shaken(self._tls)
        self._above.connection_made(cast(asyncio.BaseTransport, self))
        self.ready.set_result(None)
        self._read()

    def _fail(self, error: Exception) -> None:
        self._client.forget(self._host)
        if not self.ready.done():
            is_refused = self._offers and isinstance(error, OSError | SSL.Error)
            self.ready.set_exception(SessionRefused(str(error)) if is_refused else error)

    def _read(self, data: bytes = b"") -> None:
        """Give all that has come to the connection above, in one piece. `data`: what TLS is still to be given."""
        pieces: list[bytes] = []
        ends = False
        rest, recv, bio_write = memoryview(data), self._tls.recv, self._tls.bio_write
        while not ends:
            if rest:
                bio_write(rest[:PORTION])
                rest = rest[PORTION:]
            try:
                while True:
                    pieces.append(recv(RECORD))
            except SSL.WantReadError:
                if not rest:
                    break
            except SSL.ZeroReturnError:
                ends = True  # the peer has said that it closes
            except SSL.Error as error:
                ends, self._error = True, error
        if self._flush():  # new keys
            ends |= self._below.get_write_buffer_size() > MOST_UNREAD
        if pieces:
            if not self._kept:
                self._kept = True
                self._client.keep(self._host, self._tls.get_session())
            self._above.data_received(pieces[0] if len(pieces) == 1 else b"".join(pieces))
        if ends:
            self._say_goodbye()
            self._below.abort()
        elif self._unwritten:
            self._write_again()

    def _write_again(self) -> None:
        """What could not be written while hands were shaken again."""
        data, self._unwritten = self._unwritten, b""
        self.write(data)
        if not self._unwritten:
            self.resume_writing()

    def _flush(self) -> bool:
        """Send what TLS has to send. Return whether there was anything."""
        sent = False
        try:
            while True:
                data = self._tls.bio_read(2 * RECORD)
                sent = True
                if not self._below.is_closing():
                    self._below.write(data)
        except SSL.WantReadError:
            return sent

    def _say_goodbye(self) -> None:
        """Have the session stay good: in truth the connection is closed without a word, as by Scrapy's handler."""
        if self._error is None:
            self._tls.set_shutdown(SSL.SENT_SHUTDOWN | SSL.RECEIVED_SHUTDOWN)

    # The transport of the connection above

    def write(self, data: bytes | memoryview) -> None:
        """Encrypt and send."""
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[self._tls.send(rest) :]
        except SSL.WantReadError:  # the server of TLS 1.2 has asked for another handshake
            self._unwritten += bytes(rest)
        except SSL.Error as error:
            self._error = error
            self.abort()
        self._flush()

    def is_closing(self) -> bool:
        return self._below.is_closing()

    def abort(self) -> None:
        """Close at once, without a word."""
        self.ready.cancel()
        if self._open:
            self._say_goodbye()
        self._below.abort()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._below.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        return len(self._unwritten) + self._below.get_write_buffer_size()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """As asyncio's; `tls` is pyOpenSSL's connection."""
        return self._tls if name == "tls" else self._below.get_extra_info(name, default)


def _looked_at(ready: asyncio.Future[None]) -> None:
    """Asks for the error, which is no one's where the attempt was given up meanwhile: asyncio would log it."""
    if not ready.cancelled():
        ready.exception()
