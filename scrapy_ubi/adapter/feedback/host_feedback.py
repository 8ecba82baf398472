"""What the end of each load says about its host, and what follows from it.

The gate reports every load that had the host's permit: pages, robots.txt, media. Rules of this module:

* The delay of a host is the largest of UBI_HOST_DELAY, what its robots.txt wants, the delay of the download slot that
  its last page went through (`scrapy_delays`), and UBI_DELAY_FACTOR times its last response time (Mercator's rule).
  What was noted under other settings, before a restart, holds until the first load after it.
* 429 and 503 with a Retry-After that can be read postpone the *host*. The page goes back to its queue, without using up
  one of its retries, where Scrapy would have retried it and neither request, spider nor settings handle that status;
  else the response goes on as usual. From its second time in a row on the host is left alone for a growing time, even
  where it asks for less. More than `UBI_HOST_TRIES` times in a row, of as many different pages or `UBI_HOST_FAILURES`,
  and it is given up: `host/busy`. Where they were fewer pages these always say so, and are as any that fail.
* Loads without a response, in a row, exclude the host for a while, and at last it is given up: `host/dead` (`health`).
* Errors (5xx, 429) of different pages in a row, where Scrapy would have retried them and neither request, spider nor
  settings handle their status, let the host rest, and at last it is given up: `host/failing`, or `host/dead` where a
  proxy says that it cannot be reached (`failing`). Other answers of 5xx are as any answer.
* A load that lets the host rest, or ends it, uses up none of its page's retries: the page goes back to its queue.
* A robots.txt that asks to come back later, or that cannot be loaded, is the matter of `scrapy_ubi.adapter.robots`.
* Of a host that is given up everything that waits fails with that reason (`HostNotes.end_host`), so that the crawl
  ends; `scrapy ubi requeue` brings it back.
* What bypasses the scheduler knows no rests and no end of a host (`adapter.downloads.unscheduled`), so it may fail many
  times while the host rests: that counts neither for the health of the host nor for its end.
* Of several parallel loads of a host those that began before it was put off say the same as the one that has put it
  off (`SeveralLoads`). They are *late*: they count neither for its health nor as asked once more, and their pages go
  back to the queue with all their retries. Else eight time-outs in a moment would be eight in a row, and the end of the
  host. Every response, and every load without one, goes to `auto(n)` (`HostConcurrency`). Of a host that is loaded one
  page at a time nothing is kept: none of its loads can be late. At most `MOST_HOSTS` hosts are remembered; the one put
  off longest ago is forgotten: those loads have ended.
* All of it is noted with the host, so that it travels and survives; what is noted may come from another agent.
* A load beside the scheduler from another agent's host says the same of that host, but to this agent alone
  (`foreign`): the same delays hold here for the next such load, and nothing is noted.
"""

from __future__ import annotations

import logging
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.retry import RetryMiddleware
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
)
from scrapy.http import Response
from twisted.internet import error as twisted_error

from scrapy_ubi.adapter.requests.inflight import Flight
from scrapy_ubi.adapter.requests.page_outcome import TooLong, status_reason
from scrapy_ubi.adapter.robots.fetch import load_of
from scrapy_ubi.adapter.scrapy_private.downloader import is_no_tunnel, slot_delay
from scrapy_ubi.agent.hosts.host_concurrency import HostConcurrency
from scrapy_ubi.agent.hosts.host_notes import ERROR, RETRY_AFTER
from scrapy_ubi.policy.politeness import failing, health, retry_after
from scrapy_ubi.policy.robots import record
from scrapy_ubi.protocol.host import HostState
from scrapy_ubi.settings import UbiSettings

if TYPE_CHECKING:
    from scrapy_ubi.agent import Node, Visit


MOST_HOSTS = 10_000
SLOW_DOWN = (429, 503)  # these ask for fewer loads at once, with a Retry-After or without


class SingleLoads:
    """The loads of an agent whose hosts have one at a time: none is under way when its host is put off."""

    def note_answer(self, host: str, began: float, status: int, seconds: float) -> None:
        """A load that began then (s, monotonic) has ended with this status."""

    def note_failure(self, host: str, began: float) -> None:
        """It has ended without a response."""

    def put_off(self, host: str) -> None:
        """The host is left alone for some time from now on."""

    def is_late(self, flight: Flight) -> bool:
        """Whether this load began before its host was put off."""
        return False


class SeveralLoads(SingleLoads):
    """The loads of an agent whose hosts may have several at once."""

    def __init__(self, concurrency: HostConcurrency, clock: Callable[[], float] = monotonic) -> None:
        self._concurrency = concurrency
        self._clock = clock
        self._put_off_at: OrderedDict[str, float] = OrderedDict()

    def note_answer(self, host: str, began: float, status: int, seconds: float) -> None:
        if status in SLOW_DOWN:
            self._concurrency.slow_down(host, began, self._clock())
        else:
            self._concurrency.answered(host, seconds, began)

    def note_failure(self, host: str, began: float) -> None:
        self._concurrency.slow_down(host, began, self._clock())

    def put_off(self, host: str) -> None:
        if self._concurrency.limit(host):
            self._put_off_at[host] = self._clock()
            self._put_off_at.move_to_end(host)
            if len(self._put_off_at) > MOST_HOSTS:
                self._put_off_at.popitem(last=False)

    def is_late(self, flight: Flight) -> bool:
        return flight.host is not None and flight.began < self._put_off_at.get(flight.host, 0.0)


logger = logging.getLogger("scrapy_ubi")

HEALTH, BUSY, FAILING = "health", "busy", "failing"  # sections of a host's notes
DEAD_HOST, BUSY_HOST, FAILING_HOST = "host/dead", "host/busy", "host/failing"  # why what waits of a host fails

TOO_MANY = 429
GROWTH = 16  # a host that asks again is left alone for UBI_HOST_PAUSE / 16 at least, twice as long each time
MOST_GROWTH = 60  # doublings: by then it is longer than any UBI_MAX_RETRY_AFTER

# The loads that count against a host: no connection, none that lasted until a response, or one that did not end in time
# (DOWNLOAD_TIMEOUT, UBI_MAX_LOAD_SECONDS): else a host that drips would take that time for each of its pages. One that
# broke within the body says nothing.
NO_ANSWER = (
    TooLong,
    CannotResolveHostError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    OSError,  # of handlers of the user's own; asyncio's time-out is one
    twisted_error.ConnectError,
    twisted_error.ConnectionClosed,
    twisted_error.DNSLookupError,
    twisted_error.TimeoutError,
)

MOST_SAID = 20  # warnings of hosts given up for one reason: a crawl of the web meets a million dead ones
GRID = 10  # delays by response time are whole tenths of a second: so most pages do not change what is noted


class HostFeedback:
    """What the loads of one agent say about their hosts."""

    def __init__(self, crawler: Crawler, node: Node, settings: UbiSettings) -> None:
        self._crawler = crawler
        self._node = node
        concurrency = node.concurrency
        self._loads = SeveralLoads(concurrency) if isinstance(concurrency, HostConcurrency) else SingleLoads()
        self._counts = concurrency.counts
        self.follow(settings)
        self._throttled, self._obeys = map(crawler.settings.getbool, ("AUTOTHROTTLE_ENABLED", "ROBOTSTXT_OBEY"))

    def follow(self, settings: UbiSettings) -> None:
        """These are the settings from now on."""
        self._settings = settings
        self._policy = health.Policy(settings.host_failures, settings.host_pause, settings.host_tries)

    def responded(self, flight: Flight, response: Response, seconds: float) -> bool:
        """A load has ended with a response, after so many seconds. True: the page is to be fetched again, later."""
        if flight.visit is None and (host := self._foreign_host(flight)) is not None:
            self._foreign_responded(host, flight.request, response, seconds)
            return False
        state = self._state(flight)
        if state is None:
            return False
        self._pace(state, flight.request, seconds)
        self._learn_address(state, flight.request, response)
        if state.notes.text:
            self._forget(state, HEALTH)
        if load_of(flight.request) is not None:
            return False
        if self._counts:
            self._loads.note_answer(state.host, flight.began, response.status, seconds)
        asked = self.asked(response)
        if asked is None and response.status in retry_after.STATUSES and b"Retry-After" in response.headers:
            self._count_unread()
        if asked is not None:
            self._note_error(state, f"http/{response.status}")
            spared = self._leave_alone(state, flight.visit, asked, self._loads.is_late(flight))
            spared = spared and flight.visit is not None and self._is_retried(flight.request, response)
            return spared and not self._is_seen_by_project()
        if flight.visit is not None and self._is_error(flight.request, response):
            gone = failing.says_unreachable(response.status, flight.request.meta.get("proxy"))
            self._note_error(state, f"http/{response.status}")
            spared = self._loads.is_late(flight) or self._count_error(flight.visit, str(response.status), gone)
            return spared and not self._is_seen_by_project()
        if state.notes.text:
            self._forget(state, BUSY)
            self._forget(state, FAILING)
            self._forget(state, ERROR)
        return False

    def failed(self, flight: Flight, error: Exception) -> bool:
        """A load has ended without a response. True: the page is to be fetched again, later."""
        if flight.host is not None and isinstance(error, NO_ANSWER):
            self._loads.note_failure(flight.host, flight.began)
        if not self._policy.failures or load_of(flight.request) is not None:
            return False
        if flight.visit is not None and is_no_tunnel(error):
            self._note_error(flight.visit.state, f"exception/{type(error).__name__}")
            spared = self._loads.is_late(flight) or self._count_error(flight.visit, "no tunnel", True)
            return spared and self._is_tried_again(flight.request, error)
        if not isinstance(error, NO_ANSWER):
            return False
        if flight.visit is None and self._foreign_host(flight) is not None:
            return False
        state = self._state(flight)
        if state is None or (flight.visit is None and self._node.hosts.rests(state)):
            return False
        self._note_error(state, f"exception/{type(error).__name__}")
        if self._loads.is_late(flight):
            return flight.visit is not None and self._is_tried_again(flight.request, error)
        hosts = self._node.hosts
        verdict = health.failed(health.read(hosts.get(state, HEALTH)), self._policy)
        hosts.put(state, HEALTH, verdict.health.value())
        if verdict.dead:
            self._give_up(state, DEAD_HOST, f"has not answered {verdict.health.failures} times in a row")
        elif verdict.pause:
            self._exclude(state, "does not answer", verdict.pause)
        rests = verdict.dead or verdict.pause > 0
        return rests and flight.visit is not None and self._is_tried_again(flight.request, error)

    def _note_error(self, state: HostState, what: str) -> None:
        """What people see of a host that fails, until it does so no longer."""
        if self._node.hosts.get(state, ERROR) != what and not self._node.hosts.read_end_reason(state):
            self._node.hosts.put(state, ERROR, what)

    def _put_off(self, state: HostState, seconds: float, why: str, asked: float | None = None) -> None:
        self._node.hosts.postpone(state, seconds, why, asked)
        self._loads.put_off(state.host)

    def _state(self, flight: Flight) -> HostState | None:
        if flight.visit is not None:
            return flight.visit.state
        return self._node.frontier.find(flight.host) if flight.host is not None else None

    def _foreign_host(self, flight: Flight) -> str | None:
        """The host of what bypasses the scheduler and holds a foreign permit, None for all else that does."""
        host = flight.host
        return host if host is not None and self._node.access.is_foreign(host) else None

    def _forget(self, state: HostState, section: str) -> None:
        if self._node.hosts.get(state, section) is not None:
            self._node.hosts.put(state, section, None)

    # -- the delay

    def _pace(self, state: HostState, request: Request, seconds: float) -> None:
        """What this load wants of the time until the next one."""
        slot, response = self._delays(request, seconds)
        self._want(state, "slot", slot, kept=not self._throttled)
        self._want(state, "response", response, kept=True)
        if not self._obeys:
            self._want(state, "robots", 0.0, kept=True)

    def _delays(self, request: Request, seconds: float) -> tuple[float, float]:
        """What the download slot of a load wants, and what the time that it took."""
        slot = slot_delay(self._crawler, request)
        wanted = min(self._settings.delay_factor * seconds, self._settings.max_delay)
        return slot if slot > self._settings.host_delay else 0.0, math.ceil(wanted * GRID) / GRID

    def _learn_address(self, state: HostState, request: Request, response: Response) -> None:
        """Note where the response came from; that of a proxy says nothing."""
        addresses = self._node.addresses
        if addresses is not None and response.ip_address is not None and not request.meta.get("proxy"):
            addresses.learn(state.host, str(response.ip_address))

    def _want(self, state: HostState, source: str, seconds: float, kept: bool) -> None:
        if (seconds or state.pause) and self._node.hosts.delays(state).get(source, 0.0) != seconds:
            self._node.hosts.set_delay(state, source, seconds, kept)

    # -- Retry-After

    def asked(self, response: Response) -> float | None:
        """For how long (s) a server that asks to be left alone is; None when it does not ask, or cannot be read."""
        if response.status not in retry_after.STATUSES:
            return None
        values = response.headers.getlist("Retry-After")
        return retry_after.asked(response.status, values, self._settings.max_retry_after)

    def _count_unread(self) -> None:
        if self._settings.max_retry_after:
            self._crawler.stats.inc_value("ubi/politeness/retry_after_unread")

    def _leave_alone(self, state: HostState, visit: Visit | None, asked: float, late: bool) -> bool:
        """Put off a host that has asked for so long (s). True where its page goes back to the queue with all its
        retries."""
        hosts, tries, failures = self._node.hosts, self._settings.host_tries, self._settings.host_failures
        asks = retry_after.read(hosts.get(state, BUSY))
        if not late:
            asks = asks.once_more(visit.entry.key if visit is not None else None)
            hosts.put(state, BUSY, asks.value())
        if asks.times > tries and failures and len(asks.pages) >= min(failures, tries + 1, retry_after.MOST_PAGES):
            self._give_up(state, BUSY_HOST, f"has asked {asks.times} times in a row to come back later")
            return True
        seconds = asked
        if asks.times > 1:
            # UBI_HOST_TRIES bounds the growth: a page that always asks is no reason to leave the others for hours.
            growth = min(asks.times - 1, tries, MOST_GROWTH)
            grown = self._settings.host_pause / GROWTH * 2.0**growth
            seconds = max(asked, min(grown, self._settings.max_retry_after))
        self._put_off(state, seconds, RETRY_AFTER, asked)
        return late or asks.times <= tries

    def _is_seen_by_project(self) -> bool:
        """Whether a RetryMiddleware of the project's looks at responses: it sees each, as it may take another token."""
        retry = self._crawler.get_downloader_middleware(RetryMiddleware)
        return retry is not None and type(retry).process_response is not RetryMiddleware.process_response

    def _is_retried(self, request: Request, response: Response) -> bool:
        """Whether Scrapy would fetch this page again by itself, and neither request, spider nor settings want to see
        its status.
        """
        retry = self._crawler.get_downloader_middleware(RetryMiddleware)
        if retry is None or request.meta.get("dont_retry") or response.status not in retry.retry_http_codes:
            return False
        spider = self._crawler.spider
        assert spider is not None, "nothing is loaded without a spider"
        return status_reason(response.status, request, spider, self._crawler.settings) is not None

    def _exclude(self, state: HostState, why: str, seconds: float) -> None:
        logger.info("%s %s: it is left alone for %g s.", state.host, why, seconds)
        self._node.note("host/excluded", state.host)
        self._put_off(state, seconds, HEALTH)

    def _is_tried_again(self, request: Request, error: Exception) -> bool:
        """Whether Scrapy would fetch this page again by itself after this error."""
        retry = self._crawler.get_downloader_middleware(RetryMiddleware)
        return retry is not None and not request.meta.get("dont_retry") and isinstance(error, retry.exceptions_to_retry)

    # -- errors in a row

    def _is_error(self, request: Request, response: Response) -> bool:
        """Whether this answer is an error of its host, and not one that the project handles."""
        return (response.status >= 500 or response.status == TOO_MANY) and self._is_retried(request, response)

    def _count_error(self, visit: Visit, what: str, gateway: bool) -> bool:
        """A page's load has ended with an error. Return whether the page is spared. `gateway`: a proxy says that it
        cannot reach the host."""
        hosts, state = self._node.hosts, visit.state
        streak = failing.read(hosts.get(state, FAILING))
        if streak is None or (streak.gone and not gateway):
            streak = failing.Streak(gone=gateway and not self._has_answered(state))
        verdict = failing.after_error(streak, visit.entry.key, self._policy)
        if verdict.streak != streak:
            hosts.put(state, FAILING, verdict.streak.value())
        if verdict.ended and streak.gone:
            self._give_up(state, DEAD_HOST, f"was not reached by a proxy ({what}) {streak.rests + 1} times in a row")
        elif verdict.ended:
            self._give_up(state, FAILING_HOST, f"answers with errors ({what}), after {streak.rests} rests as well")
        elif verdict.pause and streak.gone:
            self._exclude(state, f"was not reached by a proxy ({what})", verdict.pause)
        elif verdict.pause:
            logger.info("%s answers with errors (%s): it is left alone for %g s.", state.host, what, verdict.pause)
            self._node.note("host/failing", state.host)
            self._put_off(state, verdict.pause, FAILING)
        return verdict.spared

    def _has_answered(self, state: HostState) -> bool:
        """Whether anything of this host was loaded, a page or a robots.txt."""
        if self._node.hosts.before(state) > 0:
            return True
        records = record.from_section(self._node.hosts.get(state, record.SECTION), time.time())
        return any(one.known for one in records.values())

    # -- hosts of other agents

    def _foreign_responded(self, host: str, request: Request, response: Response, seconds: float) -> None:
        foreign = self._node.access.foreign
        for source, wanted in zip(("slot", "response"), self._delays(request, seconds), strict=True):
            foreign.want(host, source, wanted)
        if load_of(request) is None and (asked := self.asked(response)) is not None:
            foreign.put_off(host, asked)

    # -- the end of a host

    def _give_up(self, state: HostState, reason: str, why: str) -> None:
        if self._node.hosts.read_end_reason(state):
            return
        self._node.hosts.end_host(state, reason, whole=True)
        self._node.note(f"ended/{reason}", state.host)
        number = self._node.hosts.counted[f"ended/{reason}"]
        logger.log(
            logging.WARNING if number <= MOST_SAID else logging.INFO,
            "%s %s: it is given up, and what waits of it fails (%s). 'scrapy ubi requeue' brings it back.",
            state.host,
            why,
            reason,
        )
        if number == MOST_SAID:
            logger.warning(
                "More hosts that are given up (%s) are named with INFO (ubi/hosts/ended/%s).", reason, reason
            )
