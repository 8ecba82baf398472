"""Keys that were met, each with a depth: a memory of fixed size, for what may be forgotten.

It has the foreign URLs that their owners were told of (`discovery.py`), and the seeds whose pages were fetched by links
(`scrapy_ubi/adapter/scheduling/seeds.py`). Rules of this module:

* To forget a key costs a letter or a load. To know one that was never met would lose a URL, so keys are compared whole.
* It is asked for every link of another's host: two looks at most. A key may stand in two places, its own and the one
  beside it; a new one takes its own, moves the one there to the place beside, and what was there is forgotten.
* It grows, up to its size, when an eighth as many keys came in as it has places: one key of a hundred is forgotten
  until then, a quarter when as many have come as it has places at most.
* A place takes 9 bytes; in a dict a key takes 100.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator

_FIRST = 8192  # places at the beginning
_GROWTH = 4
_LARGE = 1 << 20  # places, from which on it takes all that it may: to go through more would hold up the loop
_FREE = 255  # the depth in a free place: none is met as deep as that
DEEPEST = _FREE - 1


class KeyMemory:
    """At most `most` keys, rounded up to a power of two, each with the least depth it was met at; 0 remembers none."""

    __slots__ = ("_came", "_depths", "_first", "_keys", "_mask", "_most")

    def __init__(self, most: int) -> None:
        self._most = 1 << max(most - 1, 1).bit_length() if most else 0
        self._first = max(2, min(_FIRST, self._most))
        self.clear()

    def clear(self) -> None:
        """Forget all."""
        self._make(self._first)

    def _make(self, size: int) -> None:
        self._keys, self._depths = array("Q", (0,)) * size, bytearray((_FREE,)) * size
        self._mask, self._came = size - 1, 0

    def has(self, key: int, depth: int) -> bool:
        """Whether this key was met, at this depth or less."""
        place = key & self._mask
        if self._keys[place] != key:
            place ^= 1
            if self._keys[place] != key:
                return False
        return self._depths[place] <= depth and self._depths[place] != _FREE

    def add(self, key: int, depth: int) -> bool:
        """A key is met at this depth: True when it is not known that it was, at this depth or less."""
        if depth > DEEPEST or not self._most:
            return not self.has(key, depth)
        keys, depths, place = self._keys, self._depths, key & self._mask
        if keys[place] != key:
            other = place ^ 1
            if keys[other] == key and depths[other] != _FREE:
                place = other
            else:
                if depths[place] != _FREE:
                    keys[other], depths[other] = keys[place], depths[place]
                keys[place], depths[place] = key, _FREE
                self._came += 1
        if depths[place] <= depth:
            return False
        depths[place] = depth
        if 8 * self._came > len(keys) < self._most:
            self._grow(min(_GROWTH * len(keys), self._most) if len(keys) < _LARGE else self._most)
        return True

    def _grow(self, size: int) -> None:
        """Take so many places. To go through the 524,288 of before takes some 60 ms."""
        known = list(self.items())
        self._make(size)
        for key, depth in known:
            self.add(key, depth)

    def items(self) -> Iterator[tuple[int, int]]:
        """All keys that are remembered, with their depths."""
        return (pair for pair in zip(self._keys, self._depths, strict=True) if pair[1] != _FREE)

    def discard(self, key: int) -> None:
        """Forget a key."""
        place = key & self._mask
        for each in (place, place ^ 1):
            if self._keys[each] == key:
                self._depths[each] = _FREE

    def __contains__(self, key: int) -> bool:
        return self.has(key, DEEPEST)

    def __len__(self) -> int:
        """How many keys are remembered, at most."""
        return min(self._came, len(self._keys)) if self._most else 0
