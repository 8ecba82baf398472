"""A table of rules, read key by key: each value is checked as it is taken, and a key that is not taken is an error.

Rules of this module: the first thing that does not hold raises UbiRulesError, with the place of the value, its name,
what is wrong with it, and what to write.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

from scrapy_ubi.cli.patterns.expressions import BadExpression
from scrapy_ubi.cli.patterns.rules_error import UbiRulesError, Where, nearest, written
from scrapy_ubi.cli.patterns.toml_lines import Path

MOST_TEXTS = 10_000  # of one list
LONGEST_TEXT = 10_000  # characters

_Read = TypeVar("_Read")


class CheckedTable:
    """One table. `path`: its place in the document."""

    def __init__(self, value: object, path: Path, where: Where) -> None:
        self.path = path
        self._where = where
        if not isinstance(value, dict):
            head = f"[{written(path)}]"
            raise UbiRulesError(
                f"{where(path)}: {written(path)} is {_shown(value)}, no table: write {head} above its keys."
            )
        self._values = dict(value)
        self._known: list[str] = []

    @property
    def keys(self) -> list[str]:
        """The keys that are left."""
        return list(self._values)

    def refused(self, path: Sequence[str | int], problem: str, remedy: str = "") -> UbiRulesError:
        """The error for a value at this path below the table."""
        whole = (*self.path, *path)
        end = f": {remedy}" if remedy else ""
        return UbiRulesError(f"{self._where(whole)}: {written(whole)} {problem}{end}.")

    def end(self, beside: Sequence[str] = ()) -> None:
        """Raise UbiRulesError for the first key that was not taken. `beside`: keys that are known as well."""
        self._known += [key for key in beside if key not in self._known]
        for key in self._values:
            whole = (*self.path, key)
            place = f" of [{written(self.path)}]" if self.path else ""
            raise UbiRulesError(f"{self._where(whole)}: {key!r:.100} is no key{place}: {nearest(key, self._known)}")

    def table(self, key: str) -> CheckedTable:
        """A table in this one; an empty one where it is missing."""
        return CheckedTable(self._take(key, {}), (*self.path, key), self._where)

    def has(self, key: str) -> bool:
        """Whether there is a value."""
        return key in self._values

    def flag(self, key: str, default: bool) -> bool:
        """true or false."""
        value = self._take(key, default)
        if not isinstance(value, bool):
            raise self.refused((key,), f"is {_shown(value)}", "write true or false")
        return value

    def whole(self, key: str, least: int) -> int | None:
        """A whole number; None where it is missing."""
        value = self._take(key, None)
        if value is not None and (type(value) is not int or value < least):
            raise self.refused((key,), f"is {_shown(value)}", f"write a whole number from {least} on")
        return value

    def number(self, key: str, least: float, most: float) -> float | None:
        """A number; None where it is missing."""
        value = self._take(key, None)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise self.refused((key,), f"is {_shown(value)}", f"write a number from {least:g} to {most:g}")
        return float(value)

    def text(self, key: str, default: str = "") -> str:
        """One text."""
        value = self._take(key, default)
        if not isinstance(value, str) or len(value) > LONGEST_TEXT:
            raise self.refused((key,), f"is {_shown(value)}", "write a text in quotes")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """One text or a list of them, none of them empty; empty where it is missing."""
        value = self._take(key, [])
        if isinstance(value, str):
            value = [value]
        if not isinstance(value, list) or len(value) > MOST_TEXTS:
            raise self.refused((key,), f"is {_shown(value)}", "write a text in quotes, or a list of texts")
        for number, one in enumerate(value):
            if not isinstance(one, str) or not one.strip() or len(one) > LONGEST_TEXT:
                raise self.refused((key, number), f"is {_shown(one)}", "write a text in quotes")
        return tuple(value)

    def each(self, key: str, read: Callable[[str], _Read]) -> tuple[_Read, ...]:
        """What `read` makes of each text of a list; it raises BadExpression, whose reason is then said."""
        single = isinstance(self._values.get(key), str)
        found: list[_Read] = []
        for number, text in enumerate(self.texts(key)):
            try:
                found.append(read(text))
            except BadExpression as reason:
                path = (key,) if single else (key, number)
                raise self.refused(path, f"{text!r:.200} {reason}".rstrip(".")) from None
        return tuple(found)

    def _take(self, key: str, default: object) -> object:
        self._known.append(key)
        return self._values.pop(key, default)


def _shown(value: object) -> str:
    """A value in a sentence."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value!r:.60}" if isinstance(value, str | int | float | list) else f"a {type(value).__name__}"
