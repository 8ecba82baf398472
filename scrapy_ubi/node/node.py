"""The node: one running agent. What the Scrapy adapters talk to.

It makes the parts of an agent and lets them work together; each has its idea, and its rules, in a module of its own.
Rules of this module:

* `met`, `discover` (`Discoverer`), `next`, `ended`, `retry`, `put_back`, the permits (`access`) touch memory only. The
  mail's I/O has a thread of its own (`IoThread`); calls of the loop take what has come, and give what is due (`turn`).
* A method that may have made a host ready arms the waker.
* Parts that last as long as the node work for another crawl once one begins again (`_follow`).
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from scrapy_ubi import clock
from scrapy_ubi.clock import unix
from scrapy_ubi.frontier.host_loads import HostLoads
from scrapy_ubi.frontier.store import StoreError
from scrapy_ubi.node.crawl import Crawl
from scrapy_ubi.node.disk import NoDisk
from scrapy_ubi.node.disk_contract import Disk
from scrapy_ubi.node.fatal import Fatal
from scrapy_ubi.node.group.beats import Beats
from scrapy_ubi.node.group.group_watch import GroupWatch
from scrapy_ubi.node.group.join import Join
from scrapy_ubi.node.group.leave import Leave
from scrapy_ubi.node.group.lost_agents import LostAgents
from scrapy_ubi.node.group.ticker import Ticker
from scrapy_ubi.node.hosts.crawl_limits import CrawlLimits, LimitWatch
from scrapy_ubi.node.hosts.foreign_hosts import ForeignHosts
from scrapy_ubi.node.hosts.host_concurrency import HostConcurrency
from scrapy_ubi.node.hosts.host_limits import HostLimits
from scrapy_ubi.node.hosts.host_notes import HostNotes
from scrapy_ubi.node.hosts.ip_politeness import IpPoliteness
from scrapy_ubi.node.hosts.learned_forms import LearnedForms
from scrapy_ubi.node.hosts.policy import host_policy
from scrapy_ubi.node.keys import Keys
from scrapy_ubi.node.mail.disk_flush import DiskFlush
from scrapy_ubi.node.mail.exchange import Exchange
from scrapy_ubi.node.mail.exchange_loop import ExchangeLoop, MailTrouble
from scrapy_ubi.node.mail.inbox_check import InboxCheck, judge_of
from scrapy_ubi.node.mail.io_thread import IoThread
from scrapy_ubi.node.mail.item_claims import ItemClaims
from scrapy_ubi.node.mail.run_state import RunState
from scrapy_ubi.node.mail.seed_inbox import SeedInbox
from scrapy_ubi.node.report import figures, query_source, timeline_answer
from scrapy_ubi.node.report.answers_under_way import Steps
from scrapy_ubi.node.report.host_needs import HostNeeds
from scrapy_ubi.node.report.idle_watch import IdleWatch
from scrapy_ubi.node.report.publish import Publisher, published
from scrapy_ubi.node.report.queries import HISTORY, Question, steps
from scrapy_ubi.node.report.query_inbox import QueryInbox
from scrapy_ubi.node.report.recorder import Recorder
from scrapy_ubi.node.report.why_idle import WhyIdle
from scrapy_ubi.node.start import NodeEvents, Start
from scrapy_ubi.node.steering.live_entries import PAUSE, field_of
from scrapy_ubi.node.steering.pace import HostPace
from scrapy_ubi.node.steering.runtime import RuntimeSettings
from scrapy_ubi.node.steering.steered import Steered
from scrapy_ubi.node.work.barrier import Barrier, made_by
from scrapy_ubi.node.work.engine_wakeup import EngineWakeup
from scrapy_ubi.node.work.host_access import HostAccess
from scrapy_ubi.node.work.iterations import Iterations
from scrapy_ubi.node.work.next_request import NextRequest
from scrapy_ubi.node.work.visits import Visit
from scrapy_ubi.protocol.beat import Beat
from scrapy_ubi.protocol.host import Entry, Failure, HostState
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.transport import Transport
from scrapy_ubi.transport.redis_keys import drain_field

logger = logging.getLogger("scrapy_ubi")

AHEAD = (
    "%d times on the disk, or from other agents, lie further ahead than anything could have set them, as a clock was "
    "ahead: they count as set now."
)


class Node:
    """One agent of a crawl, running in this event loop.

    `start` says who it is. `check` says why a request's JSON text cannot be accepted (None: it can); `keys` makes the
    keys of requests. `events` hears what happens. What the node knows is kept on `disk`, without it in memory alone."""

    def __init__(
        self,
        settings: UbiSettings,
        transport: Transport,
        start: Start,
        check: Callable[[str], str | None],
        keys: Keys,
        events: NodeEvents | None = None,
        clock: Callable[[], float] = clock.now,
        disk: Disk | None = None,
    ) -> None:
        self.settings, self.agent_id, self.transport = settings, start.agent_id, transport
        self._check, self._clock, self._keys, self._host_of = check, clock, keys, settings.host_of()
        self._events = events = events if events is not None else NodeEvents()
        self._traffic, self._asked, self._said_ahead = start.traffic, False, False  # asked to leave
        self.published: dict[str, str] = {}  # agent -> its profile, when this one had left
        self._make_crawl(start, disk if disk is not None else NoDisk(settings.host_delay))
        self._fatal = Fatal(self._crawl.disk, events.fatal)
        self._waker = EngineWakeup(self._crawl, self._fatal, clock, events.wake)
        self._make_mail(start)
        self._make_work()
        self._follow()

    def _make_crawl(self, start: Start, disk: Disk) -> None:
        """The crawl, and what is known of its hosts."""
        settings = self.settings
        self.addresses = IpPoliteness() if settings.polite_by_ip else None
        self.foreign = ForeignHosts(self._clock, settings.host_shards)
        self.hosts = HostNotes(self._clock, unix, settings.host_shards)
        self.limits = HostLimits(settings, self.hosts, unix, self.note)
        self.concurrency = HostConcurrency.of(settings, self.hosts)
        self._limit = self.concurrency.limit if self.concurrency is not None else None
        self.iterations, self.live = Iterations.of(settings), RuntimeSettings(settings, self.note)
        self._pace = HostPace(self.live, self.hosts, self._clock)
        policy = host_policy(self.hosts, self.limits, self.addresses, self._limit, self.iterations, self._pace.on_turn)
        place = os.path.abspath(disk.history) if disk.history is not None else ""
        fixed = figures.fixed(settings, me := start.agent_id, start.spider, start.origin, start.metrics, place)
        self._crawl = Crawl(settings, me, disk, fixed, self._events.incarnation, self._clock, start.predecessor, policy)
        self.recrawl = self._crawl.recrawl

    def _make_mail(self, start: Start) -> None:
        """The parts that exchange mail and beats with the others, and those that the time calls."""
        settings, crawl, fatal, clock, transport = self.settings, self._crawl, self._fatal, self._clock, self.transport
        self._io = io = IoThread(own_thread=settings.redis_url is not None)
        self.seeds: SeedInbox | None = SeedInbox(self._events.seed, self._events.wake, settings.serve)
        self.publisher = Publisher(crawl, lambda: self.state, clock, self._of_the_moment)
        self._exchanges = ExchangeLoop(crawl, self.publisher, settings.flush_records, self._exchanged, clock)
        self._ticker = Ticker(crawl, settings, fatal, self._exchanges.turn, self._events.cancel, self._ticked, clock)
        self._beats = Beats(crawl, transport, settings, self._heard, clock)
        self._group_watch = GroupWatch(crawl, io, transport, settings)
        self._lost_agents = LostAgents(crawl, io, transport, self._exchanges.control)
        self._join = Join(crawl, settings, io, transport, start, self._beats.publish, self._follow, clock)
        self.item_claims = ItemClaims(io, transport)
        self._leave = Leave(crawl, settings, fatal, self._exchanges, self.publisher, clock, self._lost_agents.look)

    def _make_work(self) -> None:
        """The parts that choose requests, follow their visits, and take what they find."""
        settings, crawl, waker = self.settings, self._crawl, self._waker
        self.crawl_limits = CrawlLimits(settings, self.agent_id, self._events.limit)
        self._limit_watch = LimitWatch(self.crawl_limits, crawl, self._io, self.transport)
        discovers, visits = made_by(turns := self.iterations)
        discoverer = discovers(crawl, self.crawl_limits, self.limits, waker, self._exchanges.look_for_much)
        self.met, self.discover, self.discover_all = discoverer.met, discoverer.discover, discoverer.discover_all
        self._take_again = discoverer.take_again
        self.learner = LearnedForms.of(settings, self._keys, discoverer.take_again)
        self._visits = visits(crawl, self.learner, self.addresses, self._clock, self._limit, self.hosts.times)
        crawl.needs = self._needs = HostNeeds(self.hosts, self.limits, self._limit)
        if turns is not None:
            turns.barrier = Barrier(crawl, self.crawl_limits, turns, waker, self._visits.settle, self.note)
        rests = self.hosts.rests
        self.access = HostAccess(crawl, self._visits, waker, self._fatal, self.foreign, self._clock, self._limit, rests)
        self._choice = NextRequest(
            crawl, self._fatal, self.hosts, self.limits, self.learner, self._events.given_up, waker.arm, turns
        )
        under_way, traffic, clock = self._visits.under_way, self._traffic, self._clock
        self.recorder = Recorder(crawl, self.publisher, self._exchanges, under_way, traffic, clock, self._limit)
        self._why_idle = WhyIdle(self, self._events.held_up)
        self.idle = IdleWatch(self.agent_id, self._fetched, self._why_idle.find, self._profiles)
        self.recorder.also = self.idle.look
        self.late = self._ticker.late
        self.live.follow(self.publisher.soon)
        Steered(self.live, self._pace, crawl, (self.limits, self.crawl_limits), self.access, waker, self.seeds)

    def _follow(self) -> None:
        """Work for the agent that the crawl has now."""
        self.agent, self.frontier, self.tally = self._crawl.agent, self._crawl.frontier, self._crawl.tally
        self.frontier.loads = HostLoads(self._limit) if self._limit is not None else None
        self.frontier.pace = self.recrawl.pace if self.recrawl is not None else None
        self.tally.traffic = self._traffic
        self.joins = self.tally.joins  # what lossy steps of the normal form have joined
        self.hosts.begin(self.agent, self.frontier)
        self.access.begin()
        if self.learner is not None:
            self.learner.begin(self.agent, self.hosts, self.tally.joins)
        self._beats.begin()

    # -- coming and going

    async def open(self) -> None:
        """Join the group. Raises UbiError with one sentence when refused, TransportError when Redis cannot be used."""
        self._io.start()
        try:
            control = await self._join.go()
            self.publisher.kept = self._join.published
            self._open_to_seeds()
        except BaseException:
            await self._let_go()
            raise
        self.live.begin(control, self._crawl.live)
        self._exchanges.open(self._make_exchange(control))
        self._beats.start(self._ticker.stalled)
        self._ticker.start()
        await self._beats.wait()
        self._join.introduce()
        await self.recorder.start()

    def _open_to_seeds(self) -> None:
        """Take seeds from outside, where some can come."""
        if not self.transport.takes_seeds:
            self.seeds = None
        if self.seeds is not None:
            self.agent.open()

    def _make_exchange(self, control: Mapping[str, str]) -> Exchange:
        """What carries the mail from now on; `control` is what the control hash said at the start."""
        agent, crawl, settings = self.agent, self._crawl, self.settings
        run = RunState(agent, control, str(crawl.disk.facts.get("run", "")), self.live)
        queries = QueryInbox(self.agent_id, self._answer, time.time, self._exchanges.soon)
        judge = judge_of(self._keys, self._host_of, self._check)
        check = InboxCheck(agent, judge, settings.max_url_length, queries, settings.host_shards, self.seeds)
        flush = DiskFlush(agent, crawl.disk, crawl.facts, self._events.flush)
        return Exchange(agent, self.transport, self._io, settings, run, check, flush, self._exchanges.arrived)

    async def leave(self, reason: str) -> None:
        """Leave: say that the crawl is over, or hand everything over first, for at most `UBI_LEAVE_TIMEOUT`."""
        self.access.permits.close()
        for visit in self._visits.under_way():
            self.put_back(visit)
        self._visits.settle_all()
        if not self._ticker.started:  # it never joined
            await self._crawl.disk.close()
            return
        await self._leave.go()
        await self.idle.close()
        if not self._fatal.dead:
            self.published = await published(self._io, self.transport)
        await self.recorder.close(self._leave.stage)
        self._exchanges.close()
        self._ticker.stop()
        self._waker.stop()
        await self.transport.stop_beating(None if self._fatal.dead else self.agent.last_beat().line(0))
        await self._let_go()
        logger.info("Agent %s has %s (reason: %s).", self.agent_id, self._leave.stage, reason)

    async def _let_go(self) -> None:
        """Close transport, I/O thread and disk."""
        await self._io.call(self.transport.close())
        await self._io.stop()
        await self._crawl.disk.close()

    def _exchanged(self, exchange: Exchange) -> None:
        """An exchange of mail has ended."""
        self.tally.dead_letters, self.tally.writes_refused = exchange.dead_letters, exchange.writes_refused
        if exchange.control.get(drain_field(self.agent_id)) in self._crawl.incarnations and not self._asked:
            self._asked = True
            self._events.drain()
        self._ticker.tick()

    def _heard(self, end: bool, lines: Mapping[str, str]) -> None:
        """The beats of all agents were read, from these lines; `end`: they say that the crawl is over."""
        if end or self.agent.ending is not None:
            self._exchanges.hurry = True
        self._ticker.tick()
        self._group_watch.look(lines, self._clock())

    @property
    def times_ahead(self) -> int:
        """How many times from the disk and from other agents were of a clock that was ahead."""
        return self.hosts.ahead + self._crawl.disk.ahead + (self.recrawl.ahead if self.recrawl is not None else 0)

    def _ticked(self, now: float, beat: Beat) -> None:
        """The protocol has heard of the time: see to all that may follow."""
        if not self._said_ahead and (ahead := self.times_ahead):
            self._said_ahead = True
            logger.warning(AHEAD, ahead)
        self._beats.publish(beat)
        self.access.permits.look_again()
        self._limit_watch.look(now)
        if self.iterations is not None:
            self.iterations.barrier.look()
        self._choice.read_ahead(now)
        self._waker.arm()

    def _answer(self, question: Question) -> Steps:
        if question.ask == HISTORY:
            return timeline_answer.answer(question, self.agent_id, self.recorder.timeline, unix())
        agent, hosts, now = self.agent, self.hosts, self._clock()
        try:
            source = query_source.source(
                agent, hosts, self._keys, self._take_again, now, self.concurrency, self._needs, self._requeued
            )
            return (yield from steps(question, source))
        except StoreError as error:
            self._fatal.broken(error)
            return {"agent": self.agent_id, "refused": str(error)}

    def _requeued(self, failure: Failure) -> None:
        """What failed is fetched again, as people have asked: it has failed no longer."""
        if self.tally.requeued[failure.reason] < self.tally.failed[failure.reason]:
            self.tally.requeued[failure.reason] += 1

    # -- what the adapters call

    def next(self) -> Visit | None:
        """The next request to fetch; None when none may be fetched now, even though some may be pending."""
        now = self._clock()
        self._exchanges.turn(now)
        self.crawl_limits.begun = True
        self._limit_watch.look(now)
        waits = self.live.paused or self._exchanges.choked
        waits = waits or self.crawl_limits.full(self.tally.pages + self.agent.work.out)
        found = None if waits else self._choice.next(now)
        self._choice.read_ahead(now)
        if found is None:
            self._waker.arm(wake=False)
            return None
        return self._visits.begin(*found, now)

    def pending(self) -> bool:
        """Whether requests are queued that are this agent's to fetch."""
        return not self.over and self.frontier.waits(self._is_own)

    @property
    def waiting(self) -> int:
        """How many requests are queued that are this agent's to fetch; linear in the hosts."""
        return sum(state.waiting for state in self.frontier.states() if state.waiting and self._is_own(state))

    def _is_own(self, state: HostState) -> bool:
        return self.agent.keeping.keepers(state)[:1] == (self.agent.me,)

    def retry(self, visit: Visit, entry: Entry) -> None:
        """The same key is to be fetched again, as `entry`, when this visit has ended."""
        visit.again = entry

    def ended(
        self, visit: Visit, failed: str | None = None, fetched: bool = True, status: int = 0, content: int | None = None
    ) -> None:
        """The visit is over: its callback's whole output was taken, or it `failed` after all retries. `status` is that
        of the response, 0 where there was none; `content` what the learned forms compare pages by."""
        if self._visits.end(visit, failed, fetched, status, content):
            self._exchanges.turn(self._clock())
            self._waker.arm()

    def note(self, what: str, host: str = "") -> None:
        """Something happened at this host that the report should name."""
        self.tally.note(what, host)

    def put_back(self, visit: Visit) -> None:
        """The visit was not made (fence, lost host, shutdown): its request waits again."""
        if self._visits.put_back(visit):
            self._waker.arm()

    @property
    def over(self) -> bool:
        """Whether the crawl is over everywhere."""
        return self.agent.finished

    @property
    def lost_agents(self) -> tuple[str, ...]:
        """Once this agent has left a crawl that is over: who was lost, more than there are copies."""
        return self._lost_agents.names

    @property
    def crowded(self) -> bool:
        """Whether what comes from outside should wait: too much is to be sent already, or nothing can be written."""
        if self.over or self._fatal.dead:
            return False
        return self.live.paused or self._exchanges.choked or len(self.agent.outbox) > self.settings.outbox_records

    @property
    def congested(self) -> bool:
        """Whether a page that yields very many links should wait with further ones: while the outbox is full nothing is
        fetched (`outbox_records` of the settings), so one page must not fill it."""
        if self.over or self._fatal.dead or self._leave.stage:
            return False
        return len(self.agent.outbox) > self.settings.outbox_records // 2

    def start_exhausted(self) -> None:
        """The spider's start() has ended."""
        self.agent.start_exhausted = True

    @property
    def state(self) -> str:
        """What this agent is doing, for people."""
        if self._leave.stage:
            return self._leave.stage
        if not self.holds_lease:
            if not self._beats.were_read:
                return "joining"
            return "waiting" if self._why_idle.is_alone() else "fenced"  # alone there is no agent to be fenced from
        if self._exchanges.blocked or self.live.paused:
            return "blocked" if self._exchanges.blocked else "paused"
        return "crawling" if self.agent.work.out or self.pending() else "waiting"

    @property
    def holds_lease(self) -> bool:
        """Whether its beats are acknowledged, so that it may fetch."""
        return self.agent.lease.holds(self._clock())

    @property
    def has_read_beats(self) -> bool:
        """Whether it has read who is there."""
        return self._beats.were_read

    @property
    def others(self) -> tuple[str, ...]:
        """The other agents of its group, as it believes, by name."""
        return tuple(sorted(name for name in self.agent.view.members if name != self.agent.me))

    @property
    def leaving(self) -> bool:
        """Whether it is on its way out, or has gone."""
        return bool(self._leave.stage)

    @property
    def paused_since(self) -> float:
        """When people have paused the crawl (unix s); 0.0 where they have not."""
        entry = self._crawl.live.entries.get(field_of(PAUSE))
        return entry.when if entry is not None and entry.stands else 0.0

    @property
    def limit_reached(self) -> str:
        """The limit of the crawl because of which nothing more is fetched; empty while there is none."""
        full = self.crawl_limits.full(self.tally.pages + self.agent.work.out)
        return "UBI_CRAWL_MAX_PAGES or UBI_CRAWL_MAX_SECONDS" if full else ""

    @property
    def trouble(self) -> MailTrouble:
        """What keeps its mail from leaving."""
        return self._exchanges.trouble

    def _fetched(self) -> object:
        """What changes whenever something is fetched, or done."""
        return self.tally.pages, self.agent.counters.done, self.agent.counters.visited

    async def _profiles(self) -> Mapping[str, str]:
        return await published(self._io, self.transport)

    def _of_the_moment(self) -> dict[str, Any]:
        """What its profile says beside its counters, that changes while it runs."""
        limits = self.crawl_limits
        most = {"most_pages": limits.most_pages, "most_seconds": limits.most_seconds}
        idle = {"idle": self.idle.reason.told()} if self.idle.reason is not None else {}
        return {"curve": self.recorder.curve, **idle, **{name: value for name, value in most.items() if value}}

    def counters(self) -> dict[str, Any]:
        """All counters of this agent, as published for people."""
        return self._crawl.counters()
