"""Which keys are known, and which of them are done: an exact table in a file that is mapped into memory.

The truth is the store. The table is told of keys after the flush that holds them is durable, so it is never ahead of
the store; after a crash it may be behind by the last flushes, which the owner tells it again (`apply` may be repeated).
Whether the table is whole is then seen by its totals, which must be those of all host records together.

The file is one of `shards.py`: 256 shards by the lowest byte of a key. A slot is one word: 0 when empty, else the key
with that byte replaced by 254 (known) or 255 (done): 10 bytes a key, and 1 more in the file of pieces that wait to be
used again. At 10 M keys a shard has 40,000, and is built again in a few ms, while the loop waits.

Single look-ups read the slots through a memoryview, which costs half of what numpy's boxes do. Growth, totals and large
changes are numpy's, thousands of keys an operation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from scrapy_ubi.frontier.mapped import SeenDamaged
from scrapy_ubi.frontier.shard_header import Shape
from scrapy_ubi.frontier.shards import Shards
from scrapy_ubi.ground.later import Later

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from scrapy_ubi.frontier.hash_slots import Numbers, Slots, Words
else:
    np = Later("numpy")

__all__ = ["Seen", "SeenDamaged", "SeenTable", "Totals"]


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
    written: int
    """Number of the last flush that was durable in the store, as the owner set it before anything of it left; kept in
    the file. A store that holds fewer has lost flushes."""

    def status(self, key: int) -> int:
        """0: unknown, 1: known, 2: known and done."""
        ...

    def apply(self, changes: Mapping[int, int]) -> None:
        """Key -> 1 or 2. Once or many times is the same; done stays done.

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


class SeenTable(Shards):
    """The exact kind of `Seen`."""

    SHAPE = Shape(b"ubi seen", "an exact table of known URLs", shards=256, least=509, bytes=8)
    EXACT = True

    __slots__ = ()

    def status(self, key: int) -> int:
        """0: unknown, 1: known, 2: known and done. Three to five slots are looked at."""
        start, end, size = self._extents[key & 255]
        slots = self._slots
        at = start + key % size
        done = key | 255
        known = done - 1  # every comparison makes no number, and an operation would: most of the time goes there
        slot = slots[at]
        if slot == known:
            return 1
        if not slot:
            return 0
        if slot == done:
            return 2
        step = (key >> 40 & 255) + 1
        while True:
            at += step
            if at >= end:
                at -= size
            slot = slots[at]
            if slot == known:
                return 1
            if not slot:
                return 0
            if slot == done:
                return 2

    def totals(self) -> Totals:
        """Counted from all slots: 10 ns a key."""
        known = known_xor = done = done_xor = 0
        for shard, (start, end, _) in enumerate(self._extents):
            if not self._used[shard]:  # in a new table all of them
                continue
            slots = np.array(self._slots[start:end])
            slots = slots[slots != 0]
            known, known_xor = known + len(slots), known_xor ^ _xor(slots, shard)
            slots = slots[slots & 1 != 0]
            done, done_xor = done + len(slots), done_xor ^ _xor(slots, shard)
        return Totals(known, known_xor, done, done_xor)

    @staticmethod
    def _hashed(key: int) -> tuple[int, int, int]:
        return key, (key >> 40 & 255) + 1, key | 255

    @staticmethod
    def _hashes(keys: Words) -> Words:
        return keys

    @staticmethod
    def _sought(hashes: Words) -> tuple[Numbers, Slots]:
        return (hashes >> 40 & 255).astype(np.int64) + 1, hashes | np.uint64(255)

    @staticmethod
    def _unslotted(slots: Slots, shard: int) -> Words:
        return slots - (slots & 255) + shard

    @staticmethod
    def _odd(slots: Slots) -> bool:
        return bool((slots & 255 < 254).any())


def _xor(slots: NDArray[Any], shard: int) -> int:
    """The XOR of the keys in used slots."""
    upper = int(np.bitwise_xor.reduce(slots)) & ~255
    return upper ^ (shard if len(slots) % 2 else 0)
