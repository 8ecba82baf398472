"""`scrapy ubi crawls`: the crawls in a Redis, and which of them are old."""

from __future__ import annotations

import argparse
import math
from typing import Any

from scrapy.settings import BaseSettings

from scrapy_ubi.cli.commands.query import QueryReport
from scrapy_ubi.cli.commands.redis_connection import connect
from scrapy_ubi.cli.monitor.headline import arguments_of
from scrapy_ubi.cli.monitor.status import CrawlStatus, find_crawls, read_status
from scrapy_ubi.cli.monitor.text_table import Column, count, room, span, table
from scrapy_ubi.ground.untrusted.terminal_text import cut

MOST = 1_000  # crawls looked at: each takes three round trips

_COLUMNS = (
    Column("crawl"),
    Column("state"),
    Column("agents", True),
    Column("pages", True),
    Column("last seen", True),
    Column("arguments"),
)


def run(settings: BaseSettings, opts: argparse.Namespace) -> QueryReport:
    """Look and show: those that run first, then those seen last. Raises UbiError."""
    with connect(settings, opts) as to, to.explained():
        names = [name for name in find_crawls(to.client) if name.startswith(opts.crawl or "")]
        found = [read_status(to.client, name) for name in names[:MOST]]
    found.sort(key=lambda one: (one.state != "running", age(one), one.crawl))
    total = len(names)
    document = {"redis": to.at.shown, "total": total, "crawls": [_document(one) for one in found]}
    head = cut(f"{count(total)} {'crawl' if total == 1 else 'crawls'} in {to.at.shown}", room())
    rows = [_cells(one) for one in found]
    more = [f"... {count(total - MOST)} more crawls"] if total > MOST else []
    return QueryReport([head, "", *table(_COLUMNS, rows), *more] if rows else [head], document)


def age(of: CrawlStatus) -> float:
    """Seconds since one of its agents was last seen; infinite where that is not known."""
    return min((agent.age for agent in of.agents if agent.age is not None), default=math.inf)


def pages(of: CrawlStatus) -> int:
    """Responses that its agents have fetched."""
    return sum(agent.profile.count("pages") for agent in of.agents if agent.profile is not None)


def _document(of: CrawlStatus) -> dict[str, Any]:
    seen = age(of)
    return {
        "crawl": of.crawl,
        "state": of.state,
        "agents": len(of.agents),
        "working": sum(agent.working for agent in of.agents),
        "pages": pages(of),
        "age": None if math.isinf(seen) else round(seen, 3),
        "spiders": sorted({agent.profile.spider for agent in of.agents if agent.profile is not None}),
        "arguments": of.arguments,
    }


def _cells(of: CrawlStatus) -> list[str]:
    working, seen = sum(agent.working for agent in of.agents), age(of)
    return [
        of.crawl,
        of.state,
        f"{working} of {len(of.agents)}",
        count(pages(of)),
        "" if math.isinf(seen) else f"{span(seen)} ago",
        arguments_of(of),
    ]
