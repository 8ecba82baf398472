"""What a user searches for, read once for every kind of index, and made a query of FTS5.

Words must all be on a page. `"some words"` is a phrase, `word*` the beginning of a word, `-word` must not be there.
Nothing else has a meaning: every word is quoted, so that no text is an error of an index's own syntax.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from scrapy_ubi.errors import UbiError

MOST_WORDS = 64
MOST_CHARACTERS = 10_000

_terms = re.compile(r'(-?)(?:"([^"]*)"|([^\s"]+))')


class UbiBadQuery(UbiError):
    """What is searched for says nothing; the sentence says why."""


class Term(NamedTuple):
    """A word or a phrase; `begins`: it is the beginning of a word."""

    text: str
    begins: bool


class Query(NamedTuple):
    """What must be on a page, and what must not."""

    wanted: tuple[Term, ...]
    unwanted: tuple[Term, ...]

    @property
    def fts5(self) -> str:
        """The query, for `MATCH`."""
        found = " AND ".join(map(_quoted, self.wanted))
        return f"({found}) NOT ({' OR '.join(map(_quoted, self.unwanted))})" if self.unwanted else found


def query(words: Sequence[str]) -> Query:
    """Read it. Raises UbiBadQuery."""
    text = " ".join(words).encode("utf-8", "replace").decode()
    if len(text) > MOST_CHARACTERS:
        raise UbiBadQuery(f"The search has more than {MOST_CHARACTERS} characters: give fewer words.")
    if text.count('"') % 2:
        raise UbiBadQuery('The search has a quotation mark without another one: a phrase is written "some words".')
    wanted: list[Term] = []
    unwanted: list[Term] = []
    for minus, phrase, word in _terms.findall(text):
        term = phrase or word
        if _has_word(term):
            printable = "".join(" " if ord(one) < 32 else one for one in term.rstrip("*"))
            (unwanted if minus else wanted).append(Term(printable, word.endswith("*")))
    if not wanted:
        raise UbiBadQuery("The search has no word that a page could have: give one with letters or digits, without -.")
    if len(wanted) + len(unwanted) > MOST_WORDS:
        raise UbiBadQuery(f"The search has more than {MOST_WORDS} words: give fewer.")
    return Query(tuple(wanted), tuple(unwanted))


def _quoted(term: Term) -> str:
    return f'"{term.text}"' + (" *" if term.begins else "")


def _has_word(term: str) -> bool:
    """Whether FTS5 finds a word in it: letters, numbers, and what is for private use."""
    return any((kind := unicodedata.category(one))[0] in "LN" or kind == "Co" for one in term)
