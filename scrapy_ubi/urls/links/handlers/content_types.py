"""What a document is: by its Content-Type, and by its first bytes where that says too little.

Rules of this module:

* A Content-Type that names one kind is believed. XML, text, and what servers send for everything they do not know, are
  looked at: the root element, `%PDF-`, the beginning of JSON, the path.
* What is none of the kinds has none, and is treated as if there were no handlers.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from scrapy_ubi.urls.links.handlers.bounds import FetchedBody
from scrapy_ubi.urls.links.handlers.unpacked import head

HTML, FEED, SITEMAP, PDF, CSS, JSON = "html", "feed", "sitemap", "pdf", "css", "json"

_NAMED = {
    "text/html": HTML,
    "application/xhtml+xml": HTML,
    "application/vnd.wap.xhtml+xml": HTML,
    "application/rss+xml": FEED,
    "application/atom+xml": FEED,
    "application/rdf+xml": FEED,
    "application/pdf": PDF,
    "application/x-pdf": PDF,
    "text/css": CSS,
    "application/json": JSON,
    "application/x-json": JSON,
    "text/json": JSON,
}
_VAGUE = frozenset(
    "text/plain text/xml application/xml application/octet-stream binary/octet-stream application/download "
    "application/force-download application/x-download application/unknown application/gzip application/x-gzip "
    "application/x-gunzip".split()
) | {""}
_ROOTS = {b"rss": FEED, b"feed": FEED, b"RDF": FEED, b"urlset": SITEMAP, b"sitemapindex": SITEMAP, b"html": HTML}

_LOOKED_AT = 4_096  # bytes
_PDF_HEAD = 1_024  # bytes in which %PDF- may begin
_BEFORE = b"\xef\xbb\xbf\xfe\xff \t\r\n"  # byte order marks and white space
_comments = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
_root = re.compile(rb"<(?:[A-Za-z_][\w.-]{0,99}:)?([A-Za-z_][\w.-]{0,99})")
_json = re.compile(rb'[\[{]\s*["\[{\]}]')


def kind_of(received: FetchedBody) -> str:
    """The kind of a document; empty for none of those above."""
    named = _NAMED.get(received.content_type)
    if named is not None:
        return named
    if received.content_type.endswith("+json"):
        return JSON
    if received.content_type in _VAGUE or received.content_type.endswith("+xml"):
        return _sniffed(received)
    return ""


def _sniffed(received: FetchedBody) -> str:
    if b"%PDF-" in received.body[:_PDF_HEAD]:
        return PDF
    first = head(received.body, _LOOKED_AT).replace(b"\x00", b"").lstrip(_BEFORE)
    if first.startswith(b"<"):
        found = _root.search(_comments.sub(b"", first))
        return _ROOTS.get(found[1], "") if found else ""
    path = _path(received.url)
    if first.startswith((b"http://", b"https://")):
        return SITEMAP if "sitemap" in path else ""
    if _json.match(first):
        return JSON
    return CSS if path.endswith(".css") else ""


def _path(url: str) -> str:
    try:
        return urlsplit(url).path.lower()
    except ValueError:
        return ""
