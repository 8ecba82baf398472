"""Garbage in cycles is looked for as often as in a crawl of plain Scrapy.

Python looks for it after every few hundred new objects that stay. Plain Scrapy leaves about as many a page: the
requests in its queue, and the tasks and deferreds of a page. Here a page leaves a tenth of that or less, so what a
project leaves to the collector (database sessions, files, responses) would come back after ten pages in place of one,
and a pool of some connections would be empty before. Rules of this module:

* The youngest objects are looked at after each page: there are few of them.
* When the older ones are to be looked at is Python's own decision, by its thresholds and its other rules.
* A collector that is off stays off; one whose threshold was raised looks after as many pages more.
* Nothing of the process is changed.
"""

from __future__ import annotations

import gc

A_PAGE = 700  # new objects that a page of plain Scrapy leaves: 0.97 and 1.07 collections a page were counted

KEPT = 200  # lists that Python keeps for the next ones, and more: these are not counted as new


class GarbageTurns:
    """Looks for garbage after the pages and items of one crawl."""

    def __init__(self) -> None:
        self._steps = 0  # since it was looked for

    def step_done(self) -> None:
        """A page, or an item, is over: its callback or its pipelines have let go of what they took for it."""
        self._steps += 1
        young, older, _ = gc.get_threshold()
        if not young or self._steps * A_PAGE < young or not gc.isenabled():
            return
        self._steps = 0
        if gc.get_count()[1] <= older:
            gc.collect(0)
        else:
            _make_python_look(young)


def _make_python_look(threshold: int) -> None:
    """Have so many new objects that Python looks by itself, and at as many generations as it thinks fit. A call of
    `gc.collect(2)` would look at all that there is: Python does not while little of it is new."""
    _: list[list[None]] = [[] for _ in range(threshold + KEPT)]
