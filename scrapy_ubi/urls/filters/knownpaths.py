"""URLs that software is known to make without end, or several of for one page: patterns in a data file.

LARM's KnownPathsFilter had the idea. `known_paths.toml` is the data; each pattern has

* `name` and `kind` (`sort`, `session`, `calendar`, or a word of your own);
* `needs`: a part in small letters that every such URL contains, looked for first, as it costs next to nothing;
* `regex`: searched for in path and query of the normal form;
* `source`: where it is known from; `refused` and `passed`: examples, which the tests try.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from scrapy_ubi.urls.filters.base import Link, SuiteFilter, one, only, target_of
from scrapy_ubi.urls.filters.filter_text import Arguments, FilterError

DATA = Path(__file__).with_name("known_paths.toml")

_FIELDS = {"name": str, "kind": str, "needs": str, "regex": str, "source": str, "refused": list, "passed": list}


class Pattern(NamedTuple):
    """One pattern of a data file."""

    name: str
    kind: str
    needs: str
    search: Callable[[str], object]
    source: str
    refused: tuple[str, ...]
    passed: tuple[str, ...]


class KnownPaths(SuiteFilter):
    """`known_paths`: all patterns; `known_paths(sort, calendar)`: those of these kinds; `file=`: a data file of yours
    in place of the package's.
    """

    name = "known_paths"

    def __init__(self, *kinds: str, file: str = "") -> None:
        patterns = read_patterns(Path(file) if file else DATA)
        known = sorted({pattern.kind for pattern in patterns})
        for kind in kinds:
            if kind not in known:
                raise FilterError(f"has the kind {kind!r}", f"the kinds are {', '.join(known)}")
        self.kinds = tuple(dict.fromkeys(kinds))
        self.file = file
        self._patterns = [(one.needs, one.search, one.name) for one in patterns if not kinds or one.kind in kinds]

    @classmethod
    def parse(cls, arguments: Arguments) -> KnownPaths:
        only(arguments, "", "file")
        return cls(*arguments.get("", ()), file=one(arguments, "file", ""))

    def arguments(self) -> Arguments:
        return {"": self.kinds, **({"file": (self.file,)} if self.file else {})}

    def refuses(self, link: Link) -> str:
        target = target_of(link.normal)
        small = target.lower()
        for needs, search, name in self._patterns:
            if needs in small and search(target):
                return name
        return ""


@cache
def read_patterns(path: Path) -> tuple[Pattern, ...]:
    """The patterns of a data file. Raises FilterError."""
    remedy = "see known_paths.toml of scrapy_ubi.urls.filters for what it must hold"
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FilterError(f"cannot read {str(path)!r} ({error.strerror})", "name a file that exists") from None
    except ValueError as error:
        raise FilterError(f"cannot read {str(path)!r} ({error})", remedy) from None
    rows = data.get("pattern")
    if not isinstance(rows, list) or not rows or data.keys() != {"pattern"}:
        raise FilterError(f"finds no [[pattern]], or something else, in {str(path)!r}", remedy)
    return tuple(_pattern(row, f"pattern {number} of {str(path)!r}", remedy) for number, row in enumerate(rows, 1))


def _pattern(row: Any, which: str, remedy: str) -> Pattern:
    if not isinstance(row, dict):
        raise FilterError(f"cannot read {which}", remedy)
    for field, kind in _FIELDS.items():
        if not isinstance(row.get(field, [] if kind is list else None), kind):
            raise FilterError(f"finds no good {field} in {which}", remedy)
    unknown = row.keys() - _FIELDS.keys()
    if unknown:
        raise FilterError(f"finds an unknown {min(unknown)} in {which}", remedy)
    try:
        search = re.compile(row["regex"]).search
    except (re.error, OverflowError, RecursionError) as error:
        raise FilterError(f"finds no regular expression in {which} ({error})", remedy) from None
    examples = (tuple(map(str, row.get(field, []))) for field in ("refused", "passed"))
    return Pattern(row["name"], row["kind"], row["needs"].lower(), search, row["source"], *examples)
