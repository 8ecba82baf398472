"""The names of a comparison's agents, so that each has its part of the work.

Who owns a host follows from the names alone, and a small site has few hosts: by names that just happen one agent may
own all of them, and nothing would show of what a second process does to a project.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from scrapy import Request

from scrapy_ubi.adapter.requests.named_hosts import HostNames
from scrapy_ubi.protocol.ring import Ring, RingCollision
from scrapy_ubi.settings import UbiSettings

TRIED = 64  # groups of names
MOST_HOSTS = 500  # the busiest ones are looked at


def balanced_names(settings: UbiSettings, urls: Iterable[str], number: int) -> list[str]:
    """Return names for so many agents: as many as can be have some of these URLs, and the busiest as few as can be."""
    host_of = settings.host_of()
    if settings.named_by:
        names = HostNames(settings)
        hosts = Counter(names.of_request(Request(url)) for url in urls)
    else:
        hosts = Counter(map(host_of, urls))
    hosts.pop(None, None)
    busiest = hosts.most_common(MOST_HOSTS)
    return min((_group(tried, number) for tried in range(TRIED)), key=lambda group: _unfair(settings, group, busiest))


def _group(tried: int, number: int) -> list[str]:
    letters = f"{chr(ord('a') + tried // 8)}{tried % 8}"
    return [f"agent-{letters}-{count}" for count in range(1, number + 1)]


def _unfair(settings: UbiSettings, group: list[str], hosts: list[tuple[str | None, int]]) -> tuple[int, int]:
    """How many of these agents have nothing, and how many of the URLs the busiest one has."""
    try:
        ring = Ring.of(dict.fromkeys(group, settings.ring_replicas))
    except RingCollision:
        return len(group), sum(many for _, many in hosts)
    load: Counter[str] = Counter()
    for host, many in hosts:
        if host is not None:
            load[ring.order(host)[0]] += many
    return len(group) - len(load), max(load.values(), default=0)
