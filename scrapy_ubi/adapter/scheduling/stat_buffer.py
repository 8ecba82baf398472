"""What a crawl counts: where its numbers wait, and when Scrapy's stats are told.

* What happens seldom is told at once (`count`).
* What every link would change is added up (`sums`), and told at the end of its page: Scrapy makes several calls
  of one, and a page has some 40 links.
* What others keep account of, the node first of all, is told at the close.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from scrapy_ubi.agent import Node

if TYPE_CHECKING:
    from scrapy.statscollectors import StatsCollector


class StatBuffer:
    """The numbers of one agent's crawl."""

    def __init__(self, stats: StatsCollector) -> None:
        self._stats = stats
        self.count: Callable[[str], None] = stats.inc_value  # adds one to the stat of a name
        self.sums: Counter[str] = Counter()  # by the name of a stat: add to it

    def page_done(self) -> None:
        """Tell what was added up."""
        for stat, number in self.sums.items():
            self._stats.inc_value(stat, number)
        self.sums.clear()

    def close(self, node: Node, changed: Mapping[str, int], taken: int) -> None:
        """Tell all that is left: of the node, of the steps of the normal form that have `changed` URLs, and how many
        plain links were `taken`.
        """
        self.page_done()
        tell = self._stats.set_value
        if taken:
            tell("ubi/plain_links/taken", taken)
        for name, value in node.counters().items():
            if isinstance(value, int | float):  # failures by reason have stats of their own
                tell(f"ubi/{name}", value)
        if node.status.times_ahead:
            tell("ubi/clock_ahead", node.status.times_ahead)
        for name, number in node.hosts.counted.items():
            tell(f"ubi/hosts/{name}", number)
        for name, number in node.limits.counted.items():
            tell(f"ubi/limits/{name}", number)
        for said, number in node.seeds.counts.items():
            tell(f"ubi/seeds/{said.lower()}", number)
        for step, number in changed.items():
            tell(f"ubi/normalise/{step}", number)
        for step, number in node.joins.counts.items():
            tell(f"ubi/joined/{step}", number)
        for name, number in node.learner.counted.items() if node.learner is not None else ():
            tell(f"ubi/learned/{name}", number)
