"""The ring as a page shows it: the share of each agent, and who owns what at so many places around it.

`drawn_ring` is the geometry of `protocol.ring_index`, for all points at once in arrays, as nothing is looked up here: a
thousand agents take a tenth of what their `Ring` takes to be made. Rules of this module:

* What is shown is bounded, whatever the number of points.
* The points are those of the protocol, drawn once; what is worked out of them is what a `Ring` would say, which a test
  compares.
* No Python call for a point, but for drawing it.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scrapy.settings import BaseSettings

from scrapy_ubi.agent.profile.profile import Profile
from scrapy_ubi.cli.commands.stopped_status import read_figures
from scrapy_ubi.cli.monitor.document import Document
from scrapy_ubi.cli.monitor.status import CrawlStatus
from scrapy_ubi.cli.monitor.url_owner import group_of
from scrapy_ubi.protocol.ring import replica_points
from scrapy_ubi.protocol.ring_index import SIZE

SECTORS = 720

Shared = tuple[tuple[str, int], ...]  # agents with their replicas, at least one each
Points = NDArray[np.uint64]

MOST_AGENTS = 1_000


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


def run(settings: BaseSettings, opts: argparse.Namespace) -> Document:
    """The ring of the crawl. Raises UbiError."""
    status, _ = read_figures(settings, opts)
    return {"crawl": status.crawl, **ring_of(status)}


def ring_of(status: CrawlStatus) -> Document:
    """Who shares, how much each owns, and the owners around the ring."""
    replicas = replicas_of(status)
    names = [*replicas][:MOST_AGENTS]
    owned, fair = shares(replicas), fair_shares(status, replicas)
    profiles = {one.name: one.profile for one in status.agents}
    agents = [_row(name, profiles[name], replicas[name], owned.get(name), fair[name]) for name in names]
    sectors = [at if at < len(names) else -1 for at in drawn_ring((*replicas.items(),)).sectors]
    return {"replicas": sum(replicas.values()), "agents": agents, "sectors": sectors}


def _row(name: str, profile: Profile | None, replicas: int, share: float | None, fair: float) -> Document:
    return {
        "agent": name,
        "replicas": replicas,
        "capacity": profile.capacity if profile is not None else None,
        "share": share,
        "fair": fair,
        "hosts": profile.count("hosts") if profile is not None else 0,
    }


def replicas_of(status: CrawlStatus) -> dict[str, int]:
    """The agents among which hosts are shared out, with their replicas, by name."""
    return dict(sorted(group_of(status).replicas.items()))


def shares(replicas: Mapping[str, int]) -> Mapping[str, float]:
    """Agent -> the part of the ring that it owns; empty where two agents cannot be on one ring."""
    owned = drawn_ring((*replicas.items(),)).shares
    return dict(zip(replicas, owned, strict=True)) if owned is not None else {}


def fair_shares(status: CrawlStatus, replicas: Mapping[str, int]) -> dict[str, float]:
    """Agent -> the part that it should own, by its capacity."""
    known = {one.name: one.profile.capacity for one in status.agents if one.profile is not None}
    capacities = {name: known.get(name, 1.0) for name in replicas}
    total = sum(capacities.values())
    return {name: capacity / total for name, capacity in capacities.items()}
