"""What exists when a crawl begins is not looked through for garbage again (UBI_FAST, where the user has set it).

Python looks at all objects whenever a quarter more have come to stay, and a process with Scrapy has more than 100,000:
a look takes 30 to 75 ms, in which nothing else is done, some twice in a thousand pages. Nearly all of them are modules,
classes and functions, which stay. So garbage is looked for once when the spider opens, and what is left is put aside
(`gc.freeze`) until it closes.

Rules of this module:

* It changes the process, so only where the user has turned UBI_FAST on, and in Scrapy's own process (`ProcessWide`).
* A collector that is off, or has objects put aside already, is the user's.
* What was put aside and becomes garbage in a circle comes back when the spider has closed.
"""

from __future__ import annotations

import gc
from typing import Self

from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured

from scrapy_ubi.fast.tweaks import ProcessWide, Undo


class FrozenStart(ProcessWide):
    """While a spider is open, the objects of the start are put aside."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Raises NotConfigured where the user has not set UBI_FAST."""
        settings = crawler.settings
        if not (settings.getpriority("UBI_FAST") and settings.getbool("UBI_FAST")):
            raise NotConfigured
        return super().from_crawler(crawler)

    @classmethod
    def change(cls) -> Undo:
        """See the base class."""
        if not gc.isenabled() or gc.get_freeze_count():
            return lambda: None
        gc.collect()
        gc.freeze()
        return gc.unfreeze
