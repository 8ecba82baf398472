"""The answers of a living agent to what people ask it."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from scrapy_ubi.agent.crawl.crawl import Crawl
from scrapy_ubi.agent.crawl.fatal import Fatal
from scrapy_ubi.agent.hosts.host_concurrency import SinglePages
from scrapy_ubi.agent.hosts.host_notes import HostNotes
from scrapy_ubi.agent.hosts.rated_hosts import NoRates
from scrapy_ubi.agent.keys import Keys, requeued_nonce
from scrapy_ubi.agent.report import timeline_answer
from scrapy_ubi.agent.report.answers_under_way import Steps
from scrapy_ubi.agent.report.host_answers import COPY, OWNER
from scrapy_ubi.agent.report.host_needs import HostNeeds
from scrapy_ubi.agent.report.queries import HISTORY, Question, Source, steps
from scrapy_ubi.agent.report.timeline import Timeline
from scrapy_ubi.frontier.store import StoreError
from scrapy_ubi.ground.clock import unix
from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.protocol.frontier_contract import OUTPUTS_LOST
from scrapy_ubi.protocol.host import Entry, Failure, HostState
from scrapy_ubi.protocol.lane import DISCOVERY
from scrapy_ubi.protocol.records import Record

NONCE_BYTES = 8


class LiveAnswers:
    """Answers for one agent. `take_again` takes in an entry of a host again, and says whether it was news; `timeline`
    gives its history; `clock` its time (s)."""

    def __init__(
        self,
        crawl: Crawl,
        hosts: HostNotes,
        needs: HostNeeds,
        concurrency: SinglePages,
        rates: NoRates,
        keys: Keys,
        take_again: Callable[[str, Entry], bool],
        timeline: Callable[[], Timeline],
        fatal: Fatal,
        clock: Callable[[], float],
    ) -> None:
        self._crawl = crawl
        self._hosts = hosts
        self._needs = needs
        self._concurrency = concurrency
        self._rates = rates
        self._keys = keys
        self._take_again = take_again
        self._timeline = timeline
        self._fatal = fatal
        self._clock = clock

    def answer(self, question: Question) -> Steps:
        """Make the answer to this question, step by step."""
        me = self._crawl.agent.me
        if question.ask == HISTORY:
            return timeline_answer.answer(question, me, self._timeline(), unix())
        try:
            return (yield from steps(question, self._source(self._crawl.agent)))
        except StoreError as error:
            self._fatal.broken(error)
            return {"agent": me, "refused": str(error)}

    def _source(self, agent: Agent) -> Source:
        """Return what is answered from, at this moment."""

        def role(state: HostState) -> str:
            return OWNER if agent.keeping.keepers(state)[:1] == (agent.me,) else COPY

        def held(state: HostState) -> bool:
            return not agent.view_history.may_fetch(state.host, agent.group.alive)

        def sent(host: str, key: int) -> str:
            return next((receiver for receiver, one in _under_way(agent) if one.host == host and _key(one) == key), "")

        return Source(
            agent.me,
            agent.frontier,
            self._clock(),
            role,
            held,
            self._hosts.blocked_reason,
            sent,
            self._requeue,
            self._concurrency.shown,
            self._needs.needs_of,
            self._rates,
        )

    def _requeue(self, failure: Failure) -> bool:
        """Fetch again what has failed, as people have asked. Return whether it is taken in."""
        if self._crawl.agent.end.finished:
            return False
        entry = self._keys.again(failure.entry, requeued_nonce(failure, secrets.token_hex(NONCE_BYTES)))
        self._hosts.lift(failure.host)
        taken = entry is not None and (self._take_again(failure.host, entry) or self._asked_before(failure, entry))
        if taken and failure.reason != OUTPUTS_LOST:
            self._count_requeued(failure)
        return taken

    def _asked_before(self, failure: Failure, entry: Entry) -> bool:
        state = self._crawl.agent.frontier.find(failure.host)
        return failure.reason == OUTPUTS_LOST and state is not None and state.is_known(entry.key)

    def _count_requeued(self, failure: Failure) -> None:
        """It has failed no longer."""
        tally = self._crawl.tally
        if tally.requeued[failure.reason] < tally.failed[failure.reason]:
            tally.requeued[failure.reason] += 1


def _key(record: Record) -> int | None:
    return record.entry.key if record.entry is not None else None


def _under_way(agent: Agent) -> list[tuple[str, Record]]:
    """Return what others have been told, or are to be, and have not acknowledged: to whom, and what."""
    found = []
    for (receiver, kind), lane in agent.outbox.lanes.items():
        if kind == DISCOVERY:
            waiting = [one for one in lane.waiting if isinstance(one, Record)]
            posted = [record for letter in lane.unacknowledged.values() for record in letter.records]
            found += [(receiver, one) for one in [*waiting, *posted]]
    return found
