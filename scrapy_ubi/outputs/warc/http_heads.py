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

from urllib.parse import urlsplit

from scrapy import Request
from scrapy.http import Headers, Response

from scrapy_ubi.requests.reason import reason_of

BODYLESS = (204, 304)
_CODING, _RENAMED = b"Transfer-Encoding", b"X-Crawler-Transfer-Encoding"
_OF_PROXIES = (b"Proxy-Authorization", b"Proxy-Connection")


def request_head(request: Request) -> bytes:
    """The head of a request, with the empty line behind it."""
    parts = urlsplit(request.url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    lines = [f"{request.method} {target} HTTP/1.1".encode("utf-8", "replace")]
    if b"Host" not in request.headers:
        lines.append(b"Host: " + parts.netloc.rpartition("@")[2].encode("utf-8", "replace"))
    _add(lines, request.headers, left_out=_OF_PROXIES)
    if request.body and b"Content-Length" not in request.headers:
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
    if has_body and whole and b"Content-Length" not in response.headers:
        lines.append(b"Content-Length: %d" % len(response.body))
    return b"\r\n".join((*lines, b"", b""))


def _add(lines: list[bytes], headers: Headers, left_out: tuple[bytes, ...] = ()) -> None:
    for name, values in dict.items(headers):  # as they are kept: `getlist` makes each name its normal form again
        if name not in left_out:
            shown = _RENAMED if name == _CODING else name
            lines += [shown + b": " + _on_one_line(value) for value in values]


def _on_one_line(value: bytes) -> bytes:
    return value.replace(b"\r", b" ").replace(b"\n", b" ") if b"\n" in value or b"\r" in value else value
