"""Twisted's timers by the monotonic clock: a change of the machine's clock ends no load.

Twisted keeps each timer as a time of the wall clock. A clock set forward by an hour fires all of them, DOWNLOAD_TIMEOUT
of every page in flight among them; one set back keeps them waiting for that hour longer. `reactor.seconds` is what
Twisted asks for the time wherever it sets a timer or looks for those that are due (`ReactorBase.callLater`, `timeout`,
`runUntilCurrent`); it is looked up at the reactor each time. Scrapy's and asyncio's own timers are monotonic already.
"""

from __future__ import annotations

import time
from typing import Any

from scrapy.utils.reactor import is_reactor_installed

from scrapy_ubi.adapter.scrapy_private.runs import is_scrapys_process


def steady_timers() -> None:
    """Have the installed reactor count by the monotonic clock, from the wall clock's present time on, so that timers
    already set stay due when they were. It stays so for the process. A second call does nothing; nor does one without a
    reactor, or in a program that embeds crawls, whose reactor it is."""
    if not is_reactor_installed() or not is_scrapys_process():
        return
    from twisted.internet import reactor

    timed: Any = reactor
    if not isinstance(timed.seconds, _Steady):
        timed.seconds = _Steady()


class _Steady:
    """The wall clock as it was when this was made, and the seconds that have passed since."""

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def __call__(self) -> float:
        return self._offset + time.monotonic()
