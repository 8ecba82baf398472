"""What is written: the head of a request.

Rules of this module:

* Nothing of a request may end a line before its end: a method, target, header name or value that could make a second
  header or request of one is refused (`Unsendable`), never cleaned.
* A request has one Host, its own or the URL's.
* The length is that of the body: a request's own Content-Length and Transfer-Encoding are not sent.
* Order and spelling of headers are those of Scrapy's handler: the length first, and Host last where the request has
  none.
"""

from __future__ import annotations

import re
from functools import lru_cache

from scrapy import Request
from twisted.web.http_headers import Headers as TwistedHeaders

from scrapy_ubi.fast.http import scrapys

_is_token = lru_cache(maxsize=1024)(re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+").fullmatch)
_is_target = re.compile(rb"[!-~]+").fullmatch
_FRAMING = frozenset({b"Content-Length", b"Transfer-Encoding"})
# As the name is written, by Twisted's table ("DNT", "X_u"); one that is none is refused before.
_written = lru_cache(maxsize=1024)(lambda name: next(iter(TwistedHeaders({name: []}).getAllRawHeaders()))[0])
_EXPECT_BODY = frozenset({b"POST", b"PUT"})  # a length of 0 is said, too (RFC 9110, 8.6)


class Unsendable(ValueError):
    """A request that would not be one request on the wire."""


def head(request: Request, target: bytes, host: bytes, *, to_proxy: bool) -> bytes:
    """The head of `request` for `target` at `host`, with the empty line. Raises `Unsendable`.

    Proxy-Authorization is of the proxy alone: it is left out unless the request goes `to_proxy`.
    """
    method = request.method.encode("ascii", "replace")
    if _is_token(method) is None:
        raise Unsendable(f"method {request.method!r}")
    if _is_target(target) is None:
        raise Unsendable(f"URL {request.url!r}")
    lines = [b"%b %b HTTP/1.1" % (method, target)]
    length = len(request.body)
    if length or method in _EXPECT_BODY:
        lines.append(b"Content-Length: %d" % length)
    has_host = False
    for name, values in scrapys.values_of(request.headers):
        if name in _FRAMING or (name == b"Proxy-Authorization" and not to_proxy):
            continue
        if _is_token(name) is None:
            raise Unsendable(f"header name {name!r}")
        if name == b"Host":
            has_host = True
            if len(values) != 1:
                raise Unsendable("a request has one Host (RFC 9112, 3.2)")
        for value in values:
            lines.append(b"%b: %b" % (_written(name), value))  # noqa: PERF401 - most have one value
    if not has_host:
        lines.append(b"Host: " + host)
    return _joined(lines)


def is_framed(request: Request) -> bool:
    """Whether headers of the request say how long its body is."""
    return not _FRAMING.isdisjoint(dict.keys(request.headers))


def connect_head(host: bytes, authorization: bytes | None) -> bytes:
    """The request for a tunnel to `host` (with its port). Raises `Unsendable`."""
    if _is_target(host) is None:
        raise Unsendable(f"host {host!r}")
    lines = [b"CONNECT %b HTTP/1.1" % host, b"Host: " + host]
    if authorization is not None:
        lines.append(b"Proxy-Authorization: " + authorization)
    return _joined(lines)


def _joined(lines: list[bytes]) -> bytes:
    """The lines as a head; each must be one."""
    text = b"\r\n".join(lines)
    ends = len(lines) - 1
    if text.count(b"\n") != ends or text.count(b"\r") != ends or b"\0" in text:
        bad = next(line for line in lines if any(mark in line for mark in (b"\r", b"\n", b"\0")))
        raise Unsendable(f"header {bad[:100]!r}: no line may end within it")
    return text + b"\r\n\r\n"
