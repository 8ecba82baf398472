"""The lossy steps of the normal form: each takes URLs for one that most sites serve as one, and some site does not.

Rules of this module:

* A step is a function of path and query to path and query. It comes after the steps of `urls.normal`, in the order of
  `LOSSY`, whichever of them are switched on.
* A step is idempotent, and leaves alone what the later ones have made, so every choice of steps is idempotent. (Those
  of `urls.canonical` come before, and once more after them.)
* No step touches user, host, port or fragment, nor moves the end of the path: a URL stays on its host.
* Text is ASCII: the parser has escaped the rest.

* `unchanged` tells at one look that no step but those of `OF_ARGUMENTS` would change a path and query.

All but those of `OF_ARGUMENTS` are those of LARM's URL normaliser (Marschner, 2003), whose code did them in one pass,
and for http only. The names that `session` and `tracking` leave out stand in `parameters.toml`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

PARAMETERS = Path(__file__).with_name("parameters.toml")

Step = Callable[[str, str], tuple[str, str]]

# What is left alone is what LARM's table leaves alone, and a `+`, which is for `plus` to judge (`%2B` is no space). RFC
# 3986 would leave `!'()*,:~` as well.
_to_escape_in_path = re.compile(r"%24|%(?![0-9A-Fa-f]{2})|[^A-Za-z0-9$._/&;@=+%-]").sub
_to_escape_in_query = re.compile(r"%24|%(?![0-9A-Fa-f]{2})|[^A-Za-z0-9$._&;@=+%-]").sub
_hex = re.compile(r"[0-9A-Fa-f]{2}").match
_slashes = re.compile(r"/{2,}").sub
_index = re.compile(r"(?<=/)(?:index|default)\.[^/]*\Z", re.IGNORECASE).sub

# A segment in which ASP.NET keeps what it would otherwise keep in cookies: `(S(abc))`, `(X(1)S(abc))`, `(A(..)F(..))`,
# and in its first version `(abc)` of 24 characters. `characters` has escaped the brackets.
_OPEN, _CLOSE = r"(?:\(|%28)", r"(?:\)|%29)"
_KEPT_IN_PATH = rf"{_OPEN}(?:(?:[AFSX]{_OPEN}[A-Za-z0-9_.-]+{_CLOSE})+|[a-z0-5]{{24}}){_CLOSE}/"
_sessions = re.compile(rf"(?<=/)(?:{_KEPT_IN_PATH})+", re.IGNORECASE).sub

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


def session(path: str, query: str) -> tuple[str, str]:
    """Arguments of the query that name a session are left out, such parameters at the end of the path, and the segments
    of the path in which ASP.NET keeps sessions."""
    names = known_parameters()["session"]
    if "(" in path or "%28" in path:
        path = _sessions("", path)
    return names.without_last(path), names.without(query)


def tracking(path: str, query: str) -> tuple[str, str]:
    """Arguments of the query that say from where a visitor came are left out."""
    return path, known_parameters()["tracking"].without(query)


def slashes(path: str, query: str) -> tuple[str, str]:
    """A run of slashes in the path is one."""
    return _slashes("/", path), query


def index(path: str, query: str) -> tuple[str, str]:
    """A file `index.*` or `default.*` at the end of the path is its directory, with a query or without."""
    return _index("", path), query


def query_order(path: str, query: str) -> tuple[str, str]:
    """The arguments of the query in the order of their texts, without empty ones: `a=` is none."""
    return path, "&".join(sorted(filter(None, query.split("&")))) if "&" in query else query


LOSSY: dict[str, Step] = {
    "plus": plus,
    "characters": characters,
    "path-case": path_case,
    "query-case": query_case,
    "session": session,
    "tracking": tracking,
    "slashes": slashes,
    "index": index,
    "query-order": query_order,
}

OF_ARGUMENTS = frozenset(("session", "tracking", "query-order"))


_DOTS = (".", "%2e", "%2E")


class _Names(NamedTuple):
    """Names of arguments, in small letters: whole ones, and beginnings."""

    whole: frozenset[str]
    begin: tuple[str, ...]

    def without(self, query: str) -> str:
        """A query without such arguments."""
        return "&".join([part for part in query.split("&") if not self._fits(part)]) if "=" in query else query

    def without_last(self, path: str) -> str:
        """A path without such parameters at its end."""
        while True:
            before, _, last = path.rpartition(";")
            # Behind a dot it stays, escaped or not: what is left could be a dot segment.
            if not before or before.endswith(_DOTS) or "/" in last or not self._fits(last):
                return path
            path = before

    def _fits(self, argument: str) -> bool:
        name, equals, _ = argument.partition("=")
        name = name.lower()
        return bool(equals) and (name in self.whole or name.startswith(self.begin))


@cache
def known_parameters() -> dict[str, _Names]:
    """The names of the data file, by step."""
    data = tomllib.loads(PARAMETERS.read_text(encoding="utf-8"))
    return {step: _Names(frozenset(names["names"]), tuple(names["prefixes"])) for step, names in data.items()}


def _escape(match: re.Match[str]) -> str:
    return _ESCAPED[match[0]]


def _lower(text: str) -> str:
    """In lower case but for escapes: a `%` that begins none is a character like others."""
    if "%" not in text:
        return text.lower()
    first, *others = text.split("%")
    return "%".join([first.lower(), *(part[:2] + part[2:].lower() if _hex(part) else part.lower() for part in others)])
