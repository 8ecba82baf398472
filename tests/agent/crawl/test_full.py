"""A disk that is full, or cannot be used: nothing is lost, and a crawl is forgotten whole or not at all."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scrapy_ubi.agent.crawl import store_files
from scrapy_ubi.agent.crawl.disk import AgentDisk
from scrapy_ubi.errors import UbiDirectoryError
from scrapy_ubi.frontier.flush import Flush
from scrapy_ubi.frontier.store import StoreFull
from scrapy_ubi.protocol import snapshot
from tests.agent.crawl.keeper import FACTS, HOSTS, agent_on, choke, full_disk, on_both, opened, raising, whole
from tests.agent.office import run
from tests.support.village import page


@on_both
def test_a_flush_that_found_no_room_is_written_again_as_it_was(disk: Path) -> None:
    async def test() -> None:
        keeper = await opened(disk)
        agent = agent_on(keeper)
        keeper.frontier.add("late.example", [page("late.example")])
        keeper.collect(snapshot.changes(agent), FACTS)
        held = keeper.frontier.unwritten
        choke(keeper, True)
        for _ in range(2):
            with pytest.raises(StoreFull, match="make room, and the crawl goes on"):
                await keeper.write()
            keeper.settle()
            assert keeper.due and keeper.frontier.unwritten is held
        choke(keeper, False)
        keeper.frontier.add("later.example", [page("later.example")])
        await keeper.write()
        keeper.settle()
        assert not keeper.due
        await keeper.close()
        keeper = await opened(disk)
        assert keeper.frontier.find("late.example") is not None
        assert keeper.frontier.find("later.example") is None, "it was in no flush"
        await keeper.close()

    run(test)


def test_a_table_of_known_keys_that_cannot_grow_is_told_again_and_nothing_is_written_twice(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        keeper = await opened(disk)
        agent = agent_on(keeper)
        keeper.frontier.add("late.example", [page("late.example")])
        keeper.collect(snapshot.changes(agent), None)
        writes = count_writes(keeper, monkeypatch)
        with monkeypatch.context() as patched:
            patched.setattr(type(keeper.frontier.seen), "apply", raising(StoreFull("The disk is full.")))
            await keeper.write()
            with pytest.raises(StoreFull):
                keeper.settle()
            assert keeper.due
        await keeper.write()
        keeper.settle()
        assert not keeper.due and writes == [1]
        await keeper.close()

    run(test)


def count_writes(keeper: AgentDisk, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many flushes were written, in a list of one."""
    writes = [0]
    write = Flush.write

    def counted(self: Flush, store: Any) -> None:
        writes[0] += 1
        write(self, store)

    monkeypatch.setattr(Flush, "write", counted)
    return writes


def test_a_full_disk_is_a_refused_start(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        with monkeypatch.context() as patched:
            full_disk(patched)
            with pytest.raises(UbiDirectoryError, match="is full"):
                await opened(disk)
        await whole(disk)

    run(test)


def _in_the_way(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store stays where it is."""
    monkeypatch.setattr(Path, "rename", raising(PermissionError(13, "Permission denied")))


def _no_index(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index of known URLs cannot be made."""
    monkeypatch.setattr("scrapy_ubi.frontier.seen.SeenTable.create", raising(PermissionError(13, "Permission denied")))


def _full(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full_disk(monkeypatch)


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        (_in_the_way, "cannot be used .Permission denied"),
        (_no_index, "cannot be used .Permission denied"),
        (_full, "full"),
    ],
)
def test_a_crawl_that_cannot_be_forgotten_is_a_refused_start(
    disk: Path,
    monkeypatch: pytest.MonkeyPatch,
    trouble: Callable[[Path, pytest.MonkeyPatch], None],
    said: str,
) -> None:
    """Gone on with, it would be a crawl that knows all URLs and fetches none."""

    async def test() -> None:
        others = set(threading.enumerate())
        keeper = await opened(disk)
        with monkeypatch.context() as patched:
            trouble(disk, patched)
            with pytest.raises(UbiDirectoryError, match=said):
                await keeper.erase()
        await keeper.close()
        while any(thread.name.startswith("ubi-disk") for thread in set(threading.enumerate()) - others):
            await asyncio.sleep(0)

    run(test)


class _Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize(
    "moment", ["before the index", "before the store", "before its files", "among its files", "after"]
)
def test_killed_while_it_forgets_it_begins_with_all_or_with_nothing(
    disk: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Else the next start would be refused, as that of a damaged store."""

    def first_file(path: Path, ignore_errors: bool = False) -> None:
        if path.exists():
            if moment == "among its files":
                for file in (*path.glob("CURRENT"), *path.glob("rows.sqlite")):
                    file.unlink()
            raise _Killed

    with monkeypatch.context() as patched:
        if moment == "before the index":
            patched.setattr(Path, "unlink", raising(_Killed()))
        elif moment == "before the store":
            patched.setattr(Path, "rename", raising(_Killed()))
        elif moment != "after":
            patched.setattr(shutil, "rmtree", first_file)
        with contextlib.suppress(_Killed):
            store_files.delete(disk)

    async def test() -> None:
        keeper = await opened(disk)
        assert len(keeper.frontier) == (HOSTS if moment in ("before the index", "before the store") else 0)
        assert keeper.facts == (FACTS if keeper.saved is not None else {})
        await keeper.erase()
        assert len(keeper.frontier) == 0
        await keeper.close()

    run(test)
    assert sorted(file.name for file in disk.iterdir()) == ["seen", "store"]
