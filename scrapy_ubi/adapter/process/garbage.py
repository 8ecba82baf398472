"""Garbage in cycles is looked for as often as in a crawl of plain Scrapy.

Python looks for it after every few hundred new objects that stay. Plain Scrapy leaves about as many a page: the
requests in its queue, and the tasks and deferreds of a page. Here a page leaves a tenth of that or less, so what a
project leaves to the collector (database sessions, files, responses) would come back after ten pages in place of one,
and a pool of some connections would be empty before. Rules of this module:

* The youngest objects are looked at after each page: there are few of them. Those of middle age as often as by Python's
  own thresholds.
* Many pages may begin, or answer, in one turn of the loop: where the youngest are many by then they are looked at
  (`look_early`), as Python, looking by itself, might look at all objects each time.
* When all objects are to be looked at is Python's own decision, by its thresholds and its other rules. Such a look
  takes a thousand times as long as one at the youngest. So after one Python is not asked for `REST` turns, as long as
  all looks since have found less than an object for each page: its pages leave no garbage of their own then.
* A collector that is off stays off; one whose threshold was raised looks after as many pages more.
* Nothing of the process is changed.

Memory that was freed is given back to the system (`give_back`) where the C library can (`malloc_trim` of glibc): it
keeps most of what a large page had taken, in pieces.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from functools import cache

A_PAGE = 700  # new objects that a page of plain Scrapy leaves: 0.97 and 1.07 collections a page were counted

KEPT = 200  # lists that Python keeps for the next ones, and more: these are not counted as new

REST = 100  # turns of middle age, each of eleven pages or items: some 1,100 of them


class GarbageTurns:
    """Looks for garbage after the pages and items of one crawl."""

    def __init__(self) -> None:
        self._steps = 0  # since it was looked for
        self._rest = 0  # turns for which Python is not asked to look at all objects
        self._looks_at_all = 0  # by Python's statistics
        self._found, self._since = 0, 0  # by them, at the last of these looks; pages and items since then

    def step_done(self) -> None:
        """A page, or an item, is over: its callback or its pipelines have let go of what they took for it."""
        self._steps += 1
        self._since += 1
        young, older, oldest = gc.get_threshold()
        if not young or self._steps * A_PAGE < young or not gc.isenabled():
            return
        self._steps = 0
        _, middle, old = gc.get_count()
        if middle <= older:
            gc.collect(0)
        elif old <= oldest or self._rests():
            gc.collect(1)
        else:
            _make_python_look(young)

    def _rests(self) -> bool:
        """Whether Python is not asked now to look at all objects: it has, and there was no garbage to speak of."""
        stats = gc.get_stats()
        found, looks = sum(each["collected"] for each in stats), stats[-1]["collections"]
        self._rest -= 1
        leaves = found - self._found >= self._since
        if looks != self._looks_at_all:
            self._rest = REST
            self._found = found
            self._looks_at_all = looks
            self._since = 0
        if leaves:
            self._rest = 0
        return self._rest > 0


def look_early() -> None:
    """Look at the youngest objects where they are half as many as those at which Python looks by itself."""
    if gc.get_count()[0] * 2 > gc.get_threshold()[0] > 0 and gc.isenabled():
        gc.collect(0)


def _make_python_look(threshold: int) -> None:
    """Have so many new objects that Python looks by itself, and at as many generations as it thinks fit. A call of
    `gc.collect(2)` would look at all that there is: Python does not while little of it is new."""
    _: list[list[None]] = [[] for _ in range(threshold + KEPT)]


def give_back() -> None:
    """Give memory that was freed back to the system: some milliseconds for a hundred MB."""
    malloc_trim()(0)


@cache
def malloc_trim() -> Callable[[int], object]:
    """The function of the C library, or one that does nothing."""
    try:
        found: Callable[[int], object] = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):
        return lambda keep: None
    return found
