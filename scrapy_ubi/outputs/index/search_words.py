"""What a user searches for, read once for every kind of index, and made a query of FTS5.

Words must all be on a page. `"some words"` is a phrase, `word*` the beginning of a word, `-word` must not be there.
Nothing else has a meaning: words are those of `words.folded`, each is quoted, so that no text is an error of an index's
own syntax.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from scrapy_ubi.errors import UbiError
from scrapy_ubi.outputs.index.words import Row, folded, is_word_by_itself

MOST_WORDS = 64
MOST_CHARACTERS = 10_000

_terms = re.compile(r'(-?)(?:"([^"]*)"|([^\s"]+))')


class UbiBadQuery(UbiError):
    """What is searched for says nothing; the sentence says why."""


class Query(NamedTuple):
    """What must be on a page, and what must not."""

    wanted: tuple[Row, ...]
    unwanted: tuple[Row, ...]

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
    wanted: list[Row] = []
    unwanted: list[Row] = []
    for minus, phrase, word in _terms.findall(text):
        term = tuple(folded(phrase or word).split())
        if term:
            begins = word.endswith("*") and not is_word_by_itself(term[-1])
            (unwanted if minus else wanted).append(Row(term, begins))
    if not wanted:
        raise UbiBadQuery("The search has no word that a page could have: give one with letters or digits, without -.")
    if len(wanted) + len(unwanted) > MOST_WORDS:
        raise UbiBadQuery(f"The search has more than {MOST_WORDS} words: give fewer.")
    return Query(tuple(wanted), tuple(unwanted))


def _quoted(row: Row) -> str:
    return f'"{" ".join(row.words)}"' + (" *" if row.begins else "")
