"""Canaries: what our download handler shares with Scrapy's."""

from __future__ import annotations

import errno
import socket
from types import SimpleNamespace
from typing import Any

import pytest
from OpenSSL import SSL
from scrapy import Request, Spider, signals
from scrapy.core.downloader.handlers.http11 import TunnelError
from scrapy.crawler import Crawler
from scrapy.exceptions import CannotResolveHostError, DownloadConnectionRefusedError, StopDownload
from scrapy.http import Headers
from scrapy.settings.default_settings import RETRY_EXCEPTIONS
from twisted.internet import error
from twisted.web.client import _HTTP11ClientFactory

from scrapy_ubi.fast.http.scrapys import (
    TlsMaker,
    copy_of,
    data_loss,
    headers_of,
    large,
    no_tunnel,
    not_connected,
    stopped_by,
    too_large,
    values_of,
)

HOST = "http://h1.example"


def test_what_our_download_handler_has_of_scrapys() -> None:
    crawler = Crawler(Spider)
    request = Request(f"{HOST}/large")
    stop = StopDownload(fail=False)

    def receiver(data: bytes) -> None:
        raise stop

    assert stopped_by(signals.bytes_received, crawler, request, {"data": b"x"}) is None
    crawler.signals.connect(receiver, signals.bytes_received)
    assert stopped_by(signals.bytes_received, crawler, request, {"data": b"x"}) is stop
    assert "5" in too_large(5, 4, request, True) and "(4)" in too_large(5, 4, request, False)
    assert "5" in large(5, 4, request, True) and "warn size (4)" in large(5, 4, request, False)
    assert HOST in data_loss(HOST)
    refused = not_connected(OSError(errno.ECONNREFUSED, "x"))
    assert isinstance(refused, DownloadConnectionRefusedError) and "refused by other side: 111" in str(refused)
    assert type(not_connected(OSError(errno.ENETUNREACH, "x"))) is error.NoRouteError
    assert type(not_connected(OSError(errno.ETIMEDOUT, "x"))) is error.TCPTimedOutError
    assert type(not_connected(OSError(errno.EMFILE, "x"))) is error.ConnectBindError
    assert isinstance(not_connected(socket.gaierror(socket.EAI_NONAME, "x")), CannotResolveHostError)
    assert type(not_connected(OSError("several"))) is error.ConnectError
    assert isinstance(no_tunnel("why"), TunnelError)
    assert f"{TunnelError.__module__}.{TunnelError.__name__}" in RETRY_EXCEPTIONS


def maker(**settings: Any) -> TlsMaker:
    return TlsMaker(Crawler(Spider, settings))


def test_tls_is_as_the_settings_have_it() -> None:
    assert maker().connection("h.example").get_servername() == b"h.example"
    assert maker().connection("127.0.0.1").get_servername() is None
    with pytest.raises(ValueError, match="DOWNLOAD_TLS_MIN_VERSION"):
        maker(DOWNLOAD_TLS_MIN_VERSION="none")
    with pytest.raises(ValueError, match="DOWNLOADER_CLIENT_TLS_CIPHERS is 'NONE-SUCH'"):
        maker(DOWNLOADER_CLIENT_TLS_CIPHERS="NONE-SUCH").connection("h.example")


@pytest.mark.parametrize(
    "settings",
    [{}, {"DOWNLOAD_TLS_MAX_VERSION": "TLSv1.2"}, {"DOWNLOADER_CLIENT_TLS_CIPHERS": "ECDHE-RSA-AES128-GCM-SHA256"}],
)
def test_a_server_sees_the_same_hello_as_of_scrapys_handler(settings: dict[str, Any]) -> None:
    """All but what is random: the versions, the ciphers, the extensions and their order are what bots are known by."""

    factory = _HTTP11ClientFactory(lambda _: None, "")  # which may ask for protocols (ALPN)
    made = maker(**settings)
    creator: Any = vars(made)["_factory"].creatorForNetloc(b"h.example", 443)
    theirs = creator.clientConnectionForTLS(SimpleNamespace(factory=SimpleNamespace(wrappedFactory=factory)))
    theirs.set_connect_state()
    ours = made.connection("h.example")
    assert hello(ours) == hello(theirs)


def hello(connection: SSL.Connection) -> tuple[bytes, list[tuple[bytes, bytes]]]:
    """Ciphers, and extensions, of the first message: without keys and random bytes."""
    with pytest.raises(SSL.WantReadError):
        connection.do_handshake()
    record = connection.bio_read(1 << 16)
    at = 5 + 4 + 2 + 32
    at += 1 + record[at]
    size = int.from_bytes(record[at : at + 2])
    ciphers = record[at + 2 : at + 2 + size]
    at += 2 + size
    at += 1 + record[at] + 2
    extensions = []
    while at < len(record):
        kind, size = record[at : at + 2], int.from_bytes(record[at + 2 : at + 4])
        extensions.append((kind, b"%d" % size if kind == b"\x00\x33" else record[at + 4 : at + 4 + size]))
        at += 4 + size
    return ciphers, extensions


def test_headers_are_a_dict_of_names_in_titles_and_lists() -> None:
    usual = Headers([("set-cookie", "a"), ("Set-Cookie", "b"), ("x-UPPER-x", "c")])
    ours = headers_of({b"Set-Cookie": [b"a", b"b"], b"x-UPPER-x".title(): [b"c"]})
    assert dict(values_of(usual)) == dict(values_of(ours)) and type(ours) is Headers
    assert ours.getlist("SET-cookie") == [b"a", b"b"] and ours["X-Upper-X"] == b"c"
    copy = copy_of(ours)
    assert copy == ours and type(copy) is Headers
    copy.appendlist("Set-Cookie", "d")
    assert ours.getlist("Set-Cookie") == [b"a", b"b"]
