"""A script or a style without what only its reader needs: indentation, lines that are a comment, spaces around signs.

Rules of this module:

* What a text or a template holds stays as it is, byte by byte. Line ends stay, so that no statement runs into the next.
* It knows no regular expressions and no comments behind a statement: those of the page hold no quotation mark, and
  the former no space. Where one does, `ValueError` says so at once.
"""

from __future__ import annotations

import re

_SIGNS = frozenset("{}()[]=<>?:;,&|*!.")
_TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|[`{} ]|[^"\'`{} ]+')
_TEMPLATE = re.compile(r"(?:\\.|[^`\\$]|\$(?!\{))*(?:`|\$\{)", re.DOTALL)
_STYLE_SPACES = re.compile(r"\s*([{};,])\s*")


def style(text: str) -> str:
    """A style sheet."""
    return _STYLE_SPACES.sub(r"\1", _lines(text))


def script(text: str) -> str:
    """A script. Raises ValueError where a text or a template has no end."""
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
