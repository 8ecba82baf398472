"""The guard: no transfer starts without the host's permit and the lease, whoever asked for it.

Everything passes it, as it stands in the innermost downloader middleware: scheduled requests, and robots.txt, media and
each hop of their redirects, which bypass the scheduler (`bypassing`). Rules of this module:

* `process_request` waits for the permit and compares the lease last, right before it lets the request go. A request
  that then waits for a free place in Scrapy's downloader (a delay, a full slot) is compared again where its transfer
  starts, and once more where its bytes leave (`writegate`).
* The permit is given back when the transfer ends (`process_response`, `process_exception`), and again when Scrapy lets
  go of the request: giving back twice does nothing. A slow callback does not hold its host.
* A request whose kept connection has ended without an answer is sent again here, when the delay of its host has passed:
  no handler does so by itself. That is no failure. A robots.txt is not: it is asked for again after its own pauses.
* What the end of a transfer says about its host (it asks to be left alone, it does not answer) is the matter of
  `Manners`, and comes before the permit is given back.
* A page that may not be fetched here any more (the lease ended during its transfer, the host went to another agent,
  the crawl closes) is *withdrawn*: neither the retry middleware nor the spider see a failure, and it returns to the
  queue.
* What bypasses the scheduler is in no queue: its transfer, when aborted, waits for the next permit and is done again.
  It waits in its place in Scrapy's downloader, so it is the first to have that permit.
* From a host of another agent it is loaded under a foreign permit (`node.permits`), unless UBI_FOREIGN_DOWNLOADS says
  otherwise: never two at once from this agent, and none without the lease.
* What the pages under way load beside the scheduler (media, with their robots.txt) begins while the spider is being
  closed as well: their items would lack it for good. But it waits for no lease then, nor for a host that was put off
  for long.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response

from scrapy_ubi.downloads.reach import Reach
from scrapy_ubi.downloads.unscheduled import Bypassing, GivenUp, is_done_again, is_robots
from scrapy_ubi.node.group.retry_until import wait_briefly
from scrapy_ubi.politeness.host_feedback import Manners
from scrapy_ubi.politeness.robots.fetch import load_of
from scrapy_ubi.process.log_once import Notices
from scrapy_ubi.requests.failure_reasons import TooLong
from scrapy_ubi.requests.inflight import Flight, Flights
from scrapy_ubi.scrapy_private import Download, socket_gate
from scrapy_ubi.settings import UbiSettings

if TYPE_CHECKING:
    from scrapy_ubi.node import Node
    from scrapy_ubi.protocol.host import HostState

T = TypeVar("T")


class Withdrawn(IgnoreRequest):
    """This request is not fetched here and now; what asked for it is to be done again, here or elsewhere."""


class _Lapsed(Exception):
    """The right to start this transfer ended while the request waited for its turn."""


class _Broken(_Lapsed):
    """The connection ended without an answer, and the request may be sent again."""


class Guard:
    """The guard of one agent."""

    def __init__(
        self, crawler: Crawler, node: Node, settings: UbiSettings, flights: Flights, notices: Notices, reach: Reach
    ) -> None:
        self._manners = Manners(crawler, node, settings, self._end_waiting_for)
        self._bypassing = Bypassing(crawler, node, settings, notices, self._manners.given_up)
        self._crawler = crawler
        self._node = node
        self._settings = settings
        self._flights = flights
        self._reach = reach
        self._closing = False
        self._closes = asyncio.Event()

    async def admit(self, request: Request) -> None:
        """Wait until the transfer of `request` may start, now. Raises `Withdrawn` or `ForeignHost` when it may not."""
        flight = self._flights.get(request) or self._flights.add(self._bypassing.flight(request))
        if flight.host is None:
            return
        if flight.visit is None and load_of(request) is None and not is_robots(request):
            await self._reach.bypasses(request)
        if self._ends(flight) or self._bypassing.lacks_robots(flight):
            flight.withdrawn = True
        if flight.withdrawn:
            raise self._withdrawal(flight)
        load = load_of(request)
        if load is not None and load.redirected:
            await self._permit_soon(flight, load.timeout)
        else:
            await self._permit(flight)

    async def carry(self, request: Request, download: Download) -> Response:
        """Do the transfer of `request` so that it can be cancelled. Raises what `download` raises, or `Withdrawn`."""
        flight = self._flights.get(request)
        repeats = 0
        while flight is not None and flight.held:
            try:
                return await self._unless_withdrawn(flight, self._transfer(flight, download, repeats))
            except _Lapsed as ended:
                if isinstance(ended, _Broken):
                    repeats += 1
                    self._crawler.stats.inc_value("ubi/guard/repeated")
                self.release(flight, again=True)
                if self._ends(flight):
                    flight.withdrawn = True
                    raise self._withdrawal(flight) from None
                await self._permit(flight, again=True)
            except Withdrawn:
                if self._ends(flight) or not is_done_again(flight):
                    raise
                flight.withdrawn = False
                await self._permit(flight, again=True)
                if (load := load_of(request)) is not None:
                    load.begin()
        return await download(request)

    async def _transfer(self, flight: Flight, download: Download, repeats: int) -> Response:
        # Nothing may come between this and the transfer: in another task's turn a callback may block for seconds.
        assert flight.host is not None
        right = socket_gate.OneTransfer(self._right(flight), flight.host, repeats)
        if not right():
            raise _Lapsed
        before = socket_gate.may_write.set(right)
        flight.began = monotonic()
        try:
            if (most := self._settings.max_load_seconds) and flight.visit is not None:
                return await _within(most, flight.request, download)
            return await download(flight.request)
        except Exception:  # whatever a handler makes of a connection that the gate has aborted
            if right.lapsed:
                raise _Lapsed from None
            if right.broken and load_of(flight.request) is None:
                raise _Broken from None
            raise
        finally:
            socket_gate.may_write.reset(before)  # the task may be that of the whole page

    def is_page(self, request: Request) -> bool:
        """Whether this is a page of the queue, and nothing that bypasses the scheduler or never leaves this agent."""
        flight = self._flights.get(request)
        return flight is not None and flight.visit is not None

    def state_of(self, request: Request) -> HostState | None:
        """The state of the host of a page of the queue, None for what is none."""
        flight = self._flights.get(request)
        return None if flight is None or flight.visit is None else flight.visit.state

    def own_state(self, request: Request) -> HostState | None:
        """The state of the host of any request, None where this agent may not load from it now."""
        host = self._bypassing.host_of(request.url)
        return self._node.frontier.find(host) if host is not None and self._node.may_fetch(host) else None

    def host_of_url(self, url: str) -> str | None:
        """The host of any URL, None for what is none of http."""
        return self._bypassing.host_of(url)

    def want_abroad(self, request: Request, source: str, seconds: float) -> None:
        """This source wants a delay (s, 0: none) of the host of this request, where that is another agent's."""
        host = self._bypassing.host_of(request.url)
        if host is not None and not self._node.is_own(host):
            self._node.foreign.want(host, source, seconds)

    async def rest(self, seconds: float) -> bool:
        """Wait for so long, but not while the spider is being closed; whether it has waited."""
        await wait_briefly(self._closes, seconds)
        return not self._closing

    def host_of(self, request: Request) -> str:
        """The host of a page of the queue, empty for what is none."""
        state = self.state_of(request)
        return "" if state is None else state.host

    def responded(self, request: Request, response: Response) -> None:
        """The transfer of `request`, if there was one, ended with this response. Raises `Withdrawn` where the page is
        to be fetched again later.
        """
        flight = self._flights.get(request)
        if flight is None or not flight.held:
            return
        flight.fetched = True
        flight.sets_cookies = b"Set-Cookie" in response.headers
        later = self._manners.responded(flight, response, monotonic() - flight.began)
        self.release(flight)
        if later:
            flight.withdrawn = True
            raise self._withdrawal(flight)

    def failed(self, request: Request, error: Exception) -> None:
        """The transfer of `request`, if there was one, ended with this error. Raises as `responded` does."""
        flight = self._flights.get(request)
        if flight is None or not flight.held:
            return
        later = not flight.withdrawn and self._manners.failed(flight, error)
        self.release(flight)
        if later:
            flight.withdrawn = True
            raise self._withdrawal(flight)

    def release(self, flight: Flight, again: bool = False) -> None:
        """The transfer has ended, or there is none: give the host back. A second call does nothing. `again`: the same
        transfer is made once more."""
        if flight.held:
            flight.held = False
            assert flight.host is not None
            self._node.release(flight.host, flight.visit, again)
            if self._closing:  # its host may have been put off
                self._end_waiting()

    def cancel(self, hosts: Iterable[str] | None = None) -> None:
        """Abort the transfers under way from `hosts` (None: all): the agent has lost the right to them."""
        these = None if hosts is None else set(hosts)
        for flight in self._flights:
            if flight.held and flight.waiting is not None and (these is None or flight.host in these):
                self._crawler.stats.inc_value("ubi/guard/cancelled")
                self._withdraw(flight)
        if self._closing:
            self._end_waiting()

    def close(self) -> None:
        """The spider is being closed: transfers end, but none starts any more, but for what pages under way load beside
        the scheduler."""
        self._closing = True
        self._closes.set()
        self._end_waiting()

    def _end_waiting(self) -> None:
        for flight in self._flights:
            if flight.waiting is not None and not flight.held and self._ends(flight):
                self._withdraw(flight)

    def _end_waiting_for(self, host: str) -> None:
        """This host is given up: media of it wait no longer."""
        for flight in self._flights:
            if flight.host == host and flight.waiting is not None and not flight.held and is_done_again(flight):
                self._withdraw(flight)

    def _ends(self, flight: Flight) -> bool:
        """Whether this begins no transfer any more, as the spider is being closed."""
        if not self._closing:
            return False
        load = load_of(flight.request)
        if flight.visit is not None or (load is not None and load.of_page):
            return True
        return flight.host is not None and not self._node.loads(flight.host)

    async def _permit(self, flight: Flight, again: bool = False) -> None:
        assert flight.host is not None
        while True:
            if flight.visit is None and (refusal := self._bypassing.refusal(flight)) is not None:
                raise refusal
            foreign = flight.visit is None and self._bypassing.is_loaded_abroad(flight)
            granted = await self._unless_withdrawn(flight, self._node.permit(flight.host, flight.visit, again, foreign))
            flight.held = granted
            flight.began = monotonic()
            if not granted:
                return self._denied(flight)
            if self._right(flight)(flight.host):
                return self._count_foreign(flight.host) if foreign else None
            self.release(flight)
            await asyncio.sleep(0)

    async def _permit_soon(self, flight: Flight, most: float) -> None:
        """As `_permit`, but a host that leaves one waiting for so many seconds beyond its delay raises TimeoutError."""
        assert flight.host is not None
        state = self._node.frontier.find(flight.host)
        most += max(self._node.frontier.delay, 0.0 if state is None else state.pause)
        loop = asyncio.get_running_loop()
        timer = loop.call_later(most, self._withdraw, flight)
        try:
            await self._permit(flight)
        except Withdrawn:
            if loop.time() < timer.when():
                raise
            raise TimeoutError(f"{flight.host} was not free for {most:g} s") from None
        finally:
            timer.cancel()

    def _right(self, flight: Flight) -> Callable[[str], bool]:
        """The comparison that nothing may come after: the host is ours, not held, and the lease holds; of what holds a
        foreign permit, the lease alone."""
        return self._node.may_load if flight.visit is None else self._node.may_fetch

    def _count_foreign(self, host: str) -> None:
        if self._node.is_foreign(host):
            self._crawler.stats.inc_value("ubi/guard/foreign_polite")

    def _denied(self, flight: Flight) -> None:
        """The node will never permit this. Raises, unless it may go without."""
        bypasses = flight.visit is None and not self._bypassing.is_of_own_page(flight) and not self._ends(flight)
        if not bypasses or not self._bypassing.passes_foreign(flight):
            flight.withdrawn = True
            raise self._withdrawal(flight)

    async def _unless_withdrawn(self, flight: Flight, awaitable: Awaitable[T]) -> T:
        """Wait for something that `_withdraw` can take the flight out of: by cancelling this very task, as a task for
        each permit and each transfer costs more than they do."""
        task = flight.waiting = asyncio.current_task()
        assert task is not None, "Scrapy runs what awaits in a task"
        try:
            return await awaitable
        except asyncio.CancelledError:
            if flight.waiting is task:  # somebody else has cancelled it
                raise
            raise self._withdrawal(flight) from None
        finally:
            if flight.waiting is not task:
                task.uncancel()
            flight.waiting = None

    def _withdraw(self, flight: Flight) -> None:
        flight.withdrawn = True
        if flight.waiting is not None:
            flight.waiting.cancel()
            flight.waiting = None  # once: each cancellation has to be taken back

    def _withdrawal(self, flight: Flight) -> Withdrawn | GivenUp:
        """The exception that ends this flight; the place where a robots.txt is noted as not read."""
        self.release(flight)
        if flight.visit is None and (refusal := self._bypassing.refusal(flight)) is not None:
            return refusal
        if not self._bypassing.withdrawn(flight) and is_done_again(flight) and self._ends(flight):
            self._bypassing.tell_ended(flight)
        what = "goes back to the queue" if flight.visit is not None else "is not loaded here and now"
        return Withdrawn(f"{flight.request} {what}")


async def _within(most: float, request: Request, download: Download) -> Response:
    """Do a transfer in so many seconds. Raises `TooLong`, or what `download` raises."""
    limit = asyncio.timeout(most)
    try:
        async with limit:
            return await download(request)
    except Exception:  # whatever a handler makes of being cancelled
        if limit.expired():
            raise TooLong(f"{request} takes longer than {most:g} s (UBI_MAX_LOAD_SECONDS)") from None
        raise
