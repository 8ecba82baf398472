"""`scrapy ubi wacz`: WARC files, or what all agents have kept as WARC, as one WACZ file."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from scrapy.settings import BaseSettings

from scrapy_ubi.cli.commands.collect_choice import bar, choose, remarks
from scrapy_ubi.cli.commands.query import QueryReport
from scrapy_ubi.cli.commands.redis_connection import UbiNotFound
from scrapy_ubi.cli.monitor.text_table import count
from scrapy_ubi.errors import UbiDirectoryError, UbiError
from scrapy_ubi.outputs.warc.foreign import files_of
from scrapy_ubi.outputs.warc.wacz_file import Wacz, WaczTally
from scrapy_ubi.outputs.warc.warc_collector import WarcCollector


class UbiOutputExists(UbiError):
    """A file with the name of the result is there."""


def run(settings: BaseSettings, opts: argparse.Namespace) -> QueryReport:
    """Write the file. Raises UbiError."""
    output = Path(opts.output).absolute()
    if output.exists() and not opts.force:
        raise UbiOutputExists(f"{opts.output} is there: give another name, or --force to have it replaced.")
    try:
        with tempfile.TemporaryDirectory(prefix=".ubi-wacz-", dir=output.parent) as inner:
            place = Path(inner)
            paths = _given(opts.warc) if opts.warc else [_collected(settings, opts, place)]
            with (place / "wacz").open("wb") as file:
                tally = Wacz(paths, place, bar()).write(file)
            os.replace(place / "wacz", output)
    except OSError as error:
        raise UbiDirectoryError(f"{error.filename or output} cannot be used ({error.strerror or error}).") from error
    return _report(opts, tally)


def _given(patterns: list[str]) -> list[Path]:
    paths, empty = files_of(patterns)
    if empty:
        raise UbiNotFound(f"There is no file {empty[0]!r}.")
    names: dict[str, Path] = {}
    for path in paths:
        if (other := names.setdefault(path.name, path)) is not path:
            raise UbiNotFound(f"{other} and {path} have one name: a WACZ file holds one of that name only.")
    return paths


def _collected(settings: BaseSettings, opts: argparse.Namespace, place: Path) -> Path:
    """One WARC file of all agents' parts, each page once."""
    chosen = choose(settings, opts)
    path = place / "crawl.warc.gz"
    collector = WarcCollector(chosen.outs, path, bar())
    with path.open("wb") as file:
        tally = collector.collect(file)
    collector.place_beside()
    for sentence in remarks("pages", tally, chosen):
        print(f"scrapy ubi: {sentence}", file=sys.stderr)
    return path


def _report(opts: argparse.Namespace, tally: WaczTally) -> QueryReport:
    if tally.broken:
        print(f"scrapy ubi: {count(tally.broken)} records do not hold: they are not in the index.", file=sys.stderr)
    line = (
        f"{opts.output}: {count(tally.records)} responses, {count(tally.pages)} pages, of {count(tally.files)} WARC "
        f"{'file' if tally.files == 1 else 'files'}."
    )
    document = {"records": tally.records, "pages": tally.pages, "files": tally.files, "broken": tally.broken}
    return QueryReport([line], document)
