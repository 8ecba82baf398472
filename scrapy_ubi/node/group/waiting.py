"""Waiting for an event, but not for ever."""

from __future__ import annotations

import asyncio


async def wait_briefly(event: asyncio.Event, most: float | None) -> None:
    """Wait for an event, for so many seconds at most (None: for as long as it takes)."""
    try:
        async with asyncio.timeout(most):  # not wait_for, which in Python 3.11 may swallow a cancellation
            await event.wait()
    except TimeoutError:
        pass
