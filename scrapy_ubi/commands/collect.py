"""`scrapy ubi collect items | links`: one file of what all agents have kept, each page once.

Rules of this module:

* Nothing is asked of Redis, and nothing is opened that an agent has locked: it works beside a running crawl, on
  directories that were copied from other machines, and on those of agents that were killed.
* The result is written beside and renamed: what is there under its name is whole.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

from scrapy.settings import BaseSettings

from scrapy_ubi.commands import directories
from scrapy_ubi.commands.crawl_choice import given_crawl
from scrapy_ubi.commands.query import QueryReport
from scrapy_ubi.commands.redis_connection import UbiNotFound, listed
from scrapy_ubi.errors import UbiDirectoryError
from scrapy_ubi.monitor.table import count
from scrapy_ubi.outputs import collect as collecting
from scrapy_ubi.outputs.collect import Collector, Out, Tally

KINDS = {"items": ("items", "jsonl"), "links": ("larm", "links.log")}  # what -> its store, the ending of its files
BAR = 30  # characters


def run(settings: BaseSettings, opts: argparse.Namespace) -> QueryReport:
    """Collect. Raises UbiError."""
    outs = _outs(settings, opts)
    runs = collecting.runs_of(outs)
    run = opts.run or runs[0]
    chosen = [out for out in outs if out.run == run]
    if not chosen:
        raise UbiNotFound(f"There is no run {run!r} in these directories; there are {listed(runs)}.")
    store, ending = KINDS[opts.kind]
    place = None if opts.output == "-" else Path(opts.output).absolute().parent
    collector = Collector(chosen, store, ending, place, _bar())
    try:
        tally = _written(collector, opts.output)
    except OSError as error:
        name = error.filename or opts.output
        raise UbiDirectoryError(f"{name} cannot be used ({error.strerror or error}).") from error
    for sentence in _remarks(opts.kind, tally, runs, run):
        print(f"scrapy ubi: {sentence}", file=sys.stderr)
    agents = len({out.agent for out in chosen})
    line = (
        f"{opts.output}: {opts.kind} of {count(tally.pages)} pages, from {tally.parts} parts of {agents} "
        f"{'agent' if agents == 1 else 'agents'}; {count(tally.doubles)} pages that were there twice count once."
    )
    document = {
        "run": run, "pages": tally.pages, "doubles": tally.doubles, "parts": tally.parts, "agents": agents,
        "open_parts": tally.open_parts, "damaged": tally.damaged, "other_runs": [one for one in runs if one != run],
    }  # fmt: skip
    return QueryReport([] if opts.output == "-" else [line], document)


def _outs(settings: BaseSettings, opts: argparse.Namespace) -> list[Out]:
    """The outputs that are meant: of one crawl. Raises UbiNotFound."""
    crawl = given_crawl(settings, opts)
    if opts.dir:
        paths, looked = [Path(path) for path in dict.fromkeys(opts.dir)], ", ".join(opts.dir)
    else:
        places, looked = directories.find(settings, crawl)
        paths = [place.path for place in places]
    outs = [out for out in collecting.find(paths) if crawl is None or out.crawl == crawl]
    crawls = sorted({out.crawl for out in outs})
    if len(crawls) > 1:
        raise UbiNotFound(f"There are outputs of several crawls in {looked}: {listed(crawls)}. Name one with --crawl.")
    if not outs:
        of = f"of crawl {crawl!r} " if crawl is not None else ""
        raise UbiNotFound(
            f"There are no outputs {of}in {looked}: name the agents' directories with --dir (UBI_STORES says what is "
            "kept)."
        )
    return outs


def _written(collector: Collector, output: str) -> Tally:
    if output == "-":
        tally = collector.collect(sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return tally
    beside = Path(f"{output}.part")
    try:
        with beside.open("wb") as file:
            tally = collector.collect(file)
        os.replace(beside, output)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    return tally


def _remarks(kind: str, tally: Tally, runs: list[str], run: str) -> list[str]:
    said = []
    if others := [one for one in runs if one != run]:
        said.append(f"Left out are outputs of other runs of this crawl: {', '.join(others)} (--run).")
    if tally.open_parts:
        said.append(f"{tally.open_parts} parts are still written by running agents: their {kind} are not among these.")
    if tally.damaged:
        said.append(f"{tally.damaged} parts are damaged: what stands behind the damage is not among these.")
    return said


def _bar() -> Callable[[int, int], None]:
    """A progress bar, where standard error is a terminal."""
    if not sys.stderr.isatty():
        return lambda done, total: None

    def draw(done: int, total: int) -> None:
        share = done / total if total else 1.0
        filled = "#" * int(BAR * share)
        end = "\n" if done >= total else ""
        print(f"\r[{filled:<{BAR}}] {share:4.0%}", end=end, file=sys.stderr, flush=True)

    return draw
