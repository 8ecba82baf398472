"""A server whose answers are bytes, and our handler in the same loop: what goes over the wire is up to the test."""

from __future__ import annotations

import asyncio
import ssl
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.http import Response

from scrapy_ubi.fast.http.connection import Connection
from scrapy_ubi.fast.http.handler import UbiDownloadHandler
from scrapy_ubi.fast.http.route import Route

LIMIT = 60.0  # seconds for anything that a test waits for
ROUTE = Route(False, "h.example", 80, False, False, None, None, None)

T = TypeVar("T")
Answer = bytes | Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def run(work: Coroutine[Any, Any, T]) -> T:
    async def limited() -> T:
        return await asyncio.wait_for(work, LIMIT)

    return asyncio.run(limited())


def answer(body: bytes = b"ok", *headers: bytes, status: bytes = b"200 OK") -> bytes:
    """An ordinary answer, with its length."""
    lines = [b"HTTP/1.1 " + status, b"Content-Type: text/html", *headers, b"Content-Length: %d" % len(body), b"", body]
    return b"\r\n".join(lines)


def kept(ours: UbiDownloadHandler) -> int:
    """How many idle connections this handler keeps."""
    return len(ours.pool)


def name_server(
    monkeypatch: pytest.MonkeyPatch, ours: UbiDownloadHandler, ask: Callable[[str], Awaitable[list[str]]]
) -> None:
    """Let this answer what addresses a host has."""
    monkeypatch.setattr(ours._dialer._names, "addresses", ask)


ALWAYS: list[Answer] = [answer()] * 20  # the same to whatever is asked


class Server:
    """Answers requests with what it was given: to each connection its own list, the last one to all that follow.

    After the answers of its list a connection is closed by the server. An answer is bytes, or a coroutine function.
    """

    def __init__(self, *connections: list[Answer], tls: ssl.SSLContext | None = None) -> None:
        self._connections = connections
        self._tls = tls
        self.requests: list[tuple[int, bytes]] = []  # number of the connection, and what it was asked
        self.opened = 0
        self._writers: list[asyncio.StreamWriter] = []
        self.ended: list[int] = []  # connections that the other side has closed

    async def __aenter__(self) -> Server:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        self.port: int = self._server.sockets[0].getsockname()[1]
        self.url = f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}/"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.sleep(0)

    @property
    def heads(self) -> list[bytes]:
        return [request.partition(b"\r\n\r\n")[0] for _, request in self.requests]

    async def closed(self, number: int) -> None:
        """Wait until the other side has closed this connection."""
        while number not in self.ended:
            await asyncio.sleep(0.005)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = self.opened
        self._writers.append(writer)
        self.opened += 1
        answers = self._connections[min(number, len(self._connections) - 1)]
        try:
            for each in answers:
                request = await reader.readuntil(b"\r\n\r\n")
                lengths = [line for line in request.split(b"\r\n") if line.lower().startswith(b"content-length:")]
                self.requests.append((number, request))
                if lengths:
                    self.requests[-1] = number, request + await reader.readexactly(int(lengths[0].split(b":")[1]))
                if isinstance(each, bytes):
                    writer.write(each)
                    await writer.drain()
                else:
                    await each(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            self.ended.append(number)
        finally:
            writer.close()


async def until_closed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """An answer: nothing more; wait for the other side to close."""
    await reader.read()
    raise ConnectionResetError


def endless(start: bytes, piece: bytes) -> Answer:
    """An answer without an end."""

    async def write(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        while True:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)

    return write


def then(data: bytes, after: Answer) -> Answer:
    """Bytes, and another answer."""

    async def write(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        assert not isinstance(after, bytes)
        await after(reader, writer)

    return write


class Wire:
    """A transport without a network."""

    def __init__(self, connection: Connection) -> None:
        self.closed = False
        self.written = 0  # bytes
        self._connection = connection
        connection.connection_made(self)  # type: ignore[arg-type]

    def get_extra_info(self, name: str) -> Any:
        return ("127.0.0.1", 80) if name == "peername" else None

    def write(self, data: bytes | memoryview) -> None:
        self.written += len(data)

    def set_write_buffer_limits(self, high: int) -> None:
        pass

    def is_closing(self) -> bool:
        return self.closed

    def get_write_buffer_size(self) -> int:
        return 0

    def abort(self) -> None:
        self.closed = True


@asynccontextmanager
async def handler(**settings: Any) -> AsyncIterator[UbiDownloadHandler]:
    """Our handler, with these settings."""
    crawler = Crawler(Spider, {"TWISTED_REACTOR_ENABLED": False, **settings})
    crawler.spider = Spider("raw")
    made = UbiDownloadHandler(crawler)
    try:
        yield made
    finally:
        await made.close()


def fetch(*connections: list[Answer], settings: dict[str, Any] | None = None, **arguments: Any) -> Response:
    """The response of one request to such a server."""

    async def one() -> Response:
        async with Server(*connections) as server, handler(**(settings or {})) as ours:
            return await ours.download_request(Request(server.url, **arguments))

    return run(one())


def tls() -> ssl.SSLContext:
    """A server's context, with a certificate that nobody has signed."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "raw")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(1))
        .not_valid_after(now + timedelta(1))
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    with tempfile.NamedTemporaryFile() as file:
        file.write(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
        file.write(certificate.public_bytes(pem))
        file.flush()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file.name)
    return context
