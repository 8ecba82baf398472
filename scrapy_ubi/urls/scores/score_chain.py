"""The scorers of a crawl, as UBI_SCORE gives them: what they add up to.

Rules of this module:

* An entry is a text (one scorer or several) or a tuple of a name and its arguments, in the grammar of UBI_FILTERS. What
  is malformed is a `UbiSettingError` at the start that names UBI_SCORE, the entry and the remedy.
* The score of a link is the exact sum of what the scorers say of it, rounded, and cut to `MOST_SCORE`. So the order of
  the scorers does not matter, and a batch of many links is scored as batches of one are.
* A scorer of the user's that raises, or answers with anything but as many numbers, is asked about each link alone. For
  those where that fails, too, it adds nothing, which is reported with a reason; the other scorers count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from math import fsum, isnan

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.urls.filters.filter_text import Arguments, Call, FilterError, calls_of, made_of, write
from scrapy_ubi.urls.scores.link_batch import LinkBatch, Score, Scorer, cut
from scrapy_ubi.urls.scores.score_table import file_score
from scrapy_ubi.urls.scores.scorers import DepthScore, FreshScore, KeywordScore, PathScore

SETTING = "UBI_SCORE"

SUITE: dict[str, Callable[[Arguments], Score]] = {
    "keywords": KeywordScore.from_arguments,
    "depth": DepthScore.from_arguments,
    "path": PathScore.from_arguments,
    "fresh": FreshScore.from_arguments,
    "file": file_score,
}
EXAMPLE = "give scorers such as 'keywords(crawler, weight=10)', 'depth(-1)', or the dotted path of your own"


class _NotNumbers(ValueError):
    """The answer of a scorer is not one number for each link."""


def _ignore(scorer: Scorer, reason: str, error: Exception) -> None:
    """Does nothing: errors are not reported."""


class ScoreChain:
    """Scorers whose numbers add up. `on_error` is told of a scorer that failed for a link: `raised`, `nan` (no number),
    or `answer` (anything else, or another count of numbers)."""

    def __init__(self, scorers: Iterable[Scorer], on_error: Callable[[Scorer, str, Exception], None] = _ignore) -> None:
        self.scorers = tuple(scorers)
        self.on_error = on_error

    @classmethod
    def read(cls, entries: Sequence[object]) -> ScoreChain:
        """The chain of UBI_SCORE. Raises UbiSettingError."""
        return cls(scorer for entry in entries for scorer in _scorers(entry))

    def scores(self, links: LinkBatch) -> list[int]:
        """The score of each link of a batch."""
        columns = [self._column(scorer, links) for scorer in self.scorers]
        return [round(cut(fsum(each))) for each in zip(*columns, strict=True)] if columns else [0] * len(links.urls)

    def _column(self, scorer: Scorer, links: LinkBatch) -> list[float]:
        with suppress(Exception):  # users' own scorers, and links of any kind: no page is lost by it
            return _numbers(scorer.score, links)
        return [self._alone(scorer, links, at) for at in range(len(links.urls))]

    def _alone(self, scorer: Scorer, links: LinkBatch, at: int) -> float:
        one = links._replace(urls=links.urls[at : at + 1], anchors=links.anchors[at : at + 1])
        try:
            return _numbers(scorer.score, one)[0]
        except _NotNumbers as error:
            self.on_error(scorer, str(error), error)
        except Exception as error:  # noqa: BLE001 - likewise
            self.on_error(scorer, "raised", error)
        return 0.0

    def __len__(self) -> int:
        return len(self.scorers)

    def __str__(self) -> str:
        return "; ".join(scorer.text for scorer in self.scorers)


def _numbers(score: Score, links: LinkBatch) -> list[float]:
    """What a scorer answers, each within the bounds. Raises _NotNumbers with the reason, and what the scorer raises."""
    answer = list(score(links))
    if len(answer) != len(links.urls):
        raise _NotNumbers("answer")
    try:
        if any(map(isnan, answer)):
            raise _NotNumbers("nan")
        return [cut(value) for value in answer]
    except (TypeError, OverflowError):  # what is no number; an int that no float can hold
        raise _NotNumbers("answer") from None


def _scorers(entry: object) -> Iterator[Scorer]:
    try:
        yield from map(_make, calls_of(entry, "is no scorer", EXAMPLE))
    except FilterError as error:
        raise UbiSettingError(SETTING, f"has {entry!r:.200}, which {error.problem}", error.remedy) from error


def _make(call: Call) -> Scorer:
    text = write(call)
    if (known := SUITE.get(call.name)) is not None:
        return Scorer(call.name, text, known(call.arguments))
    found = made_of(call, SUITE, "scorer")
    if not callable(found):
        raise FilterError(
            f"names {call.name!r}, which cannot be called",
            "give a function that takes a LinkBatch, or a class with such a __call__",
        )
    return Scorer(call.name.rpartition(".")[2].lower(), text, found)
