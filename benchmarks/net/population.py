"""The hosts of the testbed: what each is, as a pure function of a seed and its number. Nothing is drawn twice.

A host has a name (`h00012.test`), an address of its own in 127.0.0.0/8, a fate, a latency, an encoding of its pages,
and a number of pages. Rules of this module:

* Of 100 hosts 2 hang (they take the connection and never answer), 3 reset it, and 5 are names that lead nowhere: half
  of these do not exist (NXDOMAIN), a quarter is a failure of the server (SERVFAIL), a quarter gets no answer at all.
* Latencies are drawn from 20 to 400 ms, evenly by their logarithm: that is the time to the answer to a request, and to
  the first answer of the TLS handshake. The DNS server has its own, 2 to 100 ms, and 1 in 100 names takes 2 s.
* Sizes of hosts fall like rank ** -0.8, as in `crawl/web.py`.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from hashlib import shake_128
from itertools import accumulate
from typing import Literal

ZONE = b"test"
SKEW = 0.8
HANGING, RESET, DEAD = 0.02, 0.03, 0.05
LATENCY = (0.020, 0.400)  # s
DNS_LATENCY, SLOW_NAMES, SLOW = (0.002, 0.100), 0.01, 2.0  # s
CODINGS = (("gzip", 0.50), ("br", 0.40), ("zstd", 0.10))

Fate = Literal["alive", "hang", "reset", "nxdomain", "servfail", "silent"]


@dataclass(frozen=True, slots=True)
class Host:
    """One host. Times in seconds."""

    number: int
    fate: Fate
    latency: float
    dns_latency: float
    coding: str
    pages: int
    first: int  # the number of its first page among all pages


class Population:
    """`hosts` hosts with `pages` pages in all. `healthy`: every host is alive."""

    def __init__(self, seed: int, hosts: int, pages: int, healthy: bool = False) -> None:
        weights = [(rank + 1) ** -SKEW for rank in range(hosts)]
        scale = pages / sum(weights)
        sizes = [max(1, round(scale * weight)) for weight in weights]
        step = next(step for step in (7919, 7907, 7901, 1) if hosts % step)
        self.sizes = [sizes[place * step % hosts] for place in range(hosts)]
        self.ends = list(accumulate(self.sizes))
        self.hosts = [self._host(seed, number, healthy) for number in range(hosts)]
        self.names = [b"h%05d.%s" % (number, ZONE) for number in range(hosts)]

    def _host(self, seed: int, number: int, healthy: bool) -> Host:
        bits = shake_128(b"%d/%d" % (seed, number)).digest(28)
        fate, how, latency, dns, slow, coding, _ = (
            int.from_bytes(bits[at : at + 4], "big") / 2**32 for at in range(0, 28, 4)
        )
        size, end = self.sizes[number], self.ends[number]
        return Host(
            number,
            "alive" if healthy else _fate(fate, how),
            _between(LATENCY, latency),
            SLOW if slow < SLOW_NAMES and not healthy else _between(DNS_LATENCY, dns),
            _coding(coding),
            size,
            end - size,
        )

    def host_at(self, page: int) -> int:
        """The number of the host that has this page, of all pages."""
        return bisect_right(self.ends, page)


def _fate(draw: float, how: float) -> Fate:
    if draw < HANGING:
        return "hang"
    if draw < HANGING + RESET:
        return "reset"
    if draw < HANGING + RESET + DEAD:
        return "nxdomain" if how < 0.5 else "servfail" if how < 0.75 else "silent"
    return "alive"


def _between(bounds: tuple[float, float], draw: float) -> float:
    least, most = bounds
    return float(least * (most / least) ** draw)


def _coding(draw: float) -> str:
    for name, share in CODINGS:
        if draw < share:
            return name
        draw -= share
    return CODINGS[0][0]


def address_of(number: int) -> str:
    """The address of a host: from 127.1.0.1 on, none that ends with 0 or 255."""
    high, low = divmod(number, 254)
    return f"127.{1 + high // 256}.{high % 256}.{low + 1}"


def number_of(address: str) -> int:
    """The number of the host with this address; -1 where there is none."""
    _, first, second, third = map(int, address.split("."))
    return ((first - 1) * 256 + second) * 254 + third - 1 if first >= 1 and 1 <= third <= 254 else -1


def number_of_name(name: bytes) -> int:
    """The number of the host with this name (small letters); -1 for what is none of this testbed's."""
    host, _, zone = name.partition(b".")
    return int(host[1:]) if zone == ZONE and host[:1] == b"h" and host[1:].isdigit() else -1
