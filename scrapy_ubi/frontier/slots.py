"""Hash tables in arrays of words: where a key lies, for thousands of keys at once.

A table's number of slots is a prime, so that every step of the double hashing comes by every slot. Steps are short
(256 slots at most), so that a look-up stays within a page or two: as many steps as with long ones (measured).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

LOW = (1 << 56) - 1  # what a slot holds of a key

class Places(NamedTuple):
    """Of each key, as arrays: where to look for it, and what."""

    at: Words  # the word to look at next
    end: Words  # of its shard: the word behind the last
    slots: Words  # of its shard
    step: Words
    sought: Words  # the slot, with both bits

    @classmethod
    def of(cls, keys: Words, start: Words, slots: Words) -> Places:
        step = (keys >> np.uint64(40) & np.uint64(255)) + np.uint64(1)
        sought = (keys & np.uint64(LOW)) << np.uint64(2) | np.uint64(3)
        return cls(start + keys % slots, start + slots, slots, step, sought)

    def after(self, which: NDArray[np.bool_] | NDArray[np.intp]) -> Places:
        """Only those, each a step on."""
        at, end, slots, step, sought = (column[which] for column in self)
        at = at + step
        return Places(np.where(at >= end, at - slots, at), end, slots, step, sought)


def walk(table: Words, places: Places) -> Words:
    """The word in which each key is, or the empty one where it would be."""
    found = places.at.copy()
    left = np.arange(len(found))
    while len(left):
        slot = table[places.at]
        on = np.flatnonzero((slot != 0) & (slot | np.uint64(1) != places.sought))
        left, places = left[on], places.after(on)
        found[left] = places.at
    return found


def claim(table: Words, places: Places, slots: Words) -> None:
    """Put slots of keys that are not in the table, each once, where there is room for them.

    Of several that want one empty word, the last to be written has it, and the others go on.
    """
    while len(slots):
        here = table[places.at] == 0
        table[places.at[here]] = slots[here]
        on = np.flatnonzero(table[places.at] != slots)
        slots, places = slots[on], places.after(on)


def built(live: Words, shard: int, slots: int) -> Words:
    """A shard of so many slots that holds these used ones."""
    table = np.zeros(slots, np.uint64)
    keys = live >> np.uint64(2) | np.uint64(shard << 56)
    claim(table, Places.of(keys, np.zeros_like(keys), np.full_like(keys, slots)), live)
    return table


_PRIMES = [n for n in range(2, 4096) if all(n % m for m in range(2, int(n**0.5) + 1))]


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


def batches(changes: Iterable[tuple[int, int]], most: int) -> Iterator[tuple[Words, Words]]:
    """The changes as arrays of at most so many, within each of which a key comes once: with its highest status."""
    changes = iter(changes)
    kind = np.dtype([("key", np.uint64), ("status", np.uint64)])
    while len(some := np.fromiter(islice(changes, most), kind)):
        some = some[np.lexsort((some["status"], some["key"]))]
        keys = some["key"]
        last = np.append(keys[1:] != keys[:-1], True)
        yield keys[last], some["status"][last]
