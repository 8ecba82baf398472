"""Room for the pages that callbacks read: how many large ones there may be at once.

A page that is parsed takes ten to twenty times its bytes: its text, and the tree of `response.css`. Scrapy begins the
callback of each page as it comes, and takes their output in turns, so that a dozen pages of 2 MB are a dozen trees of
30 MB. Here the bytes of the pages that callbacks and pipelines have are bounded. A callback may also be at one page for
minutes, as it yields a million links, and the others go on meanwhile. Rules of this module:

* A page that comes where there is no room waits, still as it was transferred: a compressed one is not unpacked yet. Its
  transfer has ended, and its host is free.
* First come, first served. What is larger than all the room gets it when no other page has any.
* Small pages that find no room, or others waiting for it, have a little room of their own: they never wait for large
  ones.
* Scrapy's own bound (SCRAPER_SLOT_MAX_ACTIVE_SIZE) does not count what is bounded here (`excuse`), the pages that are
  not small: else one of more than 5 MB stops all requests as long as its callback is at it.
* Until a compressed page is unpacked it counts for what such pages grew to lately, then for what it is.
* Where no page has left for `PATIENCE` seconds, the largest that is there does not count any more (one at a time): its
  callback may go on for minutes. If there is such a one already, one more may come in, as callbacks may wait for each
  other's pages.
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

from scrapy_ubi.adapter.process.garbage import give_back
from scrapy_ubi.adapter.requests.observers import PageObserver
from scrapy_ubi.agent.profile.idle_reason import MEMORY
from scrapy_ubi.ground.timer import Timer

if TYPE_CHECKING:
    from scrapy_ubi.adapter.requests.inflight import Flight, Flights

logger = logging.getLogger("scrapy_ubi")

Download = Callable[[Request], Awaitable[Response]]
Carry = Callable[[Request, Download], Awaitable[Response]]

SHARE = 1 / 64  # of UBI_MEMORY_MB: bytes of pages that callbacks have; parsed they are about a quarter of it
SHARE_SMALL = 1 / 256  # of UBI_MEMORY_MB: bytes of small pages beside these
SMALL = 1 / 16  # of the room: what a small page takes at most
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


class _Place:
    """What one page counts for."""

    __slots__ = ("excused", "packed", "room")

    def __init__(self, packed: int) -> None:
        self.room = 0  # bytes; 0 while it waits
        self.packed = packed  # bytes as transferred, where it was compressed
        self.excused = 0  # bytes that Scrapy's own bound does not count


class PageRoom(PageObserver):
    """The room of one agent."""

    def __init__(
        self, memory: float, flights: Flights, count: Callable[[str], None], excuse: Callable[[int], None]
    ) -> None:
        """`memory`: that of UBI_MEMORY_MB, in bytes. `excuse(bytes)`: so much more (less) is not to count for Scrapy's
        own bound."""
        self._most = int(memory * SHARE)
        self._most_waiting = int(memory * SHARE_WAITING)
        self._most_small = int(memory * SHARE_SMALL)
        self._small = int(memory * SHARE * SMALL)
        self._flights = flights
        self._count = count
        self._excuse = excuse
        self._taken = self._taken_small = self._waiting = 0
        self._places: dict[Flight, _Place] = {}
        self._there: dict[_Place, None] = {}  # those that `_taken` counts
        self._long: _Place | None = None  # has been there for long, and does not count
        self._told = False
        self._grows = GROWS
        self._queue: deque[tuple[asyncio.Future[None], int, _Place]] = deque()
        self._timer = Timer()
        self._wake: Callable[[], None] = lambda: None
        self._giving = False  # whether memory is going to be given back

    def full(self) -> str:
        """Return `MEMORY` where so much waits that nothing more should be loaded."""
        return MEMORY if self._waiting > self._most_waiting else ""

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

    def answered(self, flight: Flight, response: Response) -> None:
        """A page goes to its callback: from now on it counts for what it is."""
        if flight not in self._places:
            return
        place, size = self._places[flight], len(response.body)
        if place.packed:
            self._grows = max(size / place.packed, 1.0, self._grows * FORGETS)
        was, place.room = place.room, size
        if place in self._there:
            self._taken += size - was
        elif size > self._small:  # more than it was taken for
            self._taken_small -= was
            self._taken += size
            self._there[place] = None
        else:
            self._taken_small += size - was
        if size > self._small:
            self._excuse(size - place.excused)
            place.excused = size
        self._let_in()

    def ended(self, flight: Flight) -> None:
        """Scrapy lets go of a page."""
        if flight not in self._places:
            return
        place = self._places[flight]
        del self._places[flight]
        if place.room >= LARGE and not self._giving:
            self._giving = True
            asyncio.get_running_loop().call_later(GIVES_BACK, self._give_back)
        if place.excused:
            self._excuse(-place.excused)
        is_small = self._give_up_room(place)
        if self._queue:
            self._let_in()
            if not is_small:  # small ones come and go while a large one is there for long
                self._be_patient()

    withdrawn = ended

    def _give_up_room(self, place: _Place) -> bool:
        """Whether it was in the room of small ones."""
        if place is self._long:
            self._long = None
        elif place in self._there:
            del self._there[place]
            self._taken -= place.room
        else:
            self._taken_small -= place.room
            return True
        return False

    def _give_back(self) -> None:
        self._giving = False
        give_back()

    async def _enter(self, flight: Flight, response: Response) -> None:
        size = len(response.body)
        if not size or flight in self._places:
            return
        place = _Place(size if b"Content-Encoding" in response.headers else 0)
        wants = int(size * self._grows) if place.packed else size
        if not self._enters(place, wants, not self._queue):
            await self._wait(place, size, wants)
        self._places[flight] = place

    def _enters(self, place: _Place, wants: int, is_first: bool) -> bool:
        """Whether there is room for this page, which is taken then. `is_first`: none waits before it."""
        if is_first and (not self._taken or self._taken + wants <= self._most):
            self._take(place, wants)
        elif wants <= self._small and self._taken_small + wants <= self._most_small:
            self._taken_small += wants
            place.room = wants
        else:
            return False
        return True

    def _take(self, place: _Place, wants: int) -> None:
        self._taken += wants
        self._there[place] = None
        place.room = wants

    async def _wait(self, place: _Place, size: int, wants: int) -> None:
        """Until there is room: it is taken then."""
        self._count("ubi/pages/waited")
        if not self._told:
            self._told = True
            logger.info(WAITS)
        waiter = asyncio.get_running_loop().create_future(), wants, place
        self._queue.append(waiter)
        self._waiting += size
        if self.full():
            self._count("ubi/pages/full")
        if not self._timer.is_set:
            self._be_patient()
        try:
            await waiter[0]
        except asyncio.CancelledError:
            if waiter in self._queue:
                self._queue.remove(waiter)
            else:  # it had just been let in
                self._give_up_room(place)
                self._let_in()
            raise
        finally:
            self._end_of_wait(size)

    def _end_of_wait(self, size: int) -> None:
        was_full = self.full()
        self._waiting -= size
        if was_full and not self.full():
            self._wake()

    def _let_in(self) -> None:
        """Let in those for whom there is room, first come first served, and small ones into the room of theirs."""
        for waiter in list(self._queue):
            waits, wants, place = waiter
            if not waits.done() and not self._enters(place, wants, waiter is self._queue[0]):
                if self._taken_small >= self._most_small:
                    return
                continue
            self._queue.remove(waiter)
            if not waits.done():
                waits.set_result(None)

    def _be_patient(self) -> None:
        """From now on wait for somebody to leave, as long as somebody waits for that."""
        self._timer.clear()
        if self._queue:
            self._timer.set(PATIENCE, self._none_left)

    def _none_left(self) -> None:
        if self._queue and not self._pass_over_longest():
            self._count("ubi/pages/let_in")
            waits, wants, place = self._queue.popleft()
            if not waits.done():
                self._take(place, wants)
                waits.set_result(None)
        self._be_patient()

    def _pass_over_longest(self) -> bool:
        """From now on do not count the largest page that is there, unless there is such a one already. Whether others
        came in then."""
        if self._long is not None or not self._there:
            return False
        self._long = max(self._there, key=lambda place: place.room)
        del self._there[self._long]
        self._taken -= self._long.room
        self._count("ubi/pages/long")
        waited = len(self._queue)
        self._let_in()
        return len(self._queue) < waited
