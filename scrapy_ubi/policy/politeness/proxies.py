"""Proxies of a pool: which one a host is loaded through, which ones it has banned, and which ones rest.

Rules of this module:

* No clock and no I/O: times are given (s), those of bans in unix time, as they are noted with hosts.
* A host, or a session of it, keeps to one proxy: the one that it had (`Bans.at`), else the first by a hash of both,
  which does not change where others of the pool come and go.
* A proxy is known by host and port, with a digest of user and password where it has some: never by these themselves.
* A proxy through which `MOST_FAILED` loads in a row had no answer rests, for a time that doubles: all hosts go another
  way meanwhile. That is told to the other agents.
* A ban is of one host and one proxy, and doubles as well.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from scrapy_ubi.ground.untrusted.checks import is_number

MOST_PROXIES = 10_000
MOST_FAILED = 3
REST, MOST_REST = 30.0, 1800.0  # s
MOST_BAN = 86_400.0  # s
MOST_BANS = 16  # of a host, as noted
LONGEST_NAME = 120  # characters
NEVER = 1e11  # unix s


def name_of(proxy: str) -> str:
    """What a proxy is known by. Raises ValueError where it is no http:// or https:// address with a port that holds."""
    parts = urlsplit(proxy)
    user, _, place = parts.netloc.rpartition("@")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0 or parts.path not in ("", "/"):
        raise ValueError("no address of a proxy: http://user:password@host:port")
    if parts.query or parts.fragment or any(letter.isspace() for letter in proxy) or len(place) > LONGEST_NAME - 17:
        raise ValueError("no address of a proxy: http://user:password@host:port")
    digest = hashlib.blake2b(user.encode(), digest_size=8).hexdigest() if user else ""
    return f"{place.lower()}{'#' if digest else ''}{digest}"


class Ban(NamedTuple):
    """Until when (unix s) a host has banned a proxy, and for how long (s) that was set."""

    until: float
    seconds: float


class Bans(NamedTuple):
    """What is noted of one host: the proxy that it had last, and its bans by proxy."""

    at: str = ""
    bans: Mapping[str, Ban] = {}

    def value(self) -> dict[str, object]:
        """As JSON."""
        return {
            "at": self.at,
            "bans": {name: [round(ban.until), round(ban.seconds)] for name, ban in self.bans.items()},
        }

    def banned(self, name: str, wall: float, seconds: float) -> Bans:
        """The host has banned this proxy now, for so long at least."""
        before = self.bans.get(name)
        longer = min(max(seconds, 2 * before.seconds if before is not None else 0.0), MOST_BAN)
        bans = {other: ban for other, ban in self.bans.items() if other != name and wall < ban.until + ban.seconds}
        bans[name] = Ban(wall + longer, longer)
        newest = sorted(bans.items(), key=lambda each: each[1].until)[-MOST_BANS:]
        return Bans("" if self.at == name else self.at, dict(newest))

    def is_banned(self, name: str, wall: float) -> bool:
        """Whether the host has banned this proxy at this time. A ban is never believed for longer than it was set."""
        ban = self.bans.get(name)
        return ban is not None and wall < ban.until <= wall + ban.seconds + 1


def read_bans(value: object) -> Bans:
    """What is noted, as far as it holds: it may come from another agent."""
    if not isinstance(value, dict):
        return Bans()
    at, noted = value.get("at"), value.get("bans")
    bans = {}
    for name, ban in noted.items() if isinstance(noted, dict) and len(noted) <= MOST_BANS else ():
        holds = isinstance(ban, list) and len(ban) == 2 and is_number(ban[0], NEVER) and is_number(ban[1], MOST_BAN)
        if holds and ban[1] > 0 and len(name) <= LONGEST_NAME:
            bans[name] = Ban(float(ban[0]), float(ban[1]))
    return Bans(at if isinstance(at, str) and len(at) <= LONGEST_NAME else "", bans)


class ProxyHealth:
    """Which proxies rest, as far as one agent knows. Times are of its own clock (s)."""

    def __init__(self) -> None:
        self._failed: dict[str, int] = {}  # loads in a row without an answer
        self._rests: dict[str, tuple[float, float]] = {}  # until when, and for how long that was set

    def keep(self, names: Iterable[str]) -> None:
        """The pool has these now."""
        known = set(names)
        self._failed = {name: number for name, number in self._failed.items() if name in known}
        self._rests = {name: rest for name, rest in self._rests.items() if name in known}

    def answered(self, name: str) -> None:
        """A load through this proxy has an answer."""
        self._failed.pop(name, None)
        self._rests.pop(name, None)

    def failed(self, name: str, now: float, at_once: bool = False) -> bool:
        """One has none; `at_once`: by the proxy's own word. Whether it rests from now on. What ends while it rests was
        under way before, and says nothing new."""
        self._failed[name] = number = self._failed.get(name, 0) + 1
        until, before = self._rests.get(name, (0.0, 0.0))
        if (number < MOST_FAILED and not at_once) or now < until:
            return False
        seconds = min(max(REST, 2 * before), MOST_REST)
        self._rests[name] = now + seconds, seconds
        return True

    def heard(self, name: str, seconds: float, now: float) -> None:
        """Another agent says that it rests for so long more."""
        seconds = min(seconds, MOST_REST)
        until, before = self._rests.get(name, (0.0, 0.0))
        self._rests[name] = max(until, now + seconds), max(before, REST)

    def rests(self, name: str, now: float) -> float:
        """For how long (s) more this proxy rests; 0 where it does not."""
        return max(0.0, self._rests.get(name, (0.0, 0.0))[0] - now)


def choose(names: Iterable[str], who: str, at: str) -> str:
    """The proxy for a host, or a session of it, of those that may be used; the one it was `at` where that is one."""
    names = list(names)
    if at in names:
        return at
    return min(names, key=lambda name: hashlib.blake2b(f"{who}\n{name}".encode(), digest_size=8).digest(), default="")
