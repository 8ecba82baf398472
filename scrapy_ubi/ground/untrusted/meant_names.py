"""Which known name was probably meant by one that is not known: for the sentence that refuses it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher

LIKE_WORDS = 0.6  # of a word to one that is probably meant (difflib's ratio): letters changed, left out or twice
LIKE_NAMES = 0.6  # of the words of a name that have to be found again
LIKE_WHOLE = 0.85  # of a name that is like another one letter by letter
MOST_MEANT = 3

_words = re.compile(r"[^\W_]+").findall


def find_meant(name: str, known: Iterable[str]) -> list[str]:
    """Return the known names that were probably meant by one that is not known, at most `MOST_MEANT` that are equally
    near; none where it would be a guess.

    They share most of its words, each perhaps misspelt. Letters alone mislead: `UBI_LIMITS` is nearer to
    `UBI_FILTERS` than to `UBI_CRAWL_LIMITS`. A word that all known names begin with says nothing.
    """
    names = list(known)
    said, words = _words(name.lower()), [_words(one.lower()) for one in names]
    if len(names) > 1 and said and all(one[:1] == said[:1] and len(one) > 1 for one in words):
        said, words = said[1:], [one[1:] for one in words]
    scores = {one: _likeness(name, said, one, its) for one, its in zip(names, words, strict=True)}
    best = max(scores.values(), default=(0, 0.0))
    return [one for one, score in scores.items() if score == best][:MOST_MEANT] if best > (0, 0.0) else []


def ask_meant(name: str, known: Iterable[str]) -> str:
    """Return `did you mean A or B`, '' where nothing is near."""
    meant = find_meant(name, known)
    return f"did you mean {' or '.join(meant)}" if meant else ""


def _likeness(name: str, said: list[str], other: str, words: list[str]) -> tuple[int, float]:
    """Return how many words of a name another one has as they are, and how like it is; zeros where it is not."""
    left, found, exact = list(words), 0.0, 0
    for word in said:
        likest = max(left, key=lambda one: _ratio(word, one), default="")
        if (ratio := _ratio(word, likest)) >= LIKE_WORDS:
            left.remove(likest)
            found += ratio
            exact += ratio == 1
    shared = 2 * found / (len(said) + len(words)) if said and words else 0.0
    whole = _ratio(name.lower(), other.lower())
    if shared >= LIKE_NAMES:
        return exact, shared
    return (0, whole) if whole >= LIKE_WHOLE else (0, 0.0)


def _ratio(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other).ratio()
