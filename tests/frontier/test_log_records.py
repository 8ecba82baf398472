"""Damage in RocksDB's logs that it would read again without end: a store whose log has it opens, or is refused.

Each of these tests would hang, with the GIL held, where `mend_logs` misses a record.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from scrapy_ubi.frontier.log_records import BLOCK, ENDLESS, FULL, mend_logs
from scrapy_ubi.frontier.rocks import LEAST_MEMORY, RocksStore
from scrapy_ubi.frontier.store import StoreDamaged

HEADER = struct.Struct("<IHB")


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
