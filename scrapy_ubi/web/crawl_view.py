"""The crawl at one look, as a page shows it: a bounded document, whatever the number of agents and hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Any

from scrapy_ubi.cli.monitor import ahead, crawl_warnings
from scrapy_ubi.cli.monitor.document import Document, standing
from scrapy_ubi.cli.monitor.render_report import measures_of
from scrapy_ubi.cli.monitor.status import AgentStatus, CrawlStatus
from scrapy_ubi.web.crawl_events import Event, is_settled, urgent
from scrapy_ubi.web.crawl_ring import fair_shares, replicas_of, shares

MOST_AGENTS = 1_000
MOST_REASONS = 100

_LEFT_OUT = ("speeds", "failed_at", "noted_at", "examples")
_COUNTERS = ("pages", "done", "unique", "known", "queued", "in_flight", "hosts", "forwarded", "outbox")


def view(status: CrawlStatus, lives: bool, events: Sequence[Event]) -> Document:
    """The document of `/api/crawl`."""
    replicas = replicas_of(status)
    owned, fair = shares(replicas), fair_shares(status, replicas)
    shown = sorted(status.agents, key=lambda one: (urgent(one), one.name))[:MOST_AGENTS]
    return {
        "time": status.now,
        "crawl": status.crawl,
        "lives": lives,
        "state": status.state,
        "run": status.run,
        "finished": status.state == "finished",
        "paused": status.paused,
        "waits_for_seeds": status.serves,
        "arguments": status.arguments,
        "views": status.views,
        "settled": is_settled(status),
        "remaining": ahead.document(status),
        "idle": ahead.idle_shown(status),
        "warnings": crawl_warnings.sentences(status),
        "unreadable": status.unreadable,
        "measures": _measures(status),
        "agents_total": len(status.agents),
        "summed_up": status.summed_up.agents if status.summed_up is not None else 0,
        "agents": [_row(one, owned.get(one.name), fair.get(one.name)) for one in shown],
        "events": [*events],
    }


def _measures(status: CrawlStatus) -> Document:
    measures = asdict(measures_of(status))
    for name in _LEFT_OUT:
        del measures[name]
    return {name: _first(value) if name in ("failed", "noted", "joined") else value for name, value in measures.items()}


def _first(counts: Mapping[str, Any]) -> dict[str, Any]:
    return dict(islice(counts.items(), MOST_REASONS))


def _row(of: AgentStatus, share: float | None, fair: float | None) -> Document:
    profile = of.profile
    return {
        **standing(of),
        "view": of.beat.digest if of.beat is not None else None,
        "capacity": profile.capacity if profile is not None else None,
        "share": share,
        "fair": fair,
        **{name: profile.count(name) if profile is not None else 0 for name in _COUNTERS},
        "failed": sum(profile.failing.values()) if profile is not None else 0,
        "pages_per_second": of.pages_per_second,
        "seconds": profile.seconds if profile is not None else 0.0,
        "spider": profile.spider if profile is not None else "",
        "machine": profile.host_name if profile is not None else "",
        "pid": profile.pid if profile is not None else None,
        "version": profile.version if profile is not None else "",
        "started": profile.started if profile is not None else None,
        "live": profile.live if profile is not None else "",
    }
