"""Holders at points of a circle of 64-bit numbers: who is nearest to a number, in either direction, and who comes next.

The geometry under `ring`, which adds agents, hosts and hashing. Rules of this module:

* A `Circle` is never changed once made; `with_points` and `without_points` give another and share nothing with it.
* Between two neighbouring points lies a *bound*, half way and rounded down: the last number that is nearest to the
  lower one. So what is as far from both belongs to the counter-clockwise one. As that is the same rule everywhere, each
  holder keeps all that is its own when others go (contravariance).
* Look-ups wait for memory more than for anything else, so all is in flat arrays of machine numbers, and most look-ups
  touch one place in one of them: `_near` has the answer for every *cell*, an equal part of the circle, that has no
  bound in it. Bisecting 200,000 Python integers takes three times as long (benchmarks/ring.py).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest
from itertools import pairwise

SIZE = 1 << 64

# Cells for each point, at least: there is a power of two of them. One look-up in nine to seventeen then falls into a
# cell with a bound, and has to bisect. For 200,000 points `_near` has 4 MB; twice as many cells saved little.
CELLS = 8

BISECT = 0xFFFF  # in `_near`: there is a bound in this cell

# Points that a walk to the next holders passes at most, or so many for each holder where that is more. Among holders of
# as many points each next to none gets there.
WALK = 64
WALK_EACH = 8


class Circle:
    """Points with a holder each, for at most 65,535 holders.

    `nearest` takes O(1) on the average; `outward` O(log P) and a little for each holder wanted; where a few have nearly
    all points, for each there is, and O(P) once; a change of k of P points O(k log P), and O(P) of plain copying.

    The bounds are an *inner* one between each point and the next; the one between the last point and the first, which
    is the lowest of all or the highest; and, to end every search, the last number of the circle.
    """

    __slots__ = (
        "points", "holders", "_around", "_inner", "_turn", "_bounds", "_numbers", "_names", "_shift", "_near",
        "_walk", "_own",
    )  # fmt: skip

    points: array[int]  # ascending, all different
    holders: list[str]  # of the point at the same place
    _around: int  # the bound between the last point and the first
    _inner: int  # where in `_bounds` the inner ones begin: 1 if `_around` is the lowest, else 0
    _turn: int  # what lies above bound i - 1, up to bound i, is nearest to the point at i - _turn (also below zero)
    _bounds: array[int]  # ascending
    _numbers: dict[str, int]  # holder -> its number; there may be some that hold none any longer
    _names: list[str]  # the holder of each number
    _shift: int  # a number's cell is what its highest bits say: number >> _shift
    _near: array[int]  # cell -> number of the holder that has all of it, or BISECT
    _walk: int  # points that a walk passes at most
    _own: dict[str, array[int]]  # holder -> its points; empty until they are asked for

    def __init__(self, points: array[int], holders: list[str], inner: array[int] | None = None) -> None:
        """Of these, which become its own; `inner` bounds if they are known. `_near` is to be filled yet."""
        self.points = points
        self.holders = holders
        bounds = array("Q", map(_middle, points, points[1:])) if inner is None else inner
        around = _middle(points[-1], points[0] + SIZE) if points else SIZE - 1
        self._around = around % SIZE
        self._inner = around // SIZE
        self._turn = self._inner or len(points)
        bounds.insert(0 if self._inner else len(bounds), self._around)
        bounds.append(SIZE - 1)
        self._bounds = bounds
        self._shift = 64 - (len(points) * CELLS).bit_length()
        self._own = {}

    @classmethod
    def from_points(cls, points: array[int], holders: list[str]) -> Circle:
        """Of these points, ascending and all different, and the holder of each."""
        circle = cls(points, holders)
        circle._start_near()
        return circle

    # ---- asking

    def nearest(self, number: int) -> str:
        """The holder of the nearest point. Raises IndexError if there are no points."""
        near = self._near[number >> self._shift]
        if near != BISECT:
            return self._names[near]
        return self.holders[bisect_left(self._bounds, number) - self._turn]

    def outward(self, number: int, wanted: int) -> tuple[str, ...]:
        """The first `wanted` different holders by the distance of their nearest point; there must be so many."""
        points, holders = self.points, self.holders
        if wanted < 1:
            return ()
        place = (bisect_left(self._bounds, number) - self._turn) % len(points)
        # Two walks away from the nearest point. Each stops at its nearest holder not met yet; the nearer of these two
        # is next. Indices below zero count from the end, so neither walk needs to wrap.
        down, up = place, place - len(points)
        lowest, highest = down - self._walk, up + self._walk
        met = {holders[place]: None}
        while len(met) < wanted:
            while holders[down] in met:
                if down == lowest:
                    return (*met, *self._farther(number, met, wanted - len(met)))
                down -= 1
            while holders[up] in met:
                if up == highest:
                    return (*met, *self._farther(number, met, wanted - len(met)))
                up += 1
            nearer = down if (number - points[down]) % SIZE <= (points[up] - number) % SIZE else up
            met[holders[nearer]] = None
        return tuple(met)

    def _farther(self, number: int, met: Mapping[str, None], wanted: int) -> list[str]:
        """`outward` but for those met, who are the first: the others are sought each among its own points.

        Where a few of the holders have most of the points, a walk to the next one passes thousands of theirs.
        """
        if not self._own:
            for point, holder in zip(self.points, self.holders, strict=True):
                self._own.setdefault(holder, array("Q")).append(point)
        found = []
        for holder, own in self._own.items():
            if holder not in met:
                above = bisect_right(own, number)
                down, up = (number - own[above - 1]) % SIZE, (own[above % len(own)] - number) % SIZE
                found.append((min(down, up), up < down, holder))
        return [holder for _, _, holder in nsmallest(wanted, found)]

    def arcs(self) -> Iterator[tuple[int, str | None]]:
        """(last number, holder) of each arc with one nearest point, from zero up to the end of the circle.

        Without points it is one arc that no agent (None) holds.
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
        points, inner, holders, new = array("Q"), array("Q"), list[str](), list[int]()
        done = 0
        for number in added:
            place = bisect_left(self.points, number, done)
            points += self.points[done:place]
            inner += self._inner_bounds(done, place)
            holders += self.holders[done:place]
            new.append(len(points))
            points.append(number)
            holders.append(holder)
            inner.extend([0] * (len(points) - len(inner)))
            done = place
        points += self.points[done:]
        inner += self._inner_bounds(done, len(self.points))
        holders += self.holders[done:]
        circle = _joined(points, holders, inner, (place + side for place in new for side in (-1, 0)))
        circle._take_near(self, (circle._span(place) for place in new), holder)
        return circle

    def without_points(self, removed: Sequence[int]) -> Circle:
        """This circle without these points, ascending; each must be there."""
        points, inner, holders, gone, joints = array("Q"), array("Q"), list[str](), list[int](), list[int]()
        done = 0
        for number in removed:
            place = bisect_left(self.points, number, done)
            points += self.points[done:place]
            inner += self._inner_bounds(done, place)
            holders += self.holders[done:place]
            gone.append(place)
            joints.append(len(points) - 1)
            done = place + 1
        points += self.points[done:]
        inner += self._inner_bounds(done, len(self.points))
        holders += self.holders[done:]
        circle = _joined(points, holders, inner, joints)
        circle._take_near(self, (self._span(place) for place in gone))
        return circle

    def _inner_bounds(self, start: int, end: int) -> array[int]:
        """The inner bounds above the points from start to end; the last point has none."""
        return self._bounds[self._inner + start : self._inner + min(end, len(self.points) - 1)]

    def _span(self, place: int) -> tuple[int, int]:
        """The bounds below and above a point. All that its coming or going changes lies between them."""
        below = self._bounds[self._inner + place - 1] if place else self._around
        above = self._bounds[self._inner + place] if place < len(self.points) - 1 else self._around
        return below, above

    # ---- the cells

    def _start_near(self) -> None:
        self._numbers = {holder: number for number, holder in enumerate(dict.fromkeys(self.holders))}
        self._walk = max(WALK, WALK_EACH * len(self._numbers))
        if len(self._numbers) > BISECT:
            raise ValueError(f"{len(self._numbers)} agents are more than the {BISECT} that a ring can hold")
        self._names = list(self._numbers)
        self._near = array("H", bytes(2 << (64 - self._shift)))
        self._fill(0, SIZE - 1)

    def _take_near(self, other: Circle, spans: Iterable[tuple[int, int]], *more: str) -> None:
        """Take what another circle has in `_near`, but for what lies in these spans. `more` holders have come."""
        numbers = {**other._numbers}
        for holder in more:
            numbers.setdefault(holder, len(numbers))
        if self._shift != other._shift or len(numbers) > BISECT:
            self._start_near()  # which makes room for new numbers, too
            return
        self._numbers, self._names = numbers, list(numbers)
        self._walk = max(WALK, WALK_EACH * len(numbers))
        self._near = other._near[:]
        for low, high in spans:
            if low <= high:
                self._fill(low, high)
            else:
                self._fill(low, SIZE - 1)
                self._fill(0, high)

    def _fill(self, low: int, high: int) -> None:
        """Work out the cells from that of `low` to that of `high`."""
        bounds, near, shift = self._bounds, self._near, self._shift
        cell, end = low >> shift, (high >> shift) + 1
        place = bisect_left(bounds, cell << shift)
        while cell < end:  # which the last number of the circle, the last of the bounds, sees to
            next_cell = bounds[place] >> shift
            if next_cell > cell:
                number = self._numbers[self.holders[place - self._turn]]
                stop = min(next_cell, end)
                near[cell:stop] = array("H", [number]) * (stop - cell)
            if next_cell < end:
                near[next_cell] = BISECT
            cell = max(cell, next_cell + 1)
            place += 1

    def check_invariants(self) -> None:
        """Assert the invariants: `points` ascend, and all else follows from them."""
        assert len(self.points) == len(self.holders)
        assert all(low < high for low, high in pairwise(self.points))
        fresh = Circle.from_points(self.points[:], self.holders[:])
        for field in ("_around", "_inner", "_turn", "_bounds", "_shift"):
            assert getattr(self, field) == getattr(fresh, field), field
        assert all(low <= high for low, high in pairwise(self._bounds))
        assert len(self._bounds) == max(1, len(self.points)) + 1
        assert [self._numbers[name] for name in self._names] == list(range(len(self._names)))
        assert self._named() == fresh._named()

    def _named(self) -> list[str | None]:
        return [self._names[near] if near != BISECT else None for near in self._near] if self.points else []


def _joined(points: array[int], holders: list[str], inner: array[int], joints: Iterable[int]) -> Circle:
    """The circle of these, with the inner bounds above the points at `joints` yet to be set."""
    del inner[max(0, len(points) - 1) :]
    for place in joints:
        if 0 <= place < len(inner):
            inner[place] = _middle(points[place], points[place + 1])
    return Circle(points, holders, inner)


def _middle(low: int, high: int) -> int:
    """Half way, rounded down: the last number that is nearest to the lower one, or as near."""
    return (low + high) >> 1
