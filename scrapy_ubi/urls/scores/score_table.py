"""The scorer `file(...)` of UBI_SCORE: a file of URLs and numbers, read whole before the crawl begins.

Rules of this module:

* A line is a URL, a tab, a number; the file may be packed by gzip. It comes from outside: a line that does not hold is
  left out, and counted by its reason; that the file cannot be read, or has no line that holds, is a `UbiSettingError`.
* A URL counts by its normal form under UBI_NORMALISE. Of two lines for one the first counts.
* In memory are 64 bits of a URL's key and 32 of its score: 12 bytes each, and some times as much while it is read.
  At most `MOST` lines are; that two of a million URLs have one key happens once in 10^7 files.
"""

from __future__ import annotations

import gzip
import zlib
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import IO, TYPE_CHECKING

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.ground.later import Later
from scrapy_ubi.urls.filters.base import one, only
from scrapy_ubi.urls.filters.filter_text import Arguments, FilterError
from scrapy_ubi.urls.key import url_key
from scrapy_ubi.urls.scores.link_batch import LinkBatch, cut

if TYPE_CHECKING:
    import numpy as np
else:
    np = Later("numpy")

SETTING = "UBI_SCORE"
MOST = 20_000_000  # lines: 240 MB
MOST_LINE = 70_000  # bytes: the longest URL, and a number
_GZIP = b"\x1f\x8b"
REMEDY = "name a file of lines 'URL<tab>number', such as `scrapy ubi rank` writes"

NormalForm = Callable[[str], str | None]


@dataclass(slots=True)
class ScoresRead:
    """What was in a file. `refused`: lines left out, by reason: `line` (no tab, or no ASCII), `url` (no http or https
    URL), `number`, `long`, `double`; `first`: the number of the first of them, and its reason."""

    lines: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    first: tuple[int, str] = (0, "")

    def refuse(self, reason: str) -> None:
        """The line that was read last does not hold."""
        self.refused[reason] += 1
        if not self.first[0]:
            self.first = self.lines, reason


class ScoreTable:
    """The scores of URLs by key: a scorer of a chain."""

    def __init__(self, keys: array[int], scores: array[int], normal_form: NormalForm) -> None:
        """`keys` are in order, each once, and `scores` beside them."""
        self._keys = keys
        self._scores = scores
        self._normal_form = normal_form

    def __len__(self) -> int:
        return len(self._keys)

    def __call__(self, links: LinkBatch) -> list[float]:
        return [self._one(url) for url in links.urls]

    def _one(self, url: str) -> int:
        normal = self._normal_form(url)
        if normal is None:
            return 0
        key = url_key("GET", normal)
        at = bisect_left(self._keys, key)
        return self._scores[at] if at < len(self._keys) and self._keys[at] == key else 0


class FileScore:
    """`file(scores.gz)`: the number that the file has for a link's URL, 0 where it has none; and before it was read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._table: Callable[[LinkBatch], list[float]] = lambda links: [0.0] * len(links.urls)

    def read(self, normal_form: NormalForm) -> tuple[int, ScoresRead]:
        """Read the file, as `read_scores` does: for how many URLs there are scores, and what was left out."""
        self._table, found = table, _ = read_scores(self.path, normal_form)
        return len(table), found

    def __call__(self, links: LinkBatch) -> list[float]:
        return self._table(links)


def file_score(arguments: Arguments) -> FileScore:
    """Make the scorer of a file that is still to be read. Raises FilterError."""
    only(arguments, "")
    path = one(arguments, "", "")
    if not path or "\0" in path:
        raise FilterError("names no file", REMEDY)
    return FileScore(Path(path))


def read_scores(path: Path, normal_form: NormalForm) -> tuple[ScoreTable, ScoresRead]:
    """The scores of a file, and what was left out of it. A million lines take some seconds: to be called in a thread.
    Raises UbiSettingError."""
    found = ScoresRead()
    keys = array("Q")
    scores = array("i")
    try:
        with _opened(path) as file:
            for key, score in _rows(file, normal_form, found):
                keys.append(key)
                scores.append(score)
    except (OSError, EOFError, zlib.error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise UbiSettingError(SETTING, f"has the file {str(path)!r}, which cannot be read ({reason})", REMEDY) from None
    if not keys:
        problem = f"has the file {str(path)!r}, in which none of {found.lines:,} lines holds"
        raise UbiSettingError(SETTING, problem + (f" ({found.first[1]})" if found.lines else ""), REMEDY)
    return ScoreTable(*_in_order(keys, scores, found), normal_form), found


def _opened(path: Path) -> IO[bytes]:
    with path.open("rb") as file:
        packed = file.read(2) == _GZIP
    return gzip.open(path) if packed else path.open("rb")  # type: ignore[return-value]


def _rows(file: IO[bytes], normal_form: NormalForm, found: ScoresRead) -> Iterator[tuple[int, int]]:
    """Key and score of each line that holds."""
    while line := file.readline(MOST_LINE):
        found.lines += 1
        if found.lines > MOST:
            raise UbiSettingError(SETTING, f"has a file of more than {MOST:,} lines", "keep the best ones")
        if not line.endswith(b"\n") and len(line) == MOST_LINE:
            found.refuse("long")
            while (line := file.readline(MOST_LINE)) and not line.endswith(b"\n"):
                pass
            continue
        url, tab, text = line.rstrip(b"\r\n").partition(b"\t")
        if not tab or not line.isascii():
            found.refuse("line")
            continue
        score = _score(text)
        if score is None:
            found.refuse("number")
            continue
        normal = normal_form(url.decode("ascii"))
        if normal is None:
            found.refuse("url")
            continue
        yield url_key("GET", normal), score


def _score(text: bytes) -> int | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return round(cut(value)) if isfinite(value) else None


def _in_order(keys: array[int], scores: array[int], found: ScoresRead) -> tuple[array[int], array[int]]:
    """By key, the first score of each. Arrays of Python answer a single question faster than those of numpy."""
    sorted_keys, first = np.unique(np.frombuffer(keys, np.uint64), return_index=True)
    if doubles := len(keys) - len(first):
        found.refused["double"] += doubles
    chosen = np.frombuffer(scores, np.int32)[first]
    return array("Q", sorted_keys.tobytes()), array("i", chosen.tobytes())
