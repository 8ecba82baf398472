"""`scrapy ubi collect items | links | warc | graph | index | duplicates`: one result of all agents, each page once.

Rules of this module:

* Nothing is asked of Redis, and nothing is opened that an agent has locked: it works beside a running crawl, on
  directories that were copied from other machines, and on those of agents that were killed.
* The result is written beside and renamed: what is there under its name is whole.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from scrapy.settings import BaseSettings

from scrapy_ubi.cli.commands import collect_duplicates, collect_graph, search_forms
from scrapy_ubi.cli.commands.collect_choice import bar, choose, remarks
from scrapy_ubi.cli.commands.query import QueryReport
from scrapy_ubi.cli.commands.redis_connection import UbiNotFound
from scrapy_ubi.cli.commands.search_forms import IndexForm
from scrapy_ubi.cli.monitor.text_table import count
from scrapy_ubi.errors import UbiDirectoryError
from scrapy_ubi.outputs.collector import Collector, CollectTally
from scrapy_ubi.outputs.index import index_store
from scrapy_ubi.outputs.index.catch_up import IndexCollector
from scrapy_ubi.outputs.index.index_store import IndexStore
from scrapy_ubi.outputs.markdown import markdown_collector, markdown_store
from scrapy_ubi.outputs.markdown.markdown_collector import MarkdownCollector
from scrapy_ubi.outputs.markdown.markdown_store import MarkdownStore
from scrapy_ubi.outputs.warc.warc_collector import WarcCollector

# What -> its store, the ending of its files.
KINDS = {
    "items": ("items", "jsonl"),
    "links": ("larm", "links.log"),
    "warc": ("warc", "warc.gz"),
    "index": (IndexStore.name, index_store.ENDING),
    "markdown": (MarkdownStore.name, markdown_store.ENDING),
}


PARQUET = ".parquet"
_ANYWAY = "the latest visit of each page anyway"
LATEST_OF = {"warc": "a record of each visit", "index": _ANYWAY, "markdown": _ANYWAY}


def run(settings: BaseSettings, opts: argparse.Namespace) -> QueryReport:
    """Collect. Raises UbiError."""
    if opts.kind == "graph":
        return collect_graph.run(settings, opts)
    if opts.kind == "duplicates":
        return collect_duplicates.run(settings, opts)
    _check_latest(opts)
    _check_chunks(opts)
    chosen = choose(settings, opts)
    store, ending = KINDS[opts.kind]
    output = None if opts.output == "-" else Path(opts.output).absolute()
    collector: Collector
    if opts.kind == "warc":
        collector = WarcCollector(chosen.outs, output, bar())
    elif opts.kind == "index" and (form := _form(opts.output)) is not None:
        collector = IndexCollector(chosen.outs, output and output.parent, bar(), form.opened)
    elif opts.kind == "markdown":
        collector = MarkdownCollector(chosen.outs, output and output.parent, bar(), getattr(opts, "chunks", None))
    else:
        collector = Collector(chosen.outs, store, ending, output and output.parent, bar(), latest=opts.latest)
    said: list[str] = []
    try:
        if opts.kind == "items" and opts.output.endswith(PARQUET):
            tally = _parquet(collector, Path(opts.output), said)
        else:
            tally = _written(collector, opts.output)
    except OSError as error:
        name = error.filename or opts.output
        raise UbiDirectoryError(f"{name} cannot be used ({error.strerror or error}).") from error
    except search_forms.ERRORS as error:
        raise UbiDirectoryError(f"{opts.output} cannot be written ({error}).") from error
    for sentence in (*remarks(opts.kind, tally, chosen), *said):
        print(f"scrapy ubi: {sentence}", file=sys.stderr)
    agents = chosen.agents
    line = f"{opts.output}: {opts.kind} of {_told(tally, agents)}"
    document = {
        "run": chosen.run, "pages": tally.pages, "doubles": tally.doubles, "older": tally.older, "parts": tally.parts,
        "agents": agents,
        "open_parts": tally.open_parts, "damaged": tally.damaged, "other_runs": chosen.other_runs,
    }  # fmt: skip
    return QueryReport([] if opts.output == "-" else [line], document)


def _check_latest(opts: argparse.Namespace) -> None:
    if opts.latest and opts.kind in LATEST_OF:
        raise UbiNotFound(f"--latest is for items and links: {opts.kind} has {LATEST_OF[opts.kind]}.")


def _check_chunks(opts: argparse.Namespace) -> None:
    size = getattr(opts, "chunks", None)
    if size is not None and opts.kind != "markdown":
        raise UbiNotFound("--chunks is for markdown.")
    if opts.kind == "markdown":
        check_markdown(opts.output, size)


def check_markdown(output: str, size: int | None) -> None:
    """Raise UbiNotFound where chunks of that size cannot be written to what has that name."""
    if size is not None and markdown_collector.is_tree(output):
        ending = markdown_collector.LINES[0]
        raise UbiNotFound(f"--chunks are JSON lines: give them a file whose name ends with {ending}.")


def _told(tally: CollectTally, agents: int) -> str:
    twice = f"; {_number(tally.doubles, 'page')} there twice, counted once" if tally.doubles else ""
    parts = f"{_number(tally.parts, 'part')} of {_number(agents, 'agent')}"
    older = f"; {_number(tally.older, 'record')} of earlier visits left out" if tally.older else ""
    return f"{_number(tally.pages, 'page')}, from {parts}{twice}{older}."


def _number(number: int, what: str) -> str:
    return f"{count(number)} {what}{'' if number == 1 else 's'}"


def _form(output: str) -> IndexForm | None:
    """The index that a file of this name is to be; None: the records as they are."""
    return next((form for form in (search_forms.FTS5, search_forms.TANTIVY) if output.endswith(form.ending)), None)


def _written(collector: Collector, output: str) -> CollectTally:
    if output == "-":
        tally = collector.collect(sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return tally
    beside = Path(f"{output}.part")
    if isinstance(collector, IndexCollector) and _form(output) is search_forms.TANTIVY:
        return _directory(collector, Path(output), beside)
    if isinstance(collector, MarkdownCollector) and markdown_collector.is_tree(output):
        return _tree(collector, Path(output))
    try:
        with beside.open("wb") as file:
            tally = collector.collect(file)
        os.replace(beside, output)
        collector.place_beside()
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    return tally


def _parquet(collector: Collector, output: Path, said: list[str]) -> CollectTally:
    """A directory of Parquet files; what is there under its name is one, or is left alone. `said`: what differs."""
    from scrapy_ubi.outputs import parquet  # needs an extra

    if output.exists() and not (output / parquet.SUCCESS).exists():
        raise UbiDirectoryError(f"{output} exists, and is no whole directory of Parquet files: move it away.")
    beside = Path(f"{output}.part")
    search_forms.remove(beside)
    try:
        writer = parquet.ParquetWriter(beside)
        writer.write(collector.pages())
        search_forms.remove(output)
        beside.rename(output)
    except BaseException:
        search_forms.remove(beside)
        raise
    said += writer.remarks
    return collector.tally


def _directory(collector: IndexCollector, output: Path, beside: Path) -> CollectTally:
    """An index that is a directory: what is there under its name is an index, or is left alone."""
    if output.exists():
        search_forms.existing(output)
    search_forms.remove(beside)
    try:
        tally = collector.collect_into(beside)
        search_forms.remove(output)
        beside.rename(output)
    except BaseException:
        search_forms.remove(beside)
        raise
    return tally


def _tree(collector: MarkdownCollector, output: Path) -> CollectTally:
    """A tree of files; what is there under its name is one, or is left alone."""
    markdown_collector.check_tree(output)
    beside = output.with_name(f"{output.name}.part")
    search_forms.remove(beside)
    try:
        tally = collector.collect_into(beside)
        markdown_collector.replace_tree(beside, output)
    except BaseException:
        search_forms.remove(beside)
        raise
    return tally
