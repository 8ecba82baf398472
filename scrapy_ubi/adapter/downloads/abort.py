"""Waiting for a permit or a transfer so that it can be cut short: from outside (`abort`), or by time (`within`).

Rules of this module:

* What is cancelled is the very task that waits, as a task for each permit and each transfer costs more than they do.
  It may be that of the whole page: so each cancellation is taken back before the task goes on.
* A cancellation that comes from elsewhere is left as it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from scrapy import Request
from scrapy.http import Response

from scrapy_ubi.adapter.requests.inflight import Flight
from scrapy_ubi.adapter.requests.page_outcome import TooLong
from scrapy_ubi.adapter.requests.transfer_states import Transfer
from scrapy_ubi.adapter.scrapy_private.engine import Download

T = TypeVar("T")


class Aborted(Exception):
    """`abort` has ended what this flight waited for."""


def abort(flight: Flight) -> None:
    """End what this flight waits for, if anything: its permit, or its transfer. A second call does nothing."""
    if flight.task is not None:
        flight.move(Transfer.WITHDRAWN if flight.transfer is Transfer.WAITING else Transfer.ABORTING)
        flight.task.cancel()
        flight.task = None


async def abortable(flight: Flight, awaitable: Awaitable[T]) -> T:
    """Wait for something that `abort` can end. Raises `Aborted` then, else what it raises itself."""
    task = flight.task = asyncio.current_task()
    assert task is not None, "Scrapy runs what awaits in a task"
    try:
        return await awaitable
    except (asyncio.CancelledError, Exception):  # a handler may make an error of its own of being cancelled
        if flight.task is task:
            raise
        raise Aborted from None
    finally:
        if flight.task is not task:
            task.uncancel()
        flight.task = None


async def within(most: float, request: Request, download: Download) -> Response:
    """Make a transfer in so many seconds. Raises `TooLong`, or what `download` raises."""
    limit = asyncio.timeout(most)
    try:
        async with limit:
            return await download(request)
    except Exception:  # whatever a handler makes of being cancelled
        if limit.expired():
            raise TooLong(f"{request} takes longer than {most:g} s (UBI_MAX_LOAD_SECONDS)") from None
        raise
