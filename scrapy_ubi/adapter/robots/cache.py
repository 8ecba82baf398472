"""The parsers in memory: those used last, within a number and a weight."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from scrapy.robotstxt import RobotParser

from scrapy_ubi.policy.robots.record import RobotsRecord
from scrapy_ubi.urls.host_shards import MARK

WEIGHT_A_CHARACTER = 12  # bytes of a parser for each character of its text, about
WEIGHT_EACH = 1000  # bytes of an entry, about


@dataclass(slots=True)
class Known:
    """What this agent knows of one authority.

    `parser`: None where all is allowed, or where the record is not known; `agent`: the digest of the user agent for
    which alone the parser holds, None where it holds for all; `size`: characters of what the parser was made of,
    and of `sitemaps`: those it names, with its URL, for the first page that comes, where no page had it fetched;
    `noted`: whether the record was put into the host's notes; else the first page does so, unless another is there;
    `shards`: those in whose notes it is, of a host that is cut.
    """

    record: RobotsRecord
    parser: RobotParser | None = None
    agent: str | None = None
    size: int = 0
    sitemaps: tuple[list[str], str] | None = None
    noted: bool = True
    shards: set[str] = field(default_factory=set)

    def is_news_to(self, host: str) -> bool:
        """Whether the record is not in this host's notes, as far as was said here; it is from now on."""
        if self.noted and (MARK not in host or host in self.shards):
            return False
        self.noted = True
        self.shards.add(host)
        return True

    @property
    def weight(self) -> int:
        return WEIGHT_EACH + WEIGHT_A_CHARACTER * self.size


class Cache:
    """Knowledge by authority. What was used least recently goes when there is too much."""

    def __init__(self, most: int) -> None:
        self._most = most  # bytes, about
        self._weight = 0
        self._known: OrderedDict[str, Known] = OrderedDict()

    def get(self, authority: str) -> Known | None:
        known = self._known.get(authority)
        if known is not None:
            self._known.move_to_end(authority)
        return known

    def put(self, authority: str, known: Known) -> None:
        self._drop(authority)
        self._known[authority] = known
        self._weight += known.weight
        while self._weight > self._most and len(self._known) > 1:
            self._drop(next(iter(self._known)))

    def _drop(self, authority: str) -> None:
        if (old := self._known.pop(authority, None)) is not None:
            self._weight -= old.weight

    def __len__(self) -> int:
        return len(self._known)
