"""What sites say their pages may be used for: `Content-Usage` (IETF AIPREF) and Cloudflare's `Content-Signal`.

Rules of this module:

* A statement says of a purpose yes (`y`), no (`n`), or nothing. Of several statements no counts before yes
  (draft-ietf-aipref-vocab, 5.1). What says neither in the form it should have says nothing.
* `Content-Usage` is a dictionary of structured fields (RFC 9651): one mistake in it, and the whole says nothing.
  `Content-Signal` is a list of `name=yes` or `name=no`, with names of its own for the same purposes.
* Statements are data from outside: read within `MOST` characters, in time that grows with them and no faster.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

PURPOSES = ("train-ai", "ai-use", "search")  # those of draft-ietf-aipref-vocab
USAGE = "ubi_usage"  # meta key: what the site of a page says, by purpose
MOST = 8192  # characters of a statement
SIGNALS = {"search": "search", "ai-train": "train-ai", "ai-input": "ai-use"}  # Cloudflare's name -> AIPREF's
ANSWERS = {"yes": "y", "no": "n"}

Usage = dict[str, str]

_KEY = r"[a-z*][a-z0-9_.*-]*"
_TOKEN = r"[A-Za-z*][\w!#$%&'*+.^`|~:/-]*"
_STRING = r'"(?:[ !#-\[\]-~]|\\["\\])*+"'
_ITEM = (
    rf"(?:-?[0-9]{{1,15}}(?:\.[0-9]{{1,3}})?|{_STRING}|{_TOKEN}|:[A-Za-z0-9+/=]*+:|\?[01]|@-?[0-9]{{1,15}}|%{_STRING})"
)
_PARAMETERS = rf"(?:; *+{_KEY}(?:={_ITEM})?)*+"
_INNER = rf"\( *+(?:{_ITEM}{_PARAMETERS}(?: ++(?={_ITEM})| *+(?=\))))*+\)"
_MEMBER = rf"({_KEY})(?:=(?:({_ITEM})|{_INNER}))?{_PARAMETERS}"  # takes some ms to compile: re does at its first use
_between = re.compile(r"[ \t]*+,[ \t]*+").match


def of_field(text: str) -> Usage:
    """What a `Content-Usage` says."""
    members: dict[str, str | None] = {}
    member = re.compile(_MEMBER, re.ASCII).match
    text = text.strip(" \t")
    place = 0 if text and len(text) <= MOST else -1
    while place >= 0:
        found = member(text, place)
        if found is None:
            return {}
        members.pop(found[1], None)
        members[found[1]] = found[2]
        if found.end() == len(text):
            break
        comma = _between(text, found.end())
        if comma is None:
            return {}
        place = comma.end()
    return {purpose: said for purpose in PURPOSES if (said := members.get(purpose)) in ("y", "n") and said}


def of_signal(text: str) -> Usage:
    """What a `Content-Signal` says, in AIPREF's words."""
    statements = []
    for part in text[:MOST].split(","):
        name, _, answer = part.strip().lower().partition("=")
        purpose, said = SIGNALS.get(name.strip()), ANSWERS.get(answer.strip())
        if purpose and said:
            statements.append({purpose: said})
    return combined(statements)


def combined(statements: Iterable[Mapping[str, str]]) -> Usage:
    """What several statements say together: no before yes, in the order of the purposes."""
    found: dict[str, str] = {}
    for statement in statements:
        for purpose, said in statement.items():
            if found.get(purpose) != "n":
                found[purpose] = said
    return {purpose: found[purpose] for purpose in PURPOSES if purpose in found}


def text_of(usage: Mapping[str, str]) -> str:
    """As a `Content-Usage` says it."""
    return ", ".join(f"{purpose}={said}" for purpose, said in usage.items())
