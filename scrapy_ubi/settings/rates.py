"""The rates that a group keeps: the value of UBI_RATES.

Rules of this module:

* What is written is a mapping from a name to a rate: "40/m", "10/s", "100/5m", "1000/h", "5000/d"; on the command line
  as JSON text. A window is as long as it is written: 60 in an hour is another rate than 1 in a minute.
* A name is that of a host (as in a URL, or as `UBI_PARTITION` has it), of a shard, `proxy:` with host and port of a
  proxy, or any other text, which requests name in `meta["ubi_rate"]`. Capitals and small letters are the same.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import NamedTuple

from scrapy_ubi.settings.host_limits import read_object

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
        value = read_object(value)
    if not isinstance(value, Mapping):
        raise ValueError(f"it is a {type(value).__name__}")
    if len(value) > MOST_NAMED:
        raise ValueError(f"it has more than {MOST_NAMED:,} names")
    named: dict[str, RateLimit] = {}
    for written, rate in value.items():
        name = _name(written)
        if name in named:
            raise ValueError(f"it names {name!r:.100} twice")
        named[name] = _rate(name, rate)
    return RateTable(named)


def _name(name: object) -> str:
    """A name as requests are looked up by. What could be that of none is refused: it would keep nothing, in silence."""
    text = name.strip().lower() if isinstance(name, str) else ""
    if not text or len(text) > 255 or any(letter.isspace() for letter in text):
        raise ValueError(f"{str(name)!r:.100} is no name")
    if "@" in text:
        raise ValueError("a name has a user: write host and port alone")  # not shown: it may have a password
    if "://" in text:
        raise ValueError(f"{text!r:.100} is a URL: write host and port alone")
    if "*" in text or text.startswith("."):
        raise ValueError(f"{text!r:.100} is a pattern: name each host; or name the rate in the meta of its requests")
    return text


def _rate(name: str, rate: object) -> RateLimit:
    found = _RATE.fullmatch(rate.strip().lower()) if isinstance(rate, str) else None
    if found is None:
        raise ValueError(f"{name!r:.100}: {str(rate)!r:.40} is no rate such as 10/s, 40/m, 100/5m, 1000/h, 5000/d")
    loads, seconds = int(found[1]), int(found[2] or "1") * _UNITS[found[3]]
    if not 1 <= loads <= MOST_LOADS or not 1 <= seconds <= MOST_SECONDS:
        raise ValueError(f"{name!r:.100}: {rate} is not 1 to {MOST_LOADS:,} loads in a second to 7 days")
    return RateLimit(loads, float(seconds))
