"""`scrapy ubi failed` and `scrapy ubi requeue`: what failed permanently, and how it is fetched again."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from functools import partial

from scrapy.exceptions import UsageError
from scrapy.settings import BaseSettings

from scrapy_ubi.agent.report.queries import Question
from scrapy_ubi.cli.commands.locate import host_of, key_of
from scrapy_ubi.cli.commands.query import Gathered, QueryReport, gather
from scrapy_ubi.cli.monitor.answers import Answer
from scrapy_ubi.cli.monitor.text_table import Column, count, folded, span, table
from scrapy_ubi.cli.monitor.url_owner import GroupSettings
from scrapy_ubi.errors import UbiError
from scrapy_ubi.ground.untrusted.terminal_text import plain

MOST_REASONS = 8  # named in the headline

_COLUMNS = (Column("failed", True), Column("agent", cut_first=True), Column("reason"), Column("url"))


class UbiNotChosen(UbiError):
    """What is to be chosen by cannot be that of any request."""


def run(settings: BaseSettings, opts: argparse.Namespace) -> QueryReport:
    """Ask for failures and show them, the newest first. Raises UbiError."""
    found = gather(settings, opts, lambda group: _question("failed", opts, group))
    rows = sorted(found.rows(), key=lambda row: (-row["when"], row["url"], row["agent"]))[: opts.limit]
    reasons: Counter[str] = Counter()
    for answer in found.answers.by_agent.values():
        reasons.update(answer["reasons"])
    total = found.total("total")
    document = {**found.document(), "total": total, "reasons": dict(_ranked(reasons)), "failed": rows}
    return QueryReport(_lines(found, rows, total, reasons), document, found.answers.complaint)


def _lines(found: Gathered, rows: list[Answer], total: int, reasons: Counter[str]) -> list[str]:
    shown = "" if len(rows) == total else f", the newest {count(len(rows))}"
    head = folded(f"{found.whose}: {count(total)} failed {'request' if total == 1 else 'requests'}{shown}")
    if reasons:
        most = [f"{reason} {count(number)}" for reason, number in _ranked(reasons)[:MOST_REASONS]]
        more = len(reasons) - len(most)
        head += folded(f"by reason: {', '.join(most)}{f', and {more} more' if more else ''}")
    if not rows:
        return head
    now = time.time()
    cells = [[f"{span(max(0.0, now - row['when']))} ago", row["agent"], row["reason"], row["url"]] for row in rows]
    return [*head, "", *table(_COLUMNS, cells)]


def requeue(settings: BaseSettings, opts: argparse.Namespace) -> QueryReport:
    """Have failed requests fetched again. Raises UbiError, UsageError."""
    _check_choice(opts)
    by_agent: Counter[str] = Counter()
    begun, before = time.time(), 0.0
    while True:  # an agent takes some thousands at once
        found = gather(settings, opts, partial(_question, "requeue", opts, before=before))
        answers = found.answers.by_agent
        for agent, answer in answers.items():
            by_agent[agent] += answer["requeued"]
        if not any(answer["more"] and answer["requeued"] for answer in answers.values()):
            break
        before = begun  # what was queued again may have failed again immediately, without end
    requeued, unfit = by_agent.total(), found.total("unfit")
    document = {**found.document(), "requeued": requeued, "unfit": unfit, "agents": by_agent}
    what = ("page", "pages") if opts.outputs_of else ("failed request", "failed requests")
    lines = folded(f"{found.whose}: {_queued_again(by_agent, what)}")
    if unfit:
        lines += folded(f"{count(unfit)} could not be: too large to travel, unreadable, or the crawl is over")
    return QueryReport(lines, document, found.answers.complaint)


def _check_choice(opts: argparse.Namespace) -> None:
    """Raises UsageError unless it is said which requests: all of them, or a choice."""
    if opts.outputs_of and (opts.all or opts.reason):
        raise UsageError("--outputs-of goes with --host and --url only: it is about pages that did not fail.")
    chosen = bool(opts.reason or opts.host or opts.url or opts.outputs_of)
    if opts.all and chosen:
        raise UsageError("--all and a choice exclude each other: leave one out.", print_help=False)
    if not opts.all and not chosen:
        raise UsageError(
            "Nothing is chosen: give --reason, --host, --url, --outputs-of, or --all for every failed request.",
            print_help=False,
        )


def _queued_again(by_agent: Counter[str], what: tuple[str, str]) -> str:
    """How many of these (one, several) are queued again, and by whom if by more than one agent."""
    requeued = by_agent.total()
    line = f"{count(requeued)} {f'{what[0]} is' if requeued == 1 else f'{what[1]} are'} queued again"
    who = [f"{agent} {count(number)}" for agent, number in by_agent.items() if number]
    return f"{line} ({', '.join(who)})" if len(who) > 1 else line


def _question(ask: str, opts: argparse.Namespace, group: GroupSettings, before: float = 0.0) -> Question:
    key = key_of(opts.url, group) if opts.url else ""
    if opts.url and not key:
        raise UbiNotChosen(f"--url '{plain(opts.url, 200)}' is not an absolute http or https URL, so none failed.")
    if opts.url and group.settings.fingerprints:
        raise UbiNotChosen(
            f"--url: REQUEST_FINGERPRINTER_CLASS, {group.fingerprinter}, makes the keys of this crawl, so a URL alone "
            "finds no request: choose by --host or --reason."
        )
    host = host_of(opts.host, group) if opts.host else ""
    if host is None:
        raise UbiNotChosen(f"--host '{plain(opts.host, 200)}' is no host: give one as `scrapy ubi hosts` shows it.")
    return Question(
        ask,
        0.0,
        agent=opts.agent or "",
        limit=getattr(opts, "limit", 1),
        host=host,
        reason=opts.reason or "",
        url=opts.url or "",
        key=key,
        everything=getattr(opts, "all", False),
        before=0.0 if getattr(opts, "outputs_of", None) else before,
        outputs_of=getattr(opts, "outputs_of", None) or "",
    )


def _ranked(reasons: Counter[str]) -> list[tuple[str, int]]:
    """The most frequent first, those alike by name."""
    return sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0]))
