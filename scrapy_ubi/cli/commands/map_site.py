"""`scrapy ubi map URL...`: what a site's own lists say that it has.

Rules of this module:

* Standard output has URLs only; all that is for people goes to standard error.
* What does not hold in options is an error before anything is fetched.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from scrapy.crawler import AsyncCrawlerProcess
from scrapy.settings import BaseSettings

from scrapy_ubi.cli.mapping.map_spider import MapOutcome, MapSpider, settings_of
from scrapy_ubi.cli.mapping.url_list import UrlList
from scrapy_ubi.cli.monitor.text_table import counted
from scrapy_ubi.cli.patterns.crawl_settings import filter_of
from scrapy_ubi.cli.patterns.rules_source import RulesSource
from scrapy_ubi.errors import UbiDirectoryError
from scrapy_ubi.ground.untrusted.terminal_text import cut_middle, plain

JSON_LINES = (".jsonl", ".jsonlines", ".jl", ".ndjson")
TOLD_EVERY = 0.2, 10.0  # s between two lines of progress: on a terminal, elsewhere
COLUMNS = 79


def run(settings: BaseSettings, opts: argparse.Namespace) -> int:
    """Map; the exit status. Raises UbiError."""
    source = RulesSource()
    source.put("crawl", "start", opts.urls, "URL")
    if opts.hosts:
        source.put("crawl", "hosts", opts.hosts, "--hosts")
    rules = source.rules()
    path = opts.output or opts.overwrite_output or ""
    as_json = opts.json or path.endswith(JSON_LINES)
    began = time.monotonic()
    outcome = MapOutcome()
    with opened(path, overwrite=bool(opts.overwrite_output)) as out:
        urls = UrlList(out, filter_of(rules), as_json=as_json, since=opts.since or 0.0, most=opts.max_urls)
        process = AsyncCrawlerProcess(settings_of(settings))
        tell, clear = teller()
        sites = list(rules.crawl.start)
        process.crawl(MapSpider, sites=sites, urls=urls, outcome=outcome, delay=opts.delay, links=opts.links, tell=tell)
        process.start()
        clear()
        out.flush()
    if outcome.fault is not None:
        raise outcome.fault
    if outcome.error is not None:
        raise outcome.error
    for line in told(urls, outcome, time.monotonic() - began):
        print(plain(line), file=sys.stderr)
    if not outcome.is_whole:
        return 130
    return 0 if urls.listed and not urls.refused else 1


def told(urls: UrlList, outcome: MapOutcome, took: float) -> Iterator[str]:
    """What people are told at the end."""
    lists = f"{counted(outcome.sitemaps, 'sitemap')} and {counted(outcome.feeds, 'feed')}"
    yield f"{counted(urls.listed, 'URL')} from {lists}, in {took:.1f} s."
    if outcome.is_full:
        yield f"There are more: it has ended after {urls.most:,} (--max-urls)."
    if urls.undated:
        yield f"Of them {urls.undated:,} have no date, so they are listed."
    if urls.again:
        yield f"Named again: {urls.again:,}."
    for reason, count in urls.left_out.items():
        first = f", such as {cut_middle(plain(urls.first[reason]), COLUMNS)}" if reason in urls.first else ""
        yield f"Left out: {count:,} {reason}{first}"
    for reason, count in urls.refused.items():
        yield f"Not read: {count:,}, {reason}: {cut_middle(plain(urls.first[reason]), COLUMNS)}"


@contextmanager
def opened(path: str, overwrite: bool) -> Iterator[TextIO]:
    """Where URLs are written to: a file, or standard output. Raises UbiDirectoryError."""
    if not path:
        yield sys.stdout
        return
    try:
        with open(path, "w" if overwrite else "x", encoding="utf-8") as file:
            yield file
    except FileExistsError:
        raise UbiDirectoryError(f"{path} is there already: name a new file, or write -O {path}.") from None
    except OSError as error:
        raise UbiDirectoryError(f"{path} cannot be written ({error.strerror or error}).") from error


def teller() -> tuple[Callable[[str], None], Callable[[], None]]:
    """What tells people how far it is, and what clears that away."""
    is_terminal = sys.stderr.isatty()
    every = TOLD_EVERY[0] if is_terminal else TOLD_EVERY[1]
    last = time.monotonic()

    def tell(text: str) -> None:
        nonlocal last
        if time.monotonic() - last < every:
            return
        last = time.monotonic()
        line = cut_middle(plain(text), COLUMNS)
        print(f"\r\x1b[K{line}" if is_terminal else line, end="" if is_terminal else "\n", file=sys.stderr, flush=True)

    def clear() -> None:
        if is_terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    return tell, clear
