"""`scrapy ubi host HOST`: one host: its queue, its delay, what is noted of it, what failed."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable

from scrapy.settings import BaseSettings

from scrapy_ubi.agent.report.host_answers import COPY
from scrapy_ubi.agent.report.queries import Question
from scrapy_ubi.cli.commands.locate import host_of
from scrapy_ubi.cli.commands.query import Gathered, QueryReport, gather
from scrapy_ubi.cli.commands.redis_connection import UbiNotFound
from scrapy_ubi.cli.monitor.answers import Answer
from scrapy_ubi.cli.monitor.text_table import Column, count, folded, pairs, span, table
from scrapy_ubi.cli.monitor.url_owner import GroupSettings
from scrapy_ubi.ground.untrusted.terminal_text import plain

_WAITING = (Column("depth", True), Column("priority", True), Column("url"))
_FAILED = (Column("failed", True), Column("reason"), Column("url"))


def run(settings: BaseSettings, opts: argparse.Namespace) -> QueryReport:
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
    return QueryReport(_lines(found, names[0], rows), document, found.answers.complaint)


def _lines(found: Gathered, host: str, rows: list[Answer]) -> list[str]:
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
