"""Which keys are known, in half the memory, with a stated error: what `UBI_SEEN = "bloom"` chooses.

Like a Bloom filter it never takes a known key for an unknown one, and seldom an unknown key for a known one: with n
keys known, one unknown key in 2**43 / n. That is one in 880,000 with 10 M keys known, and one in 88,000 with 100 M. A
URL taken for a known one is never fetched: of a crawl that comes to know n URLs in all, n * n / 2**44 are missed in the
mean, 6 of 10 M, 570 of 100 M. Two keys that are one to this kind are done when either is.

It is made otherwise than Bloom's: it keeps a hash of 43 bits of each key in the tables of `shards.py`, 12 bits by the
shard and 31 in a slot of 4 bytes beside the bit that says done: 5 bytes a key. (Pagh, Pagh and Rao, "An optimal Bloom
filter replacement", 2005, has the idea.) At an error of one in a million Bloom's own filters need 3.8 bytes a known key
and 3.8 more once it is done, and more while they are not full; they cannot grow but by further filters, each of which
must be asked; and they look at up to 20 words where this looks at four. docs/decisions/0009-seen-table.md says more.

There are no totals: that keys may be one to this kind leaves the sums of the host records no meaning. So the owner
learns that flushes are missing from their number only. Pages that a crash of the machine lost are not noticed: their
URLs are taken for new ones, and fetched again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_ubi.frontier.shard_header import Shape
from scrapy_ubi.frontier.shards import Shards
from scrapy_ubi.ground.later import Later

if TYPE_CHECKING:
    import numpy as np

    from scrapy_ubi.frontier.hash_slots import Numbers, Slots, Words
else:
    np = Later("numpy")

HASH_BITS = 43

_SHARD_BITS = 12

# Keys are hashes already, but salted ones: the upper bits of a product depend on all bits of a key (Knuth, The Art of
# Computer Programming 3, 6.4: 2**64 by the golden ratio).
FACTOR = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1
_SHIFT = 64 - HASH_BITS


def error_rate(known: int) -> float:
    """The chance that an unknown key is taken for a known one, when so many are known."""
    return known / (1 << HASH_BITS)


class SeenBloom(Shards):
    """The kind of `Seen` that may err."""

    SHAPE = Shape(b"ubiBloom", "a filter of known URLs", shards=1 << _SHARD_BITS, least=251, bytes=4)
    EXACT = False

    __slots__ = ()

    def status(self, key: int) -> int:
        """0: unknown, 1: known, 2: known and done; an unknown key is seldom answered for a known one."""
        number = (key * FACTOR & _MASK) >> _SHIFT
        if number < 4096:
            number += 4096
        start, end, size = self._extents[number & 4095]
        slots = self._slots
        at = start + number % size
        slot = slots[at]
        if not slot:
            return 0
        sought = number >> 12 << 1 | 1
        if slot | 1 == sought:
            return 2 if slot & 1 else 1
        step = (number >> 30 & 31) + 1
        while True:
            at += step
            if at >= end:
                at -= size
            slot = slots[at]
            if not slot:
                return 0
            if slot | 1 == sought:
                return 2 if slot & 1 else 1

    def totals(self) -> None:
        """This kind has none."""

    # The 31 bits of a slot are never 0, so that no slot in use is: the hashes with 0 there are those with 1.

    @staticmethod
    def _hashed(key: int) -> tuple[int, int, int]:
        number = (key * FACTOR & _MASK) >> _SHIFT
        if number < 4096:
            number += 4096
        return number, (number >> 30 & 31) + 1, number >> _SHARD_BITS << 1 | 1

    @staticmethod
    def _hashes(keys: Words) -> Words:
        numbers = keys * np.uint64(FACTOR) >> np.uint64(_SHIFT)
        return np.where(numbers < 4096, numbers + np.uint64(4096), numbers)

    @staticmethod
    def _sought(hashes: Words) -> tuple[Numbers, Slots]:
        sought = hashes >> _SHARD_BITS << 1 | 1
        return (hashes >> 30 & 31).astype(np.int64) + 1, sought.astype(np.uint32)

    @staticmethod
    def _unslotted(slots: Slots, shard: int) -> Words:
        return slots.astype(np.uint64) >> np.uint64(1) << np.uint64(_SHARD_BITS) | np.uint64(shard)

    @staticmethod
    def _odd(slots: Slots) -> bool:
        return bool((slots == 1).any())
