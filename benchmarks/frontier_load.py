"""The offers of the frontier benchmark: a web that is computed, not stored, so that it takes no memory that grows.

Rules of this module:

* URL number k of host h has a text and a key that follow from (h, k) alone. All that is kept is how many URLs of each
  host are known, so the memory of a process that is measured is that of what it measures.
* Hosts have sizes by Zipf's law, exponent 0.8, a hundred URLs on the average unless told otherwise. The home page of
  every host is offered first: the seeds.
* A page has 40 links, 4 of them new: what is known grows by one with every ten offers. `crawl` draws the 36 known ones
  as a crawl meets them: 12 of the first 20 URLs of the page's own host (its menu), 12 of those found there lately, 8
  anywhere on it; 2 of the first 5 URLs of other hosts and 2 anywhere on these. Three of the new ones are on the page's
  host, one on another. `uniform` is the worst case: each of the 40 is on a host of its own, and the 36 are drawn from
  all that is known.
* A host is drawn by its size in the end, not by what is known of it.

Texts are 55 to 95 characters long: host names and words of a list of 4,096 made-up words, and digits. What a text holds
that no compression can guess is 32 to 56 bits.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

LINKS = 40  # a page
NEW = 4  # of them
MIX = ("crawl", "uniform")
Array = Any


def words(count: int = 4096) -> list[str]:
    """So many different made-up words, always the same ones."""
    draw = random.Random("words of the frontier benchmark")
    starts = "b c d f g h j k l m n p r s t v w br ch cl cr dr fl fr gr pl pr sh sl sp st tr th".split()
    middles = "a e i o u ai ea io ou".split()
    ends = ["", "n", "r", "s", "t", "l", "m", "nd", "rk", "st", "ng"]
    found: dict[str, None] = {}
    while len(found) < count:
        parts = draw.choice((1, 2, 2, 2, 3))
        found["".join(draw.choice(starts) + draw.choice(middles) for _ in range(parts)) + draw.choice(ends)] = None
    return list(found)


WORDS = words()


def mixed(numbers: Array) -> Array:
    """64 bits that look random of 64 bits that do not (SplitMix64, Steele et al. 2014)."""
    with np.errstate(over="ignore"):
        x = numbers + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def host_name(host: int) -> str:
    """The name of a host by its number."""
    return f"www.{WORDS[host * 2654435761 % 4096]}-{WORDS[host * 40503 % 4093]}{host}.example"


def text(host: int, bits: int) -> str:
    """The text of the URL of this host that has these 64 bits."""
    folder = WORDS[(host * 31 + (bits & 15)) % 4096]
    one, two, three = WORDS[bits >> 4 & 4095], WORDS[bits >> 16 & 4095], WORDS[bits >> 28 & 4095]
    number = (bits >> 40 & 0xFFFFF) % 1_000_000
    if bits >> 60 & 3:
        return f"https://{host_name(host)}/{folder}/{one}-{two}-{three}-{number}.html"
    return f"https://{host_name(host)}/{folder}/item?id={number}&view={one}"


@dataclass(frozen=True)
class Links:
    """Some pages' links, page after page: host, depth, key and the 64 bits of each; `news` says which are new."""

    hosts: list[int]
    depths: list[int]
    keys: list[int]
    bits: list[int]
    news: list[bool]

    def __len__(self) -> int:
        return len(self.hosts)

    def fresh(self) -> Links:
        """The new ones alone."""
        kept = [index for index, new in enumerate(self.news) if new]
        return Links(
            *([values[index] for index in kept] for values in (self.hosts, self.depths, self.keys, self.bits)),
            [True] * len(kept),
        )

    def texts(self) -> list[str]:
        """The URLs of all links."""
        return [text(host, bits) for host, bits in zip(self.hosts, self.bits, strict=True)]


class Web:
    """Hosts with sizes by Zipf's law, of which `known` says how much is known."""

    def __init__(self, hosts: int, mix: str = "crawl", seed: int = 1) -> None:
        self.hosts = hosts
        self.mix = mix
        self._draw = np.random.default_rng(seed)
        weights = np.arange(1, hosts + 1) ** -0.8
        self._draw.shuffle(weights)
        self._ends = np.cumsum(weights / weights.sum())
        self.known = np.zeros(hosts, dtype=np.int64)

    def some_hosts(self, shape: tuple[int, ...]) -> Array:
        """Hosts, drawn by size."""
        return np.minimum(np.searchsorted(self._ends, self._draw.random(shape)), self.hosts - 1)

    def seeds(self, most: int) -> Iterator[Links]:
        """The home pages of all hosts, so many at a time."""
        for start in range(0, self.hosts, most):
            hosts = np.arange(start, min(start + most, self.hosts))
            self.known[hosts] = 1
            yield _links(hosts, np.zeros_like(hosts), np.zeros_like(hosts), np.ones(len(hosts), dtype=bool))

    def pages(self, count: int) -> Links:
        """The links of so many pages. What they find new is known from then on, not before."""
        hosts, known_of = self._hosts_of(count), self.known
        numbers = np.empty_like(hosts)
        old = slice(0, LINKS - NEW)
        numbers[:, old] = self._known_numbers(known_of[hosts[:, old]])
        fresh = hosts[:, LINKS - NEW :].ravel()
        numbers[:, LINKS - NEW :] = (known_of[fresh] + _ranks(fresh)).reshape(count, NEW)
        depths = np.ceil(np.log2(known_of[hosts] + 1)).astype(np.int64)
        np.add.at(known_of, fresh, 1)
        news = np.zeros(hosts.shape, dtype=bool)
        news[:, LINKS - NEW :] = True
        return _links(hosts.ravel(), numbers.ravel(), depths.ravel(), news.ravel())

    def _hosts_of(self, count: int) -> Array:
        """The host of every link, one row a page; the new ones last."""
        hosts = self.some_hosts((count, LINKS))
        if self.mix == "crawl":
            own = hosts[:, :1]
            hosts[:, :32] = own
            hosts[:, LINKS - NEW : LINKS - 1] = own
        return hosts

    def _known_numbers(self, known: Array) -> Array:
        """Which URL of its host each of the known links is, where so many are known of it."""
        draw = self._draw.random(known.shape)
        if self.mix == "uniform":
            return (draw * known).astype(np.int64)
        numbers = np.empty_like(known)
        numbers[:, :12] = draw[:, :12] * np.minimum(known[:, :12], 20)
        back = np.minimum(-30 * np.log1p(-draw[:, 12:24]), known[:, 12:24] - 1)
        numbers[:, 12:24] = known[:, 12:24] - 1 - back.astype(np.int64)
        numbers[:, 24:32] = draw[:, 24:32] * known[:, 24:32]
        numbers[:, 32:34] = draw[:, 32:34] * np.minimum(known[:, 32:34], 5)
        numbers[:, 34:] = draw[:, 34:] * known[:, 34:]
        return numbers


def _ranks(hosts: Array) -> Array:
    """For each place how often the same host stands before it."""
    order = np.argsort(hosts, kind="stable")
    ordered = hosts[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    within = np.arange(len(hosts)) - np.repeat(starts, np.diff(np.r_[starts, len(hosts)]))
    ranks = np.empty_like(within)
    ranks[order] = within
    return ranks


def _links(hosts: Array, numbers: Array, depths: Array, news: Array) -> Links:
    bits = mixed(hosts.astype(np.uint64) << np.uint64(32) | numbers.astype(np.uint64))
    keys = mixed(bits)
    return Links(hosts.tolist(), depths.tolist(), keys.tolist(), bits.tolist(), news.tolist())
