"""Puts a node together: it makes the parts of one agent in the order of their needs, and ties them to each other.

Rules of this module:

* It decides nothing but which parts there are. What a part is told by a later one is given as a call that finds it when
  it is made (`lambda`), or registered with the part that tells (`follow`).
* What the settings do not want is not made.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from functools import partial

from scrapy_ubi.agent.crawl.crawl import Crawl
from scrapy_ubi.agent.crawl.disk import NoDisk
from scrapy_ubi.agent.crawl.disk_contract import Disk
from scrapy_ubi.agent.crawl.fatal import Fatal
from scrapy_ubi.agent.group.beats import Beats
from scrapy_ubi.agent.group.group_watch import GroupWatch
from scrapy_ubi.agent.group.join import Join
from scrapy_ubi.agent.group.leave import Leave
from scrapy_ubi.agent.group.limit_watch import LimitWatch
from scrapy_ubi.agent.group.lost_agents import LostAgents
from scrapy_ubi.agent.group.ticker import Ticker
from scrapy_ubi.agent.hosts.complete_hosts import CompleteHosts
from scrapy_ubi.agent.hosts.crawl_limits import CrawlLimits
from scrapy_ubi.agent.hosts.foreign_hosts import ForeignHosts
from scrapy_ubi.agent.hosts.host_concurrency import concurrency_of
from scrapy_ubi.agent.hosts.host_limits import HostLimits
from scrapy_ubi.agent.hosts.host_notes import HostNotes
from scrapy_ubi.agent.hosts.host_pace import HostPace
from scrapy_ubi.agent.hosts.ip_politeness import IpPoliteness
from scrapy_ubi.agent.hosts.learned_forms import LearnedForms
from scrapy_ubi.agent.hosts.policy import host_policy
from scrapy_ubi.agent.hosts.rated_hosts import rates_of
from scrapy_ubi.agent.keys import Keys
from scrapy_ubi.agent.lifecycle import Lifecycle
from scrapy_ubi.agent.mail.disk_flush import DiskFlush
from scrapy_ubi.agent.mail.exchange import Exchange
from scrapy_ubi.agent.mail.exchange_loop import ExchangeLoop
from scrapy_ubi.agent.mail.inbox_check import InboxCheck, judge_of
from scrapy_ubi.agent.mail.io_thread import IoThread
from scrapy_ubi.agent.mail.item_claims import ItemClaims
from scrapy_ubi.agent.mail.run_state import RunState
from scrapy_ubi.agent.mail.seed_inbox import SeedInbox
from scrapy_ubi.agent.node import Node
from scrapy_ubi.agent.profile import figures
from scrapy_ubi.agent.report.host_needs import HostNeeds
from scrapy_ubi.agent.report.idle_watch import IdleWatch
from scrapy_ubi.agent.report.live_answers import LiveAnswers
from scrapy_ubi.agent.report.publish import Publisher, published
from scrapy_ubi.agent.report.query_inbox import QueryInbox
from scrapy_ubi.agent.report.recorder import Recorder
from scrapy_ubi.agent.report.status import Status
from scrapy_ubi.agent.report.why_idle import WhyIdle
from scrapy_ubi.agent.start import NodeEvents, Start
from scrapy_ubi.agent.steering.runtime import RuntimeSettings
from scrapy_ubi.agent.turns import Steered, Turns
from scrapy_ubi.agent.work.barrier import Barrier, made_by
from scrapy_ubi.agent.work.engine_wakeup import EngineWakeup
from scrapy_ubi.agent.work.handout import Handout
from scrapy_ubi.agent.work.host_access import HostAccess
from scrapy_ubi.agent.work.iterations import Iterations
from scrapy_ubi.agent.work.next_request import NextRequest, NextUnjoined
from scrapy_ubi.agent.work.permits import Permits, SeveralPermits
from scrapy_ubi.frontier.host_loads import HostLoads
from scrapy_ubi.ground import clock as clocks
from scrapy_ubi.ground.clock import unix
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.transport import Transport


def build_node(
    settings: UbiSettings,
    transport: Transport,
    start: Start,
    check: Callable[[str], str | None],
    keys: Keys,
    events: NodeEvents | None = None,
    clock: Callable[[], float] = clocks.now,
    disk: Disk | None = None,
) -> Node:
    """Build the node of one agent, which is not open yet.

    `start` says who it is. `check` says why a request's JSON text cannot be accepted (None: it can); `keys` makes the
    keys of requests. `events` hears what happens. What the node knows is kept on `disk`, without it in memory alone.
    """
    me = start.agent_id
    events = events if events is not None else NodeEvents()
    disk = disk if disk is not None else NoDisk(settings.host_delay)

    def note(what: str, host: str = "") -> None:
        crawl.tally.note(what, host)

    # -- what is known of hosts, and the crawl
    live = RuntimeSettings(settings, note)
    hosts = HostNotes(clock, unix, settings.host_shards)
    limits = HostLimits(settings, hosts, unix, note)
    foreign = ForeignHosts(clock, settings.host_shards)
    concurrency = concurrency_of(settings, hosts)
    loads_at_once = concurrency.limit
    addresses = IpPoliteness(loads_at_once) if settings.polite_by_ip else None
    iterations = Iterations.from_settings(settings)
    pace = HostPace(live, hosts, limits, clock)
    may_take = iterations.may_take if iterations is not None else None
    rates = rates_of(settings, hosts, clock)
    policy = host_policy(hosts, limits, addresses, may_take, rates.after(pace.on_turn))
    place = os.path.abspath(disk.history) if disk.history is not None else ""
    fixed = figures.fixed(settings, me, start.spider, start.origin, start.metrics, place)
    crawl = Crawl(settings, me, disk, fixed, events.incarnation, clock, start.predecessor, policy)
    crawl_limits = CrawlLimits(settings, me, events.limit)
    fatal = Fatal(disk, events.fatal)
    waker = EngineWakeup(crawl, fatal, clock, events.wake)

    # -- mail and the group
    io = IoThread(own_thread=settings.redis_url is not None)
    seeds = SeedInbox(events.seed, events.wake, settings.serve)
    publisher = Publisher(crawl, lambda: status.state, clock, lambda: status.of_the_moment(recorder.curve, idle.reason))
    exchanges = ExchangeLoop(
        crawl, publisher, settings.flush_records, lambda exchange: turns.exchanged(exchange), clock
    )
    ticker = Ticker(
        crawl, settings, fatal, exchanges.turn, events.cancel, lambda now, beat: turns.ticked(now, beat), clock
    )
    beats = Beats(crawl, transport, settings, lambda end, lines: turns.heard(end, lines), clock)
    lost = LostAgents(crawl, io, transport, exchanges.control)
    join = Join(crawl, settings, io, transport, start.predecessor, start.started, beats.publish, clock)
    leave = Leave(crawl, settings, fatal, exchanges, publisher.renew, clock, lost.find_lost)
    limit_watch = LimitWatch(crawl_limits, crawl, io, transport, waker.arm)
    status = Status(crawl, hosts, crawl_limits, live, exchanges, beats, leave, fatal, clock)

    # -- requests: found, handed out, ended
    discovers, visits_of = made_by(iterations)
    discoverer = discovers(crawl, crawl_limits, limits, waker, exchanges.look_for_much)
    learner = LearnedForms.from_settings(settings, keys, discoverer.take_again)
    visits = visits_of(crawl, clock, loads_at_once, hosts.times)
    permits = partial(SeveralPermits, limit=loads_at_once) if concurrency.counts else Permits
    access = HostAccess(
        crawl, visits, waker, fatal, clock, foreign, lambda agent: permits(agent, clock, foreign, hosts.rests)
    )
    chooses = partial(NextUnjoined, learner) if learner is not None else NextRequest
    choice = chooses(crawl, fatal, hosts, limits, events.given_up, waker.arm)
    at_ticks: list[Callable[[], object]] = []
    if addresses is not None:
        visits.on_begun.append(addresses.taken)
        visits.on_freed.append(addresses.freed)
    if learner is not None:
        visits.on_ended.append(learner.end_visit)
        visits.on_put_back.append(learner.put_back)
    if iterations is not None:
        barrier = iterations.barrier = Barrier(crawl, crawl_limits, iterations, waker, visits.settle_end, note)
        choice.on_passed_over.append(iterations.passed)
        at_ticks.append(barrier.close_stalled)
    handout = Handout(crawl, choice, visits, crawl_limits, live, exchanges, limit_watch.check_limits, waker, clock)

    # -- what people are told, and what they change
    crawl.needs = needs = HostNeeds(hosts, limits, loads_at_once, rates)
    recorder = Recorder(crawl, publisher, exchanges, visits.under_way, start.traffic, clock, loads_at_once)
    why_idle = WhyIdle(status, hosts, settings, seeds, events.held_up, rates)
    idle = IdleWatch(me, status.progress, why_idle.find_reason, lambda: published(io, transport))
    recorder.also = idle.check_idle
    answers = LiveAnswers(
        crawl,
        hosts,
        needs,
        concurrency,
        rates,
        keys,
        discoverer.take_again,
        lambda: recorder.timeline,
        fatal,
        clock,
    )
    live.follow(publisher.soon)
    Steered(live, pace, crawl, limits, crawl_limits, access, waker, seeds)
    turns = Turns(
        crawl,
        exchanges,
        beats,
        ticker,
        GroupWatch(crawl, io, transport, settings),
        CompleteHosts(crawl, hosts, limits, note, events.host_complete),
        limit_watch,
        access,
        choice,
        at_ticks,
        waker,
        status,
        events.drain,
        clock,
    )

    def work_for_agent() -> None:
        """Have the parts work for the agent that the crawl has now."""
        crawl.frontier.loads = HostLoads(loads_at_once) if concurrency.counts else None
        crawl.frontier.pace = crawl.recrawl.pace
        crawl.tally.traffic = start.traffic
        hosts.work_for(crawl.agent, crawl.frontier)
        if learner is not None:
            learner.work_for(crawl.agent, hosts, crawl.tally.joins)
        rates.work_for(crawl.agent)

    def make_exchange(control: Mapping[str, str]) -> Exchange:
        """Make what carries the mail; `control` is what the control hash said at the start."""
        agent = crawl.agent
        run = RunState(agent, control, str(crawl.disk.facts.get("run", "")), live)
        rates.begin_run(is_new=not run.run and not control.get("past"))
        queries = QueryInbox(me, answers.answer, time.time, exchanges.soon)
        judge = judge_of(keys, settings.host_of(), check)
        check_in = InboxCheck(agent, judge, settings.max_url_length, queries, settings.host_shards, seeds)
        flush = DiskFlush(agent, crawl.disk, crawl.facts, events.flush)
        return Exchange(agent, transport, io, settings, run, check_in, flush, exchanges.arrived)

    crawl.follow(work_for_agent)
    lifecycle = Lifecycle(
        crawl,
        transport,
        io,
        fatal,
        seeds,
        publisher,
        exchanges,
        make_exchange,
        beats,
        ticker,
        join,
        leave,
        lost,
        live,
        access,
        handout,
        waker,
        recorder,
        idle,
    )
    return Node(
        crawl,
        lifecycle,
        hosts,
        limits,
        addresses,
        concurrency,
        rates,
        learner,
        iterations,
        discoverer,
        access,
        handout,
        live,
        seeds,
        ItemClaims(io, transport),
        status,
        recorder,
        answers,
    )
