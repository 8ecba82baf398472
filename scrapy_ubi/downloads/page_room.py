"""Room for the pages that callbacks read: how many large ones there may be at once.

A page that is parsed takes ten to twenty times its bytes: its text, and the tree of `response.css`. Scrapy begins the
callback of each page as it comes, and takes their output in turns, so that a dozen pages of 2 MB are a dozen trees of
30 MB. Here the bytes of the pages that callbacks and pipelines have are bounded. Rules of this module:

* A page that comes where there is no room waits, still as it was transferred: a compressed one is not unpacked yet. Its
  transfer has ended, and its host is free.
* First come, first served. What is larger than all the room gets it when no other page has any.
* Until a compressed page is unpacked it counts for what such pages grew to lately, then for what it is.
* Where no page has left for `PATIENCE` seconds, one more may come in: callbacks may wait for each other's pages.
* While more than `most_waiting` bytes wait, no further request is handed out (`full`).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.http import Response

from scrapy_ubi.process.freed_memory import give_back

if TYPE_CHECKING:
    from scrapy_ubi.requests.inflight import Flight, Flights

logger = logging.getLogger("scrapy_ubi")

Download = Callable[[Request], Awaitable[Response]]
Carry = Callable[[Request, Download], Awaitable[Response]]

SHARE = 1 / 64  # of UBI_MEMORY_MB: bytes of pages that callbacks have; parsed they are about a quarter of it
SHARE_WAITING = 1 / 16  # of UBI_MEMORY_MB: bytes of pages that wait
LARGE = 1_000_000  # bytes of a page whose memory is given back to the system
# s between two times that memory is given back: the pages that follow have to ask for it again, which took a third of
# a page's time where one page in thirty is large.
GIVES_BACK = 1.0
PATIENCE = 15.0  # s; a busy machine may take seconds for one page
GROWS = 8.0  # how many times its bytes a compressed page is taken to have, at first
FORGETS = 0.9  # what is left of the largest growth after a page that grew less
WAITS = (
    "Large pages wait for each other, as UBI_MEMORY_MB bounds how much of them callbacks have at once; the stat "
    "ubi/pages/waited counts them. (Said once.)"
)


class PageRoom:
    """The room of one agent."""

    def __init__(self, memory: float, flights: Flights, count: Callable[[str], None]) -> None:
        """`memory`: that of UBI_MEMORY_MB, in bytes."""
        self._most, self._most_waiting = int(memory * SHARE), int(memory * SHARE_WAITING)
        self._flights, self._count = flights, count
        self._taken = self._waiting = 0
        self._told = False
        self._grows = GROWS
        self._queue: deque[tuple[asyncio.Future[None], int]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._wake: Callable[[], None] = lambda: None
        self._giving = False  # whether memory is going to be given back

    @property
    def full(self) -> bool:
        """Whether so much waits that nothing more should be loaded."""
        return self._waiting > self._most_waiting

    def after(self, carry: Carry, wake: Callable[[], None]) -> Carry:
        """`carry`, with a wait for room after the transfer. `wake`: what is no longer `full` may hand out requests."""
        self._wake = wake

        async def carried(request: Request, download: Download) -> Response:
            response = await carry(request, download)
            flight = self._flights.get(request)
            if flight is not None and flight.visit is not None:
                await self._enter(flight, response)
            return response

        return carried

    def unpacked(self, flight: Flight, response: Response) -> None:
        """A page goes to its callback: from now on it counts for what it is."""
        size = len(response.body)
        if flight.packed:
            self._grows = max(size / flight.packed, 1.0, self._grows * FORGETS)
        if flight.room:
            self._taken += size - flight.room
            flight.room = size
            self._let_in()

    def left(self, flight: Flight) -> None:
        """Scrapy lets go of a page."""
        if flight.room:
            self._taken -= flight.room
            if flight.room >= LARGE and not self._giving:
                self._giving = True
                asyncio.get_running_loop().call_later(GIVES_BACK, self._give_back)
            flight.room = 0
            if self._queue:
                self._let_in()
                self._be_patient()

    def _give_back(self) -> None:
        self._giving = False
        give_back()

    async def _enter(self, flight: Flight, response: Response) -> None:
        size = len(response.body)
        if not size or flight.room:
            return
        flight.packed = size if b"Content-Encoding" in response.headers else 0
        wants = int(size * self._grows) if flight.packed else size
        if self._queue or not self._fits(wants):
            await self._wait(size, wants)
        else:
            self._taken += wants
        flight.room = wants

    def _fits(self, wants: int) -> bool:
        return not self._taken or self._taken + wants <= self._most

    async def _wait(self, size: int, wants: int) -> None:
        """Until there is room: it is taken then."""
        self._count("ubi/pages/waited")
        if not self._told:
            self._told = True
            logger.info(WAITS)
        place = asyncio.get_running_loop().create_future(), wants
        self._queue.append(place)
        self._waiting += size
        if self.full:
            self._count("ubi/pages/full")
        if self._timer is None:
            self._be_patient()
        try:
            await place[0]
        except asyncio.CancelledError:
            if place in self._queue:
                self._queue.remove(place)
            else:  # it had just been let in
                self._taken -= wants
                self._let_in()
            raise
        finally:
            self._end_of_wait(size)

    def _end_of_wait(self, size: int) -> None:
        was_full = self.full
        self._waiting -= size
        if was_full and not self.full:
            self._wake()

    def _let_in(self) -> None:
        """Let in those for whom there is room, first come first served."""
        while self._queue and self._fits(self._queue[0][1]):
            self._let_one_in()

    def _let_one_in(self) -> None:
        place, wants = self._queue.popleft()
        if not place.done():
            self._taken += wants
            place.set_result(None)

    def _be_patient(self) -> None:
        """From now on wait for somebody to leave, as long as somebody waits for that."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._queue:
            self._timer = asyncio.get_running_loop().call_later(PATIENCE, self._none_left)

    def _none_left(self) -> None:
        if self._queue:
            self._count("ubi/pages/let_in")
            self._let_one_in()
        self._be_patient()
