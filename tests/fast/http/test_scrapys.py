"""Canaries: what our download handler shares with Scrapy's."""

from __future__ import annotations

import ssl

import pytest
from scrapy import Request, Spider, signals
from scrapy.core.downloader.handlers.http11 import TunnelError
from scrapy.crawler import Crawler
from scrapy.exceptions import StopDownload
from scrapy.http import Headers
from scrapy.settings import Settings
from scrapy.settings.default_settings import RETRY_EXCEPTIONS

from scrapy_ubi.fast.http.scrapys import (
    copy_of,
    data_loss,
    headers_of,
    large,
    no_tunnel,
    stopped_by,
    tls_context,
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
    assert isinstance(no_tunnel("why"), TunnelError)
    assert f"{TunnelError.__module__}.{TunnelError.__name__}" in RETRY_EXCEPTIONS


def test_tls_is_as_the_settings_have_it() -> None:
    lenient = tls_context(Settings({"DOWNLOAD_TLS_MAX_VERSION": "TLSv1.2"}))
    assert (lenient.verify_mode, lenient.maximum_version) == (ssl.CERT_NONE, ssl.TLSVersion.TLSv1_2)
    assert tls_context(Settings({"DOWNLOAD_VERIFY_CERTIFICATES": True})).verify_mode == ssl.CERT_REQUIRED
    with pytest.raises(ValueError, match="DOWNLOAD_TLS_MIN_VERSION"):
        tls_context(Settings({"DOWNLOAD_TLS_MIN_VERSION": "none"}))
    with pytest.raises(ValueError, match="DOWNLOADER_CLIENT_TLS_CIPHERS is 'NONE-SUCH'"):
        tls_context(Settings({"DOWNLOADER_CLIENT_TLS_CIPHERS": "NONE-SUCH"}))


def test_headers_are_a_dict_of_names_in_titles_and_lists() -> None:
    usual = Headers([("set-cookie", "a"), ("Set-Cookie", "b"), ("x-UPPER-x", "c")])
    ours = headers_of({b"Set-Cookie": [b"a", b"b"], b"x-UPPER-x".title(): [b"c"]})
    assert dict(values_of(usual)) == dict(values_of(ours)) and type(ours) is Headers
    assert ours.getlist("SET-cookie") == [b"a", b"b"] and ours["X-Upper-X"] == b"c"
    copy = copy_of(ours)
    assert copy == ours and type(copy) is Headers
    copy.appendlist("Set-Cookie", "d")
    assert ours.getlist("Set-Cookie") == [b"a", b"b"]
