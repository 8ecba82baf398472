"""How often others have their turn while something long goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable


async def turns_of_others(work: Awaitable[None]) -> int:
    """Turns of the loop until this has ended."""
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.ensure_future(count())
    try:
        await work
    finally:
        counting.cancel()
    return turns
