"""Stats counted with less ado (UBI_LEAN): the same numbers, by the same methods.

Scrapy's collector looks at the name of every attribute it is asked for, and at the arguments of every call, to warn of
an argument `spider`, which has lost its meaning: most of what a dozen stats a page cost. Here it is taken without a
word.
"""

from __future__ import annotations

from scrapy.statscollectors import MemoryStatsCollector


class LeanStats(MemoryStatsCollector):
    """Scrapy's default stats collector."""

    __getattribute__ = object.__getattribute__
