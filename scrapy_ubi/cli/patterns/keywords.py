"""How much a page is about some keywords, from 0 to 100: the accuracy that RCrawler computes.

Each of k keywords is worth 100 / k. A keyword that is there once gives half of that; twice 70 %, three times 80 %, four
times 90 %, five times or oftener all of it. (Khalil and Fakir, RCrawler, SoftwareX 6, 2017; its function `Precifunc`.)

Rules of this module: words are compared whole, without regard to capital letters; a keyword may be several words, with
anything that is no word between them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

FULL = 5  # times a keyword has to be there for its full worth

_words = re.compile(r"\w+").findall


@dataclass(frozen=True, slots=True)
class KeywordRule:
    """`[keywords]`. `accuracy`: the least that a page is collected with; `min_count`: how often a keyword has to be
    there to count at all."""

    words: tuple[str, ...]
    accuracy: float = 1.0
    min_count: int = 1
    _patterns: tuple[re.Pattern[str], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_patterns", tuple(map(_pattern, self.words)))

    def score(self, text: str) -> float:
        """The accuracy of a text, with two decimals."""
        folded, most = text.casefold(), max(FULL, self.min_count)
        counts = [sum(1 for _ in islice(pattern.finditer(folded), most)) for pattern in self._patterns]
        return accuracy([number if number >= self.min_count else 0 for number in counts])


def accuracy(counts: Sequence[int]) -> float:
    """The accuracy of a page on which keywords are so many times."""
    worth = 100 / len(counts)
    total = 0.0
    for number in counts:
        if number:
            total += worth / 2 if number == 1 else worth * (0.5 + min(number, FULL) / (2 * FULL))
    return round(total, 2)


def has_words(keyword: str) -> bool:
    """Whether there is anything to look for."""
    return bool(_words(keyword))


def _pattern(keyword: str) -> re.Pattern[str]:
    return re.compile(r"(?<!\w)" + r"\W+".join(map(re.escape, _words(keyword.casefold()))) + r"(?!\w)")
