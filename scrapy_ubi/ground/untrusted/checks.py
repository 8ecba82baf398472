"""The checks that all readers of foreign JSON share: what a value has to be, asked with one word for each question.

Letters, answers, questions, profiles, notes and rows of the store are written by other processes. Rules of this module:

* A check (`is_...`) answers and never raises. A reader (the others) gives the value, or raises `Malformed` with a short
  reason that quotes at most 40 characters of the data. Nothing is repaired or converted.
* A truth value is no number, and a number that is not finite is none either, although Python reads both as such.
* Whatever can be long has a bound, which its reader names.
* No I/O, no clock, and nothing of the rest of the package: the protocol, which is sans-IO, reads by these checks.

Where a letter has thousands of one value (keys, URLs), its reader asks in place: a call for each costs more than the
question (docs/decisions/0040-readers.md).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from math import inf
from typing import Any, TypeGuard, TypeVar

MOST_COUNT = 2**63  # no counter of a crawl gets there

NAME = re.compile(r"[A-Za-z0-9_.:-]{1,64}")  # of an agent, a crawl, a store
KEY = re.compile(r"[0-9a-f]{16}")  # of a URL, a view
HOST = re.compile(r"[^\s\x00-\x1f\x7f]{1,300}")

_T = TypeVar("_T")


class Malformed(ValueError):
    """What came from outside does not hold: the reason is the message."""


def _refuse(name: str) -> None:
    raise ValueError(name)


# Reads JSON as it is defined: Python's own reader takes NaN and Infinity as well.
strict_json = json.JSONDecoder(parse_constant=_refuse).decode


def json_object(text: Any, read: Callable[[Any], Any] = json.loads, deep: str = "not JSON") -> dict[str, Any]:
    """The JSON object in this text, or in these bytes. Raises `Malformed`, with the reason `deep` for one that is
    nested too deeply to be read."""
    try:
        value = read(text)
    except RecursionError:
        raise Malformed(deep) from None
    except ValueError:
        raise Malformed("not JSON") from None
    if not isinstance(value, dict):
        raise Malformed("not a JSON object")
    return value


def object_or_nothing(text: str) -> dict[str, Any]:
    """The JSON object in this text, an empty one where there is none."""
    try:
        return json_object(text)
    except Malformed:
        return {}


# -- checks


def is_text(value: object, most: int) -> TypeGuard[str]:
    """Whether this is a text of at most so many characters."""
    return isinstance(value, str) and len(value) <= most


def fits(value: object, pattern: re.Pattern[str]) -> TypeGuard[str]:
    """Whether this is a text that is wholly of this pattern."""
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def is_whole(value: object, least: int, most: int) -> TypeGuard[int]:
    """Whether this is a whole number within these bounds, both included."""
    return type(value) is int and least <= value <= most


def is_count(value: object, below: float = inf) -> TypeGuard[int]:
    """Whether this is a whole number from 0 on."""
    return type(value) is int and 0 <= value < below


def is_number(value: object, below: float) -> TypeGuard[int | float]:
    """Whether this is a number from 0 on: a time, a measure."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < below


def is_list(value: object, most: int, each: Callable[[Any], bool]) -> TypeGuard[list[Any]]:
    """Whether this is a list of at most so many values that hold."""
    return isinstance(value, list) and len(value) <= most and all(map(each, value))


def is_mapping(value: object, most: int, each: Callable[[Any], bool]) -> TypeGuard[dict[str, Any]]:
    """Whether this is an object of at most so many names, whose values hold."""
    return isinstance(value, dict) and len(value) <= most and all(map(each, value.values()))


# -- readers


def match(pattern: re.Pattern[str], text: object) -> str:
    """A text that is wholly of this pattern. Raises `Malformed`."""
    if text is None:
        raise Malformed("a field is missing")
    if not fits(text, pattern):
        raise Malformed(f"{str(text)[:40]!r} does not look like {pattern.pattern}")
    return text


def exactly(value: Any, kind: type[_T]) -> _T:
    """A value of this very type: True is no int. Raises `Malformed`."""
    if type(value) is not kind:
        raise Malformed(f"{value!r} is not {kind.__name__}")
    return value


class Fields:
    """The fields of an object from outside, each of which may be missing. All methods raise `Malformed` with the name
    of a field that does not hold."""

    def __init__(self, data: Mapping[str, object]) -> None:
        self._data = data

    def text(self, name: str, default: str = "") -> str:
        """A text; the default where it is missing or empty."""
        value = self._data.get(name, default)
        if not isinstance(value, str):
            raise Malformed(f"{name} is not a text")
        return value or default

    def count(self, name: str) -> int:
        """A whole number from 0 on; 0 where it is missing."""
        value = self._data.get(name, 0)
        if not is_count(value, MOST_COUNT):
            raise Malformed(f"{name} is not a count")
        return value

    def number(self, name: str, default: float = 0.0) -> float:
        """A number from 0 on; the default where it is missing."""
        value = self._data.get(name, default)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise Malformed(f"{name} is not a number")
        if not is_number(value, MOST_COUNT):
            raise Malformed(f"{name} is out of bounds")
        return float(value)

    def mapping(self, name: str, most: int, what: str) -> dict[str, Any]:
        """An object of at most so many names; empty where it is missing. `what` says what it should be."""
        value = self._data.get(name, {})
        if not isinstance(value, dict) or len(value) > most:
            raise Malformed(f"{name} {what}")
        return value


def texts_in(value: object) -> list[str]:
    """The texts of a list; none where it is no list."""
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
