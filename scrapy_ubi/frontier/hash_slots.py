"""Hash tables in arrays of words: where a key lies, for thousands of keys at once.

Open addressing with double hashing. A table's number of slots is a prime, so that every step comes by every slot. Steps
are short (256 slots at most), so that a look-up stays within a page or two; it takes as many steps as with long ones
(measured).

A slot is a number: 0 when it is empty, odd when its key is done, and one less when the key is only known. What else it
says of the key is the kind's matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from scrapy_ubi.ground.later import Later

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Words = NDArray[np.uint64]
    Slots = NDArray[np.uint64 | np.uint32]
    Bits = NDArray[np.bool_]
    Numbers = NDArray[np.int64]
else:
    np = Later("numpy")

# Fewer keys than that are followed one by one: a round of numpy costs as much as 50 steps.
_FEW = 24


class Probes(NamedTuple):
    """Of each key, as arrays: where to look for it, and what."""

    at: Numbers  # the slot to look at next
    end: Numbers  # the slot behind the last of its table
    slots: Numbers  # how many its table has
    step: Numbers
    sought: Slots  # the slot of the key, done

    @classmethod
    def of(cls, hashes: Words, start: Numbers, slots: Numbers, step: Numbers, sought: Slots) -> Probes:
        """For hashes in tables that begin at these words."""
        at = start + (hashes % slots.astype(np.uint64)).astype(np.int64)
        return cls(at, start + slots, slots, step, sought)

    def only(self, which: Numbers) -> Probes:
        """Some of them."""
        at, end, slots, step, sought = self
        return Probes(at[which], end[which], slots[which], step[which], sought[which])

    def after(self, which: Numbers) -> Probes:
        """Some of them, each a step on."""
        at, end, slots, step, sought = self.only(which)
        at = at + step
        return Probes(at - slots * (at >= end), end, slots, step, sought)


def walk(table: Slots, places: Probes) -> Numbers:
    """The slot in which each key is, or the empty one where it would be."""
    found = places.at.copy()
    left = np.arange(len(found))
    while len(left) > _FEW:
        slot = table[places.at]
        on = np.flatnonzero((slot != 0) & (slot | 1 != places.sought))
        left, places = left[on], places.after(on)
        found[left] = places.at
    words = table.data
    rows = zip(left.tolist(), *(column.tolist() for column in places), strict=True)
    for index, at, end, slots, step, sought in rows:
        while (slot := words[at]) and slot | 1 != sought:
            at += step
            if at >= end:
                at -= slots
        found[index] = at
    return found


def claim(table: Slots, places: Probes, new: Slots) -> None:
    """Put slots of keys that are not in the table, each once, where there is room for them.

    Of several that want one empty slot, the last to be written has it, and the others go on.
    """
    while len(new) > _FEW:
        here = np.flatnonzero(table[places.at] == 0)
        table[places.at[here]] = new[here]
        on = np.flatnonzero(table[places.at] != new)
        new, places = new[on], places.after(on)
    for at, end, slots, step, slot in zip(*(c.tolist() for c in places[:4]), new.tolist(), strict=True):
        _claim_one(table.data, at, end, slots, step, slot)


def _claim_one(table: memoryview, at: int, end: int, slots: int, step: int, slot: int) -> None:
    while table[at]:
        at += step
        if at >= end:
            at -= slots
    table[at] = slot


def built(used: Slots, hashes: Words, step: Numbers, slots: int) -> Slots:
    """A table of so many slots that holds these used ones: `claim` for one table."""
    table = np.zeros(slots, used.dtype)
    at = (hashes % slots).astype(np.int64)
    while len(used) > _FEW:
        here = np.flatnonzero(table[at] == 0)
        table[at[here]] = used[here]
        on = np.flatnonzero(table[at] != used)
        used, step = used[on], step[on]
        at = at[on] + step
        at -= slots * (at >= slots)
    for one, stride, slot in zip(at.tolist(), step.tolist(), used.tolist(), strict=True):
        _claim_one(table.data, one, slots, slots, stride, slot)
    return table


def _primes_below(end: int) -> list[int]:
    """All primes that are smaller (the sieve of Eratosthenes)."""
    is_left = bytearray([1]) * end
    is_left[:2] = b"\0\0"
    for n in range(2, int(end**0.5) + 1):
        if is_left[n]:
            is_left[n * n :: n] = bytes(len(range(n * n, end, n)))
    return [n for n in range(end) if is_left[n]]


_PRIMES = _primes_below(4096)


def is_prime(number: int) -> bool:
    """For numbers below 4096 squared, which are all that a shard's word has room for."""
    for factor in _PRIMES:
        if factor * factor > number:
            return True
        if number % factor == 0:
            return False
    return True


def prime(least: float) -> int:
    """The first prime from there on."""
    number = int(least) | 1
    while not is_prime(number):
        number += 2
    return number
