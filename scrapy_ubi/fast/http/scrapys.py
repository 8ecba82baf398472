"""What the handler shares with Scrapy's own: its sentences, its errors, its settings of TLS, its kind of headers.

| name | used for |
| --- | --- |
| `scrapy.utils._download_handlers` | the sentences that Scrapy's handlers log, and the signals they send |
| `scrapy.utils.ssl._make_ssl_context` | TLS as Scrapy's settings have it |
| `http11.TunnelError` | Scrapy tries a request again after it |
| the dict below `scrapy.http.Headers` | headers whose names and values need no second look |
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from typing import Any

from scrapy import Request
from scrapy.core.downloader.handlers.http11 import TunnelError
from scrapy.crawler import Crawler
from scrapy.exceptions import StopDownload
from scrapy.http import Headers
from scrapy.settings import BaseSettings
from scrapy.utils._download_handlers import (
    check_stop_download,
    get_dataloss_msg,
    get_maxsize_msg,
    get_warnsize_msg,
)
from scrapy.utils.ssl import _make_ssl_context

_LEGACY_SERVER_CONNECT = 0x4  # OpenSSL's SSL_OP_LEGACY_SERVER_CONNECT: servers without secure renegotiation


def stopped_by(signal: object, crawler: Crawler, request: Request, arguments: dict[str, Any]) -> StopDownload | None:
    """Send a signal of a download; the StopDownload that one of its receivers raised."""
    return check_stop_download(signal, crawler, request, **arguments)


def too_large(size: int, limit: int, request: Request, expected: bool) -> str:
    """Scrapy's sentence for a response that is refused as too large."""
    return get_maxsize_msg(size, limit, request, expected=expected)


def large(size: int, limit: int, request: Request, expected: bool) -> str:
    """Scrapy's sentence for a large response."""
    return get_warnsize_msg(size, limit, request, expected=expected)


def data_loss(url: str) -> str:
    """Scrapy's sentence for a response of which something is missing."""
    return get_dataloss_msg(url)


def no_tunnel(message: str) -> Exception:
    """Scrapy's error for a proxy that opens no tunnel; Scrapy tries such requests again."""
    return TunnelError(message)


def tls_context(settings: BaseSettings) -> ssl.SSLContext:
    """TLS as Scrapy's settings have it. Raises ValueError for a version that is none, and where no cipher is known."""
    try:
        context = _make_ssl_context(settings)
    except ssl.SSLError as error:
        ciphers = settings["DOWNLOADER_CLIENT_TLS_CIPHERS"]
        raise ValueError(f"DOWNLOADER_CLIENT_TLS_CIPHERS is {ciphers!r}: OpenSSL knows none of them") from error
    context.options |= _LEGACY_SERVER_CONNECT  # as Scrapy's handler has it
    return context


def headers_of(values: dict[bytes, list[bytes]]) -> Headers:
    """Headers of names and values that are as `Headers` keeps them."""
    headers = Headers()
    dict.update(headers, values)
    return headers


def copy_of(headers: Headers) -> Headers:
    """A copy of headers, to be changed; `Headers.copy` looks at each name and value again."""
    return headers_of({name: values[:] for name, values in dict.items(headers)})


def values_of(headers: Headers) -> Iterable[tuple[bytes, list[bytes]]]:
    """Names and values as `Headers` keeps them."""
    return dict.items(headers)
