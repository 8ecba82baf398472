"""Visit rows as they travel and as they stand in an agent's ledger: a JSON list, validated whole when it is read."""

from __future__ import annotations

import json
import re
from typing import Any

from scrapy_ubi.ground.untrusted.checks import KEY, Malformed, match
from scrapy_ubi.protocol.entry import Entry
from scrapy_ubi.protocol.visit_row import MOST_COUNT, MOST_GENERATION, MOST_TIME, MOST_VALIDATOR, VisitRow

# generation, due, failures, compared, changes, last, interval, watched
_BOUNDS = (MOST_GENERATION, MOST_TIME, MOST_COUNT, MOST_COUNT, MOST_COUNT, MOST_TIME, MOST_TIME, MOST_TIME)
_NUMBERS = len(_BOUNDS)
_is_validator = re.compile(r"[ -~]*").fullmatch  # it becomes a header of a request

_dumps = json.JSONEncoder(separators=(",", ":")).encode


def row_out(row: VisitRow, entry: str) -> str:
    """A row as text; `entry` is its entry without brackets."""
    numbers = ",".join(map(str, row[:_NUMBERS]))
    return f'[[{entry}],{numbers},"{row.digest:016x}",{_dumps(row.etag)},{_dumps(row.modified)}]'


def values_of(row: VisitRow) -> list[Any]:
    """What a row says beside its entry, as JSON takes it and `row_in` reads it."""
    return [*row[:_NUMBERS], f"{row.digest:016x}", row.etag, row.modified]


def row_in(entry: Entry, values: list[Any]) -> VisitRow:
    """The row with this entry. Raises Malformed."""
    if len(values) != _NUMBERS + 3:
        raise Malformed(f"a visit is not a list of an entry and {_NUMBERS + 3} values")
    numbers, digest = values[:_NUMBERS], match(KEY, values[_NUMBERS])
    if not all(type(n) is int and 0 <= n <= most for n, most in zip(numbers, _BOUNDS, strict=True)) or not numbers[0]:
        raise Malformed("a number of a visit is out of bounds")
    return VisitRow._make([*numbers, int(digest, 16), *map(_validator, values[-2:]), entry])


def is_validator(text: str) -> bool:
    """Whether a header of a response is kept as a validator."""
    return len(text) <= MOST_VALIDATOR and _is_validator(text) is not None


def _validator(text: Any) -> str:
    if type(text) is not str or not is_validator(text):
        raise Malformed("an ETag or a Last-Modified of a visit is no short text")
    return text
