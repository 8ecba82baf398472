"""`scrapy ubi collect items | links | warc | graph | index | duplicates`: one result of all agents, each page once.

Rules of this module:

* Nothing is asked of Redis, and nothing is opened that an agent has locked: it works beside a running crawl, on
  directories that were copied from other machines, and on those of agents that were killed.
* The result is written beside and renamed: what is there under its name is whole.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from scrapy.settings import BaseSettings

from scrapy_ubi.cli.commands import collect_graph, search
from scrapy_ubi.cli.commands.collect_choice import bar, choose, remarks
from scrapy_ubi.cli.commands.query import QueryReport
from scrapy_ubi.cli.commands.redis_connection import UbiNotFound, setting
from scrapy_ubi.cli.commands.search import IndexForm
from scrapy_ubi.cli.monitor.text_table import count, counted
from scrapy_ubi.errors import UbiDirectoryError
from scrapy_ubi.outputs.collector import Collector, CollectTally
from scrapy_ubi.outputs.duplicates.duplicates_store import ENDING, DuplicatesStore
from scrapy_ubi.outputs.duplicates.groups import Copy, Groups
from scrapy_ubi.outputs.index import index_store
from scrapy_ubi.outputs.index.catch_up import IndexCollector
from scrapy_ubi.outputs.index.index_store import IndexStore
from scrapy_ubi.outputs.markdown import markdown_collector, markdown_store
from scrapy_ubi.outputs.markdown.markdown_collector import MarkdownCollector
from scrapy_ubi.outputs.markdown.markdown_store import MarkdownStore
from scrapy_ubi.outputs.warc.warc_collector import WarcCollector
from scrapy_ubi.outputs.whole_file import whole_file
from scrapy_ubi.settings.values import Duplicates

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
NEAR = 3  # words of a hundred, where neither the command line nor UBI_DUPLICATES says another number
LATEST_OF = {"warc": "a record of each visit", "index": _ANYWAY, "markdown": _ANYWAY}


def run(settings: BaseSettings, opts: argparse.Namespace) -> QueryReport:
    """Collect. Raises UbiError."""
    if opts.kind == "graph":
        return collect_graph.run(settings, opts)
    if opts.kind == "duplicates":
        return _collect_duplicates(settings, opts)
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
    except search.ERRORS as error:
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
    twice = f"; {counted(tally.doubles, 'page')} there twice, counted once" if tally.doubles else ""
    parts = f"{counted(tally.parts, 'part')} of {counted(agents, 'agent')}"
    older = f"; {counted(tally.older, 'record')} of earlier visits left out" if tally.older else ""
    return f"{counted(tally.pages, 'page')}, from {parts}{twice}{older}."


def _form(output: str) -> IndexForm | None:
    """The index that a file of this name is to be; None: the records as they are."""
    return next((form for form in (search.FTS5, search.TANTIVY) if output.endswith(form.ending)), None)


def _written(collector: Collector, output: str) -> CollectTally:
    if output == "-":
        tally = collector.collect(sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return tally
    if isinstance(collector, IndexCollector) and _form(output) is search.TANTIVY:
        return _directory(collector, Path(output))
    if isinstance(collector, MarkdownCollector) and markdown_collector.is_tree(output):
        return _tree(collector, Path(output))
    with whole_file(output) as beside, beside.open("wb") as file:
        tally = collector.collect(file)
    collector.place_beside()
    return tally


def _replace(beside: Path, output: Path) -> None:
    search.remove(output)
    beside.rename(output)


@contextmanager
def _whole_directory(output: Path, give_name: Callable[[Path, Path], None] = _replace) -> Iterator[Path]:
    """As `whole_file`, for a directory."""
    beside = output.with_name(f"{output.name}.part")
    search.remove(beside)
    try:
        yield beside
        give_name(beside, output)
    except BaseException:
        search.remove(beside)
        raise


def _parquet(collector: Collector, output: Path, said: list[str]) -> CollectTally:
    """A directory of Parquet files; what is there under its name is one, or is left alone. `said`: what differs."""
    from scrapy_ubi.outputs import parquet  # needs an extra

    if output.exists() and not (output / parquet.SUCCESS).exists():
        raise UbiDirectoryError(f"{output} exists, and is no whole directory of Parquet files: move it away.")
    with _whole_directory(output) as beside:
        writer = parquet.ParquetWriter(beside)
        writer.write(collector.pages())
    said += writer.remarks
    return collector.tally


def _directory(collector: IndexCollector, output: Path) -> CollectTally:
    """An index that is a directory: what is there under its name is an index, or is left alone."""
    if output.exists():
        search.existing(output)
    with _whole_directory(output) as beside:
        return collector.collect_into(beside)


def _tree(collector: MarkdownCollector, output: Path) -> CollectTally:
    """A tree of files; what is there under its name is one, or is left alone."""
    markdown_collector.check_tree(output)
    with _whole_directory(output, markdown_collector.replace_tree) as beside:
        return collector.collect_into(beside)


# -- duplicates


def _collect_duplicates(settings: BaseSettings, opts: argparse.Namespace) -> QueryReport:
    """Groups of pages that are copies of each other, over all agents and hosts. Raises UbiError."""
    chosen = choose(settings, opts)
    near = opts.near if opts.near is not None else _near(settings)
    place = None if opts.output == "-" else Path(opts.output).absolute().parent
    try:
        with tempfile.TemporaryDirectory(prefix="ubi-duplicates-", dir=place) as inner:
            collector = Collector(chosen.outs, DuplicatesStore.name, ENDING, Path(inner), bar(), latest=True)
            groups = Groups(collector, Path(inner), near)
            number = _write_groups(groups, opts.output)
    except OSError as error:
        name = error.filename or opts.output
        raise UbiDirectoryError(f"{name} cannot be used ({error.strerror or error}).") from error
    said = remarks("pages", collector.tally, chosen)
    if groups.refused:
        said.append(f"{count(groups.refused)} records do not add up, and are left out: their file is damaged.")
    for sentence in said:
        print(f"scrapy ubi: {sentence}", file=sys.stderr)
    tally = collector.tally
    line = (
        f"{opts.output}: {count(number)} groups of duplicates among {count(groups.pages)} pages; copies beside the "
        f"first ones: {count(groups.exact)} exact, {count(groups.near_ones)} near."
    )
    document = {
        "run": chosen.run, "pages": groups.pages, "groups": number, "exact": groups.exact, "near": groups.near_ones,
        "shells": groups.shells, "refused": groups.refused, "doubles": tally.doubles, "parts": tally.parts,
        "agents": chosen.agents, "open_parts": tally.open_parts, "damaged": tally.damaged,
        "other_runs": chosen.other_runs,
    }  # fmt: skip
    return QueryReport([] if opts.output == "-" else [line], document)


def _near(settings: BaseSettings) -> int:
    said: Duplicates | None = setting(settings, "duplicates")
    return said.near if said is not None else NEAR


def _write_groups(groups: Groups, output: str) -> int:
    """Write all groups, a line each; how many there are."""
    if output == "-":
        number = _write_lines(groups, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return number
    with whole_file(output) as beside, beside.open("wb") as file:
        return _write_lines(groups, file)


def _write_lines(groups: Groups, file: IO[bytes]) -> int:
    number = 0
    for group in groups.all():
        file.write(_group_line(group))
        number += 1
    return number


def _group_line(group: list[Copy]) -> bytes:
    digests = {copy.digest for copy in group}
    pages = [{"url": copy.url, "sha1": copy.digest} for copy in group]
    return json.dumps({"kind": "near" if len(digests) > 1 else "exact", "pages": pages}).encode() + b"\n"
