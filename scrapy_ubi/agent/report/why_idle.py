"""Why an agent fetches nothing at this moment: the first reason that holds, of its group, its limits, what Scrapy has
under way, its hosts, and what is left where nothing waits.

Rules of this module: it only reads, in memory. At most `LOOKED` hosts are looked at, so asking takes some ten
milliseconds at most, and is asked for only where nothing is fetched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import islice
from math import inf
from typing import NamedTuple

from scrapy_ubi.agent.hosts.host_notes import HostNotes
from scrapy_ubi.agent.hosts.rated_hosts import NO_RATES, NoRates
from scrapy_ubi.agent.mail.outage import AWAY, FULL, ITEMS, SLOW
from scrapy_ubi.agent.mail.seed_inbox import SeedInbox
from scrapy_ubi.agent.profile import idle_reason as kinds
from scrapy_ubi.agent.profile.idle_reason import IdleReason, reason
from scrapy_ubi.agent.report.status import Status
from scrapy_ubi.ground.clock import unix
from scrapy_ubi.protocol.host import HostState
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.urls.host_shards import host_of_key

LOOKED = 20_000  # hosts
ROBOTS = "robots"  # who wants a delay, by `HostNotes.delays`, and why a host is left alone


class _Waiting(NamedTuple):
    """A host of which something waits: from when on it may be fetched (s, the agent's clock), and why not before."""

    turn: float
    host: str
    kind: str
    word: str = ""


class WhyIdle:
    """Asks one agent. `held_up` says whether Scrapy takes no further request, and what it has under way."""

    def __init__(
        self,
        status: Status,
        hosts: HostNotes,
        settings: UbiSettings,
        seeds: SeedInbox,
        held_up: Callable[[], tuple[bool, IdleReason | None]],
        rates: NoRates = NO_RATES,
    ) -> None:
        self._status = status
        self._hosts = hosts
        self._settings = settings
        self._seeds = seeds
        self._held_up = held_up
        self._rates = rates

    def find_reason(self, now: float) -> IdleReason | None:
        """The reason at this time (s, the agent's clock); None where the agent has ended."""
        if self._status.over:
            return None
        found = self._of_agent(now) or self._of_mail(now)
        if found is not None:
            return found
        full, held = self._held_up()
        if full and held is not None:
            return held
        return self._of_hosts(now) or held or self._of_nothing()

    def is_alone(self) -> bool:
        """Whether no other agent takes part."""
        return not self._status.others

    def _unix(self, then: float, now: float) -> float:
        return unix() + then - now

    # -- the agent and its group

    def _of_agent(self, now: float) -> IdleReason | None:
        status, agent = self._status, self._status.agent
        if status.leaving:
            return reason(kinds.LEAVING, status.others)
        if status.paused:
            return reason(kinds.PAUSED, since=status.paused_since)
        if not agent.group.lease.holds(now):
            return self._of_lease(now)
        if not agent.group.sure:
            return self._of_start_wait(now)
        if not agent.group.may_act(now):
            return reason(kinds.UNSEEN, self._status.others)
        if status.crawl_limits.low_disk:
            return reason(kinds.DISK_LOW, more=f"{status.crawl_limits.least_free / 1e9:g} GB")
        limit = status.limit_reached
        return reason(kinds.LIMIT, more=limit) if limit else None

    def _of_start_wait(self, now: float) -> IdleReason:
        group = self._status.agent.group
        ends = group.start_wait_ends
        return reason(kinds.START_WAIT, group.expected, until=self._unix(ends, now) if ends is not None else 0.0)

    def _of_lease(self, now: float) -> IdleReason:
        status, agent = self._status, self._status.agent
        if not status.has_read_beats:
            return reason(kinds.JOINING)
        if agent.group.lease.torn and agent.group.lease.fresh(now):
            return reason(kinds.UNSEEN, status.others) if agent.group.sure else self._of_start_wait(now)
        since = self._unix(agent.group.lease.sent, now) if agent.group.lease.sent > -inf else 0.0
        if self.is_alone():
            return reason(kinds.REDIS_AWAY, since=since)
        return reason(kinds.FENCED, since=since)

    def _of_mail(self, now: float) -> IdleReason | None:
        outbox = self._status.agent.outbox
        trouble = self._status.trouble
        if trouble.disk_full:
            return reason(kinds.PIPELINES if trouble.outage == ITEMS else kinds.DISK_FULL)
        if trouble.choked and trouble.outage:
            full = trouble.outage == FULL
            return reason(kinds.REDIS_FULL if full else kinds.REDIS_AWAY)
        most = self._status.agent.config.outbox_records
        if trouble.choked or len(outbox) > most or len(outbox.thin) > most:
            if trouble.outage in (AWAY, SLOW):
                return reason(kinds.REDIS_AWAY)
            return reason(kinds.OUTBOX, self._receivers(), more=f"{len(outbox)} records wait to be sent")
        return None

    def _receivers(self) -> tuple[str, ...]:
        """Who has not acknowledged what was sent, those of whom most is wanted first."""
        waits = Counter[str]()
        for (receiver, _), lane in self._status.agent.outbox.lanes.items():
            waits[receiver] += len(lane.waiting) + len(lane.unacknowledged)
        return tuple(name for name, number in waits.most_common() if number)

    # -- hosts

    def _of_hosts(self, now: float) -> IdleReason | None:
        status, agent = self._status, self._status.agent
        waiting = [
            self._waiting(state, now)
            for state in islice(agent.frontier.states(), LOOKED)
            if state.waiting and not state.out and agent.keeping.keepers(state)[:1] == (agent.me,)
        ]
        if not waiting:
            return None
        held = [one for one in waiting if one.kind == kinds.HANDOVER]
        first = min(waiting, key=lambda one: (one.turn, one.host))
        if first.kind == kinds.HANDOVER:
            return self._handover(len(held), now)
        alike = sorted(one for one in waiting if (one.kind, one.word) == (first.kind, first.word))
        names = tuple(dict.fromkeys(host_of_key(one.host) for one in alike[:20]))
        until = self._unix(first.turn, now) if first.turn > now else 0.0
        more = first.word
        if first.kind in (kinds.DELAY, kinds.CRAWL_DELAY):
            known = agent.frontier.find(first.host)
            more = f"{max(agent.frontier.delay, known.pause if known is not None else 0.0):g} s"
        elif status.trouble.outage and first.kind == kinds.READY:
            return reason(kinds.REDIS_AWAY)
        return reason(first.kind, names, len(alike), until=until, more=more)

    def _waiting(self, state: HostState, now: float) -> _Waiting:
        agent = self._status.agent
        if not agent.view_history.may_fetch(state.host, agent.group.alive):
            return _Waiting(now, state.host, kinds.HANDOVER)
        turn = state.next_at
        if turn > now:
            word = self._hosts.blocked_reason(state)
            if word and word != "ended":
                return _Waiting(turn, state.host, kinds.RESTS, word)
            if rate := self._rates.why(state.host, now):
                return _Waiting(turn, state.host, kinds.RATE, rate)
            delays = self._hosts.delays(state) if state.notes.text else {}
            asks = delays.get(ROBOTS, 0.0) >= max(agent.frontier.delay, state.pause) > 0
            return _Waiting(turn, state.host, kinds.CRAWL_DELAY if asks else kinds.DELAY, f"{state.pause:g}")
        return _Waiting(turn, state.host, kinds.DISK if agent.frontier.rests(state) else kinds.READY)

    def _handover(self, number: int, now: float) -> IdleReason:
        """Hosts wait for agents that have not handed over: those whose beats do not say so, or that list a host."""
        agent = self._status.agent
        if self.is_alone():  # its first view is complete with the next read of beats
            return reason(kinds.START_WAIT)
        digest = agent.view.digest
        late = tuple(
            name
            for name, sight in sorted(agent.group.watch.seen.items())
            if name != agent.me and (sight.beat.settled != digest or sight.beat.pending)
        )
        until = agent.view_history.since + self._settings.handoff_timeout
        more = f"{number} host{' is' if number == 1 else 's are'}"
        return reason(
            kinds.HANDOVER, late, until=self._unix(until, now) if agent.view_history.waits else 0.0, more=more
        )

    # -- nothing waits

    def _of_nothing(self) -> IdleReason:
        agent = self._status.agent
        serves = self._seeds.serves
        if not agent.end.start_exhausted:
            return reason(kinds.SEEDS if serves else kinds.START)
        if agent.work.awaits_visits():
            return reason(kinds.VISITS)
        if len(agent.outbox) and (receivers := self._receivers()):
            return reason(kinds.ACKS, receivers)
        others = self._status.others
        return reason(kinds.OTHERS, others) if others else reason(kinds.END)
