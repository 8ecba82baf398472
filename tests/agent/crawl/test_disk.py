"""The disk of an agent: what is written is found again, and its threads end."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scrapy_ubi.protocol import snapshot
from scrapy_ubi.settings import UbiSettings
from tests.agent.crawl.keeper import FACTS, SETTINGS, agent_on, anyone, flush, opened, whole
from tests.agent.office import HOST, run
from tests.support.village import page


def test_the_disk_does_not_wait_for_what_others_do_in_asyncios_threads(tmp_path: Path) -> None:
    """Names of hosts are looked up there without Twisted's reactor, and a name server that is gone takes a minute."""

    async def main() -> None:
        looked_up, loop = threading.Event(), asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        try:
            busy = loop.run_in_executor(None, looked_up.wait, 30.0)
            keeper = await opened(tmp_path)
            agent = agent_on(keeper)
            keeper.frontier.add(HOST, [page(HOST, 1)])
            await flush(keeper, agent, FACTS)
            await keeper.erase()
            await keeper.close()
            assert not busy.done()
        finally:
            looked_up.set()
        await busy

    run(main)


def test_its_threads_end_when_it_is_closed(tmp_path: Path) -> None:
    """A process may run one crawl after another, and what a crawl was made of may be held for a while."""

    async def main() -> None:
        others = set(threading.enumerate())
        keeper = await opened(tmp_path)
        await keeper.erase()
        await flush(keeper, agent_on(keeper), FACTS)
        await keeper.close()
        while any(thread.name.startswith("ubi-disk") for thread in set(threading.enumerate()) - others):
            await asyncio.sleep(0)
        await keeper.close()

    run(main)


# -- what is written is found again


def test_facts_group_and_hosts_are_found_again(disk: Path) -> None:
    async def test() -> None:
        await whole(disk)
        keeper = await opened(disk)
        assert keeper.saved is not None
        assert keeper.saved.group.store == "5" * 8
        await keeper.close()

    run(test)


def test_an_empty_directory_is_a_beginning(tmp_path: Path) -> None:
    async def test() -> None:
        keeper = await opened(tmp_path / "new")
        assert (keeper.saved, keeper.facts, len(keeper.frontier)) == (None, {}, 0)
        await keeper.close()

    run(test)


def test_where_nothing_is_new_nothing_is_written(disk: Path) -> None:
    async def test() -> None:
        keeper = await opened(disk)
        agent = agent_on(keeper)
        await flush(keeper, agent)
        keeper.collect(snapshot.changes(agent), None)
        assert not keeper.due
        keeper.collect(snapshot.changes(agent), FACTS)
        assert keeper.due
        await keeper.close()

    run(test)


def test_what_was_collected_and_not_written_is_lost_with_the_process(disk: Path) -> None:
    async def test() -> None:
        keeper = await opened(disk)
        agent = agent_on(keeper)
        keeper.frontier.add("late.example", [page("late.example")])
        keeper.collect(snapshot.changes(agent), {**FACTS, "finished": True})
        await keeper.close()
        await whole(disk)

    run(test)


def test_to_forget_is_to_begin_with_nothing(disk: Path) -> None:
    async def test() -> None:
        keeper = await opened(disk)
        await keeper.erase()
        assert (keeper.saved, keeper.facts, len(keeper.frontier)) == (None, {}, 0)
        agent = agent_on(keeper)
        keeper.frontier.add(HOST, [page(HOST)])
        await flush(keeper, agent, FACTS)
        await keeper.close()
        keeper = await opened(disk)
        assert (len(keeper.frontier), keeper.facts) == (1, FACTS)
        await keeper.close()

    run(test)


def test_what_was_collected_before_it_is_forgotten_is_not_of_the_crawl_that_begins(disk: Path) -> None:
    async def test() -> None:
        keeper = await opened(disk)
        agent = agent_on(keeper)
        await flush(keeper, agent, FACTS)
        keeper.frontier.add("late.example", [page("late.example")])
        keeper.collect(snapshot.changes(agent), FACTS)
        await keeper.erase()
        assert not keeper.due
        await keeper.write()
        keeper.settle()
        await flush(keeper, agent)  # who it is was in the store that is gone
        await keeper.close()
        keeper = await opened(disk)
        assert (len(keeper.frontier), keeper.facts) == (0, {})
        assert keeper.saved is not None and keeper.saved.group.store == agent.outbox.store
        await keeper.close()

    run(test)


def test_one_read_is_under_way_at_once_and_each_is_told_of(disk: Path) -> None:
    async def test() -> None:
        keeper = await opened(disk)
        frontier, reads, told = keeper.frontier, [0], [0]
        read = frontier.read

        def counted(scans: Any) -> Any:
            reads[0] += 1
            return read(scans)

        def arrived() -> None:
            told[0] += 1

        frontier.read = counted  # type: ignore[method-assign]
        while frontier.next_read() is not None:
            before = told[0]
            for _ in range(2):
                keeper.read_ahead(100.0, anyone, arrived)
            while told[0] == before:
                await asyncio.sleep(0)
            while (handed := frontier.pop(100.0, anyone)) is not None:
                state, entry = handed
                frontier.finish(state, entry.key)
                frontier.free(state, 100.0)
        await keeper.close()
        keeper.read_ahead(100.0, anyone, arrived)
        assert reads == told and told[0] > 1
        assert not any(state.waiting for state in frontier.states())

    run(test)


def test_after_a_restart_every_host_has_its_delay_first(disk: Path) -> None:
    """A page that was fetched a moment before kill -9 is in no flush."""

    async def test() -> None:
        keeper = await opened(disk, UbiSettings(memory_mb=32, host_delay=5.0))
        assert all(104.0 < state.next_at < 106.0 for state in keeper.frontier.states())
        keeper.frontier.load(100.0, anyone)
        assert keeper.frontier.pop(104.0, anyone) is None
        keeper.frontier.load(107.0, anyone)
        assert keeper.frontier.pop(107.0, anyone) is not None
        await keeper.close()

    run(test)


def test_a_host_does_not_wait_for_a_clock_that_was_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = replace(SETTINGS, host_delay=5.0)
    ahead = time.time() + 30 * 86_400.0

    async def go() -> None:
        with monkeypatch.context() as wrong:
            wrong.setattr(time, "time", lambda: ahead)
            keeper = await opened(tmp_path, settings)
            state, _ = keeper.frontier.add(HOST, [page(HOST, n) for n in range(2)])
            handed = keeper.frontier.pop(100.0, anyone)
            assert handed is not None
            keeper.frontier.finish(state, handed[1].key)
            keeper.frontier.free(state, 100.0)
            await flush(keeper, agent_on(keeper))
            await keeper.close()
        keeper = await opened(tmp_path, settings)
        keeper.frontier.load(105.0, anyone)
        assert keeper.frontier.pop(104.9, anyone) is None
        assert keeper.frontier.pop(105.1, anyone) is not None
        await keeper.close()

    asyncio.run(go())
