"""The filters of a crawl in their order, as UBI_FILTERS gives them.

Rules of this module:

* An entry is a text (one filter or several), a tuple of a name and its arguments, or a filter. All three come to a
  filter with a text form, and the texts of a chain read as UBI_FILTERS make an equal chain.
* What is malformed is a `UbiSettingError` at the start that names UBI_FILTERS, the entry and the remedy.
* The first filter that refuses decides. A filter of the user's that raises is passed over for that link and reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.urls.filters.base import Link, SuiteFilter, UrlFilter
from scrapy_ubi.urls.filters.filter_text import Call, FilterError, arguments_of, named_class, parse_calls
from scrapy_ubi.urls.filters.knownpaths import KnownPaths
from scrapy_ubi.urls.filters.scope import Scope
from scrapy_ubi.urls.filters.simple import Depth, Extensions, Length, Schemes, Visited
from scrapy_ubi.urls.filters.traps import Traps

SETTING = "UBI_FILTERS"

_CLASSES: tuple[type[SuiteFilter], ...] = (Length, Schemes, Extensions, Depth, Scope, KnownPaths, Traps, Visited)
SUITE: Mapping[str, type[UrlFilter]] = {cls.name: cls for cls in _CLASSES}


class Refusal(NamedTuple):
    """Which filter refuses a link, and why, in a word or a few."""

    filter: UrlFilter
    why: str


def _ignore(judge: UrlFilter, error: Exception) -> None:
    """Does nothing: errors are not reported."""


class FilterChain:
    """Filters in their order. `on_error` is told of a filter that raised."""

    def __init__(
        self, filters: Iterable[UrlFilter] = (), on_error: Callable[[UrlFilter, Exception], None] = _ignore
    ) -> None:
        self.filters = tuple(filters)
        self.on_error = on_error
        self._hosted = [(judge.refuses, judge) for judge in self.filters]
        self._hostless = [(judge.refuses, judge) for judge in self.filters if judge.hostless]
        self._redirects = [(judge.refuses, judge) for judge in self.filters if judge.redirects]

    @classmethod
    def read(cls, entries: Sequence[object]) -> FilterChain:
        """The chain of UBI_FILTERS. Raises UbiSettingError."""
        return cls(judge for entry in entries for judge in _filters(entry))

    def refusal(self, link: Link, redirect: bool = False) -> Refusal | None:
        """Who refuses the link, None when it passes. `redirect`: it is where a redirect leads to."""
        asked = self._redirects if redirect else self._hosted if link.normal else self._hostless
        for refuses, judge in asked:
            try:
                why = refuses(link)
            except Exception as error:  # noqa: BLE001 - users' own filters, and links of any kind: no page is lost by it
                self.on_error(judge, error)
                continue
            if why:
                return Refusal(judge, why)
        return None

    def seed(self, link: Link) -> None:
        """A seed was met: the filters are told, and do not judge it."""
        for judge in self.filters:
            try:
                judge.seed(link)
            except Exception as error:  # noqa: BLE001 - as above
                self.on_error(judge, error)

    def know_seeds_of(self, former: FilterChain) -> None:
        """Its filters know the seeds that such filters of a former chain have met."""
        for judge in self.filters:
            for other in former.filters:
                if isinstance(judge, Scope) and isinstance(other, Scope):
                    judge.know_seeds_of(other)

    def __iter__(self) -> Iterator[UrlFilter]:
        return iter(self.filters)

    def __len__(self) -> int:
        return len(self.filters)

    def __str__(self) -> str:
        return "; ".join(map(str, self.filters))


def check_live(entries: Sequence[object]) -> None:
    """Check the filters of a running crawl, which may come from outside: texts that name filters of the suite, without
    files, which are one machine's. Raises UbiSettingError."""
    for entry in entries:
        try:
            for call in parse_calls(entry) if isinstance(entry, str) else ():
                if call.name not in SUITE or "file" in call.arguments:
                    raise FilterError(
                        "is a class of yours, or reads a file",
                        "a running crawl takes filters of the suite without files: set others in settings.py",
                    )
            if not isinstance(entry, str):
                raise FilterError("is no text", "give texts such as 'length(2048)'")
        except FilterError as error:
            raise UbiSettingError(SETTING, f"has {entry!r:.200}, which {error.problem}", error.remedy) from error
    FilterChain.read(entries)


def parse(text: str) -> UrlFilter:
    """The one filter that a text stands for. Raises FilterError."""
    calls = parse_calls(text)
    if len(calls) != 1:
        raise FilterError(f"stands for {len(calls)} filters", "give one")
    return _make(calls[0])


def _filters(entry: object) -> Iterator[UrlFilter]:
    try:
        if isinstance(entry, str):
            yield from map(_make, parse_calls(entry))
        elif isinstance(entry, UrlFilter):
            yield _whole(entry)
        elif isinstance(entry, tuple) and entry and isinstance(entry[0], str):
            yield _make(Call(entry[0], arguments_of(entry[1:])))
        else:
            raise FilterError(
                "is no filter", "give texts such as 'length(2048)', tuples such as ('length', 2048), or UrlFilters"
            )
    except FilterError as error:
        shown = repr(entry)
        shown = shown if len(shown) <= 200 else f"{shown[:197]}..."
        raise UbiSettingError(SETTING, f"has {shown}, which {error.problem}", error.remedy) from error


def _make(call: Call) -> UrlFilter:
    made = _class(call.name).parse(call.arguments)
    if any(call.arguments.values()) and not made.arguments() and not isinstance(made, SuiteFilter):
        raise FilterError("does not give its arguments back", f"let {call.name}.arguments() return them")
    return made


def _whole(judge: UrlFilter) -> UrlFilter:
    """An equal filter to one given as an object, made of its text: crawls of one process may be given the same."""
    made = parse(str(judge))
    if made != judge:
        raise FilterError(f"does not come back from its text {str(judge)!r}", "let arguments() return what it needs")
    return made


def _class(name: str) -> type[UrlFilter]:
    if (known := SUITE.get(name)) is not None:
        return known
    found = named_class(name, SUITE, "filter")
    if not (isinstance(found, type) and issubclass(found, UrlFilter)):
        raise FilterError(f"names {name!r}, which is no filter", "give a subclass of scrapy_ubi.urls.filters.UrlFilter")
    return found
