"""Accidents of a store on disk that both engines meet in one way: a full disk, a second process, a bad place."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from scrapy_ubi.frontier import sqlite_store
from scrapy_ubi.frontier.disk_room import MIB
from scrapy_ubi.frontier.sqlite_store import LEAST_MEMORY, RESERVE
from scrapy_ubi.frontier.store import StoreError, StoreFull
from tests.frontier.stored_rows import files_no_larger_than, numbers, opening, write
from tests.support.store_engines import ENGINES, store_class

Opened = Callable[[], Any]


@pytest.fixture(params=ENGINES)
def kind(request: pytest.FixtureRequest) -> Any:
    return store_class(request.param)


@pytest.fixture
def opened(kind: Any, tmp_path: Path) -> Iterator[Opened]:
    yield from opening(lambda: kind(tmp_path / "store", memory=LEAST_MEMORY))


def test_nothing_is_written_into_the_reserve(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened()
    write(store, 0, 10)
    disk = os.statvfs(store.path)
    nearly_full = os.statvfs_result((*disk[:4], (RESERVE - 1) // disk.f_frsize, *disk[5:]))
    with monkeypatch.context() as patched:
        patched.setattr(os, "statvfs", lambda path: nearly_full)
        for _ in range(2):
            with pytest.raises(StoreFull, match="make room"):
                write(store, 10, 10)
        assert numbers(store) == [*range(10)]
    write(store, 10, 10)
    assert numbers(store) == [*range(20)]


@pytest.mark.parametrize("log", [64 * MIB, 256 * 1024], ids=["the log cannot grow", "the file cannot grow"])
def test_after_the_disk_was_full_the_same_is_written_again_and_nothing_is_lost(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, log: int
) -> None:
    monkeypatch.setattr(sqlite_store, "LOG", log)
    store = opened()
    written = 0
    with files_no_larger_than(2 * MIB):
        with pytest.raises(StoreFull, match="make room"):
            while True:
                write(store, written, 1000)
                written += 1000
        assert written >= 1000
        with suppress(StoreFull):  # RocksDB begins another log
            write(store, written, 1000)
        assert store.get((0).to_bytes(8, "big")) is not None, "what is there can be read meanwhile"
    write(store, written, 1000)
    assert numbers(store) == [*range(written + 1000)]
    store.close()
    assert numbers(opened()) == [*range(written + 1000)]
    assert not [*store.path.glob("*probe*")]


def test_one_process_a_store(opened: Opened) -> None:
    opened()
    with pytest.raises(StoreError, match=r"another process has it open|cannot be used"):
        opened()


def test_a_closed_store_says_so(opened: Opened) -> None:
    store = opened()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.get(b"a")
    with pytest.raises(StoreError, match="closed"):
        write(store, 0, 1)


@pytest.mark.parametrize("name", ["file", "file/store"])
def test_a_place_where_none_can_be_made_is_said_with_a_remedy(tmp_path: Path, kind: Any, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"cannot be used: .*see that this user may write there, or set UBI_DIR"):
        kind(tmp_path / name)
