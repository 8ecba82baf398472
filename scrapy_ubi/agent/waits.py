"""Waits with a limit: for an event, and for a Redis that is away or full while an agent joins.

Rules of this module:

* No wait is without end: each takes the most seconds that it may last.
* An agent that has joined keeps everything and waits for its Redis as long as it takes. One that joins holds nothing of
  the crawl yet, and its address may be wrong: it tries again for a while, logs that at once, and then raises the error.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from scrapy_ubi.transport import TransportDown, TransportFull

logger = logging.getLogger("scrapy_ubi")

T = TypeVar("T")
PAUSE = 0.5  # s between two tries


async def retry_until(step: Callable[[], Awaitable[T]], most: float, clock: Callable[[], float]) -> T:
    """What comes of a step, which is tried again while Redis is away or full, for `most` seconds (by `clock`). Raises
    TransportDown or TransportFull of the last try."""
    end: float | None = None
    while True:
        try:
            result = await step()
        except (TransportDown, TransportFull) as error:
            now = clock()
            first, end = end is None, now + most if end is None else end
            if now >= end:
                raise
            if first:
                logger.info("%s Trying again for up to %g s (UBI_REDIS_WAIT).", error, most)
            await asyncio.sleep(min(PAUSE, end - now))
        else:
            if end is not None:
                logger.info("Redis is there now.")
            return result


async def wait_briefly(event: asyncio.Event, most: float | None) -> None:
    """Wait until an event is set, for so many seconds at most (None: without a limit)."""
    try:
        async with asyncio.timeout(most):  # not wait_for, which in Python 3.11 may swallow a cancellation
            await event.wait()
    except TimeoutError:
        pass
