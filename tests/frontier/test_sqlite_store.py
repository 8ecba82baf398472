"""SQLite's own accidents: a damaged file, a log that grows, a sync that fails, space that is free again."""

from __future__ import annotations

import os
import random
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scrapy_ubi.frontier import sqlite_store
from scrapy_ubi.frontier.disk_room import MIB
from scrapy_ubi.frontier.sqlite_store import FILE, SqliteStore
from scrapy_ubi.frontier.store import StoreDamaged, StoreError, StoreFull
from tests.frontier.stored_rows import numbers, opening, write

Opened = Callable[[], SqliteStore]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    yield from opening(lambda: SqliteStore(tmp_path / "store", memory=sqlite_store.LEAST_MEMORY))


# -- errors of the disk


class Failing:
    """A connection of which some statements fail as SQLite says it when the disk does."""

    def __init__(self, real: sqlite3.Connection, on: str, name: str) -> None:
        self._real, self._on, self._name = real, on, name

    def execute(self, text: str, *arguments: object) -> object:
        if text.startswith(self._on):
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorname = self._name
            raise error
        return self._real.execute(text, *arguments)


def test_after_a_sync_that_failed_nothing_more_is_written(opened: Opened) -> None:
    """The kernel may have dropped what it was to write: what a later sync says of it is worth nothing."""
    store = opened()
    write(store, 0, 10)
    real = store.writer
    store.writer = Failing(real, "COMMIT", "SQLITE_IOERR_FSYNC")  # type: ignore[assignment]
    for _ in range(2):
        with pytest.raises(StoreError, match="disk I/O error") as caught:
            write(store, 10, 10)
        assert not isinstance(caught.value, StoreFull)
        store.writer = real
    with pytest.raises(StoreError, match="disk I/O error"):
        store.get(b"a")
    store.close()
    assert numbers(opened())[:10] == [*range(10)]


def test_an_error_of_the_disk_is_no_full_disk(opened: Opened) -> None:
    store = opened()
    store.writer = Failing(store.writer, "COMMIT", "SQLITE_IOERR_WRITE")  # type: ignore[assignment]
    with pytest.raises(StoreError, match="disk I/O error") as caught:
        write(store, 0, 10)
    assert not isinstance(caught.value, StoreFull)


# -- damage


@pytest.fixture
def filled(opened: Opened) -> Path:
    """The file of a closed store with some thousand rows."""
    store = opened()
    for number in range(0, 20_000, 5000):
        write(store, number, 5000)
    store.writer.execute("VACUUM").fetchall()  # what is in the file twice is of no use here
    store.close()
    return store.path / FILE


def flip(file: Path, at: int, mask: int = 1) -> None:
    with open(file, "r+b") as stream:
        stream.seek(at)
        byte = stream.read(1)[0]
        stream.seek(at)
        stream.write(bytes([byte ^ mask]))


def test_any_bit_of_a_row_that_is_flipped_is_found_when_it_is_read(filled: Path, opened: Opened) -> None:
    content = filled.read_bytes()
    seed = random.randrange(2**32)
    print(f"random.Random({seed})")
    draw = random.Random(seed)
    for _ in range(20):
        number = draw.randrange(20_000)
        at = content.index(number.to_bytes(8, "big") + random.Random(number).randbytes(100)) + draw.randrange(8, 112)
        flip(filled, at, 1 << draw.randrange(8))
        store = opened()
        with pytest.raises(StoreDamaged, match="put back a copy") as caught:
            numbers(store)
        assert caught.value.file == str(filled)
        with pytest.raises(StoreDamaged, match="checksum"):
            store.get(number.to_bytes(8, "big"))
        store.close()
        filled.write_bytes(content)


@pytest.mark.parametrize("harm", ["begins with something else", "cut", "pages of zeros", "removed"])
def test_a_damaged_file_is_named(filled: Path, opened: Opened, harm: str) -> None:
    size = filled.stat().st_size
    if harm == "begins with something else":
        flip(filled, 3)
    elif harm == "cut":
        os.truncate(filled, size // 2)
    elif harm == "removed":
        filled.unlink()
        Path(f"{filled}-wal").write_bytes(b"what the log held")
    else:
        content = bytearray(filled.read_bytes())
        content[size // 4 : size // 2] = bytes(size // 2 - size // 4)
        filled.write_bytes(content)
    with pytest.raises(StoreDamaged, match="put back a copy") as caught:
        numbers(opened())
    assert caught.value.file == str(filled)


@pytest.mark.parametrize("name", [FILE, f"{FILE}-wal"])
def test_a_file_that_goes_away_while_it_is_open_is_named(opened: Opened, name: str) -> None:
    store = opened()
    write(store, 0, 10)
    (store.path / name).unlink()
    with pytest.raises(StoreDamaged, match="it is missing") as caught:
        write(store, 10, 10)
    assert caught.value.file == str(store.path / name)


# -- the log, space, memory


def test_the_log_is_copied_into_the_file_and_cut_off(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_store, "LOG", 256 * 1024)
    store = opened()
    sizes = []
    for number in range(0, 20_000, 500):
        write(store, number, 500)
        sizes.append(store.log_size())
    assert max(sizes) < 2 * 256 * 1024
    assert (store.path / FILE).stat().st_size > MIB
    assert numbers(store) == [*range(20_000)]


def test_space_that_is_free_is_given_back_while_it_is_written(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_store, "LOG", 64 * 1024)
    monkeypatch.setattr(sqlite_store, "FREED", 256)
    store = opened()
    for number in range(0, 40_000, 5000):
        write(store, number, 5000)
    batch = store.batch()
    batch.delete_range(b"", (39_000).to_bytes(8, "big"))
    store.write(batch)
    full = (store.path / FILE).stat().st_size
    for number in range(60):
        write(store, 39_000, 500 + number % 2)
    assert (store.path / FILE).stat().st_size < full // 2
    assert numbers(store) == [*range(39_000, 40_000)]


def test_a_value_of_megabytes_and_a_scan_of_many_are_read(opened: Opened) -> None:
    store = opened()
    batch = store.batch()
    large = [bytes([number]) * (3 * MIB) for number in range(5)]
    for number, value in enumerate(large):
        batch.put(bytes([number]), value)
    store.write(batch)
    assert [value for _, value in store.scan(b"", b"\xff", 10)] == large


def test_a_scan_that_is_too_long_for_one_value_is_read_row_by_row(opened: Opened) -> None:
    store = opened()
    write(store, 0, 100, size=1000)
    store.reader.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 50_000)
    assert numbers(store) == [*range(100)]


def test_it_is_read_beside_what_is_written_and_a_batch_is_seen_wholly_or_not_at_all(opened: Opened) -> None:
    store = opened()
    write(store, 0, 1000)
    ended = threading.Event()

    def change() -> None:
        for value in range(1, 30):
            batch = store.batch()
            for number in range(1000):
                batch.put(number.to_bytes(8, "big"), bytes([value]))
            store.write(batch)
        ended.set()

    writer = threading.Thread(target=change)
    writer.start()
    while not ended.is_set():
        assert len({value for _, value in store.scan(b"", b"\xff" * 9, 1000)}) in (1, 1000)
    writer.join()


# -- processes, places


def test_a_file_that_cannot_be_opened_is_said_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    with pytest.raises(StoreError, match="see that this user may write there, or set UBI_DIR"):
        SqliteStore(tmp_path)


def test_a_file_of_a_later_version_is_refused(opened: Opened) -> None:
    store = opened()
    store.writer.execute("PRAGMA user_version=2").fetchall()
    store.close()
    with pytest.raises(StoreError, match="a newer version of scrapy_ubi"):
        opened()


def test_what_is_durable_is_synced(opened: Opened) -> None:
    store = opened()
    found = [store.writer.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")]
    assert found == ["wal", 2]
