"""Fewer collections of garbage while a crawl runs (UBI_LEAN).

Python looks for garbage in cycles after every few hundred new objects, and a page makes hundreds: the youngest objects
are looked at less often. A threshold that the user set above ours stays, and so does a collector that is switched off.
Nothing is frozen: the process may do other things beside the crawl, and have frozen objects of its own.
"""

from __future__ import annotations

import gc

from scrapy_ubi.fast.process_wide import ProcessWide, Undo

# New objects between two collections, as many as some tens of pages make; 700 by default in Python 3.11.
THRESHOLD = 10_000


class FewerCollections(ProcessWide):
    """From the opening of the first spider to the end of the last."""

    @classmethod
    def change(cls) -> Undo:
        """See the base class."""
        before = gc.get_threshold()
        if not gc.isenabled() or not 0 < before[0] < THRESHOLD:
            return lambda: None
        gc.set_threshold(THRESHOLD, *before[1:])
        return lambda: gc.set_threshold(*before)
