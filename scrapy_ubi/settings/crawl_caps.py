"""Limits of the whole crawl: the value of UBI_CRAWL_LIMITS, written as those of a host (`host_limits`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from scrapy_ubi.settings.host_limits import read_amounts

_MOST: Mapping[str, float] = {
    "pages": 10**15,
    "known": 10**15,
    "depth": 10**6,
    "seconds": 315_360_000.0,
    "bytes": 10**18,
    "free": 10**15,
}


class CrawlCaps(NamedTuple):
    """Limits of a crawl, 0: none. `pages` loaded, URLs `known`, links of `depth` from the seeds, `seconds`, and `bytes`
    received, by all agents together; `free`: bytes of an agent's disk below which it pauses."""

    pages: int = 0
    known: int = 0
    depth: int = 0
    seconds: float = 0.0
    bytes: int = 0
    free: int = 0

    def __str__(self) -> str:
        return ", ".join(f"{name}={value:.15g}" for name, value in self._asdict().items() if value)


NO_CAPS = CrawlCaps()


def read_caps(value: object) -> CrawlCaps:
    """The limits in a text as "pages=1000, bytes=50GB, free=5GB", or a mapping. Raises ValueError."""
    return CrawlCaps(**read_amounts(value, _MOST))
