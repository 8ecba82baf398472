"""What answers each sub-command of `scrapy ubi`, loaded when one is run.

Errors are one sentence on standard error and exit status 1; a traceback is a fault of this program.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from scrapy.settings import BaseSettings, get_settings_priority

from scrapy_ubi.cli.commands.crawl_choice import UbiNoCrawl, choose_crawl
from scrapy_ubi.cli.commands.project import addon_remark
from scrapy_ubi.cli.commands.query import QueryReport
from scrapy_ubi.cli.commands.redis_connection import RedisConnection, connect
from scrapy_ubi.cli.commands.stopped_status import figures
from scrapy_ubi.cli.monitor import document, render_report, render_status
from scrapy_ubi.cli.monitor.status import CrawlStatus, read_status
from scrapy_ubi.errors import UbiError, UbiUnavailable
from scrapy_ubi.ground.untrusted.terminal_text import plain
from scrapy_ubi.settings import refuse_unknown

WATCH_EVERY = 1.0  # seconds
CLEAR = "\x1b[H\x1b[J"  # cursor home, erase below: less flicker than erasing all first

Answer = tuple[list[str], document.Document]

FIGURES: Mapping[str, Callable[[CrawlStatus], Answer]] = {
    "status": lambda status: (render_status.live(status), document.status(status)),
    "agents": lambda status: (render_status.agents(status), document.status(status)),
    "report": lambda status: (render_report.report(status), document.report(status)),
}
# Module and function below `scrapy_ubi.cli.commands`: a command loads what it needs, and not what all others need.
RUNS: Mapping[str, str] = {
    "run": "run.run",
    "crawl": "crawl_site.run",
    "map": "map_site.run",
    "web": "server_options.run_web",
    "mcp": "server_options.run_mcp",
    "items": "items.run",
}
QUERIES: Mapping[str, str] = {
    "botkey": "botkey.run",
    "crawls": "crawls.run",
    "inbox": "inbox_report.run",
    "owner": "url.run_owner",
    "doctor": "doctor.run",
    "drain": "drain.run",
    "hosts": "host_report.run",
    "host": "host_report.run_one",
    "url": "url.run",
    "failed": "failed.run",
    "requeue": "failed.requeue",
    "seed": "seed.run",
    "reset": "reset.run",
    "collect": "collect.run",
    "compare": "compare.run",
    "quality": "quality.run",
    "rank": "rank.run",
    "search": "search.run",
    "wacz": "wacz.run",
    "version": "version.run",
    "set": "steer.run_set",
    "unset": "steer.run_unset",
    "pause": "steer.run_pause",
    "resume": "steer.run_resume",
    "finish": "steer.run_finish",
    "settings": "live_settings.run",
}
HTML_REPORT = "report_html.run"

SAY_IT_THEMSELVES = ("compare", "doctor")  # where the add-on is not on


class UbiUnwritten(UbiError):
    """The answer cannot be written to where standard output leads."""


def load_command(path: str) -> Any:
    """Import the module of a command, and return its function."""
    module, _, function = path.partition(".")
    return getattr(import_module(f"scrapy_ubi.cli.commands.{module}"), function)


def answer(settings: BaseSettings, opts: argparse.Namespace) -> int:
    """Answer, or say in one sentence why not; the exit status."""
    _open_the_closed()
    # Whatever the terminal's encoding, a URL must not stop the output half way.
    for stream in (sys.stdout, sys.stderr):
        getattr(stream, "reconfigure", lambda **_: None)(errors="backslashreplace")
    remark = "" if opts.what in RUNS or opts.what in SAY_IT_THEMSELVES else addon_remark(settings)
    if remark:
        print(f"scrapy ubi: {remark}", file=sys.stderr)
    try:
        refuse_unknown(_given(settings))
        if opts.what in RUNS:
            status: int = load_command(RUNS[opts.what])(settings, opts)
            return status
        if opts.what in QUERIES:
            return _show_report(load_command(QUERIES[opts.what])(settings, opts), opts)
        if opts.what == "report" and opts.html:
            return _show_report(load_command(HTML_REPORT)(settings, opts), opts)
        if opts.what in FIGURES and not getattr(opts, "watch", False):
            _print(FIGURES[opts.what](figures(settings, opts)), opts)
            return 0
        with connect(settings, opts) as to:
            _watch(settings, opts, to)
    except UbiError as error:
        print(f"scrapy ubi: {plain(str(error))}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # `scrapy ubi ... | head` has seen enough
        _write_no_more()
    except KeyboardInterrupt:
        return 130
    return 0


def _show_report(outcome: QueryReport, opts: argparse.Namespace) -> int:
    if outcome.lines or opts.json:
        _print((outcome.lines, outcome.document), opts)
    if outcome.complaint:
        print(f"scrapy ubi: {plain(outcome.complaint)}", file=sys.stderr)
        return 1
    return 0


def _open_the_closed() -> None:
    """A stream that the caller closed (`2>&-`) is None to Python: no process is at its other end."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


def _given(settings: BaseSettings) -> list[str]:
    """The settings that the command line names: one misspelt would leave another crawl, or directory, to be meant."""
    here = get_settings_priority("cmdline")
    return [name for name in settings if isinstance(name, str) and (settings.getpriority(name) or 0) >= here]


def _print(answer: Answer, opts: argparse.Namespace) -> None:
    _write(_text(answer, opts))


def _write(text: str) -> None:
    """Raises UbiUnwritten, and BrokenPipeError where no process reads any longer."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:  # a full disk
        _write_no_more()
        raise UbiUnwritten(f"The answer cannot be written to standard output ({error.strerror}).") from None


def _write_no_more() -> None:
    """Python would try again at its end to write what is left, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _text(answer: Answer, opts: argparse.Namespace) -> str:
    lines, data = answer
    # On one line while watching, so that a reader can take it line by line.
    return json.dumps(data, indent=None if getattr(opts, "watch", False) else 2) if opts.json else "\n".join(lines)


def _watch(settings: BaseSettings, opts: argparse.Namespace, to: RedisConnection) -> None:
    """Draw the status again and again until the crawl is finished. It is waited for, and once it was seen, also a Redis
    that is away."""
    status = _first_status(settings, opts, to)
    while True:
        _draw(status, opts)
        if status.state == "finished":
            return
        status = _next_status(to, status.crawl)


def _first_status(settings: BaseSettings, opts: argparse.Namespace, to: RedisConnection) -> CrawlStatus:
    said = ""
    while True:
        try:
            return choose_crawl(settings, opts, to)
        except UbiNoCrawl as error:
            if str(error) != said:
                said = str(error)
                print(f"scrapy ubi: {plain(said)} Waiting for it to begin.", file=sys.stderr, flush=True)
        time.sleep(WATCH_EVERY)


def _next_status(to: RedisConnection, crawl: str) -> CrawlStatus:
    said = ""
    while True:
        time.sleep(WATCH_EVERY)
        try:
            with to.explained():
                return read_status(to.client, crawl)
        except UbiUnavailable as error:
            if str(error) != said:
                said = str(error)
                print(f"scrapy ubi: {plain(said)} Trying again.", file=sys.stderr, flush=True)


def _draw(status: CrawlStatus, opts: argparse.Namespace) -> None:
    if opts.json or not sys.stdout.isatty():
        _write(_text((render_status.live(status), document.status(status)), opts) + ("" if opts.json else "\n"))
        return
    size = shutil.get_terminal_size()
    # What is taller than the terminal, or wraps, would scroll: its beginning is lost, and left behind at each drawing.
    _write(CLEAR + "\n".join(render_status.live_within(status, size.columns, max(1, size.lines - 1))))
