"""Links of JSON: values that are whole URLs (`"https://..."`), in JSON, JSON lines, JSON-LD, JSON Feed, GeoJSON.

Rules of this module:

* The document is not parsed: strings are found by one expression, so no depth and no number of objects costs memory.
  In JSON a quotation mark that no backslash precedes begins a string where `http` follows it, as behind the end of one
  there is `,`, `:`, a bracket or space.
* Names of members are no links; nor is what names a vocabulary and not a page: all of `@context`, and the texts of
  `@type`, `@vocab`, `$schema`, and of `version` in a JSON Feed.
* In HTML, JSON-LD stands in `script` elements (`embedded`).
"""

from __future__ import annotations

import json
import re

from scrapy_ubi.urls.links.handlers.bounds import MOST_URL, FetchedBody, LinksCut, Values

MOST_BYTES = 10_000_000
_TURN = 500  # strings between two turns of the loop
_STRIDE = 1_000_000  # characters that one search may pass over
_OVERLAP = 2 * MOST_URL + 200  # a URL and what is behind it, at most

_NAMES = r"@context|@type|@vocab|\$schema"
_FEED = r'version"\s{0,100}+:\s{0,100}+"https?:(?:\\?/){2}(?:www\.)?jsonfeed\.org(?:\\?/)'
# A URL and whether it is a name; or the name of a member whose value is none.
_found = re.compile(
    r'"(?<!\\")(?:(https?:(?:\\?/){2}(?:[^"\\\x00-\x1f]|\\.){0,8192}+)"(\s{0,100}+:)?'
    rf'|(?:{_NAMES})"\s{{0,100}}+:\s{{0,100}}+|{_FEED}[^"]{{0,100}}+")',
    re.IGNORECASE,
)
_token = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{}]', re.DOTALL)
_PIECES = 10_000  # of a value that is passed over
_script = re.compile(r"<script\s([^>]{0,2000}+)>", re.IGNORECASE)
_end_of_script = re.compile("</script", re.IGNORECASE)
_is_linked_data = re.compile(r"""type\s{0,10}+=\s{0,10}+["']?\s{0,10}+application/ld\+json""", re.IGNORECASE).search


def links(received: FetchedBody) -> Values:
    """The links of a document in JSON. Raises LinksCut."""
    yield from _urls(_text(received.body[:MOST_BYTES]))
    if len(received.body) > MOST_BYTES:
        raise LinksCut("bytes")


def embedded(page: str) -> Values:
    """The links of the JSON-LD in a page of HTML. Raises LinksCut."""
    at = 0
    text = page[:MOST_BYTES]
    while (begin := _script.search(text, at)) is not None:
        end = _end_of_script.search(text, begin.end())
        at = len(text) if end is None else end.end()
        if _is_linked_data(begin[1]):
            yield from _urls(text[begin.end() : at if end is None else end.start()])
        yield None
    if len(page) > MOST_BYTES:
        raise LinksCut("bytes")


def _urls(text: str) -> Values:
    at = 0
    count = 0
    while at < len(text):
        found = _found.search(text, at, at + _STRIDE + _OVERLAP)
        if found is None:
            at += _STRIDE
            yield None
            continue
        count += 1
        if found[1] is None:
            at = found.end() if found[0].endswith('"') else _behind_value(text, found.end())
        else:
            at = found.end(1)
            if not found[2] and (value := _read(found[1])) is not None:
                yield value
        if count % _TURN == 0:
            yield None


def _behind_value(text: str, at: int) -> int:
    """Where the value ends that begins here: a string, or what is in brackets, as far as it has few pieces."""
    depth = 0
    if text[at : at + 1] not in ('"', "[", "{"):
        return at
    for _ in range(_PIECES):
        found = _token.search(text, at)
        if found is None:
            return len(text)
        at = found.end()
        depth += (found[0] in "[{") - (found[0] in "]}")
        if depth <= 0:
            return at
    return at


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
