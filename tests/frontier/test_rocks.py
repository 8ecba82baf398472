"""RocksDB's own accidents: a disk that is full while it sorts, files that are damaged or missing, too many files."""

from __future__ import annotations

import os
import random
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scrapy_ubi.frontier.store import StoreDamaged, StoreError, StoreFull
from tests.frontier.stored_rows import files_no_larger_than, numbers, opening, write

pytest.importorskip("rocksdict", exc_type=ImportError)

from scrapy_ubi.frontier import rocks
from scrapy_ubi.frontier.rocks import BLOCK, ENDLESS, FULL, LEAST_MEMORY, MIB, RocksStore, mend_logs

HEADER = struct.Struct("<IHB")


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[[], RocksStore]]:
    yield from opening(lambda: RocksStore(tmp_path / "store", memory=rocks.LEAST_MEMORY))


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
    """RocksDB's threads are not forked: to close a store would hang. With glibc 2.43 the end of the process does, too,
    so the child ends as those of multiprocessing do."""
    script = (
        "import os, sys, traceback; from pathlib import Path; from scrapy_ubi.frontier.rocks import RocksStore\n"
        "RocksStore(Path(sys.argv[1]) / 'parent').close()\n"
        "if child := os.fork(): sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "try: RocksStore(Path(sys.argv[1]) / 'child')\n"
        "except Exception: traceback.print_exc(), sys.stderr.flush(), os._exit(1)\n"
        "os._exit(0)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False, timeout=60
    )
    assert ended.returncode == 1
    assert "StoreError: This process was forked by one that has crawled before" in ended.stderr


def records(log: bytes) -> Iterator[int]:
    """Where the records of a log begin, one after the other; the blocks' ends here are no shorter than a header."""
    at = 0
    while at + HEADER.size <= len(log):
        _, length, kind = HEADER.unpack_from(log, at)
        if not kind:
            return
        yield at
        at += HEADER.size + length
        if BLOCK - at % BLOCK < HEADER.size:
            at += BLOCK - at % BLOCK


def written(directory: Path, batches: int, size: int) -> Path:
    """A store of so many batches, ended as by kill -9: the rows stand in its log alone."""
    store = RocksStore(directory / "store", memory=LEAST_MEMORY)
    for number in range(batches):
        batch = store.batch()
        batch.put(b"%05d" % number, random.Random(number).randbytes(size))
        store.write(batch)
    copy = directory / "crashed"
    copy.mkdir()
    for path in store.path.iterdir():
        if path.name != "LOCK":
            (copy / path.name).write_bytes(path.read_bytes())
    store.close()
    return copy


def other_kind(log: Path, at: int, kind: int, more: bytes = b"\xff") -> None:
    """Such a kind in the record that begins there; and something else in its data, for it to be no whole record."""
    content = bytearray(log.read_bytes())
    content[at + HEADER.size - 1 : at + HEADER.size + len(more)] = bytes([kind]) + more
    log.write_bytes(content)


def kept(path: Path) -> int:
    """How many of the batches a store has, which are the first ones."""
    store = RocksStore(path, memory=LEAST_MEMORY)
    try:
        count = 0
        while store.get(b"%05d" % count) is not None:
            count += 1
        return count
    finally:
        store.close()


@pytest.mark.parametrize("kind", sorted(ENDLESS))
def test_a_record_of_a_recycled_log_ends_what_is_kept(tmp_path: Path, kind: int) -> None:
    crashed = written(tmp_path, 5, 100)
    (log,) = crashed.glob("*.log")
    other_kind(log, list(records(log.read_bytes()))[3], kind)
    assert kept(crashed) == 3


def test_a_record_of_which_the_kind_alone_is_damaged_is_whole_again(tmp_path: Path) -> None:
    crashed = written(tmp_path, 5, 100)
    (log,) = crashed.glob("*.log")
    other_kind(log, list(records(log.read_bytes()))[3], 5, more=b"")
    assert kept(crashed) == 5


def test_it_is_found_in_any_block(tmp_path: Path) -> None:
    """Rows of 5,000 bytes: blocks begin in the middle of them, with records of their own."""
    crashed = written(tmp_path, 30, 5000)
    (log,) = crashed.glob("*.log")
    starts = list(records(log.read_bytes()))
    assert len(starts) > 30 and starts[-1] > 4 * BLOCK
    other_kind(log, starts[-2], 5)
    assert mend_logs(crashed) == 1
    assert mend_logs(crashed) == 0
    assert 27 <= kept(crashed) < 30


@pytest.mark.parametrize("kind", sorted(ENDLESS))
def test_a_manifest_with_it_is_damaged(tmp_path: Path, kind: int) -> None:
    crashed = written(tmp_path, 3, 100)
    (manifest,) = crashed.glob("MANIFEST-*")
    other_kind(manifest, list(records(manifest.read_bytes()))[1], kind)
    with pytest.raises(StoreDamaged):
        RocksStore(crashed, memory=LEAST_MEMORY)


def test_whole_logs_are_only_read(tmp_path: Path) -> None:
    crashed = written(tmp_path, 30, 5000)
    before = {path: path.read_bytes() for path in crashed.iterdir()}
    assert mend_logs(crashed) == 0
    assert {path: path.read_bytes() for path in crashed.iterdir()} == before


def test_what_is_not_written_yet_ends_a_block_and_data_is_no_header(tmp_path: Path) -> None:
    data = HEADER.pack(0, 0, 5) * 3
    log = tmp_path / "000004.log"
    log.write_bytes(HEADER.pack(1, len(data), FULL) + data + bytes(40) + HEADER.pack(1, 3, 5))
    assert mend_logs(tmp_path) == 0


@pytest.mark.parametrize("size", [0, 1, HEADER.size - 1, BLOCK - 1, BLOCK + 3])
def test_any_bytes_are_passed_over(tmp_path: Path, size: int) -> None:
    seed = random.randrange(2**32)
    print(f"random.Random({seed})")
    log = tmp_path / "000004.log"
    log.write_bytes(random.Random(seed).randbytes(size))
    mend_logs(tmp_path)
    assert mend_logs(tmp_path) == 0
    assert log.stat().st_size == size
