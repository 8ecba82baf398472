"""Which keys are known: what both kinds of `Seen` promise, then what only the exact table does."""

from __future__ import annotations

import errno
import os
import random
import signal
import struct
import subprocess
import sys
import time
from functools import reduce
from itertools import count, islice
from operator import xor
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from scrapy_ubi.frontier import shards
from scrapy_ubi.frontier.bloom import SeenBloom
from scrapy_ubi.frontier.mapped import Room
from scrapy_ubi.frontier.seen import Seen, SeenDamaged, SeenTable, Totals
from scrapy_ubi.frontier.shards import FULLEST
from scrapy_ubi.frontier.store import StoreFull
from scrapy_ubi.ground import later

KINDS = (SeenTable, SeenBloom)
MOST = (1 << 64) - 1
ODD_KEYS = (0, 1, 2, 3, (1 << 56) - 1, 1 << 56, (1 << 63) - 1, 1 << 63, MOST - 1, MOST)


def keys_of(seed: int, number: int) -> list[int]:
    draw = random.Random(seed)
    return [draw.getrandbits(64) for _ in range(number)]


def totals_of(truth: dict[int, int]) -> Totals:
    done = [key for key, status in truth.items() if status == 2]
    return Totals(len(truth), reduce(xor, truth, 0), len(done), reduce(xor, done, 0))


def holds(seen: Seen, truth: dict[int, int]) -> bool:
    return all(seen.status(key) == status for key, status in truth.items())


@pytest.fixture(autouse=True)
def _numpy() -> None:
    """Large changes go through numpy, as in any crawl that is not small."""
    later.load("numpy")


# ---- both kinds


@pytest.mark.parametrize("kind", KINDS)
class TestContract:
    def test_a_new_one_knows_nothing(self, kind: type[Seen], tmp_path: Path) -> None:
        seen = kind.create(tmp_path / "seen")
        assert seen.flush == 0
        assert [seen.status(key) for key in (*ODD_KEYS, *keys_of(1, 100))] == [0] * (len(ODD_KEYS) + 100)
        assert seen.totals() in (None, Totals())

    @pytest.mark.parametrize("key", ODD_KEYS)
    def test_every_number_is_a_key(self, kind: type[Seen], tmp_path: Path, key: int) -> None:
        seen = kind.create(tmp_path / "seen")
        for status in (1, 2):
            seen.apply({key: status})
            assert seen.status(key) == status
        assert [other for other in ODD_KEYS if seen.status(other)] == [key]

    def test_done_stays_done(self, kind: type[Seen], tmp_path: Path) -> None:
        seen = kind.create(tmp_path / "seen")
        seen.apply({5: 2})
        seen.apply({5: 1})
        assert seen.status(5) == 2

    @pytest.mark.parametrize("at_once", [1, 7, 399, 400, 5000])
    def test_many_keys_in_changes_of_any_size(self, kind: type[Seen], tmp_path: Path, at_once: int) -> None:
        draw = random.Random(at_once)
        truth: dict[int, int] = {}
        changes = [(key, draw.choice((1, 2))) for key in keys_of(at_once, 5000) * 2]
        draw.shuffle(changes)
        seen = kind.create(tmp_path / "seen")
        for start in range(0, len(changes), at_once):
            some = {}
            for key, status in changes[start : start + at_once]:
                some[key] = max(status, some.get(key, 0))
                truth[key] = max(status, truth.get(key, 0))
            seen.apply(some)
            seen.apply(some)
        assert holds(seen, truth)
        assert seen.totals() in (None, totals_of(truth))
        assert sum(map(seen.status, keys_of(0, 5000))) == 0

    def test_opened_again_it_knows_what_it_knew(self, kind: type[Seen], tmp_path: Path) -> None:
        truth = dict.fromkeys(keys_of(2, 3000), 1) | dict.fromkeys(keys_of(3, 3000), 2)
        seen = kind.create(tmp_path / "seen")
        seen.apply(truth)
        seen.flush = 1 << 40
        seen.sync()
        seen.close()
        seen.close()
        seen = kind.open(tmp_path / "seen")
        assert seen.flush == 1 << 40
        assert holds(seen, truth)
        more = dict.fromkeys(keys_of(4, 20_000), 1)
        seen.apply(more)
        assert holds(seen, truth | more)
        assert seen.totals() in (None, totals_of(truth | more))

    def test_rebuilt_it_holds_the_new_keys_only(self, kind: type[Seen], tmp_path: Path) -> None:
        seen = kind.create(tmp_path / "seen")
        seen.apply(dict.fromkeys(keys_of(5, 1000), 2))
        truth = dict.fromkeys(keys_of(6, 10_000), 1)
        rows = [*truth.items(), *((key, 2) for key in islice(truth, 0, None, 3)), *islice(truth.items(), 100)]
        truth |= dict.fromkeys(islice(truth, 0, None, 3), 2)
        seen.rebuild(iter(rows), 77)
        for again in (seen, kind.open(tmp_path / "seen")):
            assert again.flush == 77
            assert holds(again, truth)
            assert sum(map(again.status, keys_of(5, 1000))) == 0
            assert again.totals() in (None, totals_of(truth))
        assert os.listdir(tmp_path) == ["seen"]

    def test_a_rebuild_that_fails_changes_nothing(self, kind: type[Seen], tmp_path: Path) -> None:
        def rows() -> object:
            yield 1, 1
            raise ValueError("a row is damaged")

        truth = dict.fromkeys(keys_of(7, 1000), 2)
        seen = kind.create(tmp_path / "seen")
        seen.apply(truth)
        seen.flush = 9
        with pytest.raises(ValueError, match="a row is damaged"):
            seen.rebuild(rows(), 10)
        assert os.listdir(tmp_path) == ["seen"]
        for again in (seen, kind.open(tmp_path / "seen")):
            assert again.flush == 9
            assert holds(again, truth)
            assert again.status(1) == 0

    def test_where_there_is_no_file(self, kind: type[Seen], tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            kind.open(tmp_path / "seen")

    @pytest.mark.parametrize("size", [0, 7, 8, 100, 4096])
    def test_a_file_cut_short_is_damaged(self, kind: type[Seen], tmp_path: Path, size: int) -> None:
        kind.create(tmp_path / "seen").close()
        os.truncate(tmp_path / "seen", size)
        with pytest.raises(SeenDamaged, match="seen"):
            kind.open(tmp_path / "seen")

    def test_a_file_of_something_else_is_damaged(self, kind: type[Seen], tmp_path: Path) -> None:
        (tmp_path / "seen").write_bytes(random.Random(1).randbytes(2_000_000))
        with pytest.raises(SeenDamaged, match="is not"):
            kind.open(tmp_path / "seen")

    def test_a_file_of_another_version_is_damaged(self, kind: type[Seen], tmp_path: Path) -> None:
        kind.create(tmp_path / "seen").close()
        put(tmp_path / "seen", 1, (2 << 32) + 1)
        with pytest.raises(SeenDamaged, match="version"):
            kind.open(tmp_path / "seen")

    @pytest.mark.parametrize("at_once", [300, 5000])
    def test_a_full_disk_raises_and_loses_nothing(
        self, kind: type[Seen], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
    ) -> None:
        seen = kind.create(tmp_path / "seen")
        truth = dict.fromkeys(keys_of(8, 1000), 1)
        seen.apply(truth)
        with monkeypatch.context() as full:
            full.setattr(os, "posix_fallocate", no_room)
            more: dict[int, int] = {}
            with pytest.raises(StoreFull, match="seen"):
                for seed in count(10):
                    truth |= more
                    more = dict.fromkeys(keys_of(seed, at_once), 1)
                    seen.apply(more)
            with pytest.raises(StoreFull):
                kind.create(tmp_path / "another")
        for again in (seen, kind.open(tmp_path / "seen")):
            assert holds(again, truth)
            again.check()
        seen.apply(more)
        assert holds(seen, truth | more)
        assert seen.totals() in (None, totals_of(truth | more))

    def test_no_more_than_one_descriptor_is_kept(self, kind: type[Seen], tmp_path: Path) -> None:
        before = len(os.listdir("/proc/self/fd"))
        seen = kind.create(tmp_path / "seen")
        seen.apply(dict.fromkeys(keys_of(10, 200_000), 1))
        assert len(os.listdir("/proc/self/fd")) <= before + 1
        seen.close()
        assert len(os.listdir("/proc/self/fd")) == before


def no_room(descriptor: int, start: int, length: int) -> None:
    raise OSError(errno.ENOSPC, "no space left")


def put(path: Path, word: int, value: int) -> None:
    with path.open("r+b") as file:
        file.seek(word * 8)
        file.write(struct.pack("<Q", value))


# ---- the exact table


class TableMachine(RuleBasedStateMachine):
    """A table beside a dict. Few shards' worth of keys, so that they grow."""

    keys = st.one_of(
        st.sampled_from(ODD_KEYS),
        st.integers(0, 3000),
        st.integers(0, 2000).map(lambda n: 7 + n * 509 * 256),  # all want the same slot at first
        st.integers(0, MOST),
    )

    def __init__(self) -> None:
        super().__init__()
        self.directory = TemporaryDirectory()
        self.path = Path(self.directory.name) / "seen"
        self.table = SeenTable.create(self.path)
        self.truth: dict[int, int] = {}

    @rule(changes=st.dictionaries(keys, st.integers(1, 2), max_size=20))
    def apply_few(self, changes: dict[int, int]) -> None:
        self.told(changes)

    @rule(seed=st.integers(0, 50), number=st.integers(300, 900), shard=st.integers(0, 2), status=st.integers(1, 2))
    def apply_many(self, seed: int, number: int, shard: int, status: int) -> None:
        self.told({key & ~255 | shard: status for key in keys_of(seed, number)})

    def told(self, changes: dict[int, int]) -> None:
        self.table.apply(changes)
        for key, status in changes.items():
            self.truth[key] = max(status, self.truth.get(key, 0))
            assert self.table.status(key) == self.truth[key]

    @rule(key=keys)
    def ask(self, key: int) -> None:
        assert self.table.status(key) == self.truth.get(key, 0)

    @rule(flush=st.integers(0, MOST))
    def reopen(self, flush: int) -> None:
        self.table.flush = flush
        self.table.close()
        self.table = SeenTable.open(self.path)
        assert self.table.flush == flush

    @rule()
    def rebuild(self) -> None:
        self.table.rebuild(self.truth.items(), 5)

    @rule()
    def count(self) -> None:
        assert self.table.totals() == totals_of(self.truth)

    def teardown(self) -> None:
        self.table.check()
        assert holds(self.table, self.truth)
        assert self.table.totals() == totals_of(self.truth)
        self.table.close()
        self.directory.cleanup()


TestTable = TableMachine.TestCase
TestTable.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)


def test_bytes_a_key(tmp_path: Path) -> None:
    """At every size, but for the smallest tables, whose files have 1.1 MB."""
    table = SeenTable.create(tmp_path / "seen")
    memory, sizes = [], []
    for number, key_list in enumerate(np.random.default_rng(1).integers(0, MOST, (80, 10_000), np.uint64), 1):
        table.apply(dict.fromkeys(key_list.tolist(), 1))
        if number >= 15:
            memory.append(table.memory / number / 10_000)
            sizes.append(table.size / number / 10_000)
    table.check()
    assert table.size == os.stat(table.path).st_size
    assert max(memory) < 10.3, max(memory)
    assert sum(sizes) / len(sizes) < 11.8, sum(sizes) / len(sizes)
    assert max(sizes) < 12.5, max(sizes)


def test_shards_grow_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many keys there are: no two per cent more make a large part of the shards grow."""
    table = SeenTable.create(tmp_path / "seen")
    grown: list[int] = []
    grow = SeenTable._grow
    monkeypatch.setattr(SeenTable, "_grow", lambda self, shard, more: (grown.append(shard), grow(self, shard, more)))
    known = 400_000
    table.rebuild(((key, 1) for key in keys_of(1, known)), 1)
    for _ in range(5):
        grown.clear()
        table.apply(dict.fromkeys(keys_of(known, known // 50), 1))
        known += known // 50
        assert len(grown) < SeenTable.SHAPE.shards / 4, (known, len(grown))


@pytest.mark.parametrize(
    ("word", "value", "reason"),
    [
        (8, 0, "lines, with a shard"),
        (8, 33 << 24 | 1009, "lines, with a shard"),
        (9, 1 << 60, "lines, with a shard"),
        (8, 33 << 24 | 511, "none of its sizes"),
        (8, 33 << 24 | 503, "none of its sizes"),
        (264, 1 << 60 | 253, "no key"),
        (265, 4, "no key"),
        (265, 5, "no key"),
    ],
)
def test_what_the_table_cannot_have_written_is_damage(tmp_path: Path, word: int, value: int, reason: str) -> None:
    table = SeenTable.create(tmp_path / "seen")
    table.apply({1: 1, 2: 2})
    table.close()
    put(tmp_path / "seen", word, value)
    with pytest.raises(SeenDamaged, match=reason):
        SeenTable.open(tmp_path / "seen")


def test_a_shard_without_an_empty_slot_is_damage(tmp_path: Path) -> None:
    """A look-up would never end there."""
    SeenTable.create(tmp_path / "seen").close()
    with (tmp_path / "seen").open("r+b") as file:
        file.seek(264 * 8)
        file.write(struct.pack("<Q", 255) * 509)
    with pytest.raises(SeenDamaged, match="509 keys in the 509 slots of shard 0"):
        SeenTable.open(tmp_path / "seen")


def test_a_page_that_was_lost_shows_in_the_totals(tmp_path: Path) -> None:
    truth = dict.fromkeys(keys_of(1, 50_000), 1)
    table = SeenTable.create(tmp_path / "seen")
    table.apply(truth)
    table.close()
    with (tmp_path / "seen").open("r+b") as file:
        file.seek(40 * 4096)
        file.write(bytes(4096))
    assert SeenTable.open(tmp_path / "seen").totals() != totals_of(truth)


def test_a_file_replaced_meanwhile_is_noticed_before_it_grows(tmp_path: Path) -> None:
    table = SeenTable.create(tmp_path / "seen")
    SeenTable.create(tmp_path / "seen").close()
    with pytest.raises(SeenDamaged, match="replaced"):
        table.apply(dict.fromkeys(keys_of(1, 200_000), 1))


# ---- killed at any moment


WRITER = """
import random, sys
from pathlib import Path
from scrapy_ubi.frontier.seen import SeenTable

path, seed, at_once = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
draw = random.Random(seed)
table = SeenTable.open(path)
at = 0
print("ready", flush=True)
while True:
    keys = [draw.getrandbits(64) for _ in range(at_once)]
    table.apply({key: 2 if key % 3 == 0 else 1 for key in keys})
    at += at_once
    table.flush = at
"""


def without_numpy(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """What is asked for while it is not loaded yet."""
    asked: set[str] = set()

    def is_loaded(module: str) -> bool:
        asked.add(module)
        return False

    monkeypatch.setattr(shards, "is_loaded", is_loaded)
    return asked


@pytest.mark.parametrize("kind", KINDS)
def test_until_numpy_is_loaded_large_changes_are_made_one_by_one(
    kind: type[SeenTable | SeenBloom], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = {key: 1 + key % 2 for key in keys_of(8, 3000)}
    with_it = kind.create(tmp_path / "with")
    with_it.apply(changes)
    asked = without_numpy(monkeypatch)
    without = kind.create(tmp_path / "without")
    without.apply(changes)
    assert asked == {"numpy"}, "a thread begins to load it"
    assert holds(without, changes) and holds(with_it, changes)
    assert without.totals() == with_it.totals()
    without.check()


def test_numpy_is_loaded_before_the_first_shard_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = without_numpy(monkeypatch)
    table = SeenTable.create(tmp_path / "seen")
    first = SeenTable.SHAPE.least // 3
    table.apply({number << 8: 1 for number in range(first)})
    assert not asked, "a small crawl does without"
    table.apply({number << 8: 1 for number in range(first, 2 * first)})
    assert asked and table.size == SeenTable.create(tmp_path / "other").size, "it has not grown yet"


@pytest.mark.parametrize("at_once", [20, 1000])
def test_killed_while_it_applies_no_key_is_lost_or_invented(tmp_path: Path, at_once: int) -> None:
    """Keys of changes that were applied are all there; of the last one some; others never, and done only what was."""
    seed = random.SystemRandom().getrandbits(32)
    moments = random.Random(seed)
    for turn in range(8):
        path = tmp_path / f"seen{turn}"
        SeenTable.create(path).close()
        child = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), str(seed + turn), str(at_once)], stdout=subprocess.PIPE
        )
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        time.sleep(moments.uniform(0.05, 0.6))  # this is the moment of the kill, nothing is waited for
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        compare(SeenTable.open(path), seed + turn, at_once)


def compare(table: SeenTable, seed: int, at_once: int) -> None:
    table.check()
    applied = table.flush
    where = f"seed {seed}, {at_once} at once, {applied} applied"
    keys = keys_of(seed, applied + at_once)
    status = [table.status(key) for key in keys]
    truth = [2 if key % 3 == 0 else 1 for key in keys]
    assert status[:applied] == truth[:applied], where
    assert all(is_ in (0, was) for is_, was in zip(status[applied:], truth[applied:], strict=True)), where
    there = {key: is_ for key, is_ in zip(keys, status, strict=True) if is_}
    assert table.totals() == totals_of(there), where  # so there is no other key
    table.apply(dict(zip(keys[applied:], truth[applied:], strict=True)))
    assert table.totals() == totals_of(dict(zip(keys, truth, strict=True))), where


def test_at_every_step_of_a_growth_the_file_is_a_whole_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a kill leaves at each step of a growth: copies of the file, each opened."""
    table = SeenTable.create(tmp_path / "seen")
    truth: dict[int, int] = {}
    copies: list[Path] = []
    watched = ("find", "take", "give")
    for name in watched:
        was = getattr(Room, name)

        def snapshot(self: Room, *args: int, was: object = was) -> object:
            copies.append(tmp_path / f"copy{len(copies)}")
            copies[-1].write_bytes((tmp_path / "seen").read_bytes())
            return was(self, *args)  # type: ignore[operator]

        monkeypatch.setattr(Room, name, snapshot)
    for key in keys_of(3, 3000):
        key = key & ~255 | 3
        copies.clear()
        table.apply({key: 1})
        for copy in copies:
            again = SeenTable.open(copy)
            again.check()
            assert again.totals() == totals_of(truth)
            again.close()
        truth[key] = 1
    assert holds(table, truth)


# ---- room in the file


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 20), st.integers(0, 100)), max_size=60))
@settings(deadline=None)
def test_room_no_piece_lies_on_another_and_free_pieces_are_joined(steps: list[tuple[bool, int, int]]) -> None:
    room, used = Room([(0, 2)], 2), [(0, 2)]
    for take, lines, which in steps:
        if take:
            start, short = room.find(lines)
            assert short <= lines
            room.take(start, lines)
            used.append((start, lines))
        elif len(used) > 1:
            room.give(*used.pop(1 + which % (len(used) - 1)))
        assert Room(used, room.end).pieces == room.pieces
        for lines in range(1, 22):
            fitting = [(size, start) for start, size in room.pieces if size >= lines]
            assert not fitting or room.find(lines) == (min(fitting)[1], 0), "the tightest, and of those the first"
        assert sum(lines for _, lines in used) + room.free == room.end


def test_room_is_found_where_it_is_tightest() -> None:
    room = Room([(0, 1), (11, 1), (15, 1)], 20)
    assert room.find(3) == (12, 0)
    assert room.find(4) == (16, 0)
    assert room.find(5) == (1, 0)
    assert room.find(11) == (16, 7)


def test_the_fullest_shard_has_an_empty_slot() -> None:
    assert FULLEST < 1
    assert SeenTable.SHAPE.least * (1 - FULLEST) > 1
