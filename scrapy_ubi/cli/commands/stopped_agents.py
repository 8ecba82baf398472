"""The frontier of a stopped agent, opened where it lies, and asked what living agents are asked.

A store that cannot be read is an error that names the file; nothing is moved or made again here.
"""

from __future__ import annotations

import json
import secrets
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from scrapy.settings import BaseSettings

from scrapy_ubi.adapter.requests.identity import RequestKeys
from scrapy_ubi.agent.crawl.disk import KINDS
from scrapy_ubi.agent.crawl.finished_run import REQUEUED
from scrapy_ubi.agent.crawl.store_files import STORE
from scrapy_ubi.agent.hosts.host_notes import lifted, read_blocked_reason
from scrapy_ubi.agent.keys import requeued_nonce
from scrapy_ubi.agent.profile.figures import counted_requeued
from scrapy_ubi.agent.report import timeline_answer
from scrapy_ubi.agent.report.live_answers import NONCE_BYTES
from scrapy_ubi.agent.report.queries import HISTORY, Question, Source, answer
from scrapy_ubi.cli.commands.directories import FoundDirectory, locked
from scrapy_ubi.cli.commands.redis_connection import setting
from scrapy_ubi.cli.monitor.answers import Answer
from scrapy_ubi.errors import UbiDirectoryError
from scrapy_ubi.frontier import ledger
from scrapy_ubi.frontier.disk_frontier import DiskFrontier
from scrapy_ubi.frontier.restore import open_frontier
from scrapy_ubi.frontier.store import Store, StoreError
from scrapy_ubi.protocol.frontier_contract import OUTPUTS_LOST
from scrapy_ubi.protocol.host import Failure, HostState

OWNER = "its owner"  # to whom what is owed goes: which agent that is, the next start decides


class Stock(NamedTuple):
    """What lies in a directory."""

    done: int
    waiting: int


class Stopped:
    """The open directory of an agent that has stopped. `facts` is what is kept of the crawl (agent/crawl/disk.py)."""

    def __init__(self, place: FoundDirectory, frontier: DiskFrontier) -> None:
        self.place = place
        self._frontier = frontier
        self.facts: dict[str, Any] = ledger.load_crawl(frontier.store)

    def states(self) -> Iterable[HostState]:
        """The hosts in it."""
        return self._frontier.states()

    def stock(self) -> Stock:
        """What lies in it."""
        states = self._frontier.states()
        return Stock(sum(state.done_count for state in states), sum(state.waiting for state in states))

    def ask(self, question: Question, keys: RequestKeys) -> Answer:
        """The answer. Failed requests are taken in again durably; a crawl that was finished is no longer finished."""
        if question.ask == HISTORY:
            now = time.time()
            return timeline_answer.answer(question, self.place.agent, self.place.timeline(now), now)
        requeued = Counter[str]()
        made = answer(question, self._source(keys, requeued))
        if self._frontier.changed:
            self._frontier.flush(self._count(requeued))
        return made

    def _count(self, requeued: Counter[str]) -> list[ledger.Row]:
        """What is to be kept of the crawl where so many failures, by reason, are fetched again: until the agent is back
        nobody else knows of them (`REQUEUED`)."""
        if not requeued or not self.facts:
            return []
        self.facts = {**self.facts, REQUEUED: True}
        if "counters" in self.facts:
            self.facts["counters"] = counted_requeued(self.facts["counters"], requeued)
        return [ledger.crawl_row(self.facts)]

    def reopen(self) -> None:
        """The crawl is not finished: there is work again, here or in another agent's directory."""
        if self.facts.get("finished"):
            self._frontier.flush([ledger.crawl_row({**self.facts, "finished": False})])

    def _source(self, keys: RequestKeys, requeued: Counter[str]) -> Source:
        frontier = self._frontier

        def blocked_reason(state: HostState) -> str:
            return read_blocked_reason(json.loads(state.notes.text), time.time()) if state.notes.text else ""

        def requeue(failure: Failure) -> bool:
            if (state := frontier.find(failure.host)) is not None:
                frontier.note(state, lifted(state.notes, state.done_count))
            entry = keys.again(failure.entry, requeued_nonce(failure, secrets.token_hex(NONCE_BYTES)))
            if entry is None:
                return False
            state, news = frontier.add(failure.host, (entry,))
            if not news and not (failure.reason == OUTPUTS_LOST and state.is_known(entry.key)):
                return False
            requeued[failure.reason] += 1
            return True

        def sent(host: str, key: int) -> str:
            return OWNER if (host, key) in _owed(frontier.store) else ""

        now = time.time()
        return Source(self.place.agent, frontier, now, lambda _: "", lambda _: False, blocked_reason, sent, requeue)


def _owed(store: Store) -> set[tuple[str, int]]:
    """Entries that were found for other owners, and were not acknowledged."""
    saved = ledger.load(store)
    parts = saved.parts if saved is not None else ()
    return {(one.host, one.entry.key) for part in parts for one in part.discovered if one.entry is not None}


@contextmanager
def opened(place: FoundDirectory, settings: BaseSettings) -> Iterator[Stopped]:
    """Lock and open a directory. Raises UbiDirectoryError when an agent runs there, or the store cannot be read."""
    with locked(place.path), held(place, settings) as stopped:
        yield stopped


@contextmanager
def held(place: FoundDirectory, settings: BaseSettings) -> Iterator[Stopped]:
    """Open a directory that is locked already. Raises UbiDirectoryError when the store cannot be read."""
    if not (place.path / STORE).is_dir():
        raise UbiDirectoryError(f"There is no store in {place.path}: its agent has kept nothing.")
    try:
        try:
            frontier = _frontier(place.path, settings)
        except OSError as error:
            raise StoreError(error.strerror or str(error)) from error
        try:
            yield Stopped(place, frontier)
        finally:
            frontier.close()
    except StoreError as error:
        raise UbiDirectoryError(f"The store in {place.path} cannot be used: {error}") from error


def _frontier(path: Path, settings: BaseSettings) -> DiskFrontier:
    """Its times are unix seconds."""
    kind = KINDS[setting(settings, "seen")]
    memory, engine = setting(settings, "memory_mb") << 20, setting(settings, "store_engine")
    return open_frontier(path, memory=memory, kind=kind, engine=engine, report=_report)


def _report(sentence: str) -> None:
    print(f"scrapy ubi: {sentence}", file=sys.stderr, flush=True)
