"""What a user searches for, made a query of FTS5.

Words must all be on a page. `"some words"` is a phrase, `word*` the beginning of a word, `-word` must not be there.
Nothing else has a meaning: every word is quoted, so that no text is an error of FTS5's own syntax.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from scrapy_ubi.errors import UbiError

MOST_WORDS = 64
MOST_CHARACTERS = 10_000

_terms = re.compile(r'(-?)(?:"([^"]*)"|([^\s"]+))')


class UbiBadQuery(UbiError):
    """What is searched for says nothing; the sentence says why."""


def query(words: Sequence[str]) -> str:
    """The query, for `MATCH`. Raises UbiBadQuery."""
    text = " ".join(words).encode("utf-8", "replace").decode()
    if len(text) > MOST_CHARACTERS:
        raise UbiBadQuery(f"The search has more than {MOST_CHARACTERS} characters: give fewer words.")
    if text.count('"') % 2:
        raise UbiBadQuery('The search has a quotation mark without another one: a phrase is written "some words".')
    wanted: list[str] = []
    unwanted: list[str] = []
    for minus, phrase, word in _terms.findall(text):
        term = phrase or word
        if _has_word(term):
            quoted = '"' + "".join(" " if ord(one) < 32 else one for one in term.rstrip("*")) + '"'
            (unwanted if minus else wanted).append(quoted + (" *" if word.endswith("*") else ""))
    if not wanted:
        raise UbiBadQuery("The search has no word that a page could have: give one with letters or digits, without -.")
    if len(wanted) + len(unwanted) > MOST_WORDS:
        raise UbiBadQuery(f"The search has more than {MOST_WORDS} words: give fewer.")
    found = " AND ".join(wanted)
    return f"({found}) NOT ({' OR '.join(unwanted)})" if unwanted else found


def _has_word(term: str) -> bool:
    """Whether FTS5 finds a word in it: letters, numbers, and what is for private use."""
    return any((kind := unicodedata.category(one))[0] in "LN" or kind == "Co" for one in term)
