"""The rates that a group keeps: the value of UBI_RATES.

Rules of this module:

* What is written is a mapping from a name to a rate: "40/m", "10/s", "100/5m", "1000/h", "5000/d"; on the command line
  as JSON text. A window is as long as it is written: 60 in an hour is another rate than 1 in a minute.
* A name is that of a host (as in a URL, or as `UBI_PARTITION` has it), of a shard, `proxy:` with host and port of a
  proxy, or any other text, which requests name in `meta["ubi_rate"]`. Capitals and small letters are the same.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import NamedTuple

PROXY = "proxy:"
MOST_NAMED = 1000  # each is looked at every second, by each agent
LONGEST = 200  # characters of a table that are published
MOST_LOADS, MOST_SECONDS = 100_000, 7 * 86_400
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_RATE = re.compile(r"([0-9]{1,6})/([0-9]{0,6})([smhd])")


class RateLimit(NamedTuple):
    """At most so many loads in any window of so many seconds."""

    loads: int
    seconds: float

    def __str__(self) -> str:
        unit = next(unit for unit, long in reversed(_UNITS.items()) if not self.seconds % long)
        number = int(self.seconds) // _UNITS[unit]
        return f"{self.loads}/{'' if number == 1 else number}{unit}"


class RateTable(NamedTuple):
    """All rates of a crawl, by name."""

    named: Mapping[str, RateLimit] = {}

    def __str__(self) -> str:
        return ", ".join(f"{name}: {rate}" for name, rate in sorted(self.named.items()))

    @property
    def name(self) -> str:
        """The table as agents publish it: two of them are the same where their names are."""
        text = str(self)
        if len(text) <= LONGEST:
            return text
        return f"{text[:LONGEST]}... {hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"


NO_RATES = RateTable()


def read_rates(value: object) -> RateTable:
    """The table that is written so. Raises ValueError."""
    if isinstance(value, str):
        value = json.loads(value)
    if not isinstance(value, Mapping) or len(value) > MOST_NAMED:
        raise ValueError(value)
    return RateTable({_name(name): _rate(rate) for name, rate in value.items()})


def _name(name: object) -> str:
    text = name.strip().lower() if isinstance(name, str) else ""
    if not text or len(text) > 255 or any(letter.isspace() for letter in text):
        raise ValueError(name)
    return text


def _rate(rate: object) -> RateLimit:
    found = _RATE.fullmatch(rate.strip().lower()) if isinstance(rate, str) else None
    if found is None:
        raise ValueError(rate)
    loads, seconds = int(found[1]), int(found[2] or "1") * _UNITS[found[3]]
    if not 1 <= loads <= MOST_LOADS or not 1 <= seconds <= MOST_SECONDS:
        raise ValueError(rate)
    return RateLimit(loads, float(seconds))
