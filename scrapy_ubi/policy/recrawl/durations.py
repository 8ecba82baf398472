"""Times and rates as people write them in UBI_RECRAWL: `30s`, `5m`, `1h`, `1d`, `2w`; `1000/h`.

Rules of this module:

* A number has a unit, and may have a fraction: `1.5h`. What is malformed is a `FilterError` with the remedy.
* `write` and `write_rate` give the shortest text that reads back to the same number.
"""

from __future__ import annotations

import re

from scrapy_ubi.urls.filters.filter_text import FilterError

UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
LONGEST = 3650 * UNITS["d"]
HIGHEST_RATE = 1e6  # a second
LOWEST_RATE = 1 / UNITS["w"]

_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)([smhdw])")
_RATE = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)/([smhdw])")


def read(text: str) -> float:
    """Seconds, from one on."""
    found = _DURATION.fullmatch(text)
    seconds = float(found[1]) * UNITS[found[2]] if found else 0.0
    if not 1.0 <= seconds <= LONGEST:
        raise FilterError(f"has the time {text!r:.50}", "write times as 30s, 5m, 1h, 1d or 2w, from 1s to 3650d")
    return seconds


def read_rate(text: str) -> float:
    """So many a second."""
    found = _RATE.fullmatch(text)
    each_second = float(found[1]) / UNITS[found[2]] if found else 0.0
    if not LOWEST_RATE <= each_second <= HIGHEST_RATE:
        raise FilterError(f"has the rate {text!r:.50}", "write rates as 5/s, 100/m, 1000/h or 20000/d, from 1/w on")
    return each_second


def write(seconds: float) -> str:
    """A time in the largest unit of which it is a whole number."""
    unit = next((unit for unit in "wdhms" if (seconds / UNITS[unit]).is_integer()), "s")
    return f"{_number(seconds / UNITS[unit])}{unit}"


def write_rate(each_second: float) -> str:
    """A rate by the smallest unit in which it is a whole number."""
    unit = next((unit for unit in "smhdw" if _is_whole(each_second * UNITS[unit])), "h")
    return f"{_number(round(each_second * UNITS[unit], 6))}/{unit}"


def _is_whole(number: float) -> bool:
    return number >= 0.5 and abs(number - round(number)) < 1e-9 * max(1.0, number)


def _number(number: float) -> str:
    return str(round(number)) if abs(number - round(number)) < 1e-6 else f"{number:.6f}".rstrip("0")
