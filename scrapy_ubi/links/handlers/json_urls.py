"""Links of JSON: values that are whole URLs (`"https://..."`), in JSON, JSON lines, JSON-LD, JSON Feed, GeoJSON.

Rules of this module:

* The document is not parsed: strings are found by one expression, so no depth and no number of objects costs memory.
  In JSON a quotation mark that no backslash precedes begins a string where `http` follows it, as behind the end of one
  there is `,`, `:`, a bracket or space.
* Names of members are no links.
"""

from __future__ import annotations

import json
import re

from scrapy_ubi.links.handlers.bounds import MOST_URL, FetchedBody, LinksCut, Values

MOST_BYTES = 10_000_000
_TURN = 500  # strings between two turns of the loop
_STRIDE = 1_000_000  # characters that one search may pass over
_OVERLAP = 2 * MOST_URL + 200  # a URL and what is behind it, at most

_url = re.compile(r'"(?<!\\")(https?:(?:\\?/){2}(?:[^"\\\x00-\x1f]|\\.){0,8192}+)"(\s{0,100}+:)?', re.IGNORECASE)


def links(received: FetchedBody) -> Values:
    """The links of a document in JSON. Raises LinksCut."""
    text = _text(received.body[:MOST_BYTES])
    at, count = 0, 0
    while at < len(text):
        found = _url.search(text, at, at + _STRIDE + _OVERLAP)
        if found is None:
            at += _STRIDE
            yield None
            continue
        at = found.end(1)
        count += 1
        if not found[2] and (value := _read(found[1])) is not None:
            yield value
        if count % _TURN == 0:
            yield None
    if len(received.body) > MOST_BYTES:
        raise LinksCut("bytes")


def _text(body: bytes) -> str:
    """JSON is UTF-8; a byte order mark may say UTF-16."""
    if body.startswith((b"\xff\xfe", b"\xfe\xff")):
        return body.decode("utf-16", "replace")
    return body.decode("utf-8", "replace")


def _read(written: str) -> str | None:
    """A string of JSON without its escapes."""
    if "\\" not in written:
        return written
    try:
        value = json.loads(f'"{written}"')
    except ValueError:
        return None
    return value if isinstance(value, str) else None
