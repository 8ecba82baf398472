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

from scrapy_ubi.requests.reason import reason_of

BODYLESS = (204, 304)
_CODING, _RENAMED = b"Transfer-Encoding", b"X-Crawler-Transfer-Encoding"
_ON_ONE_LINE = bytes.maketrans(b"\r\n", b"  ")
_web = re.compile(r"https?://([^/?#]*)([^#]*)").match
_OF_PROXIES = (b"Proxy-Authorization", b"Proxy-Connection")


def request_head(request: Request) -> bytes:
    """The head of a request, with the empty line behind it."""
    host, target = _parts(request.url)
    lines = [f"{request.method} {target} HTTP/1.1".encode("utf-8", "replace")]
    if not _has(request.headers, b"Host"):
        lines.append(b"Host: " + host.encode("utf-8", "replace"))
    _add(lines, request.headers, left_out=_OF_PROXIES)
    if request.body and not _has(request.headers, b"Content-Length"):
        lines.append(b"Content-Length: %d" % len(request.body))
    return b"\r\n".join((*lines, b"", b""))


def response_head(response: Response, method: str, whole: bool) -> bytes:
    """The head of a response, with the empty line behind it; `whole`: its body was not cut."""
    status, version = response.status, response.protocol or ""
    if version not in ("HTTP/1.0", "HTTP/1.1"):
        version = "HTTP/1.1"  # WARC has no form of its own for the heads of HTTP/2
    lines = [f"{version} {status} {reason_of(response)}".encode("latin-1", "replace")]
    no_length = status in BODYLESS and response.headers.get(b"Content-Length") == b"0"  # a handler has added it
    _add(lines, response.headers, left_out=(b"Content-Length",) if no_length else ())
    has_body = method != "HEAD" and status not in BODYLESS
    if has_body and whole and not _has(response.headers, b"Content-Length"):
        lines.append(b"Content-Length: %d" % len(response.body))
    return b"\r\n".join((*lines, b"", b""))


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


def _add(lines: list[bytes], headers: Headers, left_out: tuple[bytes, ...] = ()) -> None:
    for name, values in dict.items(headers):  # as they are kept: `getlist` makes each name its normal form again
        if name not in left_out:
            shown = _RENAMED if name == _CODING else name
            for value in values:
                line = b"%b: %b" % (shown, value)
                lines.append(line.translate(_ON_ONE_LINE) if b"\n" in line or b"\r" in line else line)
