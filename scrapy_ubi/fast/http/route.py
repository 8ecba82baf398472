"""Where a request goes: to its host, to a proxy, or to its host through a proxy's tunnel.

Rules of this module:

* Requests share a connection only when their routes are equal: scheme, host, port, proxy, tunnel with the same
  authorization, local address. All requests for http:// URLs by one proxy share theirs, whatever their hosts.
* An https:// URL goes through a tunnel (CONNECT); an https:// proxy is not asked for tunnels, as by Scrapy's handler.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urldefrag, urlsplit

from scrapy import Request
from scrapy.exceptions import UnsupportedURLSchemeError
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.url import add_http_if_no_scheme
from twisted.web.client import URI

_PORTS = {"http": 80, "https": 443}
MOST_ROUTES = 10_000  # remembered, so that a host's URLs are not taken apart again and again

Address = tuple[str, int]


class Route(NamedTuple):
    """One way that requests can take."""

    secure: bool  # TLS to the host of the URL
    host: str  # who is dialed: the URL's host, or the proxy
    port: int
    by_proxy: bool  # the proxy is told the whole URL
    secure_proxy: bool  # TLS to that proxy
    tunnel: Address | None  # the host and port that the proxy connects us with
    authorization: bytes | None  # what the proxy wants to hear before it does
    local: Address | None  # where connections come from


class Router:
    """Finds the routes of requests, and remembers them."""

    def __init__(self, local: str | Sequence[object] | None) -> None:
        self._local = local
        self._known: dict[tuple[object, ...], tuple[Route, bytes]] = {}

    def route(self, request: Request) -> tuple[Route, bytes]:
        """The route of `request` and its Host header. Raises `UnsupportedURLSchemeError`, ValueError for what is no
        host or port, and NotImplementedError for https:// through an https:// proxy."""
        parts = urlparse_cached(request)
        proxy = request.meta.get("proxy") or None
        local = _local(request.meta.get("bindaddress") or self._local)
        secure = parts.scheme == "https"
        authorization = request.headers.get(b"Proxy-Authorization") if proxy and secure else None
        key = (parts.scheme, parts.netloc, proxy, authorization, local)
        known = self._known.get(key)
        if known is None:
            if parts.scheme not in _PORTS:
                raise UnsupportedURLSchemeError(f"Unsupported scheme: {parts.scheme!r}")
            if len(self._known) >= MOST_ROUTES:
                self._known.clear()
            route = _route(_host_of(parts.hostname), parts.port, secure, proxy, authorization, local)
            self._known[key] = known = route, _host_header(parts.hostname or "", parts.port, _PORTS[parts.scheme])
        return known


def _route(
    host: str, port: int | None, secure: bool, proxy: str | None, authorization: bytes | None, local: Address | None
) -> Route:
    port = (443 if secure else 80) if port is None else port  # 0 is none of them: no server listens there
    if proxy is None:
        return Route(secure, host, port, False, False, None, None, local)
    parts = urlsplit(add_http_if_no_scheme(proxy))
    if parts.scheme not in _PORTS:
        raise UnsupportedURLSchemeError(f"Unsupported scheme of a proxy: {parts.scheme!r}")
    secure_proxy = parts.scheme == "https"
    if secure and secure_proxy:
        raise NotImplementedError("HTTPS proxies for HTTPS destinations are not supported")
    proxy_host = _host_of(parts.hostname)
    proxy_port = _PORTS[parts.scheme] if parts.port is None else parts.port
    if secure:
        return Route(True, proxy_host, proxy_port, False, False, (host, port), authorization, local)
    return Route(False, proxy_host, proxy_port, True, secure_proxy, None, None, local)


def target(url: str, route: Route) -> bytes:
    """What the request line names: the whole URL for a proxy, else what comes after the host. Raises ValueError."""
    url = urldefrag(url)[0]
    if route.by_proxy:
        return url.encode("ascii")
    start = url.index("://") + 3
    ends = [end for mark in "/?" if (end := url.find(mark, start)) >= 0]
    path = url[min(ends) :] if ends else "/"
    if path[0] == "?" or path[:2] == "//" or ";" in path or path[-1] == "?":  # Twisted writes some of these anew
        written: bytes = URI.fromBytes(url.encode("ascii")).originForm  # type: ignore[no-untyped-call]
        return written
    return path.encode("ascii")


def _host_of(host: str | None) -> str:
    if not host:
        raise ValueError("no host")
    return host


def _host_header(host: str, port: int | None, usual: int) -> bytes:
    name = f"[{host}]" if ":" in host else host
    return (name if port is None or port == usual else f"{name}:{port}").encode("ascii")


def _local(value: str | Sequence[object] | None) -> Address | None:
    """A local address from what the user wrote: a host, or host and port, as a tuple or a list. Raises ValueError."""
    if value is None:
        return None
    host, port = (value, 0) if isinstance(value, str) else _pair(value)
    if not isinstance(host, str) or type(port) is not int or not 0 <= port < 65536:
        raise ValueError(f"bindaddress is {value!r}: give a host, or a host and a port")
    return host, port


def _pair(value: object) -> tuple[object, object]:
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise ValueError(f"bindaddress is {value!r}: give a host, or a host and a port")
    return value[0], value[1]
