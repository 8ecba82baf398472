"""Links of style sheets: `url(...)` and `@import`, by the tokens of CSS Syntax Level 3.

Rules of this module: one pass, in which each character is looked at once, so its time is linear whatever is left open.
"""

from __future__ import annotations

import re

from scrapy_ubi.urls.links.handlers.bounds import FetchedBody, LinksCut, Values

MOST_BYTES = 4_000_000
_TURN = 500  # tokens between two turns of the loop

# What can hide a link, or be one: a comment, a string, `@import`, `url(` with or without quotes. Each begins with one
# character, without `re.IGNORECASE`: else the search takes ten times as long.
_rest = r"(?<![\w-][uU])[rR][lL]\([ \t\r\n\f]*+"
_token = re.compile(rf"""/\*|"|'|@[iI][mM][pP][oO][rR][tT]\b|u{_rest}|U{_rest}""")
_strings = {quote: re.compile(rf"(?:[^{quote}\\\n\r\f]|\\(?:\r\n|[\s\S]))*+") for quote in "\"'"}
_unquoted = re.compile(r"""(?:[^)"'(\s\\]|\\(?:[0-9A-Fa-f]{1,6}+(?:\r\n|[ \t\r\n\f])?+|[^\n]))*+""")
_escape = re.compile(r"\\(?:([0-9A-Fa-f]{1,6})(?:\r\n|[ \t\r\n\f])?|\r\n|([\s\S]))")
_import_gap = re.compile(r"[ \t\r\n\f]*+")


def links(received: FetchedBody) -> Values:
    """The links of a style sheet, as written. Raises LinksCut."""
    text = received.body[:MOST_BYTES].decode("utf-8", "replace")
    at = 0
    count = 0
    while (token := _token.search(text, at)) is not None:
        at, value = _after(text, token)
        if value and value[:5].lower() != "data:":
            yield unescaped(value)
        count += 1
        if count % _TURN == 0:
            yield None
    if len(received.body) > MOST_BYTES:
        raise LinksCut("bytes")


def _after(text: str, token: re.Match[str]) -> tuple[int, str]:
    """Where to read on behind a token, and the link that it is the beginning of."""
    begin, end = token.span()
    first = text[begin]
    if first == "/":
        closed = text.find("*/", end)
        return (closed + 2 if closed >= 0 else len(text)), ""
    if first in _strings:
        return _string(text, begin)[0], ""
    if first == "@":
        quote = _import_gap.match(text, end)
        assert quote is not None
        at = quote.end()
        return _string(text, at) if text[at : at + 1] in ('"', "'") else (at, "")
    if text[end : end + 1] in ('"', "'"):
        return _string(text, end)
    found = _unquoted.match(text, end)
    assert found is not None
    return found.end(), found[0]


def _string(text: str, begin: int) -> tuple[int, str]:
    """Where a string ends, and what is in it; nothing where it is not closed."""
    found = _strings[text[begin]].match(text, begin + 1)
    assert found is not None
    at = found.end()
    return (at + 1, found[0]) if text[at : at + 1] == text[begin] else (at, "")


def unescaped(value: str) -> str:
    """A string or URL of CSS without its escapes."""
    return _escape.sub(_character, value) if "\\" in value else value


def _character(found: re.Match[str]) -> str:
    if found[1]:
        number = int(found[1], 16)
        return chr(number) if 0 < number < 0x110000 and not 0xD800 <= number < 0xE000 else "\ufffd"
    return "" if found[2] in (None, "\n", "\r", "\f") else found[2]
