"""The ring as a page shows it: the share of each agent, and who owns what at so many places around it.

Rules of this module: bounded, whatever the number of points.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from scrapy.settings import BaseSettings

from scrapy_ubi.agent.profile.profile import Profile
from scrapy_ubi.cli.commands.stopped_status import read_figures
from scrapy_ubi.cli.monitor.document import Document
from scrapy_ubi.cli.monitor.status import CrawlStatus
from scrapy_ubi.cli.monitor.url_owner import group_of
from scrapy_ubi.web.drawn_ring import drawn_ring

MOST_AGENTS = 1_000


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
