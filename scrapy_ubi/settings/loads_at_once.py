"""How many loads of a host may be open at once: the value of UBI_HOST_CONCURRENCY, for all hosts or host by host.

Rules of this module:

* What is written is a number, "auto(number)", or a mapping of host -> one of these; "*" in it stands for all others.
  The command line gives a mapping as JSON text.
* 1 and "auto(1)" are the same: one page at a time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import NamedTuple

MOST = 1000  # of a host: an agent has 16 loads under way by default
MOST_NAMED = 10_000  # hosts
OTHERS = "*"

_AUTO = re.compile(r"auto\(([0-9]{1,4})\)")


class Loads(NamedTuple):
    """At most so many at once; `auto`: from one on, as the host bears them."""

    most: int = 1
    auto: bool = False

    def __str__(self) -> str:
        return f"auto({self.most})" if self.auto else str(self.most)


ONE = Loads()


class LoadsByHost(NamedTuple):
    """Of the hosts that are named, and of all others."""

    named: Mapping[str, Loads] = {}
    others: Loads = ONE

    def for_host(self, host: str) -> Loads:
        """Of this host, by its partition key."""
        return self.named.get(host, self.others)

    @property
    def most(self) -> int:
        """The largest of all."""
        return max(self.others.most, *(loads.most for loads in self.named.values()), 1)

    def __str__(self) -> str:
        if not self.named:
            return str(self.others)
        return ", ".join(f"{host}: {loads}" for host, loads in (*self.named.items(), ("all others", self.others)))


ONE_AT_A_TIME = LoadsByHost()


def read_loads(value: object) -> LoadsByHost:
    """The value that is written so. Raises ValueError. Names of hosts are in small letters."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        value = json.loads(value)
    if not isinstance(value, Mapping):
        return LoadsByHost(others=_loads(value))
    if len(value) > MOST_NAMED or not all(isinstance(host, str) for host in value):
        raise ValueError(value)
    read = {host.strip().lower(): _loads(loads) for host, loads in value.items()}
    others = read.pop(OTHERS, ONE)
    return LoadsByHost(read, others)


def _loads(value: object) -> Loads:
    text = str(value).strip() if isinstance(value, str | int) and not isinstance(value, bool) else ""
    found = _AUTO.fullmatch(text)
    most = found[1] if found else text
    if not (most.isascii() and most.isdigit()) or not 1 <= int(most) <= MOST:
        raise ValueError(value)
    return Loads(int(most), auto=found is not None and int(most) > 1)
