"""Scrapy's own tests of HTTP download handlers, with ours in place. Run by `make conformance`, inside Scrapy's tree."""

from __future__ import annotations

from typing import Any

import pytest

from scrapy_ubi.fast.http.handler import UbiDownloadHandler
from tests.utils.bases import download_handlers_http as scrapys

PATH = "scrapy_ubi.fast.http.handler.UbiDownloadHandler"


class Ours:
    """The mixin that each of Scrapy's bases wants."""

    @property
    def download_handler_cls(self) -> type[UbiDownloadHandler]:
        return UbiDownloadHandler

    @property
    def settings_dict(self) -> dict[str, Any]:
        return {"DOWNLOAD_HANDLERS": {"http": PATH, "https": PATH}}


class TestHttp(Ours, scrapys.TestHttpBase):
    pass


class TestHttps(Ours, scrapys.TestHttpsBase):
    @pytest.mark.skip(
        reason="DOWNLOADER_CLIENTCONTEXTFACTORY makes contexts for Twisted: with it Scrapy's handler stays"
    )
    def test_verify_certs_deprecated(self) -> None:
        pass


class TestSimpleHttps(Ours, scrapys.TestSimpleHttpsBase):
    pass


class TestHttpsWrongHostname(Ours, scrapys.TestHttpsWrongHostnameBase):
    pass


class TestHttpsInvalidDNSId(Ours, scrapys.TestHttpsInvalidDNSIdBase):
    pass


class TestHttpsInvalidDNSPattern(Ours, scrapys.TestHttpsInvalidDNSPatternBase):
    pass


class TestHttpsCustomCiphers(Ours, scrapys.TestHttpsCustomCiphersBase):
    pass


class TestHttpsDefaultCiphers(Ours, scrapys.TestHttpsDefaultCiphersBase):
    pass


class TestHttpsTLSVersion(Ours, scrapys.TestHttpsTLSVersionBase):
    pass


class TestHttpWithCrawler(Ours, scrapys.TestHttpWithCrawlerBase):
    pass


class TestHttpsWithCrawler(TestHttpWithCrawler):
    is_secure = True


class TestHttpProxy(Ours, scrapys.TestHttpProxyBase):
    pass


class TestHttpsProxy(TestHttpProxy):
    is_secure = True
    handler_supports_tls_in_tls = False  # nor does Scrapy's handler


@pytest.mark.requires_mitmproxy
class TestMitmProxy(Ours, scrapys.TestMitmProxyBase):
    handler_supports_tls_in_tls = False
