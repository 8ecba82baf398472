"""What the handler shares with Scrapy's own: its sentences, its errors, its settings of TLS, its kind of headers.

| name | used for |
| --- | --- |
| `scrapy.utils._download_handlers` | the sentences that Scrapy's handlers log, and the signals they send |
| `contextfactory`: `_load_context_factory_from_settings`, `_get_cert_options`; Twisted's `ClientTLSOptions` | TLS |
| `scrapy.utils.ssl._log_ssl_conn_debug_info` | what is logged of it |
| pyOpenSSL's `_util.lib.SSL_session_reused`, `Connection._ssl` | how many handshakes were resumed |
| `http11.TunnelError` | Scrapy tries a request again after it |
| the dict below `scrapy.http.Headers` | headers whose names and values need no second look |
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Iterable
from typing import Any

from OpenSSL import SSL
from OpenSSL import _util as _openssl
from OpenSSL.crypto import X509
from scrapy import Request
from scrapy.core.downloader.contextfactory import _load_context_factory_from_settings
from scrapy.core.downloader.handlers.http11 import TunnelError
from scrapy.crawler import Crawler
from scrapy.exceptions import CannotResolveHostError, DownloadConnectionRefusedError, StopDownload
from scrapy.http import Headers
from scrapy.utils._download_handlers import (
    check_stop_download,
    get_dataloss_msg,
    get_maxsize_msg,
    get_warnsize_msg,
)
from scrapy.utils.ssl import _log_ssl_conn_debug_info
from service_identity import VerificationError
from service_identity.hazmat import DNS_ID, IPAddress_ID, verify_service_identity
from service_identity.pyopenssl import extract_patterns
from twisted.internet import error as twisted_error
from twisted.internet.abstract import isIPAddress, isIPv6Address

_NO_SOCKET = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})  # none was made to connect with


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


def not_connected(error: OSError) -> Exception:
    """The error of Scrapy's handler for a connection that the system could not make: Twisted's, but for those that
    Scrapy has names for."""
    if isinstance(error, socket.gaierror):  # an address with a zone that is none
        return CannotResolveHostError(str(error))
    why = os.strerror(error.errno) if error.errno else str(error)
    if error.errno in _NO_SOCKET:
        return twisted_error.ConnectBindError(error.errno, why)  # type: ignore[no-untyped-call]
    made: Exception = twisted_error.getConnectError((error.errno, why))  # type: ignore[no-untyped-call]
    is_refused = isinstance(made, twisted_error.ConnectionRefusedError)
    return DownloadConnectionRefusedError(str(made)) if is_refused else made


class Unverifiable(Exception):
    """A trusted certificate of which cannot be said for whom it is: by Scrapy's handler it is taken, with an error in
    the log (Twisted's check then counts as passed)."""


class TlsMaker:
    """Makes connections of TLS with the context of Scrapy's handler: one for all, as sessions belong to it.

    Where nothing is verified, no certificate is looked at: Scrapy's handler logs a warning for one of another host,
    which takes a fourth of a handshake's time.
    """

    def __init__(self, crawler: Crawler) -> None:
        """Raises ValueError for a version of TLS that is none."""
        self._factory: Any = _load_context_factory_from_settings(crawler)
        self._verifies = crawler.settings.getbool("DOWNLOAD_VERIFY_CERTIFICATES")
        self._ciphers = crawler.settings["DOWNLOADER_CLIENT_TLS_CIPHERS"]
        self._context: SSL.Context | None = None  # made when it is needed: it takes a moment

    def connection(self, name: str) -> SSL.Connection:
        """A client's connection with this host, in memory. Raises ValueError where no cipher is known."""
        is_name = not (isIPAddress(name) or isIPv6Address(name))
        name = name.encode("idna").decode() if is_name else name
        if self._context is None:
            self._context = self._made_context(name)
        connection = SSL.Connection(self._context)
        if is_name:
            connection.set_tlsext_host_name(name.encode())
        if self._verifies:
            how = SSL.VERIFY_PEER | SSL.VERIFY_FAIL_IF_NO_PEER_CERT
            connection.set_verify(how, _check(DNS_ID(name) if is_name else IPAddress_ID(name)))
        connection.set_connect_state()
        return connection

    def _made_context(self, name: str) -> SSL.Context:
        if self._verifies:
            creator = self._factory.creatorForNetloc(name.encode(), 443)
            theirs: SSL.Context | None = getattr(creator, "_ctx", None)  # Twisted's before 26.4
            return creator._createConnection.__self__.getContext() if theirs is None else theirs
        try:
            context: SSL.Context = self._factory._get_cert_options().getContext()
        except (SSL.Error, ValueError) as error:
            ciphers = self._ciphers
            raise ValueError(f"DOWNLOADER_CLIENT_TLS_CIPHERS is {ciphers!r}: OpenSSL knows none of them") from error
        return context


def _check(wanted: Any) -> Callable[[SSL.Connection, X509, int, int, int], bool]:
    """As Twisted has it: somebody who is trusted must have signed the certificate, and it must be of this host. One
    that cannot be looked at so (it names no host) is refused, and noted with the connection: see `unverifiable`."""

    def check(connection: SSL.Connection, certificate: X509, error: int, depth: int, ok: int) -> bool:
        if depth != 0 or not ok:
            return bool(ok)
        try:
            verify_service_identity(extract_patterns(certificate), [wanted], [])
        except VerificationError:
            return False
        except Exception as why:  # noqa: BLE001 - whatever is wrong with a certificate
            connection.set_app_data(Unverifiable(str(why)))
            return False
        return True

    return check


def unverifiable(connection: SSL.Connection) -> Unverifiable | None:
    """Why the certificate of a connection could not be looked at; None where it could."""
    found = connection.get_app_data()
    return found if isinstance(found, Unverifiable) else None


def is_resumed(connection: SSL.Connection) -> bool:
    """Whether this connection has taken up the session that it was given."""
    return bool(_openssl.lib.SSL_session_reused(connection._ssl))


def tell_tls(name: str, connection: SSL.Connection) -> None:
    """What Scrapy's handler logs of a connection of TLS."""
    _log_ssl_conn_debug_info(name, connection)


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
