"""The node: one running agent. What the Scrapy adapters talk to.

Rules of this module:

* `met`, `discover`, `next`, `ended`, `retry`, `put_back`, `release` touch memory only. The mail's I/O happens in a
  thread of its own (`courier`); whoever comes by takes what has arrived and gives what is due (`_turn`).
* Whoever may have made a host ready arms the waker (`waking`).
* A request is handed out as a `Visit`, and ends exactly once: `ended` or `put_back` (`visits`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from scrapy_ubi.errors import UbiUnavailable
from scrapy_ubi.frontier.store import StoreError
from scrapy_ubi.protocol import pace
from scrapy_ubi.protocol.host import Entry, SetState
from scrapy_ubi.protocol.view import Beat
from scrapy_ubi.protocol.wire import NAME
from scrapy_ubi.requestkeys import RequestKeys
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.transport import Transport, TransportDown, TransportFull
from scrapy_ubi.transport.contract import MEMORY
from scrapy_ubi.transport.keys import drain_field
from scrapy_ubi.urls import partition_key

from . import clock, joining, living, profile
from .addresses import Addresses
from .choice import Choice
from .courier import Courier
from .crawl import Crawl
from .crawllimits import CrawlLimits
from .desk import Desk
from .halt import Halt
from .hosts import Hosts
from .joins import Joins
from .keeper import Disk, NoDisk
from .learner import Learner
from .limits import HostLimits
from .limitwatch import LimitWatch
from .permits import Permits
from .post import EAGER, Post
from .questions import Answer, Question, answer
from .visits import Visit, Visits
from .waiting import wait_briefly
from .waking import Waker

logger = logging.getLogger("scrapy_ubi")

COUNTING = 50  # where counting takes long (it is linear in the hosts): how many times that long between profiles


def _nothing() -> None:
    """No callback."""


class Node:
    """One agent of a crawl, running in this event loop.

    `agent_id` is its identifier; `predecessor` the incarnation that ran in the same directory before, if any, and
    `on_incarnation` notes durably which one runs now. `check` says why a request's JSON text cannot be accepted
    (None: it can). `on_wake`: look for requests again, a host became ready or the crawl is over. `on_cancel`: abort
    all loads under way, the agent is fenced. `on_fatal`: stop, for the reason given in a sentence. `on_drain`: somebody
    has asked this agent to leave; called once. `on_given_up`: a request failed, for that reason, as its host is ended.
    `disk` is where it keeps what it knows; without it that is forgotten
    with the process.
    """

    def __init__(
        self,
        settings: UbiSettings,
        transport: Transport,
        *,
        agent_id: str,
        spider: str,
        check: Callable[[str], str | None],
        on_wake: Callable[[], None] = _nothing,
        on_cancel: Callable[[], None] = _nothing,
        on_fatal: Callable[[str], None] = lambda sentence: None,
        on_drain: Callable[[], None] = _nothing,
        on_given_up: Callable[[str], None] = lambda reason: None,
        on_limit: Callable[[str, str], None] = lambda reason, sentence: None,
        predecessor: str | None = None,
        on_incarnation: Callable[[str], None] = lambda incarnation: None,
        clock: Callable[[], float] = clock.now,
        disk: Disk | None = None,
    ) -> None:
        self.settings, self.agent_id, self.transport = settings, agent_id, transport
        self._check, self._cancel, self._drain, self._clock = check, on_cancel, on_drain, clock
        self._asked = False  # to leave
        self._predecessor, self._fixed = predecessor, profile.fixed(settings, agent_id, spider)
        self._disk: Disk = disk if disk is not None else NoDisk(settings.host_delay)
        self._halt = Halt(self._disk, on_fatal)
        self._crawl = Crawl(settings, agent_id, self._disk, self._fixed, on_incarnation, clock)
        self._waker = Waker(self._crawl, self._halt, clock, on_wake)
        self._make_crawling(on_given_up, on_limit)
        self._post: Post | None = None
        self._courier = Courier(own_thread=settings.redis_url is not None)
        self._limit_watch = LimitWatch(self.crawl_limits, self._crawl, self._courier, transport)
        self._time: asyncio.Task[None] | None = None
        self._hurry = False
        self._seen = asyncio.Event()
        self._apart = 0.0  # s between two reads of all beats
        self._trips = asyncio.Event()  # set after every exchange, whatever came of it
        self._arming = False
        self._follow()
        self._turned = clock()
        self._publish_at = 0.0
        self._closing = ""

    def _make_crawling(self, on_given_up: Callable[[str], None], on_limit: Callable[[str, str], None]) -> None:
        """What chooses requests and follows their visits."""
        settings, crawl = self.settings, self._crawl
        self._keys = RequestKeys(settings)
        self.addresses = Addresses() if settings.polite_by_ip else None
        self.hosts = Hosts(crawl.agent, crawl.frontier, self._clock, time.time)
        self.learner = Learner.of(settings, self._keys, self.discover)
        self.limits = HostLimits(settings, self.hosts, time.time, self.note)
        self.crawl_limits = CrawlLimits(settings, self.agent_id, on_limit)
        self._visits = Visits(crawl, self.learner, self.addresses, self._clock)
        self._choice = Choice(
            crawl, self._halt, self.hosts, self.limits, self.learner, self.addresses, on_given_up, self._waker.arm
        )

    def _follow(self) -> None:
        """Work for the agent that the crawl has now."""
        self.agent, self.frontier, self.tally = self._crawl.agent, self._crawl.frontier, self._crawl.tally
        self.permits = Permits(self.agent, self._clock)
        if self.learner is not None:
            self.learner.begin(self.agent, self.hosts, self.tally.joins)
        self.limits.begin(self.agent)
        self._choice.begin()
        self._beat = self.agent.beat

    # -- coming and going

    async def open(self) -> None:
        """Join the group. Raises UbiError with one sentence when refused, TransportError when Redis cannot be used."""
        transport, settings = self.transport, self.settings
        self._courier.start()
        try:
            control = await self._join()
        except BaseException as error:
            await self._courier.call(transport.close())
            await self._courier.stop()
            await self._disk.close()
            if isinstance(error, TransportDown | TransportFull):
                raise UbiUnavailable(f"Redis went away while joining: {error}") from error
            raise
        self._post = Post(
            self.agent,
            transport,
            self._courier,
            settings,
            control,
            self._judge,
            lambda: self._turn(self._clock()),
            self._disk,
            self._crawl.facts,
            Desk(self.agent_id, self._answer, time.time),
        )
        transport.start_beating(
            self.agent_id,
            settings.heartbeat_interval,
            lambda counter: self._beat.line(counter),
            self.agent.lease.acknowledged,
            self._read,
            self._clock,
            lambda: self._clock() - self._turned > settings.stall_timeout,
            lambda: self._apart,
        )
        self._time = asyncio.ensure_future(self._pass_time())
        self._time.add_done_callback(self._time_stopped)
        await wait_briefly(self._seen, settings.lease_timeout)
        logger.info(
            "Agent %s (incarnation %s) of crawl %s, with %d others; replication %d%s.",
            self.agent_id,
            self.agent.incarnation,
            settings.crawl,
            len(self.agent.watch.seen),
            settings.replication,
            "" if settings.replication else ": what only a crashed agent knew is lost with it",
        )
        if not self.agent.group.sure:
            logger.info(
                "Nobody else is here who has seen the crawl run: the first page is fetched in %.0f s "
                "(UBI_LEASE_TIMEOUT and a little), when whoever lives must have been seen.",
                settings.lease_timeout + self.agent.config.grace,
            )

    async def _join(self) -> Mapping[str, str]:
        """What the control hash says, once this agent is one of the group."""
        transport, settings, call = self.transport, self.settings, self._courier.call
        await call(transport.open())
        mail: list[str] = []
        control, cleared = await call(joining.begin_run(transport, self._crawl.has_work, mail))
        if await self._crawl.resume(control):
            self.hosts.begin(self._crawl.agent, self._crawl.frontier)
            self._follow()
        await call(joining.check_group(transport, settings, self.agent_id, self._fixed))
        line = self._beat.line(0)
        await call(joining.claim(transport, settings, self.agent_id, self._predecessor, line, self._clock))
        await call(joining.discard(transport, mail))
        if cleared or settings.redis_url is None:
            self.agent.sure()
        return control

    async def leave(self, reason: str) -> None:
        """Go. When the crawl is over just say so; else hand everything over first, for at most `UBI_LEAVE_TIMEOUT`."""
        self.permits.close()
        for visit in self._visits.under_way():
            self.put_back(visit)
        if self._time is None:  # it never joined
            await self._disk.close()
            return
        if not self.over and not self._halt.dead:
            await self._hand_over()
        finished = self.over
        self._closing = "finished" if finished else "left"
        self.tally.ended = self._clock()
        if not self._halt.dead:
            await self._last_trip()
        self._time.cancel()
        self._waker.stop()
        await self.transport.stop_beating(None if self._halt.dead else self.agent.last_beat().line(0))
        await self._courier.call(self.transport.close())
        await self._courier.stop()
        await self._disk.close()
        logger.info("Agent %s has %s (%s).", self.agent_id, self._closing, reason)

    async def _hand_over(self) -> None:
        self._closing = "leaving"
        begun = told = self._clock()
        self.agent.leave(begun)
        others = len(self.agent.view.members)
        if others:
            logger.info(
                "Handing over what is known of %d hosts to %d others, for at most %g s (UBI_LEAVE_TIMEOUT). "
                "A second Ctrl-C or SIGTERM leaves at once.",
                len(self.frontier),
                others,
                self.settings.leave_timeout,
            )
        end = begun + self.settings.leave_timeout
        while not self.agent.may_go() and self.agent.view.members and not self.over and not self._halt.dead:
            now = self._clock()
            if now > end:
                logger.warning("Not all was handed over within UBI_LEAVE_TIMEOUT: %s.", self._left_over())
                return
            if now - told > 5:
                told = now
                logger.info("Still handing over: %s.", self._left_over())
            await self._trip()
        if not self.agent.view.members and not self.agent.may_go():
            logger.info("Nobody is left to hand over to: %s.", self._stays)
        elif others and self.agent.may_go():
            logger.info("Handed over in %.1f s.", self._clock() - begun)

    @property
    def _stays(self) -> str:
        if isinstance(self._disk, NoDisk):
            return "what was not fetched is forgotten with this process"
        return f"what was not fetched stays in {self.settings.dir}, and the same command goes on with it"

    def _left_over(self) -> str:
        agent = self.agent
        return f"{len(agent.outbox)} records in the outbox, {len(agent.handover.open)} hosts on their way"

    async def _last_trip(self) -> None:
        """Say that the crawl is over, and publish the last counters."""
        assert self._post is not None
        self._publish_at = 0.0
        self._crawl.write_facts()
        end = self._clock() + self.settings.lease_timeout
        while True:
            self._hurry = not self._publish_at
            self._trips.clear()
            self._turn(self._clock())
            if self._publish_at and not self._post.busy:
                return
            if self._clock() > end:
                logger.warning("Redis did not take the last counters of this agent.")
                return
            await wait_briefly(self._trips, 0.5)

    # -- the loops

    async def _pass_time(self) -> None:
        turns = 0
        while True:
            await asyncio.sleep(self.settings.flush_interval / EAGER)
            turns = (turns + 1) % EAGER
            if not turns:
                self._tick()
            self._turn(self._clock())

    def _time_stopped(self, task: asyncio.Task[None]) -> None:
        """Without time there is no fence: an agent whose time has stopped by a mistake of ours must stop, too."""
        if task.cancelled() or (error := task.exception()) is None:
            return
        self._halt.failed(error)

    def _turn(self, now: float) -> None:
        """Give and take mail, when there is some: called wherever the loop comes by, so that no exchange waits for a
        turn.
        """
        post = self._post
        if post is None:
            return
        if post.collect(now):
            self.tally.dead_letters, self.tally.writes_refused = post.dead_letters, post.writes_refused
            self._trips.set()
            if post.control.get(drain_field(self.agent_id)) in self._crawl.incarnations and not self._asked:
                self._asked = True
                self._drain()
            self._tick()
        if post.may_send(now, self._hurry):
            self._hurry = False
            self.agent.tick(now)
            post.send(now, self._profile)

    async def _trip(self) -> None:
        """Wait for an exchange, or a moment."""
        self._hurry = True
        self._trips.clear()
        self._turn(self._clock())
        await wait_briefly(self._trips, 0.5)

    def _tick(self) -> None:
        self._turned = now = self._clock()
        agent = self.agent
        agent.tick(now)
        if agent.cancel:
            agent.cancel = False
            self._cancel()
        if agent.overdue is not None:
            logger.warning(
                "Nobody has handed over %d hosts of this agent within UBI_HANDOFF_TIMEOUT (%g s): it fetches them now, "
                "and pages may be fetched twice. Where agents live but are slow to hand over, a longer one helps.",
                agent.overdue,
                self.settings.handoff_timeout,
            )
            agent.overdue = None
        if agent.usurped and not self._halt.dead:
            self._halt.stop(
                f"Another process lives as agent {self.agent_id} in crawl {self.settings.crawl}: this one stops. "
                "Give each process its own UBI_AGENT_ID."
            )
        self._publish_beat()
        self.permits.look_again()
        self._limit_watch.look(now)
        self._choice.read_ahead(now)
        self._waker.arm()

    def _publish_beat(self) -> None:
        old, new = self._beat, self.agent.beat
        self._beat = new
        if (old.incarnation, old.epoch, old.digest, old.settled, old.pending, old.flags) != (
            new.incarnation,
            new.epoch,
            new.digest,
            new.settled,
            new.pending,
            new.flags,
        ):
            self.transport.beat_now()

    def _read(self, sent: float, received: float, lines: dict[str, str]) -> None:
        """Everybody's beats were read."""
        beats = {
            name: beat
            for name, line in lines.items()
            if NAME.fullmatch(name) and (beat := Beat.parse(line)) is not None
        }
        before, view = self.over, self.agent.view
        self.agent.read(sent, received, beats, lines.get(MEMORY, ""))
        self._seen.set()
        self._keep_pace(len(beats))
        if self.agent.view is not view:
            logger.info("The group is now: %s.", ", ".join(sorted(self.agent.view.members)) or "nobody")
        if self.over and not before:
            self._hurry = True
        self._tick()

    def _keep_pace(self, agents: int) -> None:
        """Read all beats as often as suits so many agents; say so when a longer lease would let them read less."""
        interval, lease = self.settings.heartbeat_interval, self.settings.lease_timeout
        apart, wanted = pace.reads_apart(agents, interval, lease), pace.lease_wanted(agents, interval)
        if apart > self._apart and wanted > lease:
            logger.warning(
                "%d agents: each reads all beats every %g s, which UBI_LEASE_TIMEOUT = %g s allows; at a lease of %g s "
                "(and a longer UBI_FAILURE_TIMEOUT) they would ask less of Redis.",
                agents,
                apart,
                lease,
                wanted,
            )
        self._apart = apart

    def _profile(self) -> str | None:
        now = self._clock()
        if now < self._publish_at:
            return None
        text = profile.text(self._fixed, self.agent, self.state, self._crawl.counters())
        took = self._clock() - now
        self._publish_at = now + max(profile.PUBLISH, took * COUNTING)
        return text

    @property
    def state(self) -> str:
        """What this agent is doing, for people."""
        if self._closing:
            return self._closing
        if not self.agent.lease.holds(self._clock()):
            return "fenced" if self._seen.is_set() else "joining"
        if self._post is not None and (self._post.full or self._post.disk_full):
            return "blocked"
        return "crawling" if self.agent.out or self.pending() else "waiting"

    # -- what the adapters call

    def met(self, host: str, key: int, depth: int, priority: int) -> bool:
        """Whether a URL that was found is known already, so that `discover` would be in vain; it is counted if so."""
        return self.agent.met(host, key, depth, priority)

    def discover(self, host: str, entry: Entry, seed: bool = False, page: Visit | None = None) -> bool:
        """A URL was found, by `start()` (`seed`) or on a page: queued here, sent to its owner, or known. True when it
        was news, as far as is known here.
        """
        if reason := self.crawl_limits.refuses(entry.depth):
            self.limits.refuse(reason, host)
            return False
        self._visits.strays += page is None and not seed
        news = self.agent.discover(host, entry, page.outlinks if page is not None else None)
        if news:
            self._arm_soon()
        return news

    def next(self) -> Visit | None:
        """The next request to fetch; None when none may be fetched now, even though some may be pending."""
        now = self._clock()
        self._turn(now)
        self.crawl_limits.begun = True
        self._limit_watch.look(now)
        found = None
        if not self._choked and not self.crawl_limits.full(self.tally.pages + self.agent.out):
            found = self._choice.next(now)
        self._choice.read_ahead(now)
        if found is None:
            self._waker.arm(wake=False)
            return None
        return self._visits.begin(*found, now)

    @property
    def _choked(self) -> bool:
        """Whether the disk is full, or Redis is and so much waits to be sent that no more should come: were this agent
        killed now, all pages that are not written, or whose done marks wait, would be fetched again.
        """
        post = self._post
        if post is None:
            return False
        return post.disk_full or (post.full and len(self.agent.outbox) >= self.settings.flush_records)

    def pending(self) -> bool:
        """Whether requests are queued that are this agent's to fetch."""
        if self.over:
            return False
        return self.frontier.waits(lambda state: self.agent.keepers(state)[:1] == (self.agent.me,))

    def retry(self, visit: Visit, entry: Entry) -> None:
        """The same key is to be fetched again, as `entry`, when this visit has ended."""
        visit.again = entry

    def ended(
        self,
        visit: Visit,
        failed: str | None = None,
        fetched: bool = True,
        status: int = 0,
        content: int | None = None,
    ) -> None:
        """The visit is over: its callback's whole output was taken, or it failed for good, for a reason. `status` is
        that of the response, 0 where there was none; `content` what the learner compares pages by.
        """
        if self._visits.end(visit, failed, fetched, status, content):
            self._turn(self._clock())
            self._waker.arm()

    def note(self, what: str, host: str = "") -> None:
        """Something befell the crawl, at this host, that the report should name."""
        self.tally.note(what, host)

    def put_back(self, visit: Visit) -> None:
        """The visit was not made (fence, lost host, shutdown): its request waits again."""
        if self._visits.put_back(visit):
            self._waker.arm()

    async def permit(self, host: str, visit: Visit | None) -> bool:
        """Wait until a load from this host may start, at this moment. False: this agent must not load from it, or the
        page of the visit is done by now, or its host was put off for long."""
        if visit is None:
            return await self.permits.acquire(host, None)
        return await self.permits.acquire(host, visit.state, visit.entry.key)

    def release(self, host: str, visit: Visit | None = None) -> None:
        """The transfer has ended: the host is free for the next one, after its delay."""
        if visit is not None:
            self._visits.free(visit)
        if self.permits.release(host):
            self._waker.arm()

    def may_fetch(self, host: str) -> bool:
        """Whether a load from this host may start now: compared right at the dispatch."""
        state = self.frontier.find(host) or SetState(host)
        return self.agent.may_fetch(state, self._clock())

    @property
    def joins(self) -> Joins:
        """What lossy steps of the normal form have joined."""
        return self.tally.joins

    @property
    def over(self) -> bool:
        """Whether the crawl is over everywhere."""
        return self.agent.finished

    def start_exhausted(self) -> None:
        """The spider's start() has ended."""
        self.agent.start_exhausted = True

    def _answer(self, question: Question) -> Answer:
        """What a person asks of this agent's frontier (desk)."""
        try:
            return answer(question, living.source(self.agent, self.hosts, self._keys, self.discover, self._clock()))
        except StoreError as error:
            self._halt.broken(error)
            return {"agent": self.agent_id, "refused": str(error)}

    def counters(self) -> dict[str, Any]:
        """All counters of this agent, as published for people."""
        return self._crawl.counters()

    # -- inside

    def _judge(self, host: str, entry: Entry) -> str | None:
        """Why an entry cannot be accepted: a URL under another host's name, a request this spider cannot make."""
        if partition_key(entry.url, self.settings.partition, self.settings.host_rules) != host:
            return f"{entry.url[:100]!r} does not belong to host {host[:100]!r}"
        return self._check(entry.request) if entry.request else None

    def _arm_soon(self) -> None:
        """After all else that the loop does at this moment, so once for all links of a page: look whether there is
        much to send, and arm the waker."""
        if not self._arming:
            self._arming = True
            asyncio.get_running_loop().call_soon(self._look_at_news)

    def _look_at_news(self) -> None:
        self._arming = False
        if len(self.agent.outbox) >= self.settings.flush_records:
            self._hurry = True
        self._waker.arm()
