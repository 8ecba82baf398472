"""Links of the header of a response: `Link` (RFC 8288), `Content-Location` (RFC 9110), `Refresh`.

Rules of this module:

* `Link` is read by the algorithm of RFC 8288, appendix B.2: commas and semicolons within `<...>` and quotation marks
  separate nothing.
* Only relations that lead to pages count (`RELATIONS`): hints to a browser (`preload`), and addresses that act
  (`edit`, `webmention`), do not. A link with `anchor` is about another document: it counts like the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from scrapy_ubi.urls.links.handlers.bounds import MOST_URL, FetchedBody, LinksCut, Values

MOST_BYTES = 65_536  # of a field

RELATIONS = frozenset(
    "alternate amphtml appendix author bookmark canonical chapter collection contents copyright current describedby "
    "first glossary help index item last latest-version license next next-archive original predecessor-version prev "
    "prev-archive previous related replies section start subsection successor-version terms-of-service up version "
    "version-history via".split()
)

_SPACE = " \t\r\n"
_skip = re.compile(r"[ \t\r\n,]*+")
_space = re.compile(r"[ \t\r\n]*+")
_name = re.compile(r"[^ \t\r\n=;,]*+")
_token = re.compile(r"[^;,]*+")
_quoted = re.compile(r'"((?:[^"\\]|\\.)*+)"?', re.DOTALL)
_refresh = re.compile(r"[ \t]*+[0-9.]*+[ \t]*+(?:[;,][ \t]*+)?(?:url[ \t]*+=[ \t]*+)?(.*)", re.IGNORECASE | re.DOTALL)


def links(received: FetchedBody) -> Values:
    """The links of the header, as written. Raises LinksCut."""
    said = received.headers
    for target, relations in link_values(said.get("link", "")[:MOST_BYTES]):
        if not RELATIONS.isdisjoint(relations):
            yield target
    if location := said.get("content-location", "").strip():
        yield location
    if target := refresh_target(said.get("refresh", "")):
        yield target
    if len(said.get("link", "")) > MOST_BYTES:
        raise LinksCut("bytes")


def link_values(text: str) -> Iterator[tuple[str, list[str]]]:
    """Target and relations of each link in the value of a `Link` field. What is no link ends the reading, as in the
    RFC: what is behind it cannot be told apart."""
    at = 0
    while True:
        at = _end(_skip, text, at)
        if text[at : at + 1] != "<" or (closed := text.find(">", at)) < 0:
            return
        target = text[at + 1 : closed].strip(_SPACE)
        at, relations = _parameters(text, closed + 1)
        yield target, relations


def _parameters(text: str, at: int) -> tuple[int, list[str]]:
    """Where the parameters of a link end, and what `rel` says: the first one counts."""
    relations: list[str] | None = None
    while True:
        at = _end(_space, text, at)
        if text[at : at + 1] != ";":
            return at, relations or []
        at = _end(_space, text, at + 1)
        begin = at
        at = _end(_name, text, at)
        name = text[begin:at].lower()
        at = _end(_space, text, at)
        value = ""
        if text[at : at + 1] == "=":
            at, value = _value(text, _end(_space, text, at + 1))
        if name == "rel" and relations is None:
            relations = value.lower().split()


def _value(text: str, at: int) -> tuple[int, str]:
    """A quoted string or a token, and where it ends."""
    if text[at : at + 1] == '"':
        found = _quoted.match(text, at)
        assert found is not None
        return found.end(), re.sub(r"\\(.)", r"\1", found[1])
    end = _end(_token, text, at)
    return end, text[at:end].strip(_SPACE)


def refresh_target(value: str) -> str:
    """Where `Refresh: 5; url=/next` leads; empty for the page itself."""
    found = _refresh.match(value[: 2 * MOST_URL])
    target = found[1].strip(_SPACE) if found is not None else ""
    quote = target[:1]
    if quote in ("'", '"') and quote:
        target = target[1:].partition(quote)[0]
    return target


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    assert found is not None
    return found.end()
