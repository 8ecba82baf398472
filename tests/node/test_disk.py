"""The keeper: what is written and found again, full disks, damaged files; and that no mail overtakes the disk."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scrapy_ubi.errors import UbiDirectoryError
from scrapy_ubi.frontier.flush import Flush
from scrapy_ubi.frontier.rocks import RESERVE
from scrapy_ubi.frontier.seen import SeenDamaged
from scrapy_ubi.frontier.store import StoreDamaged, StoreError, StoreFull
from scrapy_ubi.node import Node, NodeEvents, Start, store_files
from scrapy_ubi.node.disk import AgentDisk
from scrapy_ubi.node.mail.outage import BETTER
from scrapy_ubi.protocol import snapshot
from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.protocol.config import Config
from scrapy_ubi.protocol.host import HostState
from scrapy_ubi.requests.identity import RequestKeys
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.transport.in_process import MemoryHub, MemoryTransport
from tests.node.mail.test_exchange import HOST, Office, found, letter, run
from tests.support.views import ordered
from tests.support.village import page

SETTINGS = UbiSettings(memory_mb=32)
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
            await keeper.forget()
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
        await keeper.forget()
        await flush(keeper, agent_on(keeper), FACTS)
        await keeper.close()
        while any(thread.name.startswith("ubi-disk") for thread in set(threading.enumerate()) - others):
            await asyncio.sleep(0)
        await keeper.close()

    run(main)


async def filled(path: Path, killed: Path) -> None:
    """A disk with some thousand URLs, some of them done; `killed` is what kill -9 would have left of it: most lies in a
    table file, and some flushes in the log.
    """
    keeper = await opened(path)
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


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("disk")
    run(lambda: filled(place / "whole", place / "killed"))
    return place / "killed"


@pytest.fixture
def disk(sample: Path, tmp_path: Path) -> Path:
    """A directory of its own that holds what `filled` writes."""
    return Path(shutil.copytree(sample, tmp_path / "agent"))


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
        await keeper.forget()
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
        await keeper.forget()
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


# -- a disk that is full


def choke(keeper: AgentDisk, full: bool) -> None:
    """Let the disk of a keeper be full, or have room."""
    keeper.frontier.store._reserve = 1 << 60 if full else RESERVE  # type: ignore[attr-defined]


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
            patched.setattr(type(keeper.frontier.seen), "apply", _raise(StoreFull("The disk is full.")))
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


def _raise(error: BaseException) -> Callable[..., None]:
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


def test_a_full_disk_is_a_refused_start(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        with monkeypatch.context() as patched:
            patched.setattr("scrapy_ubi.frontier.rocks.RESERVE", 1 << 60)
            patched.setattr("scrapy_ubi.frontier.rocks.RocksStore.__init__.__defaults__", (64 << 20, 1 << 60))
            with pytest.raises(UbiDirectoryError, match="is full"):
                await opened(disk)
        await whole(disk)

    run(test)


def _in_the_way(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store stays where it is."""
    monkeypatch.setattr(Path, "rename", _raise(PermissionError(13, "Permission denied")))


def _no_index(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index of known URLs cannot be made."""
    monkeypatch.setattr("scrapy_ubi.frontier.seen.SeenTable.create", _raise(PermissionError(13, "Permission denied")))


def _full(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapy_ubi.frontier.rocks.RocksStore.__init__.__defaults__", (64 << 20, 1 << 60))


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
                await keeper.forget()
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
                (path / "CURRENT").unlink()
            raise _Killed

    with monkeypatch.context() as patched:
        if moment == "before the index":
            patched.setattr(Path, "unlink", _raise(_Killed()))
        elif moment == "before the store":
            patched.setattr(Path, "rename", _raise(_Killed()))
        elif moment != "after":
            patched.setattr(shutil, "rmtree", first_file)
        with contextlib.suppress(_Killed):
            store_files.delete(disk)

    async def test() -> None:
        keeper = await opened(disk)
        assert len(keeper.frontier) == (HOSTS if moment in ("before the index", "before the store") else 0)
        assert keeper.facts == (FACTS if keeper.saved is not None else {})
        await keeper.forget()
        assert len(keeper.frontier) == 0
        await keeper.close()

    run(test)
    assert sorted(file.name for file in disk.iterdir()) == ["seen", "store"]


# -- files that are damaged


def tables(path: Path) -> list[Path]:
    """The table files, the largest first."""
    return sorted((path / "store").glob("*.sst"), key=lambda file: -file.stat().st_size)


def log(path: Path) -> Path:
    return max((path / "store").glob("*.log"))


def cut(file: Path, part: float = 0.5) -> None:
    with file.open("r+b") as stream:
        stream.truncate(int(file.stat().st_size * part))


def flip(file: Path, every: int = 64) -> None:
    """One bit of every so many bytes is another one."""
    content = bytearray(file.read_bytes())
    for at in range(0, len(content), every):
        content[at] ^= 1
    file.write_bytes(content)


DAMAGES: dict[str, Callable[[Path], Path]] = {
    "a table file with flipped bits": lambda path: _done(flip, tables(path)[0]),
    "a table file cut off": lambda path: _done(cut, tables(path)[0]),
    "a table file missing": lambda path: _done(Path.unlink, tables(path)[0]),
    "the manifest cut off": lambda path: _done(cut, max((path / "store").glob("MANIFEST-*"))),
    "the manifest missing": lambda path: _done(Path.unlink, max((path / "store").glob("MANIFEST-*"))),
    "CURRENT with flipped bits": lambda path: _done(flip, path / "store" / "CURRENT"),
    "all of the store missing": lambda path: _done(shutil.rmtree, path / "store"),
}


def _done(damage: Callable[[Path], object], file: Path) -> Path:
    damage(file)
    return file


def set_aside(path: Path) -> Path:
    """Where the damaged files are now."""
    (aside,) = path.glob("damaged-*")
    return aside


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_store_is_named_set_aside_and_never_an_empty_crawl(disk: Path, damage: str) -> None:
    async def test() -> None:
        file = DAMAGES[damage](disk)
        with pytest.raises(UbiDirectoryError) as caught:
            await opened(disk)
        said = str(caught.value)
        aside = set_aside(disk)
        assert str(aside) in said and "\n" not in said
        assert file.name in said or "store" in said
        assert (aside / "store").is_dir() and (aside / "seen").is_file()
        assert not (disk / "seen").exists() and not (disk / "store").exists()
        keeper = await opened(disk)  # the next start goes on without it
        assert (keeper.saved, len(keeper.frontier)) == (None, 0)
        await keeper.close()

    run(test)


TEARS: dict[str, Callable[[Path], Path]] = {
    "the log cut off": lambda path: _done(cut, log(path)),
    "the log with flipped bits": lambda path: _done(flip, log(path)),
    "the log missing": lambda path: _done(Path.unlink, log(path)),
}


@pytest.mark.parametrize("tear", TEARS)
def test_a_torn_log_loses_what_follows_the_tear_and_the_disk_has_lanes_of_its_own_then(
    disk: Path, tear: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        TEARS[tear](disk)
        caplog.set_level(logging.WARNING, "scrapy_ubi")
        keeper = await opened(disk)
        assert any("has lost what was written last" in record.message for record in caplog.records)
        assert keeper.saved is not None and keeper.saved.torn
        assert (keeper.saved.group.store == "5" * 8, keeper.saved.numbers) == (False, {})
        states = keeper.frontier.states()
        assert sum(state.done_count for state in states) == HOSTS * 10, "what lay in table files"
        kept = [state.is_known(page(state.host, PAGES).key) for state in states]
        assert kept == sorted(kept, reverse=True) and not kept[-1], "the flushes before the tear, and none after it"
        agent, store = agent_on(keeper), keeper.saved.group.store
        await flush(keeper, agent, FACTS)
        await keeper.close()
        caplog.clear()
        keeper = await opened(disk)
        assert not caplog.records
        assert keeper.saved is not None and not keeper.saved.torn and keeper.saved.group.store == store
        await keeper.close()

    run(test)


@pytest.mark.parametrize("damage", ["missing", "with flipped bits"])
def test_a_disk_that_cannot_tell_whether_its_log_is_torn_has_lanes_of_its_own(disk: Path, damage: str) -> None:
    async def test() -> None:
        SEEN_DAMAGES[damage](disk / "seen")
        keeper = await opened(disk)
        assert keeper.saved is not None
        assert keeper.saved.group.store != "5" * 8 and not keeper.saved.torn
        await keeper.close()

    run(test)


def test_the_table_says_what_is_durable_before_mail_leaves(disk: Path) -> None:
    async def test() -> None:
        keeper = await opened(disk)
        before = keeper.frontier.seen.flush
        keeper.frontier.add("late.example", [page("late.example")])
        keeper.collect(snapshot.changes(agent_on(keeper)), FACTS)
        await keeper.write()
        assert (keeper.frontier.seen.written, keeper.frontier.seen.flush) == (before + 1, before)
        await keeper.close()

    run(test)


SEEN_DAMAGES: dict[str, Callable[[Path], object]] = {
    "missing": Path.unlink,
    "cut off": cut,
    "cut off to nothing": lambda file: cut(file, 0),
    "with flipped bits": flip,
    "with one flipped bit": lambda file: flip(file, file.stat().st_size - 1),
    "somebody else's": lambda file: file.write_bytes(b"something" * 100_000),
}


@pytest.mark.parametrize("damage", SEEN_DAMAGES)
def test_a_damaged_table_of_known_keys_is_made_anew_and_nothing_is_lost(
    disk: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        SEEN_DAMAGES[damage](disk / "seen")
        caplog.set_level(logging.WARNING, "scrapy_ubi")
        await whole(disk)
        assert any(str(disk / "seen") in record.message and "again" in record.message for record in caplog.records)
        caplog.clear()
        await whole(disk)
        assert not caplog.records, "it is whole now"

    run(test)


def test_a_table_of_known_keys_of_older_days_is_told_what_it_missed(disk: Path) -> None:
    async def test() -> None:
        old = (disk / "seen").read_bytes()
        for number in range(12):
            keeper = await opened(disk)
            keeper.frontier.add("late.example", [page("late.example", number)])
            await flush(keeper, agent_on(keeper), FACTS)
            await keeper.close()
        (disk / "seen").write_bytes(old)
        keeper = await opened(disk)
        state = keeper.frontier.find("late.example")
        assert state is not None and all(state.is_known(page("late.example", n).key) for n in range(12))
        await keeper.close()

    run(test)


def test_damage_that_is_found_in_mid_crawl_stops_the_agent_and_is_set_aside(
    disk: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        keeper = await opened(disk)
        told: list[StoreError] = []
        keeper.trouble = told.append
        damage = StoreDamaged("000009.sst", "block checksum mismatch")
        monkeypatch.setattr(keeper.frontier.store, "scan", _raise(damage))
        keeper.read_ahead(100.0, anyone, lambda: None)
        while not told:
            await asyncio.sleep(0)
        assert told == [damage]
        keeper.condemn(damage)
        await keeper.close()
        aside = set_aside(disk)
        said = caplog.records[-1].message
        assert "000009.sst is damaged (block checksum mismatch)" in said and str(aside) in said
        assert not (disk / "store").exists()

    run(test)


@pytest.mark.parametrize(("gone", "said"), [("", "nothing is left of the agent's store"), ("store", "was moved to")])
def test_a_directory_that_goes_away_in_mid_crawl_is_said_and_the_agent_closes(
    disk: Path, gone: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        keeper = await opened(disk)
        keeper.frontier.add("late.example", [page("late.example")])
        shutil.rmtree(disk / gone)
        keeper.collect(snapshot.changes(agent_on(keeper)), None)
        with pytest.raises(StoreDamaged) as caught:
            await keeper.write()
        keeper.condemn(caught.value)
        await keeper.close()
        assert said in caplog.records[-1].message

    run(test)


def test_a_damaged_store_that_cannot_be_moved_is_said(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        DAMAGES["CURRENT with flipped bits"](disk)
        monkeypatch.setattr(Path, "mkdir", _unless_there(Path.mkdir, OSError(30, "Read-only file system")))
        with pytest.raises(UbiDirectoryError, match=r"cannot be moved to .*damaged-.* \(Read-only file system\): see"):
            await opened(disk)
        assert (disk / "store").is_dir() and (disk / "seen").is_file()

    run(test)


def _unless_there(mkdir: Callable[..., None], error: Exception) -> Callable[..., None]:
    def refuse(path: Path, *arguments: Any, **named: Any) -> None:
        if not path.exists():
            raise error
        mkdir(path, *arguments, **named)

    return refuse


@pytest.mark.parametrize("error", [SeenDamaged(Path("seen"), "was replaced"), OSError(5, "Input/output error")])
def test_a_table_of_known_keys_that_goes_bad_is_trouble_and_loses_nothing(
    disk: Path, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        keeper = await opened(disk)
        agent = agent_on(keeper)
        keeper.frontier.add("late.example", [page("late.example")])
        keeper.collect(snapshot.changes(agent), None)
        await keeper.write()
        with monkeypatch.context() as patched:
            patched.setattr(type(keeper.frontier.seen), "apply", _raise(error))
            with pytest.raises(StoreError, match="index of known URLs"):
                keeper.settle()
        await keeper.close()
        keeper = await opened(disk)
        state = keeper.frontier.find("late.example")
        assert state is not None and state.is_known(page("late.example").key)
        await keeper.close()

    run(test)


# -- the post with a disk


class Gate:
    """Holds the writes of a keeper until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self._open = threading.Event(), threading.Event()
        write = Flush.write

        def held(flush: Flush, store: Any) -> None:
            self.reached.set()
            assert self._open.wait(20)
            write(flush, store)

        monkeypatch.setattr(Flush, "write", held)

    def open(self) -> None:
        self._open.set()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "agent"


def test_nothing_leaves_before_it_is_written(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        office = Office(disk=await opened(place))
        office.join("b")
        host = ordered("b", "a")
        await office.trips(2)
        office.put(letter(found("http://h.example/1")))
        await office.trips(1)
        office.agent.discover(host, page(host))
        gate = Gate(monkeypatch)
        office.now += 5
        office.agent.tick(office.now)
        office.post.send(office.now, lambda: None)
        while not gate.reached.is_set():
            await asyncio.sleep(0)
        for _ in range(20):
            await asyncio.sleep(0)
        assert office.links_to("b") == [] and office.answer() is None
        assert len(office.shelf.inbox["a"]) == 1
        gate.open()
        await office.arrival()
        assert len(office.links_to("b")) == 1 and office.answer() == {"acked": [1]}
        assert len(office.shelf.inbox["a"]) == 0
        await office.disk.close()
        again = await opened(place)
        assert again.saved is not None and [one.host for one in again.saved.discovered] == [host]
        assert again.frontier.find(HOST) is not None
        await again.close()

    run(test)


@pytest.mark.parametrize("redis", ["well", "full", "away"])
def test_on_a_full_disk_letters_wait_where_they_are_whatever_redis_does(
    place: Path, redis: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        caplog.set_level(logging.INFO, "scrapy_ubi")
        keeper = await opened(place)
        office = Office(disk=keeper)
        office.join("b")
        host = ordered("b", "a")
        await office.trips(2)
        office.put(letter(found("http://h.example/1")))
        await office.trips(1)
        office.agent.discover(host, page(host))
        choke(keeper, True)
        office.hub.full, office.hub.down = redis == "full", redis == "away"
        office.put(letter(found("http://h.example/1", "http://h.example/2"), seq="2"))
        await office.trips(3)
        assert office.post.disk_full
        assert keeper.frontier.unwritten is not None
        assert len(office.shelf.inbox["a"]) == 2, "what is merged is not durable"
        assert office.links_to("b") == [] and office.answer() is None
        choke(keeper, False)
        office.now += 5
        await office.trip()  # the flush from before, in which the second letter is not
        assert len(office.shelf.inbox["a"]) >= 1
        office.hub.full = office.hub.down = False
        await office.trips(4)
        assert not office.post.disk_full
        assert len(office.shelf.inbox["a"]) == 0, "all of them are deleted in the end"
        assert len(office.links_to("b")) == 1 and office.answer() == {"acked": [1, 2]}
        said = [record.message for record in caplog.records]
        assert any("is full" in one and "Nothing is fetched until then" in one for one in said)
        assert sum(one in BETTER.values() for one in said) == 1
        await keeper.close()
        again = await opened(place)
        state = again.frontier.find(HOST)
        assert state is not None and state.waiting == 2
        await again.close()

    run(test)


def test_no_letter_is_deleted_before_its_merge_is_durable(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever fails in between, in any order: what is in the store and what is in the inbox hold all of it."""

    async def test() -> None:
        keeper = await opened(place)
        office = Office(disk=keeper)
        await office.trips(2)
        troubles = [(full, redis) for full in (True, False) for redis in ("well", "full", "away")]
        for number, (full, redis) in enumerate([*troubles, *reversed(troubles), *troubles[::2]], 1):
            entry = [f"{number:016x}", f"http://h.example/{number}", 0]
            office.put(letter([{"host": HOST, "discovered": [entry]}], seq=str(number)))
            choke(keeper, full)
            office.hub.full, office.hub.down = redis == "full", redis == "away"
            await office.trips(2)
            written = {row[1] for row in keeper.frontier.store.scan(b"q", b"r", 1000)}
            for sent in range(1, number + 1):
                in_store = any(b"/%d" % sent in value for value in written)
                in_box = any(b'h.example/%d"' % sent in one[b"body"] for one in office.shelf.inbox["a"].values())
                assert in_store or in_box, (number, full, redis, sent)
        choke(keeper, False)
        office.hub.full = office.hub.down = False
        await office.trips(4)
        assert len(office.shelf.inbox["a"]) == 0
        await keeper.close()

    run(test)


def test_a_store_that_is_damaged_is_told_of(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        keeper = await opened(place)
        office = Office(disk=keeper)
        told: list[StoreError] = []
        keeper.trouble = told.append
        await office.trips(2)
        office.put(letter(found("http://h.example/1")))
        await office.trips(1)
        damage = StoreDamaged("000009.sst", "block checksum mismatch")
        monkeypatch.setattr(Flush, "write", _raise(damage))
        await office.trips(1)
        assert told == [damage]
        assert len(office.shelf.inbox["a"]) == 1 and office.answer() is None
        await keeper.close()

    run(test)


# -- the node with a disk


def node_on(keeper: AgentDisk, said: list[str]) -> Node:
    transport = MemoryTransport(MemoryHub(), "a", SETTINGS.crawl, SETTINGS.max_letter_bytes)
    told = NodeEvents()
    told.fatal = said.append  # type: ignore[method-assign]
    return Node(
        SETTINGS, transport, Start("a", "s"), lambda text: None, RequestKeys(SETTINGS), told, lambda: 100.0, keeper
    )


def test_the_disk_is_told_at_once_which_run_it_belongs_to(place: Path) -> None:
    """Of two agents that begin a crawl together, one has its name for the run replaced by the other's."""

    async def test() -> None:
        keeper = await opened(place)
        node = node_on(keeper, [])
        first, again, other = node._crawl.facts("one"), node._crawl.facts("one"), node._crawl.facts("two")
        assert first is not None and first["run"] == "one" and first["finished"] is False
        assert again is None, "the counters are not written with every flush"
        assert other is not None and other["run"] == "two"
        await keeper.close()

    run(test)


def test_a_node_whose_disk_is_damaged_stops_with_one_sentence_and_sets_it_aside(disk: Path) -> None:
    async def test() -> None:
        keeper = await opened(disk)
        said: list[str] = []
        node_on(keeper, said)
        for _ in range(2):
            keeper.trouble(StoreDamaged("000009.sst", "block checksum mismatch"))
        assert said == ["000009.sst is damaged (block checksum mismatch). The agent stops."]
        await keeper.close()
        assert set_aside(disk).is_dir()

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
