"""`scrapy ubi hosts`: the hosts of a crawl with their queues, states, next times and failures; `scrapy ubi host HOST`:
one of them, with its delay, and what is noted of it."""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from scrapy.settings import BaseSettings

from scrapy_ubi.agent.report.host_answers import COPY, MOST_ROWS, place
from scrapy_ubi.agent.report.queries import Question
from scrapy_ubi.cli.commands.locate import host_of
from scrapy_ubi.cli.commands.query import Gathered, QueryReport, gather
from scrapy_ubi.cli.commands.redis_connection import UbiNotFound
from scrapy_ubi.cli.monitor.answers import Answer
from scrapy_ubi.cli.monitor.text_table import Column, count, folded, pairs, span, table
from scrapy_ubi.cli.monitor.url_owner import GroupSettings
from scrapy_ubi.ground.untrusted.terminal_text import plain
from scrapy_ubi.urls.host_shards import MARK, host_of_key

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
_NEXT = [column.name for column in _COLUMNS].index("next")
_LATER = (Column("learned"), Column("at once", True))  # shown where anything is
_FIELDS = ("learned", "loads")

_ORDERS: Mapping[str, Callable[[Answer], Any]] = {
    "queued": lambda row: -row["queued"],
    "slowest": lambda row: -(row["needs"] or 0.0),
    "done": lambda row: -row["done"],
    "failed": lambda row: -row["failed"],
    "next": lambda row: row["next"] if row["next"] is not None else math.inf,
    "host": lambda row: 0,
}


def run(settings: BaseSettings, opts: argparse.Namespace) -> QueryReport:
    """Ask and show. Raises UbiError."""
    sort, limit, search = opts.sort, opts.limit, (opts.search or "").lower()
    most = min(limit + 1, MOST_ROWS)  # one more says whether there are more
    asked = Question(
        "hosts",
        expires=0.0,
        agent=opts.agent or "",
        sort=sort,
        limit=most,
        copies=opts.copies,
        search=search,
        after=opts.after or "",
        complete=opts.complete,
    )
    found = gather(settings, opts, lambda group: asked)
    rows = found.rows()
    rows = rows if opts.shards else added_up(rows)
    rows = [row for row in rows if row["complete"] or not opts.complete]
    cut = {row["host"] for row in rows if MARK in row["host"] or "shards" in row}
    total = found.total("total") + len(cut)
    rows, after = _page(rows, opts)
    more = {"search": search} if search else {}
    document = {**found.document(), "sort": sort, **more, "total": total, "after": after, "hosts": rows}
    return QueryReport(_lines(found, opts, rows, total), document, found.answers.complaint)


def _page(rows: list[Answer], opts: argparse.Namespace) -> tuple[list[Answer], str | None]:
    """The rows that are shown, and the place behind them: None at the end."""
    order = _ORDERS[opts.sort]
    least = place(opts.after or "")
    rows = sorted(rows, key=lambda row: (order(row), row["host"], row["agent"]))
    rows = [row for row in rows if (order(row), row["host"]) > least]
    if len(rows) < opts.limit or len(rows) == opts.limit < MOST_ROWS:
        return rows, None
    last = rows[opts.limit - 1]
    rows = [row for row in rows if (order(row), row["host"]) <= (order(last), last["host"])]  # with all of one host
    return rows, f"{order(last)} {last['host']}"


_STATES = ("busy", "waiting", "resting", "held")  # of a host that is cut, the first that any of its shards is in


def added_up(rows: list[Answer]) -> list[Answer]:
    """The rows, with one for all shards of a host that is cut; its copies apart."""
    shards: dict[tuple[str, bool], list[Answer]] = {}
    for row in rows:
        if MARK in row["host"]:
            shards.setdefault((host_of_key(row["host"]), row["role"] == COPY), []).append(row)
    whole = [row for row in rows if MARK not in row["host"]]
    return [*whole, *(_sum(host, parts) for (host, _), parts in shards.items())]


def _sum(host: str, parts: list[Answer]) -> Answer:
    """Of a shard that several have, as stopped agents or as copies, what the one says that knows the most is done."""
    parts = [*{row["host"]: row for row in sorted(parts, key=lambda row: row["done"])}.values()]
    agents = sorted({row["agent"] for row in parts})
    states = {row["state"] for row in parts}
    times = [row["next"] for row in parts if row["next"] is not None]
    return {
        "agent": agents[0] if len(agents) == 1 else f"{len(agents)} agents",
        "host": host,
        "state": next((state for state in _STATES if state in states), parts[0]["state"]),
        "role": parts[0]["role"],
        **{name: sum(row[name] for row in parts) for name in ("queued", "done", "failed")},
        "next": min(times, default=None),
        "error": next((row["error"] for row in parts if row["error"]), ""),
        "learned": "",
        "loads": next((row["loads"] for row in parts if row["loads"]), ""),
        "delay": max((row["delay"] for row in parts if row["delay"] is not None), default=None),
        "complete": min((row["complete"] for row in parts), default=""),
        "bytes": sum(row["bytes"] for row in parts),
        "needs": max((row["needs"] for row in parts if row["needs"] is not None), default=None),
        "shards": len(parts),
        "agents": agents,
    }


def _lines(found: Gathered, opts: argparse.Namespace, rows: list[Answer], total: int) -> list[str]:
    shown = "" if len(rows) == total else f", the first {count(len(rows))} by {opts.sort}"
    head = folded(f"{found.whose}: {count(total)} {'host' if total == 1 else 'hosts'}{shown}")
    if not rows:
        return head
    more = [(column, name) for column, name in zip(_LATER, _FIELDS, strict=True) if any(row[name] for row in rows)]
    if opts.complete:
        more += [(Column("complete"), "complete")]
    columns = (*_COLUMNS, *(column for column, _ in more))
    cells = [[*_cells(row), *(row[name] for _, name in more)] for row in rows]
    if opts.sort == "slowest":  # by this number: there is no room for both
        columns = tuple(Column("needs", True) if column.name == "next" else column for column in columns)
        for cell, row in zip(cells, rows, strict=True):
            cell[_NEXT] = span(row["needs"]) if row["needs"] else ""
    return [*head, "", *table(columns, cells)]


def _cells(row: Answer) -> list[str]:
    state = f"{row['state']} (copy)" if row["role"] == "copy" else row["state"]
    wait = "" if row["next"] is None else "now" if not row["next"] else span(row["next"])
    counts = [count(row[name]) if row[name] else "" for name in ("queued", "done", "failed")]
    host = f"{row['host']} ({row['shards']} shards)" if "shards" in row else row["host"]
    return [host, row["agent"], state, *counts, wait, row["error"]]


# -- one host

_WAITING = (Column("depth", True), Column("priority", True), Column("url"))
_FAILED = (Column("failed", True), Column("reason"), Column("url"))


def run_one(settings: BaseSettings, opts: argparse.Namespace) -> QueryReport:
    """Ask and show. Raises UbiError."""
    names: list[str] = []

    def question(group: GroupSettings) -> Question:
        host = host_of(opts.host, group)
        if host is None:
            raise UbiNotFound(f"'{plain(opts.host, 200)}' is no host: give one as `scrapy ubi hosts` shows it.")
        names.append(host)
        return Question("host", 0.0, agent=opts.agent or "", host=host, limit=opts.limit)

    found = gather(settings, opts, question)
    rows = sorted(found.rows(), key=lambda row: (row["role"] == COPY, row["host"], row["agent"]))
    owner = next((row["agent"] for row in rows if row["role"] != COPY), None)
    document = {**found.document(), "host": names[0], "owner": owner, "agents": rows}
    return QueryReport(_lines_of_one(found, names[0], rows), document, found.answers.complaint)


def _lines_of_one(found: Gathered, host: str, rows: list[Answer]) -> list[str]:
    head = folded(f"{found.whose}: host {plain(host, 200)}")
    if not rows:
        return [*head, "", "No agent knows it."]
    lines = head
    for row in rows:
        lines = [*lines, "", *pairs(_facts(row))]
        if row["role"] != COPY:
            lines += [*_entries("next", row["queue"]), *_failures(row["failures"])]
    return lines


def _facts(row: Answer) -> list[tuple[str, str]]:
    copy = ", a copy" if row["role"] == COPY else ""
    wait = "" if row["next"] is None else "now" if not row["next"] else f"in {span(row['next'])}"
    noted = [(name, plain(json.dumps(value), 500)) for name, value in sorted(row["notes"].items())]
    counts = ", ".join(f"{count(row[name])} {name}" for name in ("queued", "done", "failed"))
    said = [
        ("host", row["host"]),
        ("agent", f"{row['agent']}{copy}"),
        ("state", row["state"]),
        ("urls", counts),
        ("next", wait),
        ("delay", f"{row['delay']:g} s between two loads"),
        ("at once", row["loads"]),
        *noted,
    ]
    return [(name, value) for name, value in said if value]


def _entries(title: str, entries: Iterable[Answer]) -> list[str]:
    cells = [[str(one["depth"]), str(one["priority"]), one["url"]] for one in entries]
    return ["", f"{title}:", *table(_WAITING, cells)] if cells else []


def _failures(failures: Iterable[Answer]) -> list[str]:
    now = time.time()
    cells = [[f"{span(max(0.0, now - one['when']))} ago", one["reason"], one["url"]] for one in failures]
    return ["", *table(_FAILED, cells)] if cells else []
