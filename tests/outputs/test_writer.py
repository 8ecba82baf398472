"""The writer: what stands before a mark is written, what a crash leaves beyond is cut off, files are sealed late."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest

from scrapy_ubi.errors import UbiDirectoryError
from scrapy_ubi.frontier.store import StoreDamaged, StoreError, StoreFull
from scrapy_ubi.outputs import part_writer as parts
from scrapy_ubi.outputs.part_files import Positions, outs, read_record, repair
from scrapy_ubi.outputs.writer import ROW
from tests.outputs.kept import Kept, collected
from tests.support.memory_store import MemoryStore


def test_what_a_flush_holds_is_collected_after_a_crash(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.page("a", "1")
    kept.page("b", "2", "3")
    kept.flush()
    kept.page("c", "4")
    kept.written()  # and not flushed: page c is not done
    again = Kept(tmp_path, kept.rows)
    assert collected(tmp_path) == ["1", "2", "3"]
    again.page("c", "5")
    again.flush()
    again.close()
    assert collected(tmp_path) == ["1", "2", "3", "5"]
    assert not again.files("*.open") and len(again.files("*.jsonl")) == 2


def test_a_tail_cut_at_every_byte_is_repaired(tmp_path: Path) -> None:
    """A crash may leave any number of bytes behind what the flush holds, in each of the files."""
    kept = Kept(tmp_path / "agent")
    kept.page("a", "first")
    kept.flush()
    held = {path.name: path.stat().st_size for path in (tmp_path / "agent/out/items").iterdir()}
    kept.page("b", "second", "third")
    kept.written()
    for name, size in held.items():
        whole = (tmp_path / "agent/out/items" / name).stat().st_size
        assert whole > size
        for length in range(size, whole + 1):
            place = tmp_path / f"{length}{Path(name).suffixes[-2]}"
            shutil.copytree(tmp_path / "agent", place)
            os.truncate(place / "out/items" / name, length)
            again = Kept(place, MemoryStore(dict(kept.rows.rows)))
            assert collected(place) == ["first"]
            again.page("b", "second")
            again.flush()
            again.close()
            assert collected(place) == ["first", "second"]
            shutil.rmtree(place)


class Power:
    """A disk that keeps, when the power fails, what was synced: of files their bytes, of directories their names."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: dict[int, int] = {}  # inode -> bytes
        self.names: dict[Path, set[str]] = {}
        monkeypatch.setattr(os, "fdatasync", self._sync)
        monkeypatch.setattr(os, "fsync", self._sync)

    def _sync(self, fd: int) -> None:
        facts = os.fstat(fd)
        if stat.S_ISDIR(facts.st_mode):
            self.names[Path(os.readlink(f"/proc/self/fd/{fd}"))] = set(os.listdir(fd))
        else:
            self.sizes[facts.st_ino] = facts.st_size

    def fail(self, top: Path) -> None:
        """Take away what was not synced."""
        for path in sorted(top.rglob("*"), reverse=True):
            if path.name not in self.names.get(path.parent, ()):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            elif path.is_file():
                os.truncate(path, self.sizes.get(path.stat().st_ino, 0))


@pytest.mark.parametrize("size", [1e9, 1], ids=["one part", "a part a page"])
def test_what_a_flush_holds_outlasts_a_loss_of_power_as_the_flush_itself_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: float
) -> None:
    power = Power(monkeypatch)
    kept = Kept(tmp_path, size=size)
    for name in "abc":
        kept.page(name, name)
        kept.flush()
    kept.page("d", "d")
    kept.written()
    kept.flush(settle=False)
    rows = MemoryStore(dict(kept.rows.rows))
    kept.page("e", "e")
    power.fail(tmp_path)
    Kept(tmp_path, rows)  # is not refused
    assert collected(tmp_path, run="run") == ["a", "b", "c", "d"]


def test_what_was_sealed_at_the_end_outlasts_a_loss_of_power(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    power = Power(monkeypatch)
    kept = Kept(tmp_path)
    kept.page("a", "a")
    kept.flush()
    kept.close()
    power.fail(tmp_path)
    Kept(tmp_path, kept.rows)
    assert collected(tmp_path, run="run") == ["a"]


def test_a_killed_agent_that_never_comes_back_is_collected_as_far_as_its_file_is_whole(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "agent")
    kept.page("a", "first")
    kept.flush()
    kept.page("b", "second", "third")
    kept.written()
    for name in kept.files("*.open"):
        for length in range((tmp_path / "agent/out/items" / name).stat().st_size + 1):
            place = tmp_path / "copy"
            shutil.copytree(tmp_path / "agent", place)
            os.truncate(place / "out/items" / name, length)
            assert collected(place) in ([], ["first"], ["first", "second", "third"])
            shutil.rmtree(place)


def test_a_file_that_has_lost_its_end_is_refused_once_and_kept(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.page("a", "first")
    kept.page("b", "second")
    kept.flush()
    (name,) = kept.files("*.jsonl.open")
    os.truncate(tmp_path / "out/items" / name, 9)
    with pytest.raises(UbiDirectoryError, match=r"have lost their end.*9 bytes in place of 13"):
        Kept(tmp_path, kept.rows)
    again = Kept(tmp_path, kept.rows)
    again.page("c", "third")
    again.flush()
    again.close()
    assert collected(tmp_path) == ["first", "third"]
    assert again.files("*.jsonl.short")


def test_a_row_that_cannot_be_read_is_damage(tmp_path: Path) -> None:
    for text in (b"no", b"[]", b'{"files": {"../x": 1}, "final": []}', b'{"files": {"x": -1}, "final": []}'):
        with pytest.raises(StoreDamaged):
            Kept(tmp_path, MemoryStore({ROW: text}))


def test_a_file_that_is_missing_is_refused_unless_it_was_sealed(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    repair(out, Positions({"items/x.jsonl": 5}, frozenset({"items/x.jsonl"})))
    with pytest.raises(UbiDirectoryError, match="missing"):
        repair(out, Positions({"items/x.jsonl": 5}))
    repair(out, Positions({"items/x.jsonl": 5}))  # only once


def test_full_parts_are_sealed_once_their_flush_is_written(tmp_path: Path) -> None:
    kept = Kept(tmp_path, size=10)
    kept.page("a", "0123456789")
    kept.flush(settle=False)
    assert [name.rpartition(".")[2] for name in kept.files()] == ["open", "open"]
    kept.page("b", "more")
    kept.flush()
    kept.written()
    assert [name for name in kept.files() if not name.endswith(".open")] == [
        name.removesuffix(".open") for name in kept.files() if "-1." in name
    ]
    kept.close()
    assert collected(tmp_path) == ["0123456789", "more"]


def test_a_sealed_file_may_be_moved_away(tmp_path: Path) -> None:
    kept = Kept(tmp_path, size=10)
    kept.page("a", "0123456789")
    kept.flush()
    kept.written()
    for name in kept.files():
        (tmp_path / "out/items" / name).rename(tmp_path / name)
    kept.flush()
    Kept(tmp_path, kept.rows)


def test_a_part_is_sealed_after_its_time(tmp_path: Path) -> None:
    kept = Kept(tmp_path, seconds=1e-9)
    kept.page("a", "x")
    kept.flush()
    kept.written()
    assert all(not name.endswith(".open") for name in kept.files())


def test_another_crawl_begins_with_new_files_and_keeps_the_old_ones_aside(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.page("a", "old")
    kept.flush(run="one")
    kept.close()
    new = Kept(tmp_path)  # its store was emptied
    new.page("a", "new")
    new.flush(run="two")
    new.close()
    assert collected(tmp_path, run="two") == ["new"] and collected(tmp_path, run="one") == ["old"]
    assert [read_record(out)["run"] for out in outs(tmp_path)] == ["two", "one"]


def test_few_pages_are_written_at_the_end_though_no_flush_has_come(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.page("a", "first")
    kept.close()
    assert [path.read_text() for path in tmp_path.glob("out/items/*.jsonl")] == ["first\n"]


def test_what_has_no_room_waits_with_its_flush(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Kept(tmp_path)
    kept.page("a", "first")
    kept.flush()
    write, full = os.writev, True

    def no_room(file: int, pieces: list[bytes]) -> int:
        data = b"".join(pieces)
        if full and len(data) > 3:
            return os.write(file, data[:3])
        if full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, pieces)

    monkeypatch.setattr(parts.os, "writev", no_room)
    kept.page("b", "second")
    mark = kept.writer.mark("run")
    kept.page("c", "third")  # behind the mark
    for _ in range(3):
        with pytest.raises(StoreFull, match="make room, and the crawl goes on"):
            kept.writer.rows(mark)
    assert kept.writer.waiting
    full = False
    ((row, value),) = kept.writer.rows(mark)
    assert row == ROW and value is not None
    assert Positions.read(value).files[next(iter(kept.files("*.jsonl.open"))).join(("items/", ""))[:-5]] == 13
    kept.flush()
    kept.close()
    assert collected(tmp_path) == ["first", "second", "third"] and not kept.writer.waiting


def test_a_bundle_for_which_no_file_can_be_made_waits_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Kept(tmp_path)
    opened, full = os.open, True

    def no_room(*arguments: Any, **named: Any) -> int:
        if full and ".jsonl" in str(arguments[0]):
            raise OSError(errno.ENOSPC, "No space left on device")
        return opened(*arguments, **named)

    monkeypatch.setattr(parts.os, "open", no_room)
    kept.page("a", "first")
    with pytest.raises(StoreFull):
        kept.flush()
    full = False
    kept.flush()
    kept.close()
    assert collected(tmp_path) == ["first"]


def test_a_store_that_raises_loses_its_page_only(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    kept = Kept(tmp_path)
    append = kept.store.write

    def write(payload: bytes, part: Any) -> None:
        append(payload, part)
        if payload == b"bad\n":
            raise ValueError("no such thing")

    kept.store.write = write  # type: ignore[method-assign]
    for name in ("good", "bad", "better"):
        kept.page(name, name)
    kept.flush()
    kept.close()
    assert sorted(collected(tmp_path)) == ["better", "good"]
    assert kept.writer.failed == 1 and "cannot keep page bad" in caplog.text


def test_a_mistake_at_a_mark_is_said_and_nothing_waits_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    kept = Kept(tmp_path)
    kept.page("a", "1")

    def sync(part: Any) -> None:
        raise AttributeError("no such thing")

    monkeypatch.setattr(parts.Part, "sync", sync)
    with pytest.raises(StoreError, match=r"cannot be written \(AttributeError: no such thing\)"):
        kept.flush()
    assert "A mistake in a store" in caplog.text
    monkeypatch.undo()
    kept.flush()
    kept.close()
    assert collected(tmp_path) == ["1"]


def test_room_is_told_of(tmp_path: Path) -> None:
    async def main() -> None:
        told, kept = asyncio.Event(), Kept(tmp_path)
        kept.writer.on_room(told.set)
        kept.page("a", "x" * 1000)
        assert kept.writer.waiting == 1001
        kept.writer.tell_of_room()
        kept.flush()
        await asyncio.wait_for(told.wait(), 60)
        kept.close()
        assert not kept.writer.waiting

    asyncio.run(main())
