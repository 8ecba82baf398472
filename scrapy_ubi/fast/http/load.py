"""One request under way: what its response may be, its result, and Scrapy's response of it.

Rules of this module:

* It knows nothing of connections: a connection tells it of the head, of pieces of the body, and of the end. When it
  has `ended`, nothing that comes later matters, and the connection is of no further use.
* Sizes, data loss, the signals `headers_received` and `bytes_received` with StopDownload, and the headers that a
  spider sees are as with Scrapy's handler: those of the connection are left out, Content-Length comes first.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from ipaddress import IPv4Address, IPv6Address, ip_address
from time import monotonic
from typing import Any
from urllib.parse import urldefrag

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import DownloadCancelledError, ResponseDataLossError, StopDownload
from scrapy.http import Headers, Response
from scrapy.responsetypes import responsetypes
from twisted.internet.ssl import Certificate
from twisted.web.iweb import UNKNOWN_LENGTH

from scrapy_ubi.adapter.process.garbage import look_early
from scrapy_ubi.adapter.requests.reason_phrase import keep_reason, kept_heads
from scrapy_ubi.fast.http import scrapys

logger = logging.getLogger(__name__)

# Headers of the connection, not of the page (RFC 9110, 7.6.1): spiders never see them.
CONNECTION_HEADERS = frozenset(
    b"Connection Content-Length Keep-Alive Proxy-Connection Te Trailers Transfer-Encoding Upgrade".split()
)

Field = tuple[bytes, bytes]


@lru_cache(maxsize=2048)
def header_name(name: bytes) -> bytes:
    """A header's name as `scrapy.http.Headers` has it. The parser leaves white space after the names that it knows."""
    return name.rstrip().title()


@dataclass(frozen=True, slots=True)
class Peer:
    """Who answers: what a response tells of its connection."""

    ip_address: IPv4Address | IPv6Address | None
    certificate: Any

    @classmethod
    def from_transport(cls, transport: asyncio.Transport) -> Peer:
        name = transport.get_extra_info("peername")
        tls = transport.get_extra_info("tls")
        known = None if tls is None else tls.get_peer_certificate()
        certificate = None if known is None else Certificate(known)  # type: ignore[no-untyped-call]
        return cls(ip_address(name[0].partition("%")[0]) if name else None, certificate)


UNKNOWN = Peer(None, None)  # before anybody has answered


class Load:
    """One request and its response. `done` is resolved at the end: with None, or with the error."""

    __slots__ = (
        "request", "crawler", "bodyless", "began", "done", "ended",
        "maxsize", "warnsize", "keeps_losses", "_fails_on_loss", "warned",
        "status", "reason", "protocol", "fields", "headers", "peer", "first", "rest", "received", "flags", "stopped",
    )  # fmt: skip

    def __init__(self, request: Request, crawler: Crawler, limits: tuple[int, int, bool]) -> None:
        self.request = request
        self.crawler = crawler
        self.bodyless = request.method == "HEAD"
        self.began = monotonic()
        self.maxsize, self.warnsize, self._fails_on_loss = limits
        self.keeps_losses = not self._fails_on_loss
        self.begin()

    def begin(self) -> None:
        """Nothing has come yet. Again, before a second attempt."""
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.ended = self.warned = False
        self.status = 0
        self.reason = ""
        self.protocol = "HTTP/1.1"
        self.fields: list[Field] = []
        self.headers = Headers()
        self.peer = UNKNOWN
        self.first = b""  # most bodies come in one piece
        self.rest: BytesIO | None = None  # the whole body, where there are more
        self.received = 0
        self.flags: list[str] = []
        self.stopped: StopDownload | None = None

    # What a connection tells

    def head(
        self, status: int, reason: str, protocol: str, fields: list[Field], length: int | None, peer: Peer
    ) -> None:
        """The head has come. `length` is that of the body: None when only its end will tell."""
        look_early()
        self.request.meta["download_latency"] = monotonic() - self.began
        self.status = status
        self.reason = reason
        self.protocol = protocol
        self.peer = peer
        self.fields = fields
        self.headers = _headers(fields, length, self.bodyless)
        announced = UNKNOWN_LENGTH if length is None else length
        told = scrapys.copy_of(self.headers)  # receivers may change it; to ask who listens would cost more
        if self._stop(signals.headers_received, headers=told, body_length=announced):
            self.peer = UNKNOWN  # Scrapy's handler asks for it later
            return
        if not length and length is not None:
            return
        meta = self.request.meta  # looked at now, as by Scrapy's handler: a receiver may have written into it
        self.maxsize = meta.get("download_maxsize", self.maxsize)
        self.warnsize = meta.get("download_warnsize", self.warnsize)
        self.keeps_losses = not meta.get("download_fail_on_dataloss", self._fails_on_loss)
        if length is None:
            return
        if self.maxsize and length > self.maxsize:
            self._too_large(length, expected=True)
        elif self.warnsize and length > self.warnsize:
            self._warn(length, expected=True)

    def body(self, data: bytes) -> None:
        """A piece of the body has come."""
        if self.received == 0:
            self.first = data
        else:
            if self.rest is None:
                self.rest = BytesIO()
                self.rest.write(self.first)
            self.rest.write(data)
        self.received += len(data)
        if self._stop(signals.bytes_received, data=data):
            return
        if self.maxsize and self.received > self.maxsize:
            self.first = b""
            self.rest = None
            self._too_large(self.received, expected=False)
        elif self.warnsize and self.received > self.warnsize and not self.warned:
            self._warn(self.received, expected=False)

    def complete(self) -> None:
        """The body has come, whole."""
        self._end()

    def closed(self) -> None:
        """The connection has ended where only its end tells that of the body."""
        self.flags.append("partial")
        self._end()

    def lost(self, why: str) -> None:
        """The body ended too early, or makes no sense from here on."""
        if self.ended:
            return
        if self.keeps_losses:
            self.flags.append("dataloss")
            self._end()
        else:
            self._end(ResponseDataLossError(why))

    def fail(self, error: Exception) -> None:
        """There will be no response."""
        self._end(error)

    # The response

    def response(self) -> Response:
        """What has come. Raises StopDownload where a signal's handler wanted it for an error."""
        url = urldefrag(self.request.url)[0]
        body = self.first if self.rest is None else self.rest.getvalue()
        cls = responsetypes.from_args(headers=self.headers, url=url, body=body)
        response = cls(
            url=url,
            status=self.status,
            body=body,
            flags=self.flags,
            certificate=self.peer.certificate,
            ip_address=self.peer.ip_address,
            protocol=self.protocol,
        )
        response.headers = self.headers  # not by __init__, which copies
        keep_reason(response, self.reason)
        if kept_heads.wanted:
            kept_heads.keep(response, self.fields)
        if self.stopped is not None:
            response.flags.append("download_stopped")
            if self.stopped.fail:
                self.stopped.response = response
                raise self.stopped
        return response

    def _end(self, error: Exception | None = None) -> None:
        if self.ended:
            return
        self.ended = True
        if self.done.done():  # cancelled
            return
        if error is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(error)

    def _stop(self, signal: object, **arguments: Any) -> bool:
        """Tell who listens. Return whether one of them wants the rest left out."""
        self.stopped = stopped = scrapys.stopped_by(signal, self.crawler, self.request, arguments)
        if stopped is None:
            return False
        self._end()
        return True

    def _too_large(self, size: int, *, expected: bool) -> None:
        message = scrapys.too_large(size, self.maxsize, self.request, expected)
        logger.warning("%s", message)
        self._end(DownloadCancelledError(message))

    def _warn(self, size: int, *, expected: bool) -> None:
        self.warned = True
        logger.warning("%s", scrapys.large(size, self.warnsize, self.request, expected))


def _headers(fields: list[Field], length: int | None, bodyless: bool) -> Headers:
    """What a spider sees: Content-Length first, nothing of the connection."""
    values: dict[bytes, list[bytes]] = {}
    if length is not None:
        values[b"Content-Length"] = [b"%d" % length]
    told: list[bytes] = []
    for name, value in fields:
        key = header_name(name)
        if key in CONNECTION_HEADERS:
            if bodyless and key == b"Content-Length":  # it tells of the page, not of this response
                told.append(value)
        elif key in values:
            values[key].append(value)
        else:
            values[key] = [value]
    if told:
        values[b"Content-Length"] = told
    return scrapys.headers_of(values)
