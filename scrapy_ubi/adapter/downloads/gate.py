"""The gate: no transfer starts without the permit of its host and the lease, whatever asked for it.

Everything passes it, as it stands in the innermost downloader middleware: requests of the queue, and robots.txt, media
and each hop of their redirects, which bypass the scheduler (`unscheduled`). Rules of this module:

* Where a request stands is one state with a table of transitions (`requests.transfer_states`). The permit is held in
  some of these states and in no other.
* The right to load is asked for three times: when the queue chooses the request, when its permit is granted, and where
  its bytes leave (`socket_gate`), and before a connection is made for them. Of a download handler that does not ask by
  itself, it is asked for when the transfer starts.
* The permit is given back when the transfer ends (`responded`, `failed`), and again when Scrapy removes the request:
  the second time does nothing. A slow callback does not hold its host.
* A request whose kept connection was closed without an answer is sent again here, after the delay of its host: no
  handler does so by itself. That is no failure. A robots.txt is not: it is asked for again after its own pauses.
* What the end of a transfer says about its host is the matter of `HostFeedback`, and comes before the permit is given
  back.
* A page that this agent may not fetch now (the lease ended during its transfer, the host went to another agent,
  the crawl closes) is *withdrawn*: neither the retry middleware nor the spider see a failure, and it returns to the
  queue.
* What bypasses the scheduler is in no queue: its transfer, when aborted, waits for the next permit and is made again.
  It keeps its place in Scrapy's downloader, so it gets that permit before all others.
* From a host of another agent it is loaded under a foreign permit (`agent.work.permits`), unless UBI_FOREIGN_DOWNLOADS
  says otherwise: never two at once from this agent, and none without the lease.
* What waits beside the scheduler gives its place of the downloader to the pages meanwhile (`Places`), and does not wait
  for what only pages can wait for: a time that its host has asked for, a server that does not answer (`unscheduled`).
* What the pages in flight load beside the scheduler (media, with their robots.txt) may start while the spider is being
  closed: their items would lack it. But it waits for no lease then, nor for a host that was put off for long.
* Flights that wait for a permit are listed by host: an event at a host looks at those of that host only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from time import monotonic
from typing import TYPE_CHECKING, NoReturn

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from scrapy_ubi.adapter.downloads.abort import Aborted, abort, abortable, within
from scrapy_ubi.adapter.downloads.reach import Reach
from scrapy_ubi.adapter.downloads.unscheduled import (
    WAITS,
    NotMade,
    Unscheduled,
    UnscheduledRests,
    is_done_again,
    is_robots,
    same_failure,
    server_of,
)
from scrapy_ubi.adapter.feedback.host_feedback import NO_ANSWER, HostFeedback
from scrapy_ubi.adapter.process.log_once import Notices
from scrapy_ubi.adapter.requests.inflight import Flight, Flights
from scrapy_ubi.adapter.requests.named_hosts import HostNames
from scrapy_ubi.adapter.requests.transfer_states import BUSY, HOLDING, Transfer
from scrapy_ubi.adapter.robots.fetch import load_of
from scrapy_ubi.adapter.scrapy_private import socket_gate
from scrapy_ubi.adapter.scrapy_private.downloader import Places
from scrapy_ubi.adapter.scrapy_private.engine import Download
from scrapy_ubi.agent.waits import wait_briefly
from scrapy_ubi.policy.politeness import retry_after
from scrapy_ubi.settings import UbiSettings

if TYPE_CHECKING:
    from scrapy_ubi.agent import Node

if TYPE_CHECKING:
    from scrapy_ubi.agent import Node
    from scrapy_ubi.protocol.host import HostState


class RequestHosts:
    """What is known at this agent of the host of a request: its state, whose it is, and whether the request is a page:
    one of the queue. What bypasses the scheduler, and what never leaves this agent, is none."""

    def __init__(self, node: Node, settings: UbiSettings, flights: Flights) -> None:
        self._node = node
        self._flights = flights
        names = HostNames(settings)
        self.of_url = names.of_url
        self.of_request = names.of_request
        self._closes = asyncio.Event()

    def is_page(self, request: Request) -> bool:
        """Whether this is a page."""
        flight = self._flights.get(request)
        return flight is not None and flight.visit is not None

    def state_of(self, request: Request) -> HostState | None:
        """The state of the host of a page, None for what is none."""
        flight = self._flights.get(request)
        return None if flight is None or flight.visit is None else flight.visit.state

    def name_of(self, request: Request) -> str:
        """The host of a page, empty for what is none."""
        state = self.state_of(request)
        return "" if state is None else state.host

    def key_for(self, request: Request) -> str:
        """Under which host a robots.txt is loaded for this request: that of the page, or of what bypasses the
        scheduler; empty for what has none."""
        return self.name_of(request) or self.of_request(request) or ""

    def own_state(self, request: Request) -> HostState | None:
        """The state of the host of any request, None where this agent may not load from it now."""
        host = self.of_request(request)
        return self._node.frontier.find(host) if host is not None and self._node.access.may_fetch(host) else None

    def want_abroad(self, request: Request, source: str, seconds: float) -> None:
        """This source wants a delay (s, 0: none) of the host of this request, where that is another agent's."""
        host = self.of_request(request)
        if host is not None and not self._node.access.is_own(host):
            self._node.access.foreign.want(host, source, seconds)

    async def rest(self, seconds: float) -> bool:
        """Wait for so long, but not while the spider is being closed. Returns whether it has waited."""
        await wait_briefly(self._closes, seconds)
        return not self._closes.is_set()

    def close(self) -> None:
        """The spider is being closed."""
        self._closes.set()


class Withdrawn(NotMade):
    """This request is not fetched here and now; what asked for it is to be done again, here or elsewhere."""


class _Lapsed(Exception):
    """The right to start this transfer ended before anything was written."""


class _Told(Exception):
    """What waited for a permit has an answer without a transfer."""

    def __init__(self, answer: Response) -> None:
        self.answer = answer


class _Broken(_Lapsed):
    """The connection ended without an answer, and the request may be sent again."""


class Gate:
    """The gate of one agent. `hosts` says what is known here of the host of any request; `received` hears of
    responses (`PageObserver.received`)."""

    def __init__(
        self,
        crawler: Crawler,
        node: Node,
        settings: UbiSettings,
        flights: Flights,
        notices: Notices,
        reach: Reach,
        received: Iterable[Callable[[Flight, Response], object]] = (),
    ) -> None:
        self._feedback = HostFeedback(crawler, node, settings)
        self._unscheduled = Unscheduled(crawler, node, settings, notices)
        self._beside = UnscheduledRests(monotonic)
        self._host_failures = settings.host_failures
        self._notices = notices
        self.places = Places(crawler)
        self._crawler = crawler
        self._node = node
        self._most_seconds = settings.max_load_seconds
        self._flights = flights
        self.hosts = RequestHosts(node, settings, flights)
        self.reach = reach
        self._received = received
        self._waiting: dict[str, dict[Flight, None]] = {}  # host -> the flights that wait for its permit, in order
        self.closing = False
        self._has_pages = False  # whether a page has come to the gate

    def follow(self, settings: UbiSettings) -> None:
        """These are the settings from now on."""
        self._most_seconds, self._host_failures = settings.max_load_seconds, settings.host_failures
        self._feedback.follow(settings)

    # -- the way of a request

    async def admit(self, request: Request) -> Response | None:
        """Wait until the transfer of `request` may start, now. Raises `Withdrawn` or `ForeignHost` when it may not.

        What bypasses the scheduler may get an answer in place of a transfer, or what one before it has raised.
        """
        flight = self._flights.get(request) or self._flights.add(self._unscheduled.flight(request))
        is_twice = flight.transfer in BUSY
        if is_twice:  # the same object is downloaded already: this one comes in its place, after its end
            flight = self._unscheduled.flight(request)
        if flight.host is None:
            return None
        self._has_pages |= flight.visit is not None
        if _is_beside(flight):
            if not self._has_pages and "redirect_urls" not in request.meta:
                self.reach.seed(request.url)  # start() awaits it, to log in for example: no page has led there
            await self.reach.bypasses(request)
            if (answer := self.left_alone(flight)) is not None:
                return answer
        if flight.withdrawn or self._ends(flight) or self._unscheduled.lacks_robots(flight):
            self._withdraw(flight)
        flight.move(Transfer.WAITING)
        load = load_of(request)
        try:
            if load is not None and load.redirected:
                await self._permit_soon(flight, load.timeout)
            else:
                await self._permit(flight)
        except _Told as told:
            return told.answer
        if is_twice:
            self._flights.add(flight)
        return None

    async def carry(self, request: Request, download: Download) -> Response:
        """Make the transfer of `request` so that it can be cancelled. Raises what `download` raises, or what `admit`
        does."""
        flight = self._flights.get(request)
        repeats = 0
        while flight is not None and flight.transfer is Transfer.GRANTED:
            try:
                return await abortable(flight, self._transfer(flight, download, repeats))
            except _Lapsed as ended:
                if isinstance(ended, _Broken):
                    repeats += 1
                    self._crawler.stats.inc_value("ubi/guard/repeated")
            except Aborted:
                if not is_done_again(flight):
                    self._withdraw(flight)
            self.release(flight, again=True)
            if self._ends(flight):
                self._withdraw(flight)
            try:
                await self._permit(flight, again=True)
            except _Told as told:
                return told.answer
            if (load := load_of(request)) is not None:
                load.begin()
        return await download(request)

    async def _transfer(self, flight: Flight, download: Download, repeats: int) -> Response:
        assert flight.host is not None
        right = socket_gate.OneTransfer(self._right(flight), flight.host, repeats)
        # Where the handler does not ask, nothing may come between this and the transfer: another task may block long.
        if not isinstance(download, socket_gate.Asking) and not right():
            raise _Lapsed
        flight.move(Transfer.TRANSFERRING)
        before = socket_gate.may_write.set(right)
        flight.began = monotonic()
        try:
            if (most := self._most_seconds) and flight.visit is not None:
                return await within(most, flight.request, download)
            return await download(flight.request)
        except Exception:  # whatever a handler makes of a connection that the socket gate has aborted
            if right.lapsed:
                raise _Lapsed from None
            if right.broken and load_of(flight.request) is None:
                raise _Broken from None
            raise
        finally:
            socket_gate.may_write.reset(before)  # the task may be that of the whole page

    def responded(self, request: Request, response: Response) -> None:
        """The transfer of `request`, if there was one, ended with this response. Raises `Withdrawn` where the page is
        to be fetched again later.
        """
        flight = self._flights.get(request)
        if flight is None:
            return
        if flight.transfer in HOLDING:
            self._has_response(flight, response)
        for hear in self._received:
            hear(flight, response)

    def _has_response(self, flight: Flight, response: Response) -> None:
        """The transfer of a flight has ended with this response. Raises as `responded` does."""
        request = flight.request
        flight.fetched = True
        later = self._feedback.responded(flight, response, monotonic() - flight.began)
        if load_of(request) is None:
            self._beside.answered(request)
            if response.status in retry_after.STATUSES and (asked := self._feedback.asked(response)):
                self._leave_alone(flight, asked, response)
        self.release(flight)
        if later:
            self._withdraw(flight)

    def failed(self, request: Request, error: Exception) -> None:
        """The transfer of `request`, if there was one, ended with this error. Raises as `responded` does."""
        flight = self._flights.get(request)
        if flight is None or flight.transfer not in HOLDING:
            return
        later = self._feedback.failed(flight, error)
        if isinstance(error, NO_ANSWER) and load_of(request) is None:
            self._has_failed(flight, error)
        self.release(flight)
        if later:
            self._withdraw(flight)

    def release(self, flight: Flight, again: bool = False) -> None:
        """The transfer has ended, or there is none: give the permit back, where the flight holds it. `again`: the same
        transfer is made once more."""
        if flight.transfer in HOLDING:
            flight.move(Transfer.WAITING if again else Transfer.ENDED)
            assert flight.host is not None
            self._node.access.release(flight.host, flight.visit, again)
            if self.closing:  # the host may have been put off
                self._end_waiting(self._waiting.get(flight.host, ()))

    def take_out(self, flight: Flight) -> None:
        """This is not fetched here and now: give its permit back, where it holds it; its page returns to the queue."""
        self.release(flight)
        if flight.transfer is not Transfer.WITHDRAWN:
            flight.move(Transfer.WITHDRAWN)

    # -- what ends a wait or a transfer

    def cancel(self, hosts: Iterable[str] | None = None) -> None:
        """Abort the transfers under way from `hosts` (None: all): the agent has lost the right to them."""
        these = None if hosts is None else set(hosts)
        for flight in self._flights:
            if flight.transfer is Transfer.TRANSFERRING and flight.task and (these is None or flight.host in these):
                self._crawler.stats.inc_value("ubi/guard/cancelled")
                abort(flight)
        if self.closing:
            self._end_waiting_everywhere()

    def close(self) -> None:
        """The spider is being closed: transfers that have started may end. No other starts, but for what the pages in
        flight load beside the scheduler."""
        self.closing = True
        self.hosts.close()
        self._end_waiting_everywhere()

    def _end_waiting_everywhere(self) -> None:
        for waiting in list(self._waiting.values()):
            self._end_waiting(waiting)

    def _end_waiting(self, waiting: Iterable[Flight]) -> None:
        for flight in waiting:
            if self._ends(flight):
                abort(flight)

    def _ends(self, flight: Flight) -> bool:
        """Whether this may not start a transfer, as the spider is being closed."""
        if not self.closing:
            return False
        load = load_of(flight.request)
        if flight.visit is not None or (load is not None and load.of_page):
            return True
        return flight.host is not None and not self._node.access.loads(flight.host)

    # -- what bypasses the scheduler ends as another load of its host has

    def answer(self, request: Request) -> Response | None:
        """The answer that this request has without being asked for: as `left_alone`, before it comes to the gate."""
        host = self.hosts.of_request(request)
        left = 0.0 if host is None else self._left(host)
        return self._answer_of(host, request, left) if host is not None and left > WAITS else None

    def left_alone(self, flight: Flight) -> Response | None:
        """The answer of a host that has asked to be left alone, where that is for longer than this is to wait."""
        host = flight.host
        left = 0.0 if host is None else self._left(host)
        if host is None or not left:
            return None
        if left <= WAITS and not flight.waited:
            flight.waited = True
            self._node.access.not_before(host, left)
            return None
        self._crawler.stats.inc_value("ubi/guard/not_asked")
        return self._answer_of(host, flight.request, left)

    def _answer_of(self, host: str, request: Request, left: float) -> Response:
        """What this host has answered, here or, as its notes say, to another agent."""
        state = self._node.frontier.find(host)
        return self._beside.answer(host, request, left, self._node.hosts.asked_status(state) if state else None)

    def _left(self, host: str) -> float:
        """For how long (s) a host is to be left alone, as it has asked for that."""
        left = self._beside.left(host)
        if not left and (state := self._node.frontier.find(host)) is not None:
            left = self._node.hosts.asked_left(state)
        return left

    def _leave_alone(self, flight: Flight, seconds: float, response: Response) -> None:
        """A host asks to be left alone for so long: those that wait for it hear of that, but who waits for it still."""
        assert flight.host is not None
        self._beside.asked(flight.host, seconds, response)
        self._node.access.not_before(flight.host, seconds)
        for waiting in self._waiting.get(flight.host, ()):
            if _is_beside(waiting) and (answer := self.left_alone(waiting)) is not None:
                self._tell(waiting, answer)

    def _has_failed(self, flight: Flight, error: Exception) -> None:
        """A load has ended without an answer: those that would wait for the same end as well."""
        failures = self._beside.failed(flight.request)
        if not 0 < self._host_failures <= failures:
            return
        assert flight.host is not None
        server = server_of(flight.request)
        for waiting in self._waiting.get(flight.host, ()):
            if _is_beside(waiting) and server_of(waiting.request) == server:
                self._crawler.stats.inc_value("ubi/guard/failed_together")
                self._tell(waiting, same_failure(error))

    def _tell(self, flight: Flight, end: Response | Exception) -> None:
        """End the wait of a flight so."""
        if flight.task is not None:
            flight.told = end
            abort(flight)

    def _end_as_told(self, flight: Flight) -> NoReturn:
        """Raise what a flight was told while it waited."""
        told, flight.told = flight.told, None
        flight.move(Transfer.ENDED)
        if isinstance(told, Response):
            raise _Told(told) from None
        assert told is not None
        raise told from None

    # -- the permit

    async def _permit(self, flight: Flight, again: bool = False) -> None:
        """Have a flight that waits get its permit, or leave to go without. Raises as `admit` does."""
        assert flight.host is not None
        foreign = False
        if flight.visit is None:
            foreign = self._unscheduled.is_loaded_abroad(flight)
        granted = None if again else self._node.access.permit_now(flight.host, flight.visit, foreign)
        if granted is None:
            granted = await self._wait(flight, again, foreign)
        if not granted:
            return self._denied(flight)
        flight.move(Transfer.GRANTED)
        flight.began = monotonic()
        if foreign and self._node.access.is_foreign(flight.host):
            self._crawler.stats.inc_value("ubi/guard/foreign_polite")
        return None

    async def _wait(self, flight: Flight, again: bool, foreign: bool) -> bool:
        """Wait for the permit, listed by host. Returns whether it was granted; raises `Withdrawn`, or how it ends."""
        assert flight.host is not None
        waiting = self._waiting.setdefault(flight.host, {})
        waiting[flight] = None
        try:
            with self.places.left(flight.request) if flight.visit is None else nullcontext():
                return await abortable(flight, self._node.access.permit(flight.host, flight.visit, again, foreign))
        except Aborted:
            if flight.told is None:
                self._withdraw(flight)
            self._end_as_told(flight)
        except BaseException:
            flight.move(Transfer.ENDED)
            raise
        finally:
            del waiting[flight]
            if not waiting:
                del self._waiting[flight.host]

    async def _permit_soon(self, flight: Flight, most: float) -> None:
        """As `_permit`, but raises TimeoutError where that takes so many seconds more than the delay of the host."""
        assert flight.host is not None
        state = self._node.frontier.find(flight.host)
        most += max(self._node.frontier.delay, 0.0 if state is None else state.pause)
        loop = asyncio.get_running_loop()
        timer = loop.call_later(most, abort, flight)
        try:
            await self._permit(flight)
        except Withdrawn:
            if loop.time() < timer.when():
                raise
            raise TimeoutError(f"{flight.host} was not free for {most:g} s") from None
        finally:
            timer.cancel()

    def _denied(self, flight: Flight) -> None:
        """The node will never permit this. Raises, unless it may go without a permit."""
        if flight.visit is not None or self._unscheduled.is_of_own_page(flight) or self._ends(flight):
            self._withdraw(flight)
        passes = self._unscheduled.passes_foreign(flight)
        if passes is None:
            self._unscheduled.tell_ended(flight)
            self._withdraw(flight)
        flight.move(Transfer.UNASKED if passes else Transfer.ENDED)
        if not passes:
            raise self._unscheduled.refuse_foreign(flight)

    def _right(self, flight: Flight) -> Callable[[str], bool]:
        """The last check before the write: this agent owns the host, no other agent may be loading from it, and the
        lease holds. For what holds a foreign permit: the lease holds."""
        return self._node.access.may_load if flight.visit is None else self._node.access.may_fetch

    # -- what is withdrawn

    def _withdraw(self, flight: Flight) -> NoReturn:
        """Withdraw a flight, and raise `Withdrawn`."""
        self.take_out(flight)
        if flight.visit is None:
            self._say_lost(flight)
        what = "goes back to the queue" if flight.visit is not None else "is not loaded here and now"
        raise Withdrawn(f"{flight.request} {what}") from None

    def _say_lost(self, flight: Flight) -> None:
        """Note what is not requested again: a robots.txt of a middleware of the user's own; media while the agent
        closes."""
        self._unscheduled.withdrawn(flight)
        if is_done_again(flight) and self._ends(flight):
            self._unscheduled.tell_ended(flight)


def _is_beside(flight: Flight) -> bool:
    """Whether this is a file, or what somebody awaits: no page, and no robots.txt."""
    return flight.visit is None and load_of(flight.request) is None and not is_robots(flight.request)
