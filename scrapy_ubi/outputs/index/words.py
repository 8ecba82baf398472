"""What a word is for the search: one function for what is indexed and for what is asked, whatever the index.

Rules of this module:

* A word is a run of letters, digits and their marks. Case, accents, and forms that mean the same count for nothing:
  `Straße` is `strasse`, `ＡＢＣ` is `abc`, `ﬁ` is `fi`, points of Hebrew and vowel signs of Arabic are left out.
* What is invisible within words does not part them: soft hyphens, joiners, marks of direction.
* Scripts that are written without blanks between words (Chinese, Japanese, Thai, Lao, Khmer, Burmese) give a word for
  each character; several in a row are searched for as a phrase. So whatever part of a run is asked for is found.
* Nothing depends on an engine's own rules: what it is given has only words of this module, with single spaces.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

LONGEST = 80  # characters of a word: longer ones are known by their beginning

_ASCII = {code: " " if not chr(code).isalnum() else chr(code).lower() for code in range(128)}
# Accents and points, which stand on a letter or are left out. Not the vowel signs of Indic scripts and of Thai, and not
# the sound marks of kana: these make other words.
_ACCENTS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f"
    "\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0730-\u074a\u1ab0-\u1aff\u1dc0-\u1dff"
    "\u20d0-\u20f0\ufe00-\ufe0f\ufe20-\ufe2f"
)
_TATWEEL = "\u0640"
_drop = re.compile(f"[{_ACCENTS}{_TATWEEL}]+")
_LETTERS = str.maketrans({"ı": "i", "ł": "l", "ø": "o", "đ": "d", "ħ": "h", "æ": "ae", "œ": "oe"})
_UNPARTED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u19e0-\u19ff\ua9e0-\ua9ff\uaa60-\uaa7f"  # Thai, Lao, Burmese, Khmer
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303c\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u3100-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
    "\U0001aff0-\U0001b16f\U00020000-\U0003ffff"
)
_is_unparted = re.compile(f"[{_UNPARTED}]").match
_part = re.compile(rf"[{_UNPARTED}]|[^\s{_UNPARTED}]+")
_BLANK = 0x200B  # "zero width space": it parts words


class _Kinds(dict[int, str]):
    """What becomes of each character of a folded text: itself, a space, nothing, or itself between spaces."""

    def __missing__(self, code: int) -> str:
        one = chr(code)
        kind = unicodedata.category(one)
        if _is_unparted(one) and kind[0] in "LMN":
            found = f" {one} "
        elif kind[0] in "LMN" or kind == "Co":
            found = one
        else:
            found = "" if kind == "Cf" and code != _BLANK else " "
        self[code] = found
        return found


_kinds = _Kinds()


def folded(text: str) -> str:
    """The words of a text, in their order, with a space between each two."""
    if text.isascii():
        words = text.translate(_ASCII).split()
    else:
        parts = [part.translate(_ASCII) if part.isascii() else _folded(part) for part in text.split()]
        words = " ".join(parts).split()
    if max(map(len, words), default=0) > LONGEST:
        words = [word[:LONGEST] for word in words]
    return " ".join(words)


def _folded(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text)
    plain = unicodedata.normalize("NFKD", _drop.sub("", plain).casefold().translate(_LETTERS))
    return unicodedata.normalize("NFC", _drop.sub("", plain)).translate(_kinds)


def is_word_by_itself(one: str) -> bool:
    """Whether a character is a whole word, in a script without blanks."""
    return _is_unparted(one) is not None


class Row(NamedTuple):
    """Words that stand behind each other; `begins`: of the last one this is the beginning."""

    words: tuple[str, ...]
    begins: bool


def first_place(text: str, rows: Sequence[Row]) -> int:
    """Where the first of these rows of words begins in a text; 0 where none is found."""
    parts = [(found.start(), folded(found[0]).split()) for found in _part.finditer(text)]
    words = [word for _, some in parts for word in some]
    starts = [start for start, some in parts for _ in some]
    for at, start in enumerate(starts):
        if any(_is_here(words, at, row) for row in rows):
            return start
    return 0


def _is_here(words: list[str], at: int, row: Row) -> bool:
    stop = at + len(row.words)
    if words[at : stop - 1] != [*row.words[:-1]] or stop > len(words):
        return False
    return words[stop - 1].startswith(row.words[-1]) if row.begins else words[stop - 1] == row.words[-1]
