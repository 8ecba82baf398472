"""RocksDB's own accidents: a disk that is full while it sorts, files that are damaged or missing, too many files."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scrapy_ubi.frontier import rocks
from scrapy_ubi.frontier.rocks import MIB, RocksStore
from scrapy_ubi.frontier.store import StoreDamaged, StoreError, StoreFull
from tests.frontier.stored_rows import files_no_larger_than, numbers, write


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[[], RocksStore]]:
    made: list[RocksStore] = []

    def make() -> RocksStore:
        made.append(RocksStore(tmp_path / "store", memory=rocks.LEAST_MEMORY))
        return made[-1]

    yield make
    for store in made:
        store.close()


# -- a full disk


def test_a_disk_without_room_is_told_before_anything_is_opened(
    opened: Callable[[], RocksStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rocks, "RESERVE", 1 << 60)
    monkeypatch.setattr(RocksStore.__init__, "__defaults__", (64 * MIB, 1 << 60))
    with pytest.raises(StoreFull):
        opened()


def test_a_disk_that_is_full_while_rocksdb_sorts_is_a_pause_too(
    opened: Callable[[], RocksStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log has room, the table that a memtable becomes has not."""
    store = opened()
    written, full = 0, False
    with files_no_larger_than(3 * MIB):
        while not full and written < 200_000:
            try:
                write(store, written, 1000)
                written += 1000
            except StoreFull:
                full = True
    assert full
    write(store, written, 1000)
    assert numbers(store) == [*range(written + 1000)]


# -- options


def test_a_store_opened_again_has_the_cache_it_is_given(tmp_path: Path) -> None:
    caches = []
    for _ in range(2):
        store = RocksStore(tmp_path / "store", memory=64 * MIB)
        caches.append(store._handle().property_int_value("rocksdb.block-cache-capacity"))
        write(store, 0, 10)
        store.close()
    assert caches == [32 * MIB, 32 * MIB]


# -- damage


@pytest.fixture
def filled(opened: Callable[[], RocksStore]) -> Path:
    """The directory of a closed store with some tables."""
    store = opened()
    for number in range(0, 60_000, 5000):
        write(store, number, 5000)
    store.close()
    return store.path


def newest(path: Path, pattern: str) -> Path:
    return max(path.glob(pattern), key=lambda file: file.stat().st_size)


def flip(file: Path) -> None:
    """64 bytes in the middle are others."""
    with open(file, "r+b") as stream:
        stream.seek(file.stat().st_size // 2)
        some = stream.read(64)
        stream.seek(-len(some), os.SEEK_CUR)
        stream.write(bytes(byte ^ 0xFF for byte in some))


def cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def read_all(opened: Callable[[], RocksStore]) -> None:
    numbers(opened())


@pytest.mark.parametrize("pattern", ["*.sst", "MANIFEST-*", "CURRENT"])
def test_a_damaged_file_is_named(filled: Path, opened: Callable[[], RocksStore], pattern: str) -> None:
    file = newest(filled, pattern)
    flip(file)
    with pytest.raises(StoreDamaged) as caught:
        read_all(opened)
    assert caught.value.file == str(file)
    assert str(file) in str(caught.value)
    assert "put back a copy" in str(caught.value)


@pytest.mark.parametrize("harm", [cut, Path.unlink], ids=["cut", "removed"])
@pytest.mark.parametrize("pattern", ["*.sst"])
def test_a_file_that_is_cut_or_missing_is_named(
    filled: Path, opened: Callable[[], RocksStore], pattern: str, harm: Callable[[Path], None]
) -> None:
    file = newest(filled, pattern)
    harm(file)
    with pytest.raises(StoreDamaged) as caught:
        read_all(opened)
    assert caught.value.file == str(file)


@pytest.mark.parametrize("pattern", ["MANIFEST-*", "CURRENT"])
def test_without_its_table_of_contents_a_store_is_damaged_and_not_empty(
    filled: Path, opened: Callable[[], RocksStore], pattern: str
) -> None:
    newest(filled, pattern).unlink()
    with pytest.raises(StoreDamaged):
        read_all(opened)


# -- files, processes


def files_below(path: Path) -> int:
    """How many files there this process has open."""
    return sum(
        os.path.exists(link) and os.readlink(link).startswith(str(path))
        for link in (f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd"))
    )


def test_few_files_are_open_however_many_there_are(
    opened: Callable[[], RocksStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rocks, "TABLE_FILE", 1 << 14)
    store = opened()
    for number in range(0, 60_000, 2000):
        write(store, number, 2000)
    database = store._db
    assert database is not None
    database.compact_range(None, None)
    store.close()
    store = opened()
    assert len(numbers(store)) == 60_000
    assert len([*store.path.glob("*.sst")]) > 64
    assert files_below(store.path) < 50


@pytest.mark.parametrize("text", ["IO error: Permission denied (os error 13)", "IO error: Read-only file system: x"])
def test_a_directory_that_may_not_be_written_is_said_with_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    def denied(*_: object, **__: object) -> None:
        raise Exception(text)

    monkeypatch.setattr(rocks, "Rdict", denied)
    with pytest.raises(StoreError, match="set UBI_DIR to a directory where it may"):
        RocksStore(tmp_path / "store")


def test_a_path_that_rocksdb_cannot_take_is_said_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no UTF-8 text: set UBI_DIR to one that is, or start this with PYTHONUTF8=1"):
        RocksStore(tmp_path / "\udcc3")


def test_a_process_that_was_forked_by_one_that_had_a_store_is_refused(tmp_path: Path) -> None:
    """RocksDB's threads are not forked: to close a store would hang."""
    script = (
        "import os, sys; from pathlib import Path; from scrapy_ubi.frontier.rocks import RocksStore\n"
        "RocksStore(Path(sys.argv[1]) / 'parent').close()\n"
        "if child := os.fork(): sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "RocksStore(Path(sys.argv[1]) / 'child')\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False, timeout=60
    )
    assert ended.returncode == 1
    assert "StoreError: This process was forked by one that has crawled before" in ended.stderr
