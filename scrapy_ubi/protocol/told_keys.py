"""The keys of foreign URLs that their owners were told of: a memory of fixed size.

Rules of this module:

* To forget a key is harmless: its link is told once more, and merged. To know one that was never told would lose a URL,
  so keys are compared whole.
* It is asked for every link of another's host: two looks at most. A key may stand in two places, its own and the one
  beside it; a new one takes its own, moves the one there to the place beside, and what was there is forgotten.
* It doubles, up to its size, when an eighth as many keys came in as it has places: 6 of 100 keys are forgotten until
  then, a third when as many have come as it has places. Its places are copied for that, not sorted once more: a key is
  found in either half, and the copy that is not looked at any more is taken for an old key.
* A place takes 9 bytes; in a dict a key takes 100.
"""

from __future__ import annotations

from array import array

_FIRST = 8192  # places at the beginning
_FREE = 255  # the depth in a free place: none is told as deep as that
DEEPEST = _FREE - 1


class ToldKeys:
    """At most `most` keys, rounded up to a power of two, each with the least depth it was told of; 0 remembers none."""

    __slots__ = ("_came", "_depths", "_first", "_keys", "_mask", "_most")

    def __init__(self, most: int) -> None:
        self._most = 1 << max(most - 1, 1).bit_length() if most else 0
        self._first = max(2, min(_FIRST, self._most))
        self.clear()

    def clear(self) -> None:
        """Forget all."""
        self._keys, self._depths = array("Q", bytes(8 * self._first)), bytearray([_FREE]) * self._first
        self._mask, self._came = self._first - 1, 0

    def has(self, key: int, depth: int) -> bool:
        """Whether this key was told, as one found no deeper."""
        place = key & self._mask
        if self._keys[place] != key:
            place ^= 1
            if self._keys[place] != key:
                return False
        return self._depths[place] <= depth

    def add(self, key: int, depth: int) -> None:
        """A key is told, as one found so deep."""
        if depth > DEEPEST or not self._most:
            return
        keys, depths, place = self._keys, self._depths, key & self._mask
        if keys[place] != key:
            other = place ^ 1
            if keys[other] == key and depths[other] != _FREE:
                place = other
            else:
                if depths[place] != _FREE:
                    keys[other], depths[other] = keys[place], depths[place]
                keys[place] = key
                self._came += 1
        depths[place] = depth
        if 8 * self._came > len(keys) < self._most:
            self._keys, self._depths = keys + keys, depths + depths
            self._mask = len(self._keys) - 1

    def __contains__(self, key: int) -> bool:
        return self.has(key, DEEPEST)

    def __len__(self) -> int:
        """How many keys are remembered, at most."""
        return min(self._came, len(self._keys)) if self._most else 0
