"""What a living agent answers its questions from."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from scrapy_ubi.node.hosts.host_concurrency import HostConcurrency
from scrapy_ubi.node.hosts.host_notes import HostNotes
from scrapy_ubi.node.keys import Keys, requeued_nonce
from scrapy_ubi.node.report.host_answers import COPY, OWNER
from scrapy_ubi.node.report.host_needs import HostNeeds
from scrapy_ubi.node.report.queries import Source, one_at_a_time
from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.protocol.frontier_contract import OUTPUTS_LOST
from scrapy_ubi.protocol.host import Entry, Failure, HostState
from scrapy_ubi.protocol.lane import DISCOVERY
from scrapy_ubi.protocol.records import Record

NONCE_BYTES = 8


def source(
    agent: Agent,
    hosts: HostNotes,
    keys: Keys,
    take: Callable[[str, Entry], bool],
    now: float,
    concurrency: HostConcurrency | None = None,
    needs: HostNeeds | None = None,
    on_requeued: Callable[[Failure], object] = lambda failure: None,
) -> Source:
    """The source of `agent`; `take` takes in an entry of a host again, and says whether it was news."""

    def role(state: HostState) -> str:
        return OWNER if agent.keeping.keepers(state)[:1] == (agent.me,) else COPY

    def held(state: HostState) -> bool:
        return not agent.tenure.free(state.host, agent.group.alive)

    def sent(host: str, key: int) -> str:
        return next((receiver for receiver, one in _under_way(agent) if one.host == host and _key(one) == key), "")

    def requeue(failure: Failure) -> bool:
        if agent.finished:
            return False
        entry = keys.again(failure.entry, requeued_nonce(failure, secrets.token_hex(NONCE_BYTES)))
        hosts.lift(failure.host)
        taken = entry is not None and (take(failure.host, entry) or asked_before(failure, entry))
        if taken and failure.reason != OUTPUTS_LOST:
            on_requeued(failure)
        return taken

    def asked_before(failure: Failure, entry: Entry) -> bool:
        state = agent.frontier.find(failure.host)
        return failure.reason == OUTPUTS_LOST and state is not None and state.is_known(entry.key)

    loads = concurrency.shown if concurrency is not None else one_at_a_time
    needs = needs if needs is not None else HostNeeds(hosts, None, None)
    return Source(agent.me, agent.frontier, now, role, held, hosts.plight, sent, requeue, loads, needs.of)


def _key(record: Record) -> int | None:
    return record.entry.key if record.entry is not None else None


def _under_way(agent: Agent) -> list[tuple[str, Record]]:
    """What others have been told, or are to be, and have not acknowledged: to whom, and what."""
    found = []
    for (receiver, kind), lane in agent.outbox.lanes.items():
        if kind == DISCOVERY:
            waiting = [one for one in lane.waiting if isinstance(one, Record)]
            posted = [record for letter in lane.unacknowledged.values() for record in letter.records]
            found += [(receiver, one) for one in [*waiting, *posted]]
    return found
