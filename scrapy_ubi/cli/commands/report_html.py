"""`scrapy ubi report --html FILE`: everything that is known of a crawl, put together and written.

Rules of this module:

* The measures are those of `scrapy ubi report`. History and hosts come from the agents that answer, or from the
  directories of stopped ones; where these cannot be had, the page is written without, and it is said.
* The file is written beside and moved over.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from scrapy.settings import BaseSettings

from scrapy_ubi.agent.profile.figures import package_version
from scrapy_ubi.agent.report.queries import Question
from scrapy_ubi.cli.commands.crawl_history import gather_history
from scrapy_ubi.cli.commands.host_report import added_up
from scrapy_ubi.cli.commands.query import QueryReport, gather
from scrapy_ubi.cli.commands.stopped_status import figures
from scrapy_ubi.cli.monitor import document
from scrapy_ubi.cli.monitor.answers import Answer
from scrapy_ubi.cli.monitor.html_report import render_page
from scrapy_ubi.cli.monitor.html_sections import MOST_HOSTS, ReportFacts
from scrapy_ubi.cli.monitor.merged_history import History
from scrapy_ubi.cli.monitor.render_report import measures_of
from scrapy_ubi.errors import UbiDirectoryError, UbiError
from scrapy_ubi.ground.untrusted.terminal_text import plain
from scrapy_ubi.outputs.whole_file import whole_file

POINTS = 240  # times in a chart
TIMEOUT = 10.0  # s that an agent has for an answer


def run(settings: BaseSettings, opts: argparse.Namespace) -> QueryReport:
    """Write the page. Raises UbiError."""
    status = figures(settings, opts)
    asked = argparse.Namespace(
        **{**vars(opts), "crawl": status.crawl, "dir": opts.dir, "agent": "", "timeout": TIMEOUT}
    )
    history, missing = History(), ""
    hosts: list[Answer] = []
    try:
        found = gather_history(settings, asked, points=POINTS)
        history, missing = found.history, found.told.answers.complaint
        largest = gather(settings, asked, lambda group: Question("hosts", 0.0, sort="done", limit=2 * MOST_HOSTS))
        rows = largest.rows()
        hosts = _each_once(added_up(rows))
    except UbiError as error:
        missing = str(error)
    facts = ReportFacts(status, measures_of(status), history, hosts)
    _write(Path(opts.html), render_page(facts, package_version()))
    if missing:
        print(f"scrapy ubi: {plain(missing)}", file=sys.stderr)
    return QueryReport([f"The report of crawl {plain(status.crawl, 64)} is in {opts.html}."], document.report(status))


def _each_once(rows: list[Answer]) -> list[Answer]:
    """Of a host that lies in the directories of several stopped agents, the row with the most that is done; each knows
    of the failures that it has met."""
    failed: Counter[str] = Counter()
    for row in rows:
        failed[row["host"]] += row["failed"]
    most = {row["host"]: row for row in sorted(rows, key=lambda row: row["done"])}
    return [{**row, "failed": failed[host]} for host, row in most.items()]


def _write(path: Path, text: str) -> None:
    try:
        with whole_file(path) as beside:
            beside.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UbiDirectoryError(f"{path} cannot be written ({error.strerror or error}).") from error
