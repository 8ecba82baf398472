"""Holders at points of a circle of 64-bit numbers: who is nearest to a number, in either direction, and who comes next.

The geometry under `ring`, which adds agents, hosts and hashing. Rules of this module:

* A `Circle` is never changed once made; `with_points` and `without_points` give another and share nothing with it.
* Between two neighbouring points lies a *bound*, half way and rounded down: the last number that is nearest to the
  lower one. So what is as far from both belongs to the counter-clockwise one. As that is the same rule everywhere, each
  holder keeps all that is its own when others go (contravariance).
* Everything is a flat array of machine numbers, but for the holders. A look-up among many small objects mostly waits
  for memory: bisecting 200,000 Python integers takes three times as long as what is done here (benchmarks/ring.py).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

SIZE = 1 << 64

# The circle is cut into a power of two of cells, so many that each has one or two bounds: more cells make a look-up
# hardly faster, and a change slower, as `_starts` is added up anew.
BOUNDS_IN_CELL = 2


class Circle:
    """Points with a holder each. `place` takes O(1) on the average; a change of a few of P points O(P), mostly copying.

    The bounds are an *inner* one between each point and the next; the one between the last point and the first, which
    is the lowest of all or the highest; and, to end every search, the last number of the circle.
    """

    __slots__ = ("points", "holders", "_bounds", "_inner", "_turn", "_shift", "_counts", "_starts")

    points: array[int]  # ascending, all different
    holders: list[str]  # of the point at the same place
    _bounds: array[int]  # ascending
    _inner: int  # where in it the inner bounds begin: 0 or 1
    _turn: int  # what lies above bound i - 1, up to bound i, is nearest to the point at i - _turn (also below zero)
    _shift: int  # a number's cell is what its highest bits say: number >> _shift
    _counts: array[int]  # cell -> how many inner bounds lie in it
    _starts: array[int]  # cell -> how many bounds lie below it; one entry more for the end

    def __init__(
        self, points: array[int], holders: list[str], inner: array[int] | None = None, counts: array[int] | None = None
    ) -> None:
        """Of these lists, which become its own. Counts for another number of cells are ignored."""
        self.points, self.holders = points, holders
        bounds = array("Q", map(_middle, points, points[1:])) if inner is None else inner
        bits = (len(points) // BOUNDS_IN_CELL).bit_length()
        self._shift = 64 - bits
        if counts is None or len(counts) != 1 << bits:
            counts = array("I", bytes(4 << bits))
            for bound in bounds:
                counts[bound >> self._shift] += 1
        around = _middle(points[-1], points[0] + SIZE) if points else SIZE - 1  # between the last point and the first
        self._inner = around // SIZE
        self._turn = self._inner or len(points)
        bounds.insert(0 if self._inner else len(bounds), around % SIZE)
        bounds.append(SIZE - 1)
        self._bounds, self._counts = bounds, counts
        cell = (around % SIZE) >> self._shift
        counts[cell] += 1
        self._starts = array("I", list(accumulate(counts, initial=0)))  # by way of a list it is a sixth faster
        counts[cell] -= 1

    # ---- asking

    def place(self, number: int) -> int:
        """Where in `points` and `holders` the nearest one is, as an index, maybe below zero. There must be points."""
        bounds = self._bounds
        place = self._starts[number >> self._shift]
        while bounds[place] < number:
            place += 1
        return place - self._turn

    def nearest(self, number: int) -> str:
        """The holder there. It is `holders[place(number)]` in one call instead of two, as everything waits for it."""
        bounds = self._bounds
        place = self._starts[number >> self._shift]
        while bounds[place] < number:
            place += 1
        return self.holders[place - self._turn]

    def outward(self, number: int, wanted: int) -> tuple[str, ...]:
        """The first `wanted` different holders by the distance of their nearest point; there must be so many."""
        points, holders = self.points, self.holders
        if wanted < 1:
            return ()
        place = self.place(number) % len(points)
        # Two walks away from the nearest point. Each stops at its nearest holder not met yet; the nearer of these two
        # is next. Indices below zero count from the end, so neither walk needs to wrap.
        down, up = place, place - len(points)
        met = {holders[place]: None}
        while len(met) < wanted:
            while holders[down] in met:
                down -= 1
            while holders[up] in met:
                up += 1
            nearer = down if (number - points[down]) % SIZE <= (points[up] - number) % SIZE else up
            met[holders[nearer]] = None
        return tuple(met)

    def arcs(self) -> Iterator[tuple[int, str | None]]:
        """(last number, holder) of each arc with one nearest point, from zero up to the end of the circle.

        Without points it is one arc that nobody (None) holds.
        """
        if not self.points:
            yield SIZE - 1, None
            return
        before = -1
        for place, last in enumerate(self._bounds):
            if last > before:
                yield last, self.holders[place - self._turn]
            before = last

    # ---- making others

    def with_points(self, added: Sequence[int], holder: str) -> Circle:
        """This circle and more points, ascending; there must be none at these numbers yet."""
        points, inner, holders = array("Q"), array("Q"), list[str]()
        gone, new = list[int](), list[int]()
        done = 0
        for number in added:
            place = bisect_left(self.points, number, done)
            points += self.points[done:place]
            inner += self._inner_bounds(done, place)
            holders += self.holders[done:place]
            gone.append(place - 1)
            new += (len(points) - 1, len(points))
            points.append(number)
            holders.append(holder)
            inner.extend([0] * (len(points) - len(inner)))  # to be set in `_changed`
            done = place
        points += self.points[done:]
        inner += self._inner_bounds(done, len(self.points))
        holders += self.holders[done:]
        return self._changed(points, holders, inner, gone, new)

    def without_points(self, removed: Sequence[int]) -> Circle:
        """This circle without these points, ascending; each must be there."""
        points, inner, holders = array("Q"), array("Q"), list[str]()
        gone, new = list[int](), list[int]()
        done = 0
        for number in removed:
            place = bisect_left(self.points, number, done)
            points += self.points[done:place]
            inner += self._inner_bounds(done, place)
            holders += self.holders[done:place]
            gone += (place - 1, place)
            new.append(len(points) - 1)
            done = place + 1
        points += self.points[done:]
        inner += self._inner_bounds(done, len(self.points))
        holders += self.holders[done:]
        return self._changed(points, holders, inner, gone, new)

    def _inner_bounds(self, start: int, end: int) -> array[int]:
        """The inner bounds above the points from start to end; the last point has none."""
        return self._bounds[self._inner + start : self._inner + min(end, len(self.points) - 1)]

    def _changed(
        self, points: array[int], holders: list[str], inner: array[int], gone: list[int], new: list[int]
    ) -> Circle:
        """The new circle. The inner bounds above the places `gone` in this one have gone, those above `new` are new."""
        del inner[max(0, len(points) - 1) :]
        counts = self._counts[:]
        for place in set(gone):
            for bound in self._inner_bounds(place, place + 1) if place >= 0 else ():
                counts[bound >> self._shift] -= 1
        for place in set(new):
            if 0 <= place < len(inner):
                inner[place] = _middle(points[place], points[place + 1])
                counts[inner[place] >> self._shift] += 1
        return Circle(points, holders, inner, counts)

    def _check(self) -> None:
        """Assert the invariants: `points` ascend, and all else follows from them."""
        assert len(self.points) == len(self.holders)
        assert all(low < high for low, high in pairwise(self.points))
        fresh = Circle(self.points[:], self.holders[:])
        for field in ("_bounds", "_inner", "_turn", "_shift", "_counts", "_starts"):
            assert getattr(self, field) == getattr(fresh, field), field
        assert all(low <= high for low, high in pairwise(self._bounds))
        assert len(self._bounds) == max(1, len(self.points)) + 1
        assert self._starts[-1] == len(self._bounds) - 1


def _middle(low: int, high: int) -> int:
    """Half way, rounded down: the last number that is nearest to the lower one, or as near."""
    return (low + high) >> 1
