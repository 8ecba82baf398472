"""Which keys are known, and which of them are done: an exact table in a file that is mapped into memory.

The truth is the store. The table is told of keys after the flush that holds them is durable, so it is never ahead of
the store; after a crash it may be behind by the last flushes, which the owner tells it again (`apply` may be repeated).
Whether the table is whole is then seen by its totals, which must be those of all host records together.

How it is made:

* 256 shards by the lowest byte of a key, each a table with open addressing and double hashing (`slots.py`). A slot is
  one word: 0 when empty, else the key with that byte replaced by 254 (known) or 255 (done). A key that was forgotten
  leaves a slot that belongs to nobody (1), so that others behind it are still found.
* Every change of a key is one store of one word. So at whatever moment the process is killed, the file is a table that
  holds each change wholly or not at all.
* A shard that is 88 % full is built anew, a fifth larger, in a free piece of the file, and then one store into the
  header switches over. The free pieces follow from the header, so no crash can lose any. The shards' first sizes are
  spread over that fifth: they grow one by one, never all at once, and the table as a whole stays about 80 % full:
  10 bytes a key, and 1 more in the file of pieces that wait to be used again.
* Single look-ups read the words through a memoryview, which costs half of what numpy's boxes do. Growth, totals and
  large changes are numpy's, thousands of keys an operation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Protocol

import numpy as np

from scrapy_ubi.frontier.mapped import LINE, WORD, MappedWords, Room, SeenDamaged
from scrapy_ubi.frontier.slots import GONE, Places, Words, batches, built, claim, is_prime, prime, walk

__all__ = ["KNOWN", "KNOWN_AND_DONE", "UNKNOWN", "Seen", "SeenDamaged", "SeenTable", "Totals"]

UNKNOWN, KNOWN, KNOWN_AND_DONE = 0, 1, 2  # what `status` answers; `apply` of UNKNOWN forgets a key

MAGIC = int.from_bytes(b"ubi seen", "little")
VERSION = 1

SHARDS = 256  # at 10 M keys 40,000 each: built anew in a few ms, while the loop waits
FULLEST = 0.88  # of a shard; beyond, a look-up of an unknown key takes more than 9 steps
GROWTH = 1.2
LEAST_SLOTS = 509  # a prime; all shards together make a file of 1.1 MB

_BULK = 400  # so many changes and more go through numpy
_REBUILD_AT_ONCE = 200_000

_HEADER = 512  # words: one page. Magic, version, flush, 5 unused, the shards
_FLUSH = 2
_FIRST_SHARD = 8

_MOST_SLOTS = (1 << 24) - 1


@dataclass(frozen=True, slots=True)
class Totals:
    """How many keys are known and how many of these are done, and the XOR of each lot."""

    known: int = 0
    known_xor: int = 0
    done: int = 0
    done_xor: int = 0


class Seen(Protocol):
    """Which keys are known. Keys are 64 bits, unsigned."""

    path: Path
    flush: int
    """Number of the last flush that was applied, as the owner set it; kept in the file."""

    def status(self, key: int) -> int:
        """0: unknown, 1: known, 2: known and done."""
        ...

    def apply(self, changes: Mapping[int, int]) -> None:
        """Key -> 1 or 2 (or 0: forget it, where the kind can). Once or many times is the same; done stays done.

        Raises `StoreFull` when the disk has no room for a larger table: some of the changes are in it then, it is whole
        as before, and the same changes may be applied again.
        """
        ...

    def totals(self) -> Totals | None:
        """Counted from the table itself; None where the kind cannot."""
        ...

    def rebuild(self, changes: Iterable[tuple[int, int]], flush: int) -> None:
        """Forget everything and hold these keys: (key, 1 or 2), the same key any number of times.

        The file is replaced when the new one is whole; until then, and if this raises, all is as it was.
        """
        ...

    @property
    def memory(self) -> int:
        """Bytes of memory when all pages are there."""
        ...

    def sync(self) -> None:
        """Return when the disk has everything. Blocks."""
        ...

    def close(self) -> None:
        """Let go of the file."""
        ...


class SeenTable:
    """The exact kind of `Seen`."""

    __slots__ = ("_extents", "_file", "_room", "_used", "_words", "path")

    def __init__(self, path: Path, file: MappedWords, extents: list[tuple[int, int, int]], used: list[int]) -> None:
        """For `create` and `open`. An extent: a shard's first word, the one behind its last, its number of slots."""
        self.path = path
        self._file = file
        self._words = file.words
        self._extents = extents
        self._used = used  # of each shard: slots that are not empty
        pieces = [(start // LINE, -(-slots // LINE)) for start, _, slots in extents]
        self._room = Room([(0, _HEADER // LINE), *pieces], len(file.words) // LINE)

    @classmethod
    def create(cls, path: Path) -> SeenTable:
        """An empty table, in the place of any file of that name. Raises `StoreFull` and `OSError`."""
        table = cls._beside(path)
        table._file.publish(path)
        return table

    @classmethod
    def _beside(cls, path: Path) -> SeenTable:
        """An empty table whose file does not have its name yet."""
        extents, at = [], _HEADER
        for shard in range(SHARDS):
            slots = prime(LEAST_SLOTS * GROWTH ** (shard / SHARDS))
            extents.append((at, at + slots, slots))
            at += -(-slots // LINE) * LINE
        file = MappedWords.create(path, at)
        file.words[0], file.words[1] = MAGIC, VERSION << 32 | SHARDS
        for shard, (start, _, slots) in enumerate(extents):
            file.words[_FIRST_SHARD + shard] = start // LINE << 24 | slots
        return cls(path, file, extents, [0] * SHARDS)

    @classmethod
    def open(cls, path: Path) -> SeenTable:
        """The table of a former process. Reads all of it, which for 10 M keys in the kernel's memory takes 0.1 s.

        Raises `SeenDamaged` where it is no table of this version or cannot be one that was whole, `FileNotFoundError`
        and `OSError`. It does not notice a key that is missing or wrong: for that there are the totals.
        """
        file = MappedWords.open(path, _HEADER)
        try:
            extents = _read_header(path, file.words)
            table = cls(path, file, extents, [0] * SHARDS)
            table._used = [table._count(shard) for shard in range(SHARDS)]
        except SeenDamaged:
            file.close()
            raise
        return table

    @property
    def flush(self) -> int:
        """Number of the last flush that was applied."""
        return self._words[_FLUSH]

    @flush.setter
    def flush(self, number: int) -> None:
        self._words[_FLUSH] = number

    @property
    def memory(self) -> int:
        """Bytes of memory when all pages are there."""
        return self.size - self._room.free * LINE * WORD

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return len(self._words) * WORD

    def status(self, key: int) -> int:
        """0: unknown, 1: known, 2: known and done. Three to five slots are looked at."""
        start, end, slots = self._extents[key & 255]
        words = self._words
        at = start + key % slots
        slot = words[at]
        if not slot:
            return 0
        sought = key | 255
        if slot | 1 == sought:
            return 1 + (slot & 1)
        step = (key >> 40 & 255) + 1
        while True:
            at += step
            if at >= end:
                at -= slots
            slot = words[at]
            if not slot:
                return 0
            if slot | 1 == sought:
                return 1 + (slot & 1)

    def apply(self, changes: Mapping[int, int]) -> None:
        """Key -> 1 or 2, or 0 to forget it; see `Seen.apply`."""
        if len(changes) >= _BULK:
            keys = np.fromiter(changes.keys(), np.uint64, len(changes))
            self._merge(keys, np.fromiter(changes.values(), np.uint64, len(changes)))
            return
        for key, status in changes.items():
            self._put(key, status)

    def _put(self, key: int, status: int) -> None:
        """One change. The last line is the only one that changes a key's slot."""
        start, end, slots = self._extents[key & 255]
        words = self._words
        at = start + key % slots
        step = (key >> 40 & 255) + 1
        sought = key | 255
        while (slot := words[at]) and slot | 1 != sought:
            at += step
            if at >= end:
                at -= slots
        if not slot:
            if not status:
                return
            if self._used[key & 255] >= slots * FULLEST:
                self._grow(key & 255, 1)
                self._put(key, status)
                return
            self._used[key & 255] += 1
            slot = sought - 1
        words[at] = (slot | status >> 1) if status else GONE

    def _merge(self, keys: Words, status: Words) -> None:
        """Many changes, each key once: first those of keys that are here, then the new ones."""
        table = np.asarray(self._words)
        places = self._places(keys)
        at = walk(table, places)
        here = table[at] != 0
        found, told = at[here], status[here]
        table[found] = np.where(told == 0, np.uint64(GONE), table[found] | told >> np.uint64(1))
        del table  # a file that is looked at cannot grow
        new = np.flatnonzero(~here & (status > 0))
        if len(new):
            self._insert(keys[new], status[new], places.only(new)._replace(at=at[new]))

    def _insert(self, keys: Words, status: Words, places: Places) -> None:
        """Keys that are not here, and the empty slots that `walk` found for them."""
        shards = (keys & np.uint64(255)).astype(np.int64)
        coming = np.bincount(shards, minlength=SHARDS).tolist()
        grown = [
            shard
            for shard, more in enumerate(coming)
            if more and self._used[shard] + more > self._extents[shard][2] * FULLEST
        ]
        for shard in grown:
            self._grow(shard, coming[shard])
        if grown:
            moved = np.isin(shards, grown)
            anew = self._places(keys)
            places = anew._replace(at=np.where(moved, anew.at, places.at))
        claim(np.asarray(self._words), places, places.sought - (status == 1))
        self._used = [used + more for used, more in zip(self._used, coming, strict=True)]

    def _places(self, keys: Words) -> Places:
        """Where to look for each key."""
        extents = np.array(self._extents)[(keys & np.uint64(255)).astype(np.int64)]
        return Places.of(keys, extents[:, 0], extents[:, 2])

    def _grow(self, shard: int, more: int) -> None:
        """Build a shard anew, with room for so many keys more. Raises `StoreFull` with nothing changed."""
        start, _, slots = self._extents[shard]
        table = np.array(self._words[start : start + slots])
        live = table[table > GONE]
        size = float(slots)
        if len(live) + more > slots * 0.8:  # else it was filled by forgotten keys, and stays as large as it is
            size *= GROWTH
        while len(live) + more > size * FULLEST:
            size *= GROWTH
        self._replace(shard, built(live, shard, prime(size)))
        self._used[shard] = len(live)

    def _replace(self, shard: int, table: Words) -> None:
        """Write the shard into a free piece, then switch over by one store, then free the piece it was in."""
        lines = -(-len(table) // LINE)
        line, short = self._room.find(lines)
        if short > 0:
            try:
                self._file.grow((self._room.end + short) * LINE)
            finally:
                self._words = self._file.words
        self._room.take(line, lines)
        start = line * LINE
        np.asarray(self._words)[start : start + len(table)] = table
        self._words[_FIRST_SHARD + shard] = line << 24 | len(table)
        old, _, slots = self._extents[shard]
        self._extents[shard] = (start, start + len(table), len(table))
        self._room.give(old // LINE, -(-slots // LINE))
        self._file.rest(old, slots)

    def totals(self) -> Totals:
        """Counted from all slots: 5 ns a key."""
        known = known_xor = done = done_xor = 0
        for shard, (start, end, _) in enumerate(self._extents):
            slots = np.array(self._words[start:end])
            slots = slots[slots > GONE]
            known, known_xor = known + len(slots), known_xor ^ _xor(slots, shard)
            slots = slots[slots & np.uint64(1) != 0]
            done, done_xor = done + len(slots), done_xor ^ _xor(slots, shard)
        return Totals(known, known_xor, done, done_xor)

    def _count(self, shard: int) -> int:
        """How many slots of a shard are not empty. Raises `SeenDamaged` where they cannot be those of a shard."""
        start, end, slots = self._extents[shard]
        table = np.array(self._words[start:end])
        table = table[table != 0]
        if len(table) > slots * FULLEST + 1:
            raise SeenDamaged(self.path, f"has {len(table)} keys in the {slots} slots of shard {shard}")
        if ((table & np.uint64(255) < 254) & (table != GONE)).any():
            raise SeenDamaged(self.path, f"holds a word in shard {shard} that is no key")
        return len(table)

    def check(self) -> None:
        """Assert what must hold: every key is found where look-ups look, once, and no piece lies upon another."""
        pieces = sorted((start, start + -(-slots // LINE) * LINE) for start, _, slots in self._extents)
        assert pieces[0][0] >= _HEADER
        assert pieces[-1][1] <= len(self._words)
        assert all(end <= start for (_, end), (start, _) in pairwise(pieces)), pieces
        assert sum(end - start for start, end in pieces) + _HEADER + self._room.free * LINE == len(self._words)
        for shard, (start, end, _) in enumerate(self._extents):
            table = np.array(self._words[start:end])
            used = np.flatnonzero(table > GONE)
            keys = table[used] - table[used] % 256 + shard
            assert len(np.unique(keys)) == len(keys), f"shard {shard} holds a key twice"
            assert np.array_equal(walk(np.asarray(self._words), self._places(keys)), used + start), f"shard {shard}"
            assert self._used[shard] == np.count_nonzero(table), f"shard {shard}"

    def rebuild(self, changes: Iterable[tuple[int, int]], flush: int) -> None:
        """Hold these keys and no others; see `Seen.rebuild`. Half a microsecond a key."""
        new = SeenTable._beside(self.path)
        try:
            for keys, status in batches(changes, _REBUILD_AT_ONCE):
                new._merge(keys, status)
            new.flush = flush
            new._file.publish(self.path)
        except BaseException:
            new.close()
            new._file.path.unlink(missing_ok=True)
            raise
        self.close()
        for slot in ("_extents", "_file", "_room", "_used", "_words"):
            setattr(self, slot, getattr(new, slot))

    def sync(self) -> None:
        """Return when the disk has everything. Blocks."""
        self._file.sync()

    def close(self) -> None:
        """Let go of the file; a second call does nothing. Nothing else may be called after it."""
        self._file.close()


def _xor(slots: Words, shard: int) -> int:
    """The XOR of the keys in used slots."""
    upper = int(np.bitwise_xor.reduce(slots)) & ~255
    return upper ^ (shard if len(slots) % 2 else 0)


def _read_header(path: Path, words: memoryview) -> list[tuple[int, int, int]]:
    """The shards' extents. Raises `SeenDamaged` unless each is one that this module could have written."""
    if words[0] != MAGIC:
        raise SeenDamaged(path, "is not an exact table of known URLs")
    if words[1] != VERSION << 32 | SHARDS:
        version, shards = divmod(words[1], 1 << 32)
        raise SeenDamaged(path, f"is of version {version} with {shards} shards, not {VERSION} with {SHARDS}")
    header = words[_FIRST_SHARD : _FIRST_SHARD + SHARDS].tolist()
    end = _HEADER
    for line, slots in sorted((word >> 24, word & _MOST_SLOTS) for word in header):
        if line * LINE < end or line * LINE + slots > len(words):
            raise SeenDamaged(path, f"has {len(words)} words, with a shard at {line * LINE} to {line * LINE + slots}")
        end = line * LINE + slots
        if slots < LEAST_SLOTS or not is_prime(slots):
            raise SeenDamaged(path, f"has a shard of {slots} slots, which is none of its sizes")
    return [((w >> 24) * LINE, (w >> 24) * LINE + (w & _MOST_SLOTS), w & _MOST_SLOTS) for w in header]
