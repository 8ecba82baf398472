"""The frontier of a stopped agent, opened where it lies, and asked what living agents are asked.

A store that cannot be read is an error that names the file; nothing is moved or made anew here.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from scrapy_ubi.commands.directories import STORE, Place, locked
from scrapy_ubi.errors import UbiDirectoryError
from scrapy_ubi.frontier import ledger
from scrapy_ubi.frontier.disk import DiskFrontier
from scrapy_ubi.frontier.opening import open_frontier
from scrapy_ubi.frontier.store import Store, StoreError
from scrapy_ubi.monitor.answers import Answer
from scrapy_ubi.node.living import NONCE_BYTES
from scrapy_ubi.node.questions import Question, Source, answer
from scrapy_ubi.protocol.host import Failure
from scrapy_ubi.requestkeys import RequestKeys

OWNER = "its owner"  # to whom what is owed goes: which agent that is, the next start decides


class Stock(NamedTuple):
    """What lies in a directory."""

    done: int
    waiting: int


def stock(path: Path) -> Stock | str:
    """What lies in a locked directory, or why that cannot be said."""
    try:
        with _opened(path) as frontier:
            states = frontier.states() if frontier is not None else []
            return Stock(sum(state.done_count for state in states), sum(state.waiting for state in states))
    except UbiDirectoryError as error:
        return str(error)


def ask(place: Place, question: Question, keys: RequestKeys) -> Answer:
    """The answer of what lies in a directory; failed requests are taken in again durably.

    Raises UbiDirectoryError when an agent runs there, or the store cannot be read.
    """
    with locked(place.path), _opened(place.path) as frontier:
        if frontier is None:
            raise UbiDirectoryError(f"There is no frontier in {place.path}: its agent has kept none.")
        source = _source(place, frontier, keys)
        made = answer(question, source)
        if frontier.changed:
            _save(frontier)
        return made


@contextmanager
def _opened(path: Path) -> Iterator[DiskFrontier | None]:
    """The frontier in a locked directory; None when there is none."""
    if not (path / STORE).is_dir():
        yield None
        return
    try:
        frontier = open_frontier(path)
        try:
            yield frontier
        finally:
            frontier.close()
    except StoreError as error:
        raise UbiDirectoryError(f"The store in {path} cannot be used: {error}") from error


def _source(place: Place, frontier: DiskFrontier, keys: RequestKeys) -> Source:
    def requeue(failure: Failure) -> bool:
        entry = keys.again(failure.entry, secrets.token_hex(NONCE_BYTES))
        return entry is not None and bool(frontier.add(failure.host, (entry,))[1])

    def sent(host: str, key: int) -> str:
        return OWNER if (host, key) in _owed(frontier.store) else ""

    return Source(place.agent, frontier, time.time(), lambda _: "", lambda _: False, sent, requeue)


def _owed(store: Store) -> set[tuple[str, int]]:
    """Entries that were found for other owners, and were not acknowledged."""
    saved = ledger.load(store)
    parts = saved.parts if saved is not None else ()
    return {(one.host, one.entry.key) for part in parts for one in part.discovered if one.entry is not None}


def _save(frontier: DiskFrontier) -> None:
    """What was taken in again is work: the crawl is not finished, if it was."""
    facts = ledger.load_crawl(frontier.store)
    extra = [ledger.crawl_row({**facts, "finished": False})] if facts.get("finished") else []
    frontier.flush(extra)
