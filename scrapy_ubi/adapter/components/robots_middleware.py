"""The place of robots.txt in Scrapy: where its own RobotsTxtMiddleware was, with the same number, stats and exceptions.

Rules of this module:

* Nothing of an authority is fetched before its robots.txt; all who wait for it wait for one fetch. A request that waits
  holds no permit, so robots.txt can be loaded, under a permit and with the host's delay like everything else.
* Where robots.txt cannot be read, the host is put off (`HostNotes.postpone`) and its page goes back to the queue. So
  it waits beside the crawl, not in it. After `UBI_ROBOTS_GIVE_UP` its pages fail, so that the crawl ends. There, too,
  the delay after robots.txt was read is waited for.
* A page of a host that cannot be connected to fails with the error that it would have had by itself, after all its
  retries: an errback that looks for hosts without an address finds them. All else fails with IgnoreRequest.
* What is known is noted with the host (section `robots`): it survives, and travels with a handoff.
* Sitemaps that it names are found on the page that had it fetched (`sitemaps`), or on the next one where that was none.
* What bypasses the scheduler has no queue to go back to. Where robots.txt cannot be read it waits for the next tries,
  as long as a pause is short (`WAITS`): a file is not lost for one answer of 503. Of another agent's host the rules are
  known to this agent alone, and the Crawl-delay holds for its own loads there.
* The add-on puts `UbiRobotsMiddleware` in the place of Scrapy's RobotsTxtMiddleware, whatever number that has
  (`place_robots`). A user's own class stays: one derived from Scrapy's, or whatever is there when Scrapy's is switched
  off. One derived from `UbiRobotsMiddleware` takes the place of Scrapy's.
* A robots.txt that was withdrawn (a lost host, a fence, the end) is not known and has not failed: who waited for it is
  withdrawn as well. But what bypasses the scheduler, and waited for what a page had asked for, asks for it itself.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.retry import RetryMiddleware
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    IgnoreRequest,
    NotConfigured,
)
from scrapy.http import Response
from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object
from scrapy.utils.python import to_unicode

from scrapy_ubi.adapter.components.place_component import place_component
from scrapy_ubi.adapter.downloads.gate import Gate, Withdrawn
from scrapy_ubi.adapter.downloads.unscheduled import ForeignHost
from scrapy_ubi.adapter.requests.check import NONCE
from scrapy_ubi.adapter.requests.page_outcome import FORBIDDEN, UNREACHABLE, PrivateHost
from scrapy_ubi.adapter.robots import fetch
from scrapy_ubi.adapter.robots.cache import Cache, Known
from scrapy_ubi.adapter.robots.rules import Parsers, asked_for
from scrapy_ubi.adapter.scrapy_private.downloader import is_no_tunnel
from scrapy_ubi.adapter.scrapy_private.engines import scheduler_in
from scrapy_ubi.adapter.scrapy_private.versions import robots_parsed
from scrapy_ubi.ground import clock
from scrapy_ubi.policy.politeness import failing, retry_after
from scrapy_ubi.policy.robots import record, text, usage_rules
from scrapy_ubi.policy.robots.record import SECTION, RobotsRecord, Step, may_insist
from scrapy_ubi.urls.host_shards import MARK

if TYPE_CHECKING:
    from scrapy_ubi.adapter.components.scheduler import UbiScheduler
    from scrapy_ubi.protocol.host import HostState


logger = logging.getLogger(__name__)

NO_SERVER = (CannotResolveHostError, DownloadConnectionRefusedError, ConnectionRefusedError)  # there is no server
# How a record calls what came in place of an answer, and what the pages of the host fail with.
ERRORS: dict[str, type[Exception]] = {
    "name": CannotResolveHostError,
    "refused": DownloadConnectionRefusedError,
    "timeout": DownloadTimeoutError,
    "failed": DownloadFailedError,
}
SHARE_NO_SERVER = 0.1  # of UBI_ROBOTS_GIVE_UP: mostly that lasts, and the end of the crawl waits for it
SHARE_OF_MEMORY = 1 / 16  # of UBI_MEMORY_MB: for the parsers
WAITS = 8.0  # s between two tries that a file waits for: of the first three tries, that is
PATIENCE = 0.5  # s of delay that a page waits for after its robots.txt: for more it goes back to its queue


class UbiRobotsMiddleware:
    """Obeys robots.txt. Replaces Scrapy's RobotsTxtMiddleware, by the add-on."""

    def __init__(self, crawler: Crawler, wall: Callable[[], float] = clock.unix) -> None:
        if not crawler.settings.getbool("ROBOTSTXT_OBEY"):
            raise NotConfigured
        self._crawler = crawler
        self._wall = wall
        self._agent = str(crawler.settings["ROBOTSTXT_USER_AGENT"] or "")
        self._default_agent = str(crawler.settings["USER_AGENT"] or "")
        self._parsers = Parsers(crawler, lambda: self._count("ubi/robots/broken"))
        self._loading: dict[str, asyncio.Task[Known]] = {}
        self._cache: Cache | None = None
        self._warned = False
        crawler.signals.connect(fetch.count_bytes, signals.bytes_received)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> UbiRobotsMiddleware:
        return cls(crawler)

    async def process_request(self, request: Request) -> Response | None:
        """Wait until it is known whether this request may be fetched. Raises IgnoreRequest when it may not, one of
        `ERRORS` where its host cannot be reached, `Withdrawn` when that is to be seen later. A file of a host that is
        to be left alone has its answer (`Gate.answer`).
        """
        scheduler = self._scheduler()
        authority, url = asked_for(request)
        if scheduler is None or authority is None or request.meta.get("dont_obey_robotstxt"):
            return None
        agent = self._agent_of(request)
        is_page = scheduler.gate.hosts.is_page(request)
        if not is_page and (answer := scheduler.gate.answer(request)) is not None:
            return answer
        with nullcontext() if is_page else scheduler.gate.places.left(request):
            known = await self._known(authority, request, agent, scheduler)
        if not known.noted or scheduler.settings.host_shards:
            self._note_there(authority, known, request, scheduler)
        if known.record.delay and not is_page:
            most = scheduler.settings.max_delay
            scheduler.gate.hosts.want_abroad(request, SECTION, min(known.record.delay, most))
        if known.sitemaps is not None and is_page:
            named, known.sitemaps = known.sitemaps, None
            scheduler.sitemaps.named(*named, request)
        if not self._parsers.allows(known, url, agent):
            logger.debug("Forbidden by robots.txt: %s", request, extra={"spider": self._crawler.spider})
            self._count("robotstxt/forbidden")
            raise IgnoreRequest(FORBIDDEN)
        if self._parsers.usage and usage_rules.note(known.record.usage, url, request.meta):
            self._count("ubi/usage/robots")
        return None

    async def _known(self, authority: str, request: Request, agent: str, scheduler: UbiScheduler) -> Known:
        """What is known of an authority, asked for where that is due. Raises as `process_request` does."""
        ttl = scheduler.settings.robots_ttl
        state = scheduler.gate.hosts.state_of(request)
        while True:
            known = self._remembered(authority, agent, state, scheduler)
            now = self._wall()
            step = record.next_step(known.record if known is not None else None, now, ttl)
            if step is Step.USE and known is not None:
                return known
            if step is Step.FAIL and known is not None and NONCE in request.meta and may_insist(known.record, now):
                step = Step.ASK
            if step is Step.ASK:
                known = await self._asked(authority, request, agent, scheduler)
                if state is not None and state.next_at > clock.now() + PATIENCE:
                    raise Withdrawn(f"{request} waits for the delay after its robots.txt")
                if known.record.known and known.agent in (None, record.digest(agent)):
                    return known
                continue
            assert known is not None
            if scheduler.is_trial:
                return Known(RobotsRecord(now))  # a look at a page: its own error says more
            await self._wait(step, known.record, now, request, state, scheduler)

    async def _wait(
        self,
        step: Step,
        known: RobotsRecord,
        now: float,
        request: Request,
        state: HostState | None,
        scheduler: UbiScheduler,
    ) -> None:
        """Wait until a robots.txt may be asked for again, if that is the next step. Raises Withdrawn for a request that
        has a host's queue to wait in; where it takes too long, what the request fails with."""
        left = known.again - now
        if step is Step.WAIT and state is not None:
            scheduler.node.hosts.postpone(state, left, SECTION)
            raise Withdrawn(f"{request} waits for its robots.txt")
        if step is not Step.WAIT or left > WAITS or not await scheduler.gate.hosts.rest(left):
            self._count("ubi/robots/refused")
            raise self._failure(request, known.error)

    def _failure(self, request: Request, error: str) -> Exception:
        """Return what a request fails with whose robots.txt was given up for this error. The tries of robots.txt stand
        for its own, so it has no retries left."""
        cls = ERRORS.get(error, IgnoreRequest)
        retry = self._crawler.get_downloader_middleware(RetryMiddleware)
        if cls is IgnoreRequest or retry is None or request.meta.get("dont_retry"):
            return cls(UNREACHABLE)
        if most := request.meta.get("max_retry_times", retry.max_retry_times):
            request.meta["retry_times"] = most
        return cls(UNREACHABLE)

    def _remembered(self, authority: str, agent: str, state: HostState | None, scheduler: UbiScheduler) -> Known | None:
        """What is in memory, else in the host's notes; None where that is nothing that helps this user agent."""
        cache = self._cache_for(scheduler)
        known = cache.get(authority)
        if known is None and state is not None:
            noted = self._noted(state).get(authority)
            if noted is not None and (noted.known or noted.tries):  # else only its delay has travelled
                known = self._parsers.restore(noted)
                cache.put(authority, known)
                self._follow_delay(state, self._noted(state), scheduler)  # UBI_MAX_DELAY may be another one now
                self._count("ubi/robots/from_notes")
        if known is None or known.agent in (None, record.digest(agent)):
            return known
        return None

    # -- asking

    async def _asked(self, authority: str, request: Request, agent: str, scheduler: UbiScheduler) -> Known:
        """Wait for the one fetch of this robots.txt. Raises `Withdrawn` or `ForeignHost` when it may not be made."""
        while True:
            task = self._loading.get(authority)
            joined = task is not None
            if task is None:
                task = asyncio.ensure_future(self._ask(authority, request, agent, scheduler))
                self._loading[authority] = task
                task.add_done_callback(lambda _: self._loading.pop(authority, None))
            try:
                return await asyncio.shield(task)
            except ForeignHost:  # something else had asked for it first, when the host was lost
                if scheduler.gate.hosts.is_page(request):
                    raise Withdrawn(f"{request} waits for its robots.txt") from None
                raise
            except Withdrawn:  # the page that had asked for it asks again; what bypasses the scheduler is in no queue
                if not joined or scheduler.gate.hosts.is_page(request):
                    raise

    async def _ask(self, authority: str, request: Request, agent: str, scheduler: UbiScheduler) -> Known:
        state = scheduler.gate.hosts.state_of(request)
        before = self._remembered(authority, agent, state, scheduler)
        most = self._crawler.settings.getfloat("DOWNLOAD_TIMEOUT")  # 0: none
        timeout = min(scheduler.settings.robots_timeout, most or math.inf)
        why = ""
        try:
            response, hops = await fetch.fetch(
                f"{authority}/robots.txt",
                state is not None,
                timeout,
                self._crawler.engine.download_async,
                scheduler.gate.reach.follows,
                scheduler.gate.hosts.key_for(request),
            )
        except (Withdrawn, ForeignHost, PrivateHost):
            raise
        except IgnoreRequest:  # some other middleware would not have it: there are no rules, as in Scrapy
            known = Known(RobotsRecord(self._wall()))
        except Exception as error:  # noqa: BLE001 - whatever a download handler raises: it could not be read
            self._count(f"robotstxt/exception_count/{type(error)}")
            no_server = isinstance(error, NO_SERVER) or is_no_tunnel(error)
            why = f"{type(error).__name__}: {error}"[:200]
            known = self._failed(before, state, scheduler, no_server, error=_word_for(error))
        else:
            self._count("ubi/robots/redirects", hops)
            if response is None or not record.is_unreachable(response.status):
                known = await self._read(response, request, agent, scheduler)
            else:
                self._answered(response)
                values = response.headers.getlist("Retry-After")
                asked = retry_after.asked(response.status, values, scheduler.settings.max_retry_after) or 0.0
                fetched = response.request
                proxy = fetched.meta.get("proxy") if fetched is not None else None
                no_server = failing.says_unreachable(response.status, proxy)
                why, known = f"status {response.status}", self._failed(before, state, scheduler, no_server, asked)
        self._count("robotstxt/request_count")
        self._cache_for(scheduler).put(authority, known)
        there = state or scheduler.gate.hosts.own_state(request)
        known.noted = there is not None
        self._note(there, authority, known.record, scheduler)
        if why:
            self._tell(authority, known.record, why)
        return known

    def _failed(
        self,
        before: Known | None,
        state: HostState | None,
        scheduler: UbiScheduler,
        no_server: bool,
        asked: float = 0.0,
        error: str = "",
    ) -> Known:
        """What is known after it was asked for and not got: what was known before, if anything. `no_server`: there is
        no server, as far as can be told; `asked`, `error`: as in `record.after_failure`."""
        now = self._wall()
        # Many dead authorities of one host queue must not take this time each, one after the other.
        gone = sum(noted.gone for noted in self._noted(state).values()) if state is not None else 0
        give_up = scheduler.settings.robots_give_up / (1 + gone) * (SHARE_NO_SERVER if no_server else 1)
        after = record.after_failure(before.record if before is not None else None, now, give_up, asked, error)
        self._count("ubi/robots/unreachable")
        scheduler.node.note("robots/unreachable", "" if state is None else state.host)
        if before is None or not before.record.known:
            return Known(after)
        self._count("ubi/robots/stale")
        return Known(after, before.parser, before.agent, before.size)

    def _tell(self, authority: str, after: RobotsRecord, why: str) -> None:
        """Say what could not be read: aloud once, then of each authority when it begins and when it is given up."""
        if after.known:
            logger.debug("%s/robots.txt cannot be read (%s): what it said before holds on.", authority, why)
        elif after.gone:
            self._count("ubi/robots/given_up")
            logger.log(
                logging.INFO if self._warned else logging.WARNING,
                "%s/robots.txt could not be read for %.0f s (%s): the pages of this host fail. UBI_ROBOTS_GIVE_UP says "
                "how long it is tried.",
                authority,
                self._wall() - after.since,
                why,
            )
            self._warned = True
        else:
            logger.log(
                logging.INFO if after.tries == 1 else logging.DEBUG,
                "%s/robots.txt cannot be read (%s): the host waits %.0f s.",
                authority,
                why,
                after.again - self._wall(),
            )

    async def _read(self, response: Response | None, request: Request, agent: str, scheduler: UbiScheduler) -> Known:
        """What is known after an answer: rules, or that there are none."""
        now = self._wall()
        if response is not None:
            self._answered(response)
        if response is None or not 200 <= response.status < 300:
            known = Known(RobotsRecord(now))
            self._name_sitemaps([], asked_for(request)[0] or request.url, known, request, scheduler)
            return known
        stopped = "download_stopped" in response.flags
        if stopped or len(response.body) > text.MOST_BYTES:
            self._count("ubi/robots/truncated")
            scheduler.node.note("robots/truncated", scheduler.gate.hosts.name_of(request))
        known, sitemaps = self._parsers.read(text.beginning(response.body, stopped), agent, now)
        if known.parser is not None:
            await self._crawler.signals.send_catch_log_async(
                signal=robots_parsed, robotparser=known.parser, request=request
            )
        self._name_sitemaps(sitemaps, response.url, known, request, scheduler)
        return known

    @staticmethod
    def _name_sitemaps(sitemaps: list[str], base: str, known: Known, request: Request, scheduler: UbiScheduler) -> None:
        """Have the sitemaps followed that the robots.txt at `base` names: by this page, or by the next one."""
        if scheduler.gate.hosts.is_page(request):
            scheduler.sitemaps.named(sitemaps, base, request)
        elif scheduler.settings.sitemaps:
            known.sitemaps = sitemaps, base
            known.size += sum(map(len, sitemaps))

    def _answered(self, response: Response) -> None:
        self._count("robotstxt/response_count")
        self._count(f"robotstxt/response_status_count/{response.status}")

    # -- the host's notes

    def _noted(self, state: HostState) -> dict[str, RobotsRecord]:
        scheduler = self._scheduler()
        assert scheduler is not None
        return record.from_section(scheduler.node.hosts.get(state, SECTION), self._wall())

    def _note_there(self, authority: str, known: Known, request: Request, scheduler: UbiScheduler) -> None:
        """Note what is known of an authority with the host of this page, unless it is noted there."""
        state = scheduler.gate.hosts.state_of(request)
        news = state is not None and known.is_news_to(state.host)
        if state is not None and news and (MARK in state.host or authority not in self._noted(state)):
            self._note(state, authority, known.record, scheduler)

    def _note(self, state: HostState | None, authority: str, after: RobotsRecord, scheduler: UbiScheduler) -> None:
        """Note what is known with the host, and the largest Crawl-delay of its authorities."""
        if state is None:
            return
        records = self._noted(state)
        records.pop(authority, None)
        records[authority] = after
        node = scheduler.node
        node.hosts.put(state, SECTION, record.to_section(records))
        if self._follow_delay(state, records, scheduler) and node.frontier.find(state.host) is state:
            node.hosts.begin_delay(state)  # it holds between this load and the first page

    def _follow_delay(self, state: HostState, records: dict[str, RobotsRecord], scheduler: UbiScheduler) -> bool:
        """Let the host have the largest Crawl-delay of its authorities, within bounds. Return whether it has or had
        one."""
        hosts, most = scheduler.node.hosts, scheduler.settings.max_delay
        delay = max(one.delay for one in records.values())
        if delay > most > 0:
            self._count("ubi/robots/crawl_delay_cut")
        wanted = delay > 0 or SECTION in hosts.delays(state)
        if wanted:
            hosts.set_delay(state, SECTION, min(delay, most))
        return wanted

    def _scheduler(self) -> UbiScheduler | None:
        scheduler = scheduler_in(self._crawler)  # without ours nothing is loaded: the start is refused
        return scheduler if isinstance(getattr(scheduler, "gate", None), Gate) else None  # type: ignore[return-value]

    def _cache_for(self, scheduler: UbiScheduler) -> Cache:
        if self._cache is None:
            self._cache = Cache(int(scheduler.settings.memory_mb * 1e6 * SHARE_OF_MEMORY))
        return self._cache

    def _agent_of(self, request: Request) -> str:
        """The user agent by which rules are chosen, as Scrapy's RobotsTxtMiddleware chooses it."""
        if self._agent:
            return self._agent
        return to_unicode(request.headers.get(b"User-Agent", self._default_agent) or "", errors="replace")

    def _count(self, stat: str, number: int = 1) -> None:
        if number:
            self._crawler.stats.inc_value(stat, number)


def _word_for(error: Exception) -> str:
    """The word of `ERRORS` for an error; "" for others."""
    return next((word for word, cls in ERRORS.items() if isinstance(error, cls)), "")


MIDDLEWARES = "DOWNLOADER_MIDDLEWARES"


def place_robots(settings: BaseSettings) -> None:
    """Put the middleware in place, where ROBOTSTXT_OBEY is on and the user has put none of their own there."""
    if not settings.getbool("ROBOTSTXT_OBEY"):
        return
    places = {load_object(key): number for key, number in _places(settings).items()}
    own = [cls for cls in places if _is(cls, RobotsTxtMiddleware) and cls is not RobotsTxtMiddleware]
    if any(_is(cls, UbiRobotsMiddleware) for cls in places):
        settings.set_in_component_priority_dict(MIDDLEWARES, RobotsTxtMiddleware, None)
    elif own:
        logger.info(
            "%s stays: what docs/how-to/robots.md says of robots.txt holds for UbiRobotsMiddleware only.",
            own[0].__name__,
        )
    elif RobotsTxtMiddleware in places:
        settings.set_in_component_priority_dict(MIDDLEWARES, RobotsTxtMiddleware, None)
        place_component(settings, MIDDLEWARES, UbiRobotsMiddleware, places[RobotsTxtMiddleware])
    else:
        logger.info("RobotsTxtMiddleware is switched off in %s: robots.txt is left to what replaces it.", MIDDLEWARES)


def _places(settings: BaseSettings) -> BaseSettings:
    return settings.get_component_priority_dict_with_base(MIDDLEWARES)


def _is(cls: object, base: type) -> bool:
    return isinstance(cls, type) and issubclass(cls, base)
