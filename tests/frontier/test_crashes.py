"""Crashes at every write of a flush, and at any moment: the store opens, and holds whole flushes only."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from scrapy_ubi.frontier import restore as opening
from scrapy_ubi.frontier import rows
from scrapy_ubi.frontier.engines import Engine, chosen
from scrapy_ubi.frontier.restore import open_frontier
from scrapy_ubi.frontier.seen import SeenTable
from scrapy_ubi.frontier.store import StoreDamaged, StoreFull
from scrapy_ubi.protocol.host import Entry
from tests.frontier.errands import Told, errand, expected, told
from tests.frontier.frontiers import DictKind, DictSeen, Reading, reopened
from tests.support.memory_store import MemoryStore
from tests.support.store_engines import ENGINES

FLUSHES = 12
MEMORY = 32 << 20
LOGS = {"rocksdb": "*.log", "sqlite": "*-wal"}
ENDLESS = (5, 6, 7, 8, 11)  # kinds of recycled logs: RocksDB reads them for ever
each_engine = pytest.mark.parametrize("engine", ENGINES)


class Killed(Exception):
    """The process is gone."""


def opened(directory: Path, reports: list[str] | None = None, engine: Engine = "auto") -> Reading:
    report = (lambda sentence: None) if reports is None else reports.append
    frontier = open_frontier(directory, memory=MEMORY, report=report, engine=engine, made=Reading)
    assert isinstance(frontier, Reading)
    return frontier


def held(directory: Path) -> tuple[int, Told, list[object]]:
    """The last flush that a directory holds, and all else."""
    frontier = opened(directory)
    frontier.check_invariants()
    number = int(frontier.store.get(b"mtest") or 0)
    found = (number, told(frontier), sorted(frontier.failures()))
    frontier.close()
    return found


def copied(directory: Path, to: Path) -> Path:
    shutil.copytree(directory, to)
    return to


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_crash_before_or_after_the_write_of_any_flush(after: bool) -> None:
    """The write that makes a flush durable is one; before it nothing of the flush is there, after it all is."""
    whole = expected(FLUSHES)
    for fatal in range(1, FLUSHES + 1):

        def kill(number: int, fatal: int = fatal) -> None:
            if number == fatal:
                raise Killed

        store = MemoryStore(**{"after_write" if after else "before_write": kill})
        frontier = reopened(store, DictKind())
        with pytest.raises(Killed):
            for number in range(1, FLUSHES + 1):
                errand(frontier, number)
                frontier.flush([(b"mtest", b"%d" % number)])
        again = reopened(MemoryStore(store.rows), DictKind(frontier.seen))
        again.check_invariants()
        assert again.seen.rebuilt == 0
        last = fatal if after else fatal - 1
        assert (told(again), sorted(again.failures())) == whole[last]


def test_a_flush_that_finds_the_disk_full_is_written_again_as_it_is() -> None:
    whole = expected(FLUSHES)

    def full(number: int) -> None:
        if number % 3:
            raise StoreFull("The disk is full.")

    frontier = reopened(MemoryStore(before_write=full), DictKind())
    for number in range(1, FLUSHES + 1):
        errand(frontier, number)
        flush = frontier.collect([(b"mtest", b"%d" % number)])
        for _ in range(2):
            with pytest.raises(StoreFull):
                flush.write(frontier.store)
            assert frontier.unwritten is flush
        flush.write(frontier.store)
        frontier.written(flush)
    again = reopened(MemoryStore(frontier.store.rows), DictKind(frontier.seen))
    assert (told(again), sorted(again.failures())) == whole[FLUSHES]


def test_a_crash_between_any_two_keys_told_to_the_seen_table() -> None:
    frontier = reopened(MemoryStore(), DictKind())
    errand(frontier, 1)
    frontier.flush()
    errand(frontier, 2)
    flush = frontier.collect()
    flush.write(frontier.store)
    for count in range(len(flush.keys) + 1):
        left = DictSeen(frontier.seen.path, dict(frontier.seen.keys), frontier.seen.flush)
        left.apply(dict([*flush.keys.items()][:count]))
        again = reopened(MemoryStore(frontier.store.rows), DictKind(left))
        assert again.seen.rebuilt == 0
        assert again.seen.keys == {**frontier.seen.keys, **flush.keys}


@each_engine
def test_a_log_that_ends_at_any_byte_of_the_last_flush(tmp_path: Path, engine: Engine) -> None:
    """What a crash of the machine may leave of the one write of a flush: any part of it."""
    whole = expected(3)
    frontier = opened(tmp_path / "agent", engine=engine)
    sizes: list[int] = []
    for number in range(1, 4):
        errand(frontier, number)
        seen = copied(tmp_path / "agent", tmp_path / f"before{number}")
        frontier.flush([(b"mtest", b"%d" % number)])
        (log,) = (tmp_path / "agent" / "store").glob(LOGS[engine])
        sizes.append(log.stat().st_size)
    crashed = copied(tmp_path / "agent", tmp_path / "crashed")
    shutil.copy(seen / "seen", crashed / "seen")  # it is told after the flush
    frontier.close()
    draw = random.Random(4)
    cuts = {sizes[1], sizes[1] + 1, sizes[2] - 1, sizes[2], *draw.sample(range(*sizes[1:]), 20)}
    for cut in sorted(cuts):
        left = copied(crashed, tmp_path / f"cut{cut}")
        with open(left / "store" / log.name, "r+b") as stream:
            stream.truncate(cut)
        number, *rest = held(left)
        assert number == (3 if cut == sizes[2] else 2), cut
        assert tuple(rest) == whole[number]
        shutil.rmtree(left)


def _kill_after(directory: Path, flushes: int, draw: random.Random, engine: Engine) -> int:
    """Run the errands in a process of their own; kill it some time after that flush. The last flush it told of."""
    command = [sys.executable, "-m", "tests.frontier.errands", str(directory), "100000", engine]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])
    assert child.stdout is not None
    last = 0
    lines: Iterable[str] = child.stdout
    for line in lines:
        last = int(line)
        if last >= flushes:
            break
    for _ in range(draw.randrange(2000)):  # a moment of any length
        draw.random()
    child.kill()
    rest = [int(line) for line in lines if line.endswith("\n")]
    child.wait()
    child.stdout.close()
    return max([last, *rest])


@pytest.mark.processes
@each_engine
def test_kill_at_any_moment(tmp_path: Path, engine: Engine) -> None:
    """Real processes, SIGKILL: what was told to be durable is, the rest is there whole or not at all."""
    seed = random.randrange(2**32)
    print(f"random.Random({seed})")
    draw = random.Random(seed)
    for attempt in range(4):
        directory = tmp_path / f"agent{attempt}"
        last = _kill_after(directory, draw.randrange(1, 30), draw, engine)
        number, *rest = held(directory)
        assert last <= number <= last + 1
        assert tuple(rest) == expected(number)[number], f"random.Random({seed})"


# -- what a former process left


def filled(directory: Path, flushes: int = 5, engine: Engine = "auto") -> tuple[Told, list[object]]:
    frontier = opened(directory, engine=engine)
    for number in range(1, flushes + 1):
        errand(frontier, number)
        frontier.flush([(b"mtest", b"%d" % number)])
    frontier.close()
    return expected(flushes)[flushes]


@pytest.mark.parametrize("harm", ["removed", "cut", "garbage", "a key too many", "far behind"])
def test_an_index_that_is_lost_or_wrong_is_made_anew(tmp_path: Path, harm: str) -> None:
    whole = filled(tmp_path, 12)
    file = tmp_path / "seen"
    if harm == "removed":
        file.unlink()
    elif harm == "cut":
        file.write_bytes(file.read_bytes()[:4096])
    elif harm == "garbage":
        file.write_bytes(random.Random(1).randbytes(100_000))
    else:
        table = SeenTable.open(file)
        if harm == "far behind":
            table.rebuild([], 1)
        else:
            table.apply({12345: 1})
        table.close()
    reports: list[str] = []
    frontier = opened(tmp_path, reports)
    frontier.check_invariants()
    assert (told(frontier), sorted(frontier.failures())) == whole
    frontier.close()
    assert any("made again" in report for report in reports), reports
    reports.clear()
    opened(tmp_path, reports).close()
    assert reports == []


def test_an_index_full_of_what_was_dropped_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "MANY_GONE", 300)
    frontier = opened(tmp_path)
    for host in range(40):
        frontier.add(f"h{host}", [Entry(host * 10 + key, f"http://h{host}/{key}", 0) for key in range(10)])
    for host in range(30):
        frontier.drop(f"h{host}")
    frontier.flush()
    frontier.close()
    reports: list[str] = []
    frontier = opened(tmp_path, reports)
    frontier.check_invariants()
    assert len(reports) == 1
    assert frontier.seen.totals().known == 100
    frontier.close()
    opened(tmp_path, reports).close()
    assert len(reports) == 1


# -- a log that is torn


def told_of_all(directory: Path, flushes: int, engine: Engine = "auto") -> tuple[Path, list[int]]:
    """The log of a store with so many flushes, whose table was told of all of them; where each flush ends in it."""
    frontier = opened(directory, engine=engine)
    sizes: list[int] = []
    for number in range(1, flushes + 1):
        errand(frontier, number)
        frontier.flush([(b"mtest", b"%d" % number)])
        (log,) = (directory / "store").glob(LOGS[chosen(directory / "store", engine)])
        sizes.append(log.stat().st_size)
    crashed = copied(directory, directory.with_name("crashed"))
    frontier.close()
    return crashed / "store" / log.name, sizes


def _tear(log: Path, at: int, how: str, draw: random.Random) -> None:
    content = log.read_bytes()
    size, other = len(content), content[at] ^ draw.randrange(1, 256)  # what by chance is as it was is no damage
    if how == "garbage instead":
        content = content[:at] + bytes([other]) + draw.randbytes(size - at - 1)
    elif how == "garbage behind":
        content = content[:at] + bytes([other]) + draw.randbytes(draw.randrange(5000))
    elif how == "zeros":
        content = content[:at] + bytes([0 if any(content[at:]) else 1]) + bytes(size - at - 1)
    elif how == "a kind that is not ours":
        kind, data = draw.choice(ENDLESS), content[at + 7] ^ draw.randrange(1, 256)
        content = content[: at + 6] + bytes([kind, data]) + content[at + 8 :]
    elif how == "a flipped bit":
        content = content[:at] + bytes([content[at] ^ 1 << draw.randrange(8)]) + content[at + 1 :]
    else:
        content = content[:at]
    log.write_bytes(content)


@each_engine
@pytest.mark.parametrize(
    "how", ["cut", "garbage instead", "garbage behind", "zeros", "a flipped bit", "a kind that is not ours"]
)
def test_of_a_torn_log_all_flushes_before_the_tear_are_kept_and_nothing_after_it(
    tmp_path: Path, how: str, engine: Engine
) -> None:
    flushes, seed = 8, random.randrange(2**32)
    print(f"random.Random({seed})")
    draw, whole = random.Random(seed), expected(flushes)
    log, sizes = told_of_all(tmp_path / "agent", flushes, engine)
    ends = [size - 1 for size in sizes[1:]]
    places = {sizes[0], sizes[-1] - 1, *ends, *draw.sample(range(sizes[0], sizes[-1]), 15)}
    for at in sizes[:-1] if how == "a kind that is not ours" else sorted(places):
        left = copied(log.parents[1], tmp_path / f"torn{at}")
        _tear(left / "store" / log.name, at, how, draw)
        last = sum(size <= at for size in sizes)
        reports: list[str] = []
        frontier = opened(left, reports)
        frontier.check_invariants()
        assert frontier.lost == flushes - last, (at, f"random.Random({seed})")
        assert f"{flushes - last} flushes after the first {last}" in reports[0]
        assert frontier.store.get(b"mtest") == b"%d" % last
        assert (told(frontier), sorted(frontier.failures())) == whole[last]
        errand(frontier, last + 1)  # and it goes on
        frontier.flush([(b"mtest", b"%d" % (last + 1))])
        after = told(frontier)
        frontier.close()
        assert held(left)[:2] == (last + 1, after), (at, f"random.Random({seed})")
        shutil.rmtree(left)


@each_engine
def test_a_tear_is_known_though_the_table_was_not_told_of_the_last_flush_yet(tmp_path: Path, engine: Engine) -> None:
    """Its mail has left by then."""
    log, sizes = told_of_all(tmp_path / "agent", 3, engine)
    table = SeenTable.open(log.parents[1] / "seen")
    table.flush, table.written = 2, 3
    table.close()
    _tear(log, sizes[-1] - 1, "cut", random.Random(1))
    frontier = opened(log.parents[1])
    assert frontier.lost == 1
    frontier.close()


def test_killed_while_it_mends_a_tear_it_mends_it_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, sizes = told_of_all(tmp_path / "agent", 3)
    _tear(log, sizes[-1] - 1, "cut", random.Random(1))

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(SeenTable, "rebuild", killed)
        with pytest.raises(Killed):
            opened(log.parents[1])
    frontier = opened(log.parents[1])
    assert frontier.lost == 1
    frontier.close()


# -- damage


@each_engine
def test_a_store_that_has_lost_all_its_flushes_is_not_begun_on(tmp_path: Path, engine: Engine) -> None:
    """Its files were put back from a copy, or are gone: never a silent empty crawl."""
    filled(tmp_path, 5, engine)
    shutil.rmtree(tmp_path / "store")
    with pytest.raises(StoreDamaged, match="it holds 0 flushes, and had 5"):
        opened(tmp_path)


@pytest.mark.parametrize(
    ("row", "value"),
    [
        (rows.FRONTIER, None),
        (rows.FRONTIER, b"[]"),
        (rows.HOST + b"\0\0\0\1", b"short"),
        (rows.HOST + b"\0\0\xff\xff", rows.host_value(rows.HostRecord("new.example", 0, 0, 0, 0, 0, 0, 0.0))),
        (rows.HOST + b"\0\0\0\2", rows.host_value(rows.HostRecord("h0.example", 0, 0, 0, 0, 0, 0, 0.0))),
    ],
)
def test_a_damaged_row_is_named_when_it_is_opened(row: bytes, value: bytes | None) -> None:
    frontier = reopened(MemoryStore(), DictKind())
    for host in ("h0.example", "h1.example"):
        frontier.add(host, [Entry(5, f"http://{host}/", 0)])
    frontier.flush()
    if value is None:
        del frontier.store.rows[row]
    else:
        frontier.store.rows[row] = value
    with pytest.raises(StoreDamaged, match=row[1:].hex() if value is not None else "missing"):
        reopened(frontier.store, DictKind(frontier.seen))


def test_a_damaged_entry_is_named_when_its_turn_comes() -> None:
    frontier = reopened(MemoryStore(), DictKind())
    frontier.add("h", [Entry(5, "http://h/", 0)])
    frontier.flush()
    (row,) = frontier.store.rows.irange(b"q", b"r")
    frontier.store.rows[row] = b"?"
    again = reopened(frontier.store, DictKind(frontier.seen))
    with pytest.raises(StoreDamaged, match=row[1:].hex()):
        again.pop(0.0, lambda state: True)
