"""Damaged files: said, set aside, or made anew; never an empty crawl in their place."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scrapy_ubi.errors import UbiDirectoryError
from scrapy_ubi.frontier.seen import SeenDamaged
from scrapy_ubi.frontier.store import StoreDamaged, StoreError
from scrapy_ubi.protocol import snapshot
from tests.agent.crawl.keeper import (
    FACTS,
    HOSTS,
    PAGES,
    agent_on,
    anyone,
    flush,
    on_both,
    opened,
    raising,
    set_aside,
    whole,
)
from tests.agent.office import run
from tests.support.store_engines import ENGINES
from tests.support.village import page


def tables(path: Path) -> list[Path]:
    """The table files, the largest first."""
    return sorted((path / "store").glob("*.sst"), key=lambda file: -file.stat().st_size)


def log(path: Path) -> Path:
    return max([*(path / "store").glob("*.log"), *(path / "store").glob("*-wal")])


def rows_file(path: Path) -> Path:
    return path / "store" / "rows.sqlite"


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
SQLITE_DAMAGES: dict[str, Callable[[Path], Path]] = {
    "the file with flipped bits": lambda path: _done(flip, rows_file(path)),
    "the file cut off": lambda path: _done(cut, rows_file(path)),
    "the file missing": lambda path: _done(Path.unlink, rows_file(path)),
    "all of the store missing": DAMAGES["all of the store missing"],
}


def _done(damage: Callable[[Path], object], file: Path) -> Path:
    damage(file)
    return file


@pytest.mark.parametrize(
    ("disk", "damage"),
    [(engine, damage) for engine in ENGINES for damage in {"rocksdb": DAMAGES, "sqlite": SQLITE_DAMAGES}[engine]],
    indirect=["disk"],
)
def test_a_damaged_store_is_named_set_aside_and_never_an_empty_crawl(disk: Path, damage: str) -> None:
    async def test() -> None:
        if damage in SQLITE_DAMAGES:  # else what is opened first may still be in its log, where nothing is damaged
            await (await opened(disk)).close()
        file = {**DAMAGES, **SQLITE_DAMAGES}[damage](disk)
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


@on_both
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


@on_both
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
        monkeypatch.setattr(keeper.frontier.store, "scan", raising(damage))
        keeper.read_ahead(100.0, anyone, lambda: None)
        while not told:
            await asyncio.sleep(0)
        assert told == [damage]
        keeper.mark_corrupt(damage)
        await keeper.close()
        aside = set_aside(disk)
        said = caplog.records[-1].message
        assert "000009.sst is damaged (block checksum mismatch)" in said and str(aside) in said
        assert not (disk / "store").exists()

    run(test)


@on_both
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
        keeper.mark_corrupt(caught.value)
        await keeper.close()
        assert said in caplog.records[-1].message

    run(test)


@on_both
def test_a_damaged_store_that_cannot_be_moved_is_said(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        DAMAGES["all of the store missing"](disk)
        (disk / "store").mkdir()
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
            patched.setattr(type(keeper.frontier.seen), "apply", raising(error))
            with pytest.raises(StoreError, match="index of known URLs"):
                keeper.settle()
        await keeper.close()
        keeper = await opened(disk)
        state = keeper.frontier.find("late.example")
        assert state is not None and state.is_known(page("late.example").key)
        await keeper.close()

    run(test)
