"""What a ranker is told and asked: promises, no code.

Rules of this module:

* A ranker is told of the pages of an iteration one by one, in the order in which they were *taken* from the queue, then
  asked once for the scores of what waits. It decides by what it was told alone: no clock, no chance, no I/O. Two that
  were told the same answer the same.
* A page and a link are known by the *key* of their request, 64 bits: candidates have it, too.
* What is told comes from the web: links of any number (bounded by the page), URLs of any kind.
* A ranker bounds its memory by itself, over all hosts (`HostTables` does that for those of the package).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

RANKED_ROWS = 10_000  # of a host's queue that a ranking may write again (TTmax); what waits behind them stays as it is


class PageLink(NamedTuple):
    """A link of a page to its own host: the key of a plain request for it, and the normal form of its URL."""

    key: int
    url: str


class Page(NamedTuple):
    """A page of an iteration. `url` is its request's; `depth` in links from a seed; `status` that of its response, 0
    where there was none; `links` are those to its own host, in the order of the page, as often as it has them.
    """

    key: int
    url: str
    depth: int
    status: int
    links: Sequence[PageLink]


class Candidate(Protocol):
    """A request that waits: what of an entry of a queue a ranker may look at."""

    @property
    def key(self) -> int:
        """That of its request."""

    @property
    def url(self) -> str:
        """The URL, as it will be fetched."""

    @property
    def depth(self) -> int:
        """In links from a seed, by the way by which it was found first."""


class Ranker(Protocol):
    """What UBI_RANK names."""

    def page(self, host: str, page: Page, /) -> None:
        """A page of the iteration has ended."""

    def scores(self, host: str, candidates: Sequence[Candidate], /) -> Sequence[float]:
        """The score of each of these, the first ones of the host's queue: the highest is fetched first. Of equal
        scores the least depth comes first, then what was found first."""
