"""The ring measured for a page: the share of each agent, and who owns what at so many places around it.

It is the geometry of `protocol.ring_index`, for all points at once in arrays, as nothing is looked up here: a thousand
agents take a tenth of what their `Ring` takes to be made. Rules of this module:

* The points are those of the protocol, drawn once; what is worked out of them is what a `Ring` would say, which a test
  compares.
* No Python call for a point, but for drawing it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scrapy_ubi.protocol.ring import replica_points
from scrapy_ubi.protocol.ring_index import SIZE

SECTORS = 720

Shared = tuple[tuple[str, int], ...]  # agents with their replicas, at least one each
Points = NDArray[np.uint64]


class DrawnRing(NamedTuple):
    """`shares`: the part of the ring that each agent owns, 0 to 1, in the order given; None where two agents have a
    point in common, and so cannot be on one ring. `sectors`: the number of the agent that owns each of SECTORS places.
    """

    shares: tuple[float, ...] | None
    sectors: tuple[int, ...]


@lru_cache(maxsize=2)  # a page asks for the same group again and again, until it changes
def drawn_ring(of: Shared) -> DrawnRing:
    """Of these agents; without agents nothing is owned."""
    if not of:
        return DrawnRing((), ())
    drawn = [np.array(replica_points(name, number), np.uint64) for name, number in of]
    agents = np.repeat(np.arange(len(of)), [len(points) for points in drawn])
    points = np.concatenate(drawn)
    order = np.argsort(points, kind="stable")
    points, agents = points[order], agents[order]
    apart = not np.any(points[1:] == points[:-1])
    bounds = _bounds(points)
    sectors = tuple(agents[_nearest(bounds)].tolist())
    return DrawnRing(_shares(bounds, agents, len(of)) if apart else None, sectors)


def _bounds(points: Points) -> Points:
    """The last number that is nearest to each point: half way to the next, rounded down, around the ring."""
    return points + (np.roll(points, -1) - points) // np.uint64(2)


def _shares(bounds: Points, agents: NDArray[np.int64], number: int) -> tuple[float, ...]:
    if len(bounds) == 1:
        return (1.0,)
    sizes = (bounds - np.roll(bounds, 1)).astype(np.float64) / SIZE
    return tuple(np.bincount(agents, sizes, number).tolist())


def _nearest(bounds: Points) -> NDArray[np.int64]:
    """The index of the point that is nearest to each of the places."""
    places = np.array([place * SIZE // SECTORS for place in range(SECTORS)], np.uint64)
    inner, around = bounds[:-1], bounds[-1]  # the last bound lies before the first point, or behind the last
    found = np.searchsorted(inner, places)
    if len(inner) and around < inner[0]:
        return np.where(places <= around, len(inner), np.where(found < len(inner), found, len(inner)))
    return np.where(places > around, 0, found)
