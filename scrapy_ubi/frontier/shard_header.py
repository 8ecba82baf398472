"""The header of a mapped file of hash tables: what kind of file it is, and where each shard lies.

| words | what |
| --- | --- |
| 0 | the magic of the kind |
| 1 | version and number of shards |
| 2 | the number of the last flush that was applied |
| 3 | the number of the last flush that the store was seen to have |
| 4 to 7 | unused |
| from 8 | a word for each shard: the line it begins at, and its number of slots |

Rules of this module: a header that this version could not have written raises `SeenDamaged`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from scrapy_ubi.frontier.hash_slots import is_prime
from scrapy_ubi.frontier.mapped import LINE, WORD, SeenDamaged

VERSION = 1

FLUSH = 2  # words of the header: magic, version and shards, flush, written, 4 unused, the shards
WRITTEN = 3
FIRST_SHARD = 8


@dataclass(frozen=True, slots=True)
class Shape:
    """What tells one kind of file from another. `least`: slots of the smallest shard, a prime; `bytes`: of a slot."""

    magic: bytes
    name: str
    shards: int
    least: int
    bytes: int

    @property
    def header(self) -> int:
        """How many words, in whole lines."""
        return -(-(FIRST_SHARD + self.shards) // LINE) * LINE

    @property
    def line(self) -> int:
        """How many slots a line has."""
        return LINE * WORD // self.bytes

    def lines(self, slots: int) -> int:
        """How many lines so many slots need."""
        return -(-slots // self.line)


def read_header(path: Path, shape: Shape, words: memoryview) -> list[tuple[int, int, int]]:
    """The shards' extents. Raises `SeenDamaged` unless each is one that this module could have written."""
    if words[0] != int.from_bytes(shape.magic, "little"):
        raise SeenDamaged(path, f"is not {shape.name}")
    if words[1] != VERSION << 32 | shape.shards:
        version, shards = divmod(words[1], 1 << 32)
        raise SeenDamaged(path, f"is of version {version} with {shards} shards, not {VERSION} with {shape.shards}")
    header = [divmod(word, 1 << 24) for word in words[FIRST_SHARD : FIRST_SHARD + shape.shards].tolist()]
    end = shape.header // LINE
    for line, slots in sorted(header):
        if line < end or line + shape.lines(slots) > len(words) // LINE:
            raise SeenDamaged(path, f"has {len(words) // LINE} lines, with a shard of {slots} slots at line {line}")
        end = line + shape.lines(slots)
        if slots < shape.least or not is_prime(slots):
            raise SeenDamaged(path, f"has a shard of {slots} slots, which is none of its sizes")
    return [(line * shape.line, line * shape.line + slots, slots) for line, slots in header]
