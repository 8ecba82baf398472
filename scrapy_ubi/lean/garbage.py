"""Fewer collections of garbage while a crawl runs (UBI_LEAN).

Python looks for garbage in cycles after every few hundred new objects, and a page makes hundreds. What was there before
the crawl (modules, settings, classes) is not looked at again while it runs, and the youngest objects are looked at less
often. Who has chosen a threshold above ours, or switched the collector off, keeps that.
"""

from __future__ import annotations

import gc

from scrapy_ubi.lean.processwide import ProcessWide, Undo

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
        gc.collect(1)  # of all that was loaded ten objects were found to be garbage: no need to look at it
        gc.freeze()
        gc.set_threshold(THRESHOLD, *before[1:])

        def undo() -> None:
            gc.set_threshold(*before)
            gc.unfreeze()

        return undo
