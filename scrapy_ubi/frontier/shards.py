"""A mapped file of hash tables that grow one by one: what both kinds of `Seen` are made of.

* A key is hashed; the lowest bits of the hash say in which of the file's *shards* it is, the rest of them is its slot's
  content (`hash_slots.py`), so nothing of the hash is kept twice, and a table can be built again from its slots alone.
* Every change of a key is one store of one slot. So at whatever moment the process is killed, the file is a table that
  holds each change wholly or not at all.
* A shard that is 88 % full is built again, a fifth larger, in a free piece of the file, and then one store into the
  header switches over. The free pieces follow from the header, so no crash can lose any. The shards' first sizes are
  spread over that fifth: they grow one by one, never all at once, and all together stay about 80 % full.
* Large changes and growth are numpy's. A new table that stays small does without, so a small crawl never imports it;
  before the first growth another thread does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterable, Mapping
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Self

from scrapy_ubi.frontier.hash_slots import Probes, built, claim, prime, walk
from scrapy_ubi.frontier.mapped import LINE, WORD, MappedWords, Room, SeenDamaged
from scrapy_ubi.frontier.shard_header import FIRST_SHARD, FLUSH, VERSION, WRITTEN, Shape, read_header
from scrapy_ubi.ground.later import Later, is_loaded, load

if TYPE_CHECKING:
    import numpy as np

    from scrapy_ubi.frontier.hash_slots import Bits, Numbers, Slots, Words
else:
    np = Later("numpy")

FULLEST = 0.88  # of a shard; beyond, a look-up of an unknown key takes more than 9 steps
GROWTH = 1.2

_BULK = 400  # so many changes and more go through numpy, where it is loaded
_REBUILD_AT_ONCE = 200_000


class Shards(ABC):
    """Keys with a bit each, in a mapped file. A kind says how keys are hashed, and looks single ones up."""

    SHAPE: Shape
    EXACT: bool  # no two keys are one to this kind

    __slots__ = ("_extents", "_file", "_places_of", "_room", "_slots", "_used", "path")

    def __init__(self, path: Path, file: MappedWords, extents: list[tuple[int, int, int]]) -> None:
        """For `create` and `open`. An extent: a shard's first slot, the one behind its last, their number."""
        shape = self.SHAPE
        self.path = path
        self._file = file
        self._slots = file.slots
        self._extents = extents
        self._places_of: Numbers | None = None  # the same for numpy, once it is asked for
        self._used = array("q", bytes(8 * shape.shards))  # of each shard: slots that are not empty
        pieces = [(start // shape.line, shape.lines(slots)) for start, _, slots in extents]
        self._room = Room([(0, shape.header // LINE), *pieces], len(file.words) // LINE)

    # ---- what a kind says of keys

    @abstractmethod
    def status(self, key: int) -> int:
        """0: unknown, 1: known, 2: known and done."""

    @staticmethod
    @abstractmethod
    def _hashed(key: int) -> tuple[int, int, int]:
        """Of a key: the hash, its step, its slot when it is done."""

    @staticmethod
    @abstractmethod
    def _hashes(keys: Words) -> Words:
        """Of keys: the hashes."""

    @staticmethod
    @abstractmethod
    def _sought(hashes: Words) -> tuple[Numbers, Slots]:
        """Of hashes: the steps, the slots when they are done."""

    @staticmethod
    @abstractmethod
    def _unslotted(slots: Slots, shard: int) -> Words:
        """The hashes of the used slots of a shard."""

    @staticmethod
    @abstractmethod
    def _odd(slots: Slots) -> bool:
        """Whether one of these, which are not empty, was never written by this kind."""

    # ---- the file

    @classmethod
    def create(cls, path: Path) -> Self:
        """An empty one, in the place of any file of that name. Raises `StoreFull` and `OSError`."""
        table = cls._beside(path)
        table._file.publish(path)
        return table

    @classmethod
    def _beside(cls, path: Path) -> Self:
        """An empty one whose file does not have its name yet."""
        shape = cls.SHAPE
        extents, line = [], shape.header // LINE
        for shard in range(shape.shards):
            slots = prime(shape.least * GROWTH ** (shard / shape.shards))
            extents.append((line * shape.line, line * shape.line + slots, slots))
            line += shape.lines(slots)
        file = MappedWords.create(path, line * LINE, shape.bytes)
        file.words[0], file.words[1] = int.from_bytes(shape.magic, "little"), VERSION << 32 | shape.shards
        for shard, (start, _, slots) in enumerate(extents):
            file.words[FIRST_SHARD + shard] = start // shape.line << 24 | slots
        return cls(path, file, extents)

    @classmethod
    def open(cls, path: Path) -> Self:
        """That of a former process. Reads all of it, which for 10 M keys in the kernel's memory takes 0.1 s.

        Raises `SeenDamaged` where it is none of this kind and version or cannot be one that was whole,
        `FileNotFoundError` and `OSError`. It does not notice a key that is missing or wrong.
        """
        file = MappedWords.open(path, cls.SHAPE.header, cls.SHAPE.bytes)
        try:
            table = cls(path, file, read_header(path, cls.SHAPE, file.words))
            table._used = array("q", [table._count(shard) for shard in range(cls.SHAPE.shards)])
        except SeenDamaged:
            file.close()
            raise
        return table

    @property
    def flush(self) -> int:
        """Number of the last flush that was applied."""
        return self._file.words[FLUSH]

    @flush.setter
    def flush(self, number: int) -> None:
        self._file.words[FLUSH] = number

    @property
    def written(self) -> int:
        """Number of the last flush that the store was seen to have; 0 in files of before."""
        return self._file.words[WRITTEN]

    @written.setter
    def written(self, number: int) -> None:
        self._file.words[WRITTEN] = number

    @property
    def memory(self) -> int:
        """Bytes of memory when all pages are there."""
        return self.size - self._room.free * LINE * WORD

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return len(self._file.words) * WORD

    def sync(self) -> None:
        """Return when the disk has everything. Blocks."""
        self._file.sync()

    def close(self) -> None:
        """Let go of the file; a second call does nothing. Nothing else may be called after it."""
        self._file.close()

    # ---- changes

    def apply(self, changes: Mapping[int, int]) -> None:
        """Key -> 1 or 2; see `Seen.apply`."""
        if len(changes) >= _BULK and is_loaded("numpy"):
            keys = np.fromiter(changes.keys(), np.uint64, len(changes))
            self._merge(keys, np.fromiter(changes.values(), np.int64, len(changes)) == 2)
            return
        for key, status in changes.items():
            self._put(*self._hashed(key), status == 2)
        if self._used[0] > self._extents[0][2] // 2:  # half full, as the others are: the first will grow
            is_loaded("numpy")

    def _put(self, number: int, step: int, sought: int, done: bool) -> None:
        """One change, by one store."""
        shard = number % self.SHAPE.shards
        start, end, size = self._extents[shard]
        at = start + number % size
        slots = self._slots
        while (slot := slots[at]) and slot | 1 != sought:
            at += step
            if at >= end:
                at -= size
        if slot:
            if done:
                slots[at] = sought
            return
        if self._used[shard] >= size * FULLEST:
            self._grow(shard, 1)
            self._put(number, step, sought, done)
            return
        slots[at] = sought if done else sought - 1
        self._used[shard] += 1

    def _merge(self, keys: Words, done: Bits) -> None:
        """Many changes, each key once: first those of keys that are here, then the new ones."""
        numbers = self._hashes(keys)
        if not self.EXACT and len(np.unique(numbers)) < len(numbers):  # keys that are one to this kind
            for key, is_done in zip(keys.tolist(), done.tolist(), strict=True):
                self._put(*self._hashed(key), is_done)
            return
        table = np.asarray(self._slots)
        places = self._places(numbers)
        at = walk(table, places)
        here = table[at] != 0
        marked = np.flatnonzero(here & done)
        table[at[marked]] = places.sought[marked]
        del table  # a file that is looked at cannot grow
        new = np.flatnonzero(~here)
        if len(new):
            self._insert(numbers[new], done[new], places.only(new)._replace(at=at[new]))

    def _insert(self, numbers: Words, done: Bits, places: Probes) -> None:
        """Hashes that are not here, and the empty slots that `walk` found for them."""
        shards = (numbers % self.SHAPE.shards).astype(np.int64)
        some, coming = np.unique(shards, return_counts=True)
        counts = np.frombuffer(self._used, np.int64)
        over = counts[some] + coming > self._extents_in_numpy()[some, 2] * FULLEST
        for shard, more in zip(some[over].tolist(), coming[over].tolist(), strict=True):
            self._grow(shard, more)
        if over.any():
            again = self._places(numbers)
            places = again._replace(at=np.where(np.isin(shards, some[over]), again.at, places.at))
        claim(np.asarray(self._slots), places, np.where(done, places.sought, places.sought - 1))
        counts[some] += coming

    def _places(self, numbers: Words) -> Probes:
        """Where to look for each hash."""
        extents = self._extents_in_numpy()[(numbers % self.SHAPE.shards).astype(np.int64)]
        return Probes.of(numbers, extents[:, 0], extents[:, 2], *self._sought(numbers))

    def _extents_in_numpy(self) -> Numbers:
        if self._places_of is None:
            self._places_of = np.array(self._extents)
        return self._places_of

    # ---- growth

    def _grow(self, shard: int, more: int) -> None:
        """Build a shard again, with room for so many keys more. Raises `StoreFull` with nothing changed."""
        start, end, slots = self._extents[shard]
        used = np.array(self._slots[start:end])
        used = used[used != 0]
        size = slots * GROWTH
        while len(used) + more > size * FULLEST:
            size *= GROWTH
        size = prime(size)
        numbers = self._unslotted(used, shard)
        self._replace(shard, built(used, numbers, self._sought(numbers)[0], size))

    def _replace(self, shard: int, table: Slots) -> None:
        """Write the shard into a free piece, then switch over by one store, then free the piece it was in."""
        shape = self.SHAPE
        line, short = self._room.find(shape.lines(len(table)))
        if short > 0:
            try:
                self._file.grow((self._room.end + short) * LINE)
            finally:
                self._slots = self._file.slots
        self._room.take(line, shape.lines(len(table)))
        start = line * shape.line
        np.asarray(self._slots)[start : start + len(table)] = table
        self._file.words[FIRST_SHARD + shard] = line << 24 | len(table)
        old, _, slots = self._extents[shard]
        self._extents[shard] = (start, start + len(table), len(table))
        if self._places_of is not None:
            self._places_of[shard] = self._extents[shard]
        self._room.give(old // shape.line, shape.lines(slots))
        self._file.rest(old // shape.line * LINE, shape.lines(slots) * LINE)

    def rebuild(self, changes: Iterable[tuple[int, int]], flush: int) -> None:
        """Hold these keys and no others; see `Seen.rebuild`. One to three microseconds a key."""
        load("numpy")
        new = type(self)._beside(self.path)
        try:
            rows = iter(changes)
            while some := list(islice(rows, _REBUILD_AT_ONCE)):
                new.apply({key: 1 for key, status in some if status == 1})
                new.apply({key: 2 for key, status in some if status == 2})
            new.flush = new.written = flush
            new._file.publish(self.path)
        except BaseException:
            new.close()
            new._file.path.unlink(missing_ok=True)
            raise
        self.close()
        for slot in Shards.__slots__:
            setattr(self, slot, getattr(new, slot))

    # ---- whether it is whole

    def _count(self, shard: int) -> int:
        """How many slots of a shard are not empty. Raises `SeenDamaged` where they cannot be those of a shard."""
        start, end, slots = self._extents[shard]
        used = np.array(self._slots[start:end])
        used = used[used != 0]
        if len(used) > slots * FULLEST + 1:
            raise SeenDamaged(self.path, f"has {len(used)} keys in the {slots} slots of shard {shard}")
        if self._odd(used):
            raise SeenDamaged(self.path, f"holds a word in shard {shard} that is no key")
        return len(used)

    def check(self) -> None:
        """Assert what must hold: every key is found where look-ups look, once, and no piece lies upon another."""
        shape = self.SHAPE
        pieces = sorted((start // shape.line, shape.lines(slots)) for start, _, slots in self._extents)
        assert pieces[0][0] * LINE >= shape.header
        assert all(start + lines <= after for (start, lines), (after, _) in pairwise(pieces)), pieces
        used_lines = shape.header // LINE + sum(lines for _, lines in pieces)
        assert used_lines + self._room.free == len(self._file.words) // LINE
        for shard, (start, end, _) in enumerate(self._extents):
            table = np.array(self._slots[start:end])
            used = np.flatnonzero(table)
            numbers = self._unslotted(table[used], shard)
            assert len(np.unique(numbers)) == len(numbers), f"shard {shard} holds a key twice"
            assert np.array_equal(walk(np.asarray(self._slots), self._places(numbers)), used + start), f"shard {shard}"
            assert self._used[shard] == len(used), f"shard {shard}"
