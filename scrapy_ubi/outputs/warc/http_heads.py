"""HTTP heads, written again from what Scrapy has kept of them: they have to fit the bodies that were kept.

Rules of this module:

* Repeated headers stay repeated, bytes that are no ASCII stay as they are. With UBI_FAST the lines are those that came:
  order, case of the names, reason phrase, headers of the connection. Without it these are lost, as Scrapy's handlers
  and `Headers` do not keep them: the phrase is that of the status in the standard.
* The body is that without its transfer coding: a Transfer-Encoding that a handler left in is renamed, and where the
  length is not said, the true one is. Content-Encoding stays: bodies are as they came.
* A request is written as HTTP/1.1, as Scrapy's handlers send it. What goes to a proxy (Proxy-Authorization) is left
  out; cookies and Authorization are a part of what was asked.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.http import Headers, Response

from scrapy_ubi.adapter.requests.reason_phrase import kept_heads, reason_of

BODYLESS = (204, 304)
_CODING, _RENAMED = b"Transfer-Encoding", b"X-Crawler-Transfer-Encoding"
_ON_ONE_LINE = bytes.maketrans(b"\r\n", b"  ")
_web = re.compile(r"https?://([^/?#]*)([^#]*)").match
_OF_PROXIES = frozenset((b"Proxy-Authorization", b"Proxy-Connection"))
_LENGTH, _NOTHING = frozenset((b"Content-Length",)), frozenset[bytes]()

Lines = list[tuple[bytes, bytes]]


def request_head(request: Request) -> bytes:
    """The head of a request, with the empty line behind it."""
    host, target = _parts(request.url)
    headers = request.headers
    begin = f"{request.method} {target} HTTP/1.1\r\n"
    if not _has(headers, b"Host"):
        begin += f"Host: {host}\r\n"
    fields = _written(_lines(headers, _OF_PROXIES))
    if request.body and not _has(headers, b"Content-Length"):
        fields += b"Content-Length: %d\r\n" % len(request.body)
    return b"%b%b\r\n" % (begin.encode("utf-8", "replace"), fields)


def response_head(response: Response, method: str, whole: bool) -> bytes:
    """The head of a response, with the empty line behind it; `whole`: its body was not cut."""
    status, version, headers = response.status, response.protocol or "", response.headers
    if version not in ("HTTP/1.0", "HTTP/1.1"):
        version = "HTTP/1.1"  # WARC has no form of its own for the heads of HTTP/2
    begin = f"{version} {status} {reason_of(response)}\r\n".encode("latin-1", "replace")
    has_body = method != "HEAD" and status not in BODYLESS
    if came := kept_heads.find_lines(response):
        lines = [(name.rstrip(), value) for name, value in came]
        names = {name.title() for name, _ in lines}
        if _CODING in names and has_body:  # the length says nothing then (RFC 9112, 6.3)
            lines = [(name, value) for name, value in lines if name.title() != b"Content-Length"]
            names.discard(b"Content-Length")
    else:
        no_length = status in BODYLESS and headers.get(b"Content-Length") == b"0"  # a handler has added it
        lines = _lines(headers, _LENGTH if no_length else _NOTHING)
        names = set(dict.keys(headers))
    fields = _written(lines)
    if has_body and whole and b"Content-Length" not in names:
        fields += b"Content-Length: %d\r\n" % len(response.body)
    return b"%b%b\r\n" % (begin, fields)


def _parts(url: str) -> tuple[str, str]:
    """The host of a URL, with its port, and what is asked for there."""
    found = _web(url)
    if found is None:  # no request that was made by HTTP
        parts = urlsplit(url)
        return parts.netloc.rpartition("@")[2], (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    host, target = found.groups()
    if target[:1] != "/":
        target = f"/{target}"
    return host.rpartition("@")[2], target[:-1] if target[-1] == "?" else target


def _has(headers: Headers, name: bytes) -> bool:
    """Whether a header is there; its name as it is kept."""
    return dict.__contains__(headers, name)


def _lines(headers: Headers, left_out: frozenset[bytes]) -> Lines:
    """Return these headers, one by one. They are read as they are kept: `getlist` makes each name its normal form
    again."""
    return [(name, value) for name, values in dict.items(headers) if name not in left_out for value in values]


def _written(lines: Lines) -> bytes:
    """Return these headers as lines of a head."""
    pieces = [b"%b: %b\r\n" % (_RENAMED if name.title() == _CODING else name, value) for name, value in lines]
    text = b"".join(pieces)
    if text.count(b"\n") == text.count(b"\r") == len(pieces):
        return text
    return b"".join([piece[:-2].translate(_ON_ONE_LINE) + b"\r\n" for piece in pieces])
