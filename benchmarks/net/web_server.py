"""The hosts of the testbed: TLS 1.3 and HTTP/1.1 on an address each, in one process of several that share the port.

TLS is spoken here over memory (`ssl.MemoryBIO`): a host's fate and latency are known by the address before the first
byte, and asyncio's own TLS would take twice the time. Each connection is answered after the latency of its host: the
first answer of the handshake, and each request. One that comes to an address outside of 127.0.0.0/8 is closed, and
counted.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct

from counters import NAMES, Counters
from page_links import PageLinks
from population import Host, Population, number_of

MOST_REQUEST = 65_536
(
    PAGES, BYTES, UNPACKED, AGAIN, MISSING, CONNECTIONS, HANDSHAKES, RESUMED, HUNG, RESET, MISDIRECTED, FOREIGN, _, _,
    UNRESUMABLE,
) = range(len(NAMES))  # fmt: skip
_HEAD = (
    b"HTTP/1.1 200 OK\r\nDate: Fri, 27 Nov 2026 12:00:00 GMT\r\nServer: testbed\r\n"
    b"Content-Type: text/html; charset=utf-8\r\nContent-Encoding: %b\r\nVary: Accept-Encoding\r\n"
    b"Cache-Control: max-age=600\r\nContent-Length: %d\r\n\r\n"
)
_MISSING = b"HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nnone\n"


class Web:
    """What the connections of one process share."""

    def __init__(
        self, population: Population, links: PageLinks, tls: ssl.SSLContext | None, counters: Counters, process: int
    ) -> None:
        self.population, self.links, self.tls = population, links, tls
        self.counts, self.served = counters.of(process), counters.served
        self.have_answered: set[int] = set()  # hosts, by their first page: before that nobody has a session of theirs

    def answer(self, host: Host, path: bytes) -> bytes:
        """The whole response."""
        number = page_of(host, path)
        if number < 0:
            self.counts[MISSING] += 1
            return _MISSING
        self.counts[PAGES] += 1
        if self.served[host.first + number]:
            self.counts[AGAIN] += 1
        self.served[host.first + number] = 1
        self.have_answered.add(host.first)
        body, unpacked = self.links.page(host, number)
        self.counts[BYTES] += len(body)
        self.counts[UNPACKED] += unpacked
        return _HEAD % (host.coding.encode(), len(body)) + body


def page_of(host: Host, path: bytes) -> int:
    """The number of a page of a host: of `/` 0, of `/p12` 12; -1 where there is none."""
    if path == b"/":
        return 0
    digits = path[2:] if path[:2] == b"/p" else b""
    number = int(digits) if digits.isdigit() else 0
    return number if 0 < number < host.pages else -1


class Connection(asyncio.Protocol):
    """One connection of a crawler."""

    def __init__(self, web: Web) -> None:
        self._web = web
        self._host: Host | None = None
        self._request = b""
        self._waits = self._open = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        counts, address = self._web.counts, transport.get_extra_info("sockname")[0]
        if not address.startswith("127."):
            counts[FOREIGN] += 1
            transport.abort()
            return
        counts[CONNECTIONS] += 1
        number = number_of(address)
        if not 0 <= number < len(self._web.population.hosts):
            counts[MISDIRECTED] += 1
            transport.abort()
            return
        self._host = host = self._web.population.hosts[number]
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._web.tls is not None and host.fate == "alive":
            self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
            self._tls = self._web.tls.wrap_bio(self._in, self._out, server_side=True)
        else:
            self._open = self._web.tls is None

    def data_received(self, data: bytes) -> None:
        host = self._host
        if host is None:
            return
        if host.fate == "hang":
            self._web.counts[HUNG] += 1
        elif host.fate != "alive":  # a name that is dead leads nowhere: who comes anyway is reset as well
            self._reset()
        elif self._web.tls is None:
            self._take(data)
        else:
            self._in.write(data)
            if self._open:
                self._read()
            elif not self._waits:
                self._waits = True
                self._loop.call_later(host.latency, self._shake_hands)

    def _reset(self) -> None:
        self._web.counts[RESET] += 1
        linger = struct.pack("ii", 1, 0)
        self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self._transport.abort()

    def _shake_hands(self) -> None:
        self._waits = False
        if self._transport.is_closing():
            return
        try:
            self._tls.do_handshake()
            self._open = True
            self._web.counts[HANDSHAKES] += 1
            self._web.counts[RESUMED] += bool(self._tls.session_reused)
            assert self._host is not None
            self._web.counts[UNRESUMABLE] += self._host.first not in self._web.have_answered
        except ssl.SSLWantReadError:
            self._waits = False
        except ssl.SSLError:
            self._transport.abort()
            return
        self._transport.write(self._out.read())
        if not self._open:
            self.data_received = self._finish  # type: ignore[method-assign]
        elif self._in.pending:
            self._read()

    def _finish(self, data: bytes) -> None:
        """The client's last word of the handshake: no latency of ours."""
        self._in.write(data)
        del self.data_received
        self._shake_hands()

    def _read(self) -> None:
        try:
            while data := self._tls.read(MOST_REQUEST):
                self._take(data)
        except ssl.SSLWantReadError:
            return
        except ssl.SSLError:
            pass
        self._transport.abort()

    def _take(self, data: bytes) -> None:
        """What has come of requests; each is answered after the latency of the host."""
        assert self._host is not None
        self._request += data
        while (end := self._request.find(b"\r\n\r\n")) >= 0:
            line, self._request = self._request[:end].partition(b"\r\n")[0], self._request[end + 4 :]
            target = line.split(b" ")[1] if line.count(b" ") == 2 else b""
            self._loop.call_later(self._host.latency, self._answer, target)
        if len(self._request) > MOST_REQUEST:
            self._transport.abort()

    def _answer(self, target: bytes) -> None:
        if self._transport.is_closing() or self._host is None:
            return
        data = self._web.answer(self._host, target)
        if self._web.tls is not None:
            self._tls.write(data)
            data = self._out.read()
        self._transport.write(data)


def listener(port: int) -> socket.socket:
    """A socket for all addresses; it takes what comes by the loopback device only, where the system allows that."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\0")
    except OSError:  # each connection is looked at anyway
        pass
    sock.bind(("0.0.0.0", port))
    sock.setblocking(False)
    return sock


async def serve(web: Web, sock: socket.socket) -> None:
    """Serve until cancelled."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(web), sock=sock, backlog=4096)
    async with server:
        await server.serve_forever()
