"""HTTP/1.1 as far as the demo web needs it: one request after the other on a connection, answered after a delay.

Rules of this module: what is asked (`Asked`) and answered (`Answer`) are values; the site decides, this module reads,
waits, writes, and tells the record when a request came and when it was over. A client that goes away ends its request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from time import monotonic
from typing import Protocol
from urllib.parse import urlsplit

from demo.record import ABORTED, Access, Record

MAX_HEAD = 65_536  # bytes; a longer request head ends the connection
MAX_BODY = 10_000_000  # bytes
TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it came."""

    method: str
    host: str  # lower case, without :80
    path: str  # without query
    query: str
    headers: Mapping[str, str]  # names in lower case
    body: bytes
    direct: bool  # origin form


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes = b""
    content_type: str = TEXT
    headers: tuple[tuple[str, str], ...] = ()
    kind: str = "none"  # for the log


class Site(Protocol):
    """Who answers. All of it is synchronous."""

    record: Record

    def answer(self, asked: Asked) -> Answer: ...

    def report(self, asked: Asked) -> Answer:
        """Answers what is asked below /-/ in origin form; such requests are not recorded."""

    def delay(self, asked: Asked) -> float:
        """Seconds until the answer is written."""


class BadRequest(ValueError):
    """The peer does not speak the HTTP this server understands; the connection ends."""


def parse_head(head: bytes) -> Asked:
    """A request's head without its last empty line. Raises BadRequest."""
    first, *rest = head.decode("latin-1").split("\r\n")
    try:
        method, target, version = first.split(" ")
    except ValueError:
        raise BadRequest(f"not a request line: {first[:80]!r}") from None
    if not version.startswith("HTTP/1.") or method == "CONNECT" or not target.startswith(("/", "http://", "HTTP://")):
        raise BadRequest(f"only plain HTTP/1.1 is spoken here: {first[:80]!r}")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)}
    if "transfer-encoding" in headers or not headers.get("content-length", "0").isdigit():
        raise BadRequest("a body needs a Content-Length")
    direct = target.startswith("/")
    parts = urlsplit(f"http://{headers.get('host', '')}{target}" if direct else target)
    host = parts.netloc.lower().removesuffix(":80")
    return Asked(method, host, parts.path or "/", parts.query, headers, b"", direct)


class Connection(asyncio.Protocol):
    """One client connection: requests are taken one after the other, in order, also when they are pipelined."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._buffer = b""
        self._transport: asyncio.Transport | None = None
        self._busy: tuple[Record, Access | None, asyncio.TimerHandle] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        if self._busy is not None:  # a client that goes away ends its request
            record, access, timer = self._busy
            timer.cancel()
            if access is not None:
                record.end(access, monotonic(), ABORTED)
            self._busy = None

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        try:
            self._take()
        except BadRequest as error:
            self._write(Answer(HTTPStatus.BAD_REQUEST, f"{error}\n".encode()), head_only=False)
            if self._transport is not None:
                self._transport.close()

    def _take(self) -> None:
        """Start on the next request when it has come whole and none is under way."""
        if self._busy is not None:
            return
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > MAX_HEAD:
                raise BadRequest("the request's head is too long")
            return
        asked = parse_head(self._buffer[:end])
        size = int(asked.headers.get("content-length", "0"))
        if size > MAX_BODY:
            raise BadRequest("the request's body is too long")
        if len(self._buffer) < end + 4 + size:
            return
        body, self._buffer = self._buffer[end + 4 : end + 4 + size], self._buffer[end + 4 + size :]
        self._start(replace(asked, body=body))

    def _start(self, asked: Asked) -> None:
        site, record = self._site, self._site.record
        loop = asyncio.get_running_loop()
        if asked.direct and asked.path.startswith("/-/"):
            self._busy = (record, None, loop.call_later(0, self._finish, asked, site.report(asked)))
            return
        answer = site.answer(asked)
        agent = asked.headers.get("user-agent", "")
        access = record.begin(Access(asked.host, asked.path, asked.method, agent, answer.kind, monotonic()))
        self._busy = (record, access, loop.call_later(site.delay(asked), self._finish, asked, answer))

    def _finish(self, asked: Asked, answer: Answer) -> None:
        assert self._busy is not None
        record, access, _ = self._busy
        self._busy = None
        self._write(answer, head_only=asked.method == "HEAD")
        if access is not None:
            record.end(access, monotonic(), int(answer.status))
        if asked.headers.get("connection", "").lower() == "close" and self._transport is not None:
            self._transport.close()
        self.data_received(b"")  # what came meanwhile

    def _write(self, answer: Answer, head_only: bool) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        lines = [f"HTTP/1.1 {int(answer.status)} {HTTPStatus(answer.status).phrase}"]
        lines += [f"Content-Type: {answer.content_type}", f"Content-Length: {len(answer.body)}"]
        lines += [f"{name}: {value}" for name, value in answer.headers]
        head = "\r\n".join(lines).encode() + b"\r\n\r\n"
        self._transport.write(head if head_only else head + answer.body)
