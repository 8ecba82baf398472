"""The lossy steps of the normal form: each takes URLs for one that most sites serve as one, and some site does not.

Rules of this module:

* A step is a function of path and query to path and query. It comes after the steps of `urls.normal`, in the order of
  `LOSSY`, whichever of them are switched on.
* A step is idempotent, and leaves alone what the later ones have made, so every choice of steps is idempotent.
* No step touches user, host, port or fragment, nor moves the end of the path: a URL stays on its host.
* Text is ASCII: the parser has escaped the rest.

They are those of LARM's URL normaliser (Marschner, 2003), whose code did them in one pass, and for http only.
"""

from __future__ import annotations

import re
from collections.abc import Callable

Step = Callable[[str, str], tuple[str, str]]

# What is left alone is what LARM's table leaves alone, and a `+`, which is for `plus` to judge (`%2B` is no space). RFC
# 3986 would leave `!'()*,:~` as well.
_to_escape_in_path = re.compile(r"%24|%(?![0-9A-Fa-f]{2})|[^A-Za-z0-9$._/&;@=+%-]").sub
_to_escape_in_query = re.compile(r"%24|%(?![0-9A-Fa-f]{2})|[^A-Za-z0-9$._&;@=+%-]").sub
_slashes = re.compile(r"/{2,}").sub
_index = re.compile(r"(?<=/)(?:index|default)\.[^/]*\Z", re.IGNORECASE).sub

_ESCAPED = {chr(code): f"%{code:02X}" for code in range(128)} | {"%24": "$"}

# Paths and queries that no step changes, whichever are switched on: most.
unchanged = re.compile(r"(?:/(?!index\.|default\.)[a-z0-9$._&;@=-]+)*/?(?:\?[a-z0-9$._&;@=-]+)?").fullmatch


def plus(path: str, query: str) -> tuple[str, str]:
    """`+` is a space, and a space is `%20`."""
    return path.replace("+", "%20"), query.replace("+", "%20")


def characters(path: str, query: str) -> tuple[str, str]:
    """All is escaped but letters, digits, `$-._&;@=`, a `+` and the slashes of the path; `%24` is `$`."""
    return _to_escape_in_path(_escape, path), _to_escape_in_query(_escape, query)


def path_case(path: str, query: str) -> tuple[str, str]:
    """ASCII letters of the path in lower case."""
    return _lower(path), query


def query_case(path: str, query: str) -> tuple[str, str]:
    """ASCII letters of the query in lower case."""
    return path, _lower(query)


def slashes(path: str, query: str) -> tuple[str, str]:
    """A run of slashes in the path is one."""
    return _slashes("/", path), query


def index(path: str, query: str) -> tuple[str, str]:
    """A file `index.*` or `default.*` at the end of the path is its directory, with a query or without."""
    return _index("", path), query


LOSSY: dict[str, Step] = {
    "plus": plus,
    "characters": characters,
    "path-case": path_case,
    "query-case": query_case,
    "slashes": slashes,
    "index": index,
}


def _escape(match: re.Match[str]) -> str:
    return _ESCAPED[match[0]]


def _lower(text: str) -> str:
    """In lower case but for the two characters after each `%`."""
    if "%" not in text:
        return text.lower()
    first, *others = text.split("%")
    return "%".join([first.lower(), *(part[:2] + part[2:].lower() for part in others)])
