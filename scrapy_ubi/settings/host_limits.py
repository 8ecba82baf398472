"""Limits of hosts: the value of UBI_HOST_LIMITS, for all hosts, by domain, and host by host.

Rules of this module:

* What is written is a text of limits for all hosts ("pages=500, bytes=2GB"), a mapping of host -> limits, or the path
  of a file of them. A name that begins with a dot stands for a domain and all hosts below it, "*" for all others.
* Of a host each limit is that of the nearest name that says it: of the host, of the longest domain, of "*". A limit of
  0 is none, and hides that of a wider name.
* A file is such a mapping as JSON, or has a line for each name: the name, and its limits.
* The command line gives a mapping as JSON text. What comes from outside names no file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from scrapy_ubi.ground.untrusted.checks import HOST, is_number, is_whole

OTHERS = "*"
MOST_NAMED = 1_000_000  # hosts and domains, some 300 bytes each
MOST_FILE = 200_000_000  # bytes
MOST_SHOWN = 3  # names
SIZES, SPANS = ("bytes", "free"), ("seconds", "delay")  # what may have a unit of bytes, and of times

_SIZES = {"": 1.0, "B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
_SPANS = {"": 1.0, "S": 1.0, "M": 60.0, "H": 3600.0, "D": 86_400.0}
_AMOUNT = re.compile(r"([0-9]+(?:_[0-9]+)*(?:\.[0-9]+)?(?:[eE][0-9]{1,2})?)\s*([A-Za-z]{0,2})")
_PAIR = re.compile(r"\s*([a-z]+)\s*=\s*([^\s,=]+(?:\s?(?:[KMGT]?B))?)\s*(?:,|\s|$)", re.IGNORECASE)


class Limits(NamedTuple):
    """Limits of one host; None: not said here, 0: none. `pages` done, URLs `known`, links of `depth` from its first
    page, `bytes` received, `seconds` since its first load, `iterations`, and those in a row without a new URL
    (`stable`), after which it is ended; `delay`: seconds between two loads, at least."""

    pages: int | None = None
    known: int | None = None
    depth: int | None = None
    bytes: int | None = None
    seconds: float | None = None
    iterations: int | None = None
    stable: int | None = None
    delay: float | None = None

    def over(self, wider: Limits) -> Limits:
        """These, and what they do not say as the wider ones say it."""
        if self is UNSAID:
            return wider
        return wider._replace(**self.said)

    @property
    def said(self) -> dict[str, Any]:
        """What is said, by name."""
        return {name: value for name, value in self._asdict().items() if value is not None}

    def __str__(self) -> str:
        return ", ".join(f"{name}={value:.15g}" for name, value in self.said.items())


UNSAID = Limits()
_MOST: Mapping[str, float] = {
    "pages": 10**12,
    "known": 10**12,
    "depth": 10**6,
    "bytes": 10**15,
    "seconds": 315_360_000.0,
    "iterations": 10**12,
    "stable": 10**6,
    "delay": 86_400.0,
}
NAMES = tuple(_MOST)


class HostLimitsTable(NamedTuple):
    """Limits by name: of hosts, of domains (with their dot), and of all `others`."""

    named: Mapping[str, Limits] = {}
    others: Limits = UNSAID

    def for_host(self, host: str) -> Limits:
        """Of this host, by its name in URLs or its partition key."""
        if not self.named:
            return self.others
        name, _, _ = host.partition(":")
        found = self.named.get(host, UNSAID)
        if name != host:
            found = found.over(self.named.get(name, UNSAID))
        below = f".{name}"
        while below:
            found = found.over(self.named.get(below, UNSAID))
            _, dot, rest = below[1:].partition(".")
            below = dot + rest
        return found.over(self.others)

    def has(self, *names: str) -> bool:
        """Whether one of these limits stands anywhere in it."""
        return any(any(getattr(one, name) for name in names) for one in (self.others, *self.named.values()))

    def __str__(self) -> str:
        if not self.named:
            return str(self.others)
        parts = [f"{name}: {limits}" for name, limits in [*self.named.items()][:MOST_SHOWN]]
        more = f"{len(self.named) - MOST_SHOWN:,} more" if len(self.named) > MOST_SHOWN else ""
        return "; ".join(filter(None, (*parts, more, f"all others: {self.others}" if self.others.said else "")))

    def as_json(self) -> object:
        """The limits as they may be written: a text for all hosts, or a mapping as JSON text."""
        if not self.named:
            return str(self.others)
        rows = {**self.named, **({OTHERS: self.others} if self.others.said else {})}
        return json.dumps({name: limits.said for name, limits in rows.items()}, separators=(",", ":"))


def names_file(text: str) -> bool:
    """Whether a text is neither limits nor JSON."""
    return not text.lstrip().startswith("{") and "=" not in text


def read_table(value: object) -> HostLimitsTable:
    """The table that is written so; no file is read. Raises ValueError."""
    if isinstance(value, HostLimitsTable):
        return value
    if isinstance(value, str) and value.lstrip().startswith("{"):
        value = read_object(value)
    if isinstance(value, Mapping):
        if value and all(name in NAMES for name in value):  # {"pages": 5}: of all hosts
            return HostLimitsTable(others=read_limits(value))
        return _table(value)
    return HostLimitsTable(others=read_limits(value))


def read_object(text: str) -> Mapping[object, object]:
    """A mapping as JSON text. Raises ValueError."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("it is no JSON") from None
    if not isinstance(found, dict):
        raise ValueError("it is no object")
    return found


def _table(rows: Mapping[object, object]) -> HostLimitsTable:
    if len(rows) > MOST_NAMED:
        raise ValueError(f"it names more than {MOST_NAMED:,} hosts")
    named: dict[str, Limits] = {}
    for name, limits in rows.items():
        if not isinstance(name, str) or HOST.fullmatch(name.strip()) is None:
            raise ValueError(f"{str(name)[:100]!r} is no name of a host")
        try:
            named[name.strip().lower()] = read_limits(limits)
        except ValueError as error:
            raise ValueError(f"{name[:100]!r}: {error}") from None
    others = named.pop(OTHERS, UNSAID)
    return HostLimitsTable(named, others)


def read_file(path: Path) -> HostLimitsTable:
    """The table in a file. Raises OSError, ValueError."""
    if path.stat().st_size > MOST_FILE:
        raise ValueError(f"the file has more than {MOST_FILE:,} bytes")
    text = path.read_text(encoding="utf-8")
    if text.lstrip().startswith("{"):
        return _table(read_object(text))
    rows: dict[object, object] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not (line := line.strip()) or line.startswith("#"):
            continue
        name, _, limits = line.partition(" ")
        if name in rows:
            raise ValueError(f"line {number} names {name[:100]!r} once more")
        rows[name] = limits
    return _table(rows)


def read_limits(value: object) -> Limits:
    """The limits of one name: a text as "pages=500, bytes=2GB, seconds=2h", or a mapping. Raises ValueError."""
    return Limits(**read_amounts(value, _MOST))


def read_amounts(value: object, most: Mapping[str, float]) -> dict[str, Any]:
    """Amounts by name, of which each may be so much at `most`, written as those limits. Raises ValueError."""
    if isinstance(value, str):
        value = _pairs(value)
    if not isinstance(value, Mapping):
        raise ValueError(f"{str(value)[:60]!r} is neither a text of limits nor a mapping")
    read: dict[str, Any] = {}
    for name, amount in value.items():
        if name not in most:
            raise ValueError(f"{str(name)[:40]!r} is no limit: {', '.join(most)} are")
        if amount is not None:
            read[str(name)] = _amount(str(name), amount, most[name])
    return read


def _pairs(text: str) -> dict[str, object]:
    found: dict[str, object] = {}
    at = 0
    while at < len(text.rstrip()):
        pair = _PAIR.match(text, at)
        if pair is None or pair[1].lower() in found:
            raise ValueError(f"{text[:60]!r} is not written as 'pages=500, bytes=2GB'")
        found[pair[1].lower()] = pair[2]
        at = pair.end()
    return found


def _amount(name: str, value: object, most: float) -> float:
    """A number, or a text with a unit: of bytes KB, MB, GB, TB (thousands), of times s, m, h, d."""
    number = value
    if isinstance(value, str):
        units = _SIZES if name in SIZES else _SPANS if name in SPANS else {"": 1.0}
        found = _AMOUNT.fullmatch(value.strip())
        if found is None or found[2].upper() not in units:
            more = f" with one of {', '.join(filter(None, units))}" if len(units) > 1 else ""
            raise ValueError(f"{name}={value[:40]!r} is no number{more}")
        number = float(found[1].replace("_", "")) * units[found[2].upper()]
    if isinstance(number, bool) or not is_number(number, most + 1):
        raise ValueError(f"{name}={str(value)[:40]!r} is no number of 0 to {most:,.0f}")
    if name in SPANS:
        return float(number)
    if not is_whole(whole := int(number), 0, int(most)) or whole != number:
        raise ValueError(f"{name}={str(value)[:40]!r} is no whole number")
    return whole
