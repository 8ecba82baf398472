"""What may be read, by its path below `/api/`: the parameters, and the function that answers.

Where a command shows the same, the function is the command's, and the answer the document of its `--json`.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from scrapy.settings import BaseSettings

from scrapy_ubi.agent.report.host_answers import place
from scrapy_ubi.agent.report.queries import SORTS
from scrapy_ubi.cli.commands import (
    crawls,
    failed,
    host_report,
    inbox_report,
    live_settings,
    seed,
    url,
)
from scrapy_ubi.cli.commands.query import QueryReport
from scrapy_ubi.cli.commands.stopped_status import read_figures
from scrapy_ubi.cli.monitor import document
from scrapy_ubi.cli.monitor.document import Document
from scrapy_ubi.web import crawl_ring, outputs_here
from scrapy_ubi.web.parameters import Field, Fields, choice, flag, number, text

MOST_NAME = 300  # characters of a host, an agent, a reason
MOST_LETTERS = 1_000_000  # characters of the letters of one answer

Answerer = Callable[[BaseSettings, argparse.Namespace], Document]


class Reading(NamedTuple):
    """What one path answers."""

    fields: Fields
    answer: Answerer


def of_command(run: Callable[[BaseSettings, argparse.Namespace], QueryReport], **fixed: Any) -> Answerer:
    """What a command answers, with what it would complain of."""

    def answer(settings: BaseSettings, opts: argparse.Namespace) -> Document:
        for name, value in fixed.items():
            setattr(opts, name, value)
        report = run(settings, opts)
        return {**report.document, "complaint": report.complaint} if report.complaint else report.document

    return answer


def _inbox(settings: BaseSettings, opts: argparse.Namespace) -> Document:
    opts.dead, opts.full = False, False
    made = inbox_report.run(settings, opts).document
    kept: list[Document] = []
    size = 0
    for letter in made["letters"]:
        size += len(json.dumps(letter))
        if kept and size > MOST_LETTERS:
            break
        kept.append(letter)
    return {**made, "letters": kept}


def _place(value: Any) -> str:
    after: str = text(2 * MOST_NAME)(value)
    if math.isnan(place(after)[0]):
        raise ValueError("it is no place")
    return after


_LIMIT = Field(number(1, 200), 50)
_FEW = Field(number(1, 200), 20)
_LETTERS = Field(number(1, 50), 10)
_NAME, _AGENT = Field(text(MOST_NAME)), Field(text(MOST_NAME), needed=True)
_URL = Field(text(), needed=True)
_FLAG = Field(flag, False)

_HOSTS = {
    "sort": Field(choice(*SORTS), SORTS[0]),
    "limit": _LIMIT,
    "search": _NAME,
    "after": Field(_place),
    "agent": _NAME,
    "copies": _FLAG,
    "shards": _FLAG,
    "complete": _FLAG,
}

READINGS: Mapping[str, Reading] = {
    "status": Reading({}, lambda settings, opts: document.status(read_figures(settings, opts)[0])),
    "report": Reading({}, lambda settings, opts: document.report(read_figures(settings, opts)[0])),
    "ring": Reading({}, crawl_ring.run),
    "hosts": Reading(_HOSTS, of_command(host_report.run)),
    "host": Reading({"host": _AGENT, "agent": _NAME, "limit": _FEW}, of_command(host_report.run_one)),
    "failed": Reading(
        {"reason": _NAME, "host": _NAME, "url": Field(text()), "agent": _NAME, "limit": _LIMIT}, of_command(failed.run)
    ),
    "url": Reading({"url": _URL, "agent": _NAME}, of_command(url.run)),
    "owner": Reading({"url": _URL}, of_command(url.run_owner, agents=None)),
    "inbox": Reading({"agent": _AGENT, "limit": _LETTERS}, _inbox),
    "dead": Reading({"agent": _AGENT, "limit": _LETTERS}, of_command(inbox_report.run, dead=True, full=False)),
    "settings": Reading({}, of_command(live_settings.run, changed=True)),
    "crawls": Reading({}, of_command(crawls.run, crawl=None)),
    "seeds": Reading({"limit": _LIMIT}, seed.read_state),
    "outputs": Reading({}, outputs_here.read_outputs),
    "items": Reading({"agent": _NAME, "limit": _FEW}, outputs_here.read_items),
}
