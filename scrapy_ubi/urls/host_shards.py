"""Giant hosts that agents share among themselves: each is cut into *shards*, partition keys `shop.example#0`, `#1`, ...

To the protocol a shard is a host like any other: it has an owner, copies and a queue of its own. Rules of this module:

* The shard of a URL is told by its normal form alone, by the half of the hash that is no part of its key: keys of one
  shard are spread as evenly as those of a host.
* No host has a `#` in its name, so nothing that a page says is taken for a shard; what comes from elsewhere under a
  name with a `#` is a shard of this table or refused (`holds`).
* A delay of the host is waited for in each shard, as many times as long as there are shards: so the site feels the same
  rate, whichever agents own them. A host that is *fast* has its delays in each shard as they are.
* A limit of the host is divided: the shares of all shards are the limit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from mmh3 import hash128

from scrapy_ubi.urls.key import URL_SEED
from scrapy_ubi.urls.partition import partition_key

MARK = "#"
FIRST = "#0"  # of it a host that is cut is counted as one
NONE = "none"  # the name of no table
MOST_HOSTS, MOST_SHARDS = 100, 1024  # agents publish the table
FAST = "fast"

_KEY = re.compile(r"([^#]+)#(0|[1-9][0-9]{0,3})")
_NAMED = re.compile(r"([^\s#,]{1,300}) ([0-9]{1,4})( fast)?")


def host_of_key(key: str) -> str:
    """The host that a partition key is one of: itself, but for a shard."""
    return key.partition(MARK)[0]


@dataclass(frozen=True, slots=True)
class HostShards:
    """Into how many shards which hosts are cut, by partition key; those of `fast` have their delays in each shard. It
    is false where none is cut (`NO_SHARDS`)."""

    numbers: Mapping[str, int]
    fast: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.numbers)

    @property
    def name(self) -> str:
        """The table in one text, which agents compare, and people read."""
        if not self.numbers:
            return NONE
        hosts = sorted(self.numbers.items())
        return ", ".join(f"{host} {number}{f' {FAST}' if host in self.fast else ''}" for host, number in hosts)

    def key(self, host: str, normal: str) -> str:
        """The partition key of a normal form, whose host is this one by all other rules."""
        number = self.numbers.get(host)
        if number is None:
            return host
        text = normal if normal.isascii() else normal.encode("utf-8", "surrogatepass")
        return f"{host}{MARK}{(hash128(text, URL_SEED) >> 64) % number}"

    def holds(self, key: str) -> bool:
        """Whether this may be a partition key: no shard of a host without shards, nor one beyond its number, nor the
        whole of a host that is cut."""
        if MARK not in key:
            return key not in self.numbers
        found = _KEY.fullmatch(key)
        return found is not None and int(found[2]) < self.numbers.get(found[1], 0)

    def number(self, key: str) -> int:
        """How many shards the host of this partition key has, 1 where it is not cut."""
        return self.numbers.get(host_of_key(key), 1) if MARK in key else 1

    def place(self, key: str) -> int:
        """Which of its host's shards this one is, from 0 on."""
        return int(key.rpartition(MARK)[2])

    def siblings(self, key: str) -> list[str]:
        """The keys of all shards of the host of this key, which is one of them; itself alone where there are none."""
        host = host_of_key(key)
        return [f"{host}{MARK}{number}" for number in range(self.number(key))] if MARK in key else [key]

    def keys_of(self, host: str) -> list[str]:
        """The partition keys of a host: of all its shards where it is cut."""
        return self.siblings(f"{host}{FIRST}") if host in self.numbers else [host]

    def slowed(self, key: str, seconds: float) -> float:
        """How long to wait between two loads under this partition key, where so long is waited for at its host."""
        return seconds if MARK not in key or host_of_key(key) in self.fast else seconds * self.number(key)

    def share(self, key: str, limit: int) -> int:
        """The part of a limit of the host that is this key's: the limit, of a host that is not cut."""
        number = self.number(key) if MARK in key else 1
        return limit if number == 1 else limit // number + (self.place(key) < limit % number)


NO_SHARDS = HostShards({})


def read_name(text: str) -> HostShards:
    """The table with this name. Raises ValueError."""
    if text == NONE:
        return NO_SHARDS
    numbers = {}
    fast = set()
    for part in text.split(", "):
        found = _NAMED.fullmatch(part)
        if found is None:
            raise ValueError(f"{part[:100]!r} names no shards")
        numbers[found[1]] = _number(found[1], int(found[2]))
        if found[3]:
            fast.add(found[1])
    return HostShards(_bounded(numbers), frozenset(fast))


def read_shards(value: object) -> HostShards:
    """The table in the value of a setting: a mapping, or its JSON. Raises ValueError."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise ValueError("no JSON") from None
    if not isinstance(value, Mapping):
        raise ValueError("no mapping")
    numbers = {}
    fast = set()
    for host, said in value.items():
        if not isinstance(host, str) or partition_key(f"http://{host}/") != host:
            raise ValueError(f"{host!r:.100} is no host as partition keys have it: small letters, no scheme, no path")
        number = said[0] if isinstance(said, list | tuple) and len(said) == 2 and said[1] == FAST else said
        numbers[host] = _number(host, number)
        if number is not said:
            fast.add(host)
    return HostShards(_bounded(numbers), frozenset(fast))


def _number(host: str, number: object) -> int:
    if type(number) is not int or not 2 <= number <= MOST_SHARDS:
        raise ValueError(f"{host[:100]} cannot have {number!r:.100} shards")
    return number


def _bounded(numbers: dict[str, int]) -> dict[str, int]:
    if len(numbers) > MOST_HOSTS:
        raise ValueError(f"more than {MOST_HOSTS} hosts")
    return numbers
