"""The ring as a page draws it: the share of each agent, and who owns what at so many places around it.

Rules of this module: bounded, whatever the number of points. A ring of 1,000 agents takes a second to make, so the last
one is kept as long as its agents are the same.
"""

from __future__ import annotations

import argparse
from array import array
from collections.abc import Mapping
from functools import lru_cache

from scrapy.settings import BaseSettings

from scrapy_ubi.commands.stopped_status import read_figures
from scrapy_ubi.monitor.document import Document
from scrapy_ubi.monitor.status import CrawlStatus
from scrapy_ubi.monitor.url_owner import group_of
from scrapy_ubi.protocol.ring import Ring, RingCollision, replica_points
from scrapy_ubi.protocol.ring_index import SIZE, Circle

SECTORS = 720
MOST_AGENTS = 1_000

Shared = tuple[tuple[str, int], ...]  # agents with their replicas, by name


def run(settings: BaseSettings, opts: argparse.Namespace) -> Document:
    """The ring of the crawl. Raises UbiError."""
    status, _ = read_figures(settings, opts)
    return {"crawl": status.crawl, **ring_of(status)}


def ring_of(status: CrawlStatus) -> Document:
    """Who shares, how much each owns, and the owners around the ring."""
    replicas = replicas_of(status)
    names = [*replicas][:MOST_AGENTS]
    owned, fair = shares(replicas), fair_shares(status, replicas)
    agents = [_row(status, name, replicas[name], owned.get(name), fair[name]) for name in names]
    index = {name: at for at, name in enumerate(names)}
    sectors = [index.get(owner, -1) for owner in _around(tuple(replicas.items()))]
    return {"replicas": sum(replicas.values()), "agents": agents, "sectors": sectors}


def _row(status: CrawlStatus, name: str, replicas: int, share: float | None, fair: float) -> Document:
    found = status.agent(name)
    profile = found.profile if found is not None else None
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
    return _shares(tuple(replicas.items()))


def fair_shares(status: CrawlStatus, replicas: Mapping[str, int]) -> dict[str, float]:
    """Agent -> the part that it should own, by its capacity."""
    known = {one.name: one.profile.capacity for one in status.agents if one.profile is not None}
    capacities = {name: known.get(name, 1.0) for name in replicas}
    total = sum(capacities.values())
    return {name: capacity / total for name, capacity in capacities.items()}


@lru_cache(maxsize=2)
def _shares(of: Shared) -> Mapping[str, float]:
    try:
        return Ring.of(dict(of)).shares()
    except (RingCollision, ValueError):
        return {}


@lru_cache(maxsize=2)
def _around(of: Shared) -> list[str]:
    """The owners of so many places around the ring, as hosts that fell there would have them."""
    held = {at: name for name, number in of for at in replica_points(name, number)}
    if not held:
        return []
    points = array("Q", sorted(held))
    circle = Circle.of(points, [held[at] for at in points])
    return [circle.nearest(place * SIZE // SECTORS) for place in range(SECTORS)]
