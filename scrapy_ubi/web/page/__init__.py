"""The page of `scrapy ubi web`: one document with its style and its script inside, which asks for nothing else.

Rules of this module:

* The files beside it are the page, in the order of `SCRIPTS`: each is a part of one script, with one idea. They share
  one scope, and `page.html` has a place for each of `{nonce}`, `{style}` and `{script}`.
* Data of a crawl never comes in here. The script asks for it, and shows it as text.
* There is no step that builds: the page is put together when it is first wanted, without what only the reader
  of a script or a style needs: indentation, lines that are a comment, spaces around signs.
* What a text or a template of a script holds stays as it is, byte by byte. Line ends stay, so that no statement runs
  into the next. Regular expressions and comments behind a statement are not known: those of the page hold no quotation
  mark, and the former no space. Where one does, `ValueError` says so.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_SIGNS = frozenset("{}()[]=<>?:;,&|*!.")
_TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|[`{} ]|[^"\'`{} ]+')
_TEMPLATE = re.compile(r"(?:\\.|[^`\\$]|\$(?!\{))*(?:`|\$\{)", re.DOTALL)
_STYLE_SPACES = re.compile(r"\s*([{};,])\s*")


def pack_style(text: str) -> str:
    """Return a style sheet without what only its reader needs."""
    return _STYLE_SPACES.sub(r"\1", _lines(text))


def pack_script(text: str) -> str:
    """Return a script without what only its reader needs. Raises ValueError where a text or a template has no end."""
    tokens = _tokens(_lines(text))
    kept = []
    for before, token, after in zip(["", *tokens], tokens, [*tokens[1:], ""], strict=False):
        if token != " " or not (before[-1:] in _SIGNS or after[:1] in _SIGNS):
            kept.append(token)
    return "".join(kept)


def _lines(text: str) -> str:
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith(("//", "/*")))


def _tokens(text: str) -> list[str]:
    """Texts, pieces of templates, braces, single spaces, and what is between them."""
    found: list[str] = []
    open_braces: list[int] = []  # of each template that we are in an expression of
    at = 0
    while at < len(text):
        token = _match(_TOKEN, text, at)
        at += len(token)
        if token == "`" or (token == "}" and open_braces and not open_braces[-1]):
            if token == "}":
                open_braces.pop()
            piece = _match(_TEMPLATE, text, at)
            at += len(piece)
            token += piece
            if piece.endswith("${"):
                open_braces.append(0)
        elif token in ("{", "}") and open_braces:
            open_braces[-1] += 1 if token == "{" else -1
        found.append(token)
    return found


def _match(pattern: re.Pattern[str], text: str, at: int) -> str:
    found = pattern.match(text, at)
    if found is None:
        raise ValueError(f"no end of what begins with {text[at : at + 40]!r}")
    return found[0]


SCRIPTS = (
    *("text.js", "dom.js", "server.js", "verbs.js", "table.js", "chart.js"),
    *("view_crawl.js", "view_ring.js", "view_hosts.js", "view_failures.js"),
    *("view_mail.js", "view_outputs.js", "view_settings.js", "main.js"),
)
MOST_BYTES = 120_000  # of the whole page
_LONGEST_NONCE = 200


def write_page(nonce: str) -> str:
    """The page, whose style and script carry this nonce of the content security policy: letters, digits, `+/-_=`.

    Raises ValueError for any other nonce.
    """
    if not 0 < len(nonce) < _LONGEST_NONCE or not nonce.isascii() or not nonce.translate(_MARKS).isalnum():
        raise ValueError("a nonce has letters, digits and + / - _ = only")
    return _whole().replace("{nonce}", nonce, 2)


_MARKS = str.maketrans("", "", "+/-_=")


@cache
def _whole() -> str:
    """The page with its style and script, and a place for the nonce in both their tags."""
    style = pack_style(_read("page.css"))
    script = "\n".join(pack_script(_read(name)) for name in SCRIPTS)
    head, rest = _read("page.html").split("{style}")
    between, end = rest.split("{script}")
    return "".join((head, style, between, f'"use strict";\n(() => {{\n{script}\n}})();\n', end))


def _read(name: str) -> str:
    return files(__name__).joinpath(name).read_text("utf-8")
