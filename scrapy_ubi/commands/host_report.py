"""`scrapy ubi hosts`: the hosts of a crawl with their queues, states, next times and failures."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from typing import Any

from scrapy.settings import BaseSettings

from scrapy_ubi.commands.query import Gathered, QueryReport, gather
from scrapy_ubi.monitor.answers import Answer
from scrapy_ubi.monitor.table import Column, count, folded, span, table
from scrapy_ubi.node.report.queries import Question

_COLUMNS = (
    Column("host"),
    Column("agent", cut_first=True),
    Column("state"),
    Column("queued", True),
    Column("done", True),
    Column("failed", True),
    Column("next", True),
    Column("last error"),
)
_LATER = (Column("learned"), Column("at once", True))  # shown where anything is
_FIELDS = ("learned", "loads")

_ORDERS: Mapping[str, Callable[[Answer], Any]] = {
    "queued": lambda row: -row["queued"],
    "done": lambda row: -row["done"],
    "failed": lambda row: -row["failed"],
    "next": lambda row: row["next"] if row["next"] is not None else math.inf,
    "host": lambda row: 0,
}


def run(settings: BaseSettings, opts: argparse.Namespace) -> QueryReport:
    """Ask and show. Raises UbiError."""
    asked = Question("hosts", 0.0, agent=opts.agent or "", sort=opts.sort, limit=opts.limit, copies=opts.copies)
    found = gather(settings, opts, lambda group: asked)
    order = _ORDERS[opts.sort]
    rows = sorted(found.rows(), key=lambda row: (order(row), row["host"], row["agent"]))[: opts.limit]
    total = found.total("total")
    document = {**found.document(), "sort": opts.sort, "total": total, "hosts": rows}
    return QueryReport(_lines(found, opts, rows, total), document, found.answers.complaint)


def _lines(found: Gathered, opts: argparse.Namespace, rows: list[Answer], total: int) -> list[str]:
    shown = "" if len(rows) == total else f", the first {count(len(rows))} by {opts.sort}"
    head = folded(f"{found.whose}: {count(total)} {'host' if total == 1 else 'hosts'}{shown}")
    if not rows:
        return head
    more = [(column, name) for column, name in zip(_LATER, _FIELDS, strict=True) if any(row[name] for row in rows)]
    columns = (*_COLUMNS, *(column for column, _ in more))
    return [*head, "", *table(columns, [[*_cells(row), *(row[name] for _, name in more)] for row in rows])]


def _cells(row: Answer) -> list[str]:
    state = f"{row['state']} (copy)" if row["role"] == "copy" else row["state"]
    wait = "" if row["next"] is None else "now" if not row["next"] else span(row["next"])
    counts = [count(row[name]) if row[name] else "" for name in ("queued", "done", "failed")]
    return [row["host"], row["agent"], state, *counts, wait, row["error"]]
