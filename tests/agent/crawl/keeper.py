"""An agent's disk for tests: opened, filled with some thousand URLs, damaged, and looked at."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scrapy_ubi.agent.crawl.disk import AgentDisk
from scrapy_ubi.frontier.sqlite_store import RESERVE
from scrapy_ubi.protocol import snapshot
from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.protocol.config import Config
from scrapy_ubi.protocol.host import HostState
from scrapy_ubi.settings import UbiSettings
from tests.support.store_engines import ENGINES, store_class
from tests.support.village import page

SETTINGS = UbiSettings(memory_mb=32)
on_both = pytest.mark.parametrize("disk", ENGINES, indirect=True)


FACTS = {"run": "0badcafe", "finished": False, "settings": {"replicas": 200}, "counters": {"pages": 7}}


HOSTS = 20


PAGES = 300  # of each


def anyone(state: HostState) -> bool:
    return True


async def opened(path: Path, settings: UbiSettings = SETTINGS, now: float = 100.0) -> AgentDisk:
    return await AgentDisk.open(path, settings, lambda: now)


def agent_on(keeper: AgentDisk) -> Agent:
    if keeper.saved is not None:
        return snapshot.restore("a", keeper.saved, Config(), keeper.frontier, lambda: "1" * 8, 100.0)
    return Agent("a", "5" * 8, Config(), keeper.frontier, lambda: "1" * 8, 100.0)


async def flush(keeper: AgentDisk, agent: Agent, facts: dict[str, Any] | None = None) -> None:
    keeper.collect(snapshot.changes(agent), facts)
    await keeper.write()
    keeper.settle()


async def filled(path: Path, killed: Path, settings: UbiSettings = SETTINGS) -> None:
    """A disk with some thousand URLs, some of them done; `killed` is what kill -9 would have left of it: most lies in a
    table file, and some flushes in the log.
    """
    keeper = await opened(path, settings)
    agent = agent_on(keeper)
    for host in range(HOSTS):
        state, _ = keeper.frontier.add(f"h{host}.example", [page(f"h{host}.example", n) for n in range(PAGES)])
        keeper.frontier.add_done(state, [page(f"h{host}.example", n).key for n in range(10)])
    await flush(keeper, agent, FACTS)
    await keeper.close()
    keeper = await opened(path)  # what lay in the log goes into a table file
    agent = agent_on(keeper)
    for host in range(HOSTS):
        keeper.frontier.add(f"h{host}.example", [page(f"h{host}.example", PAGES)])
        await flush(keeper, agent)
    shutil.copytree(path, killed)
    await keeper.close()


async def whole(path: Path) -> None:
    """All that `filled` wrote is found."""
    keeper = await opened(path)
    states = keeper.frontier.states()
    assert sum(state.waiting for state in states) == HOSTS * (PAGES + 1 - 10)
    assert sum(state.done_count for state in states) == HOSTS * 10
    for state in states:
        assert all(state.is_known(page(state.host, n).key) for n in range(PAGES + 1))
        assert [state.is_done(page(state.host, n).key) for n in (0, 9, 10, PAGES)] == [True, True, False, False]
    assert keeper.facts == FACTS
    await keeper.close()


def choke(keeper: AgentDisk, full: bool) -> None:
    """Let the disk of a keeper be full, or have room."""
    keeper.frontier.store._reserve = 1 << 60 if full else RESERVE  # type: ignore[attr-defined]


def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every store that is opened find a full disk, whichever engine it is of."""
    for engine in ENGINES:
        monkeypatch.setattr(store_class(engine).__init__, "__defaults__", (64 << 20, 1 << 60))


def raising(error: BaseException) -> Callable[..., None]:
    """A function that raises this error whatever it is called with."""

    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


def set_aside(path: Path) -> Path:
    """Where the damaged files are now."""
    (aside,) = path.glob("damaged-*")
    return aside
