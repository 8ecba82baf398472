"""What the agents of a crawl say of the items that their `start()` yields (`Transport.claim_items`), from the loop.

Rules of this module:

* Redis is asked for some at a time, in the I/O thread. While it is away, or full, the caller waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import islice

from scrapy_ubi.agent.mail.io_thread import IoThread
from scrapy_ubi.transport import Transport, TransportError

AT_ONCE = 500  # items in one round trip: some 50 kB
AGAIN = 0.5  # s between two trials

Claims = Mapping[str, tuple[str | None, str]]


class ItemClaims:
    """Asks by this transport."""

    def __init__(self, io: IoThread, transport: Transport) -> None:
        self._io = io
        self._transport = transport

    async def settle_claims(self, claims: Claims) -> dict[str, str]:
        """Say this of each item, if what is said of it is as expected; what is said of it then."""
        said: dict[str, str] = {}
        waiting = iter(claims.items())
        while some := dict(islice(waiting, AT_ONCE)):
            while (answer := await self._ask(some)) is None:  # noqa: ASYNC110 - nothing tells that Redis is back
                await asyncio.sleep(AGAIN)
            said |= answer
        return said

    async def try_once(self, claims: Claims) -> bool:
        """Say these claims once. Nothing waits for the answers. Return whether Redis has heard of all."""
        waiting = iter(claims.items())
        while some := dict(islice(waiting, AT_ONCE)):
            if await self._ask(some) is None:
                return False
        return True

    async def _ask(self, claims: Claims) -> dict[str, str] | None:
        try:
            return await self._io.call(self._transport.claim_items(claims))
        except TransportError:
            return None
