"""HTTP heads, written again from what Scrapy has kept of them: they have to fit the bodies that were kept.

Rules of this module:

* Repeated headers stay repeated, bytes that are no ASCII stay as they are. Lost are the order of different headers and
  the case of their names, which Scrapy's `Headers` does not keep; the reason phrase, but with UBI_FAST, where that of
  the status in the standard stands; and headers of the connection.
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

from scrapy_ubi.requests.reason_phrase import reason_of

BODYLESS = (204, 304)
_CODING, _RENAMED = b"Transfer-Encoding", b"X-Crawler-Transfer-Encoding"
_ON_ONE_LINE = bytes.maketrans(b"\r\n", b"  ")
_web = re.compile(r"https?://([^/?#]*)([^#]*)").match
_OF_PROXIES = frozenset((b"Proxy-Authorization", b"Proxy-Connection"))
_LENGTH, _NOTHING = frozenset((b"Content-Length",)), frozenset[bytes]()


def request_head(request: Request) -> bytes:
    """The head of a request, with the empty line behind it."""
    host, target = _parts(request.url)
    headers = request.headers
    begin = f"{request.method} {target} HTTP/1.1\r\n"
    if not _has(headers, b"Host"):
        begin += f"Host: {host}\r\n"
    fields = _fields(headers, _OF_PROXIES)
    if request.body and not _has(headers, b"Content-Length"):
        fields += b"Content-Length: %d\r\n" % len(request.body)
    return b"%b%b\r\n" % (begin.encode("utf-8", "replace"), fields)


def response_head(response: Response, method: str, whole: bool) -> bytes:
    """The head of a response, with the empty line behind it; `whole`: its body was not cut."""
    status, version, headers = response.status, response.protocol or "", response.headers
    if version not in ("HTTP/1.0", "HTTP/1.1"):
        version = "HTTP/1.1"  # WARC has no form of its own for the heads of HTTP/2
    begin = f"{version} {status} {reason_of(response)}\r\n".encode("latin-1", "replace")
    no_length = status in BODYLESS and headers.get(b"Content-Length") == b"0"  # a handler has added it
    fields = _fields(headers, _LENGTH if no_length else _NOTHING)
    has_body = method != "HEAD" and status not in BODYLESS
    if has_body and whole and not _has(headers, b"Content-Length"):
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


def _fields(headers: Headers, left_out: frozenset[bytes]) -> bytes:
    """The lines of these headers. They are read as they are kept: `getlist` makes each name its normal form again."""
    lines = [
        b"%b: %b\r\n" % (_RENAMED if name == _CODING else name, value)
        for name, values in dict.items(headers)
        if name not in left_out
        for value in values
    ]
    text = b"".join(lines)
    if text.count(b"\n") == text.count(b"\r") == len(lines):
        return text
    return b"".join([line[:-2].translate(_ON_ONE_LINE) + b"\r\n" for line in lines])
