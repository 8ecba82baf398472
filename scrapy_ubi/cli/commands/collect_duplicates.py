"""`scrapy ubi collect duplicates`: groups of pages that are copies of each other, over all agents and hosts."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import IO

from scrapy.settings import BaseSettings

from scrapy_ubi.cli.commands.collect_choice import bar, choose, remarks
from scrapy_ubi.cli.commands.query import QueryReport
from scrapy_ubi.cli.commands.redis_connection import setting
from scrapy_ubi.cli.monitor.text_table import count
from scrapy_ubi.errors import UbiDirectoryError
from scrapy_ubi.outputs.collector import Collector
from scrapy_ubi.outputs.duplicates.duplicates_store import ENDING, DuplicatesStore
from scrapy_ubi.outputs.duplicates.groups import Copy, Groups
from scrapy_ubi.settings.values import Duplicates

NEAR = 3  # words of a hundred, where neither the command line nor UBI_DUPLICATES says another number


def run(settings: BaseSettings, opts: argparse.Namespace) -> QueryReport:
    """Collect. Raises UbiError."""
    chosen = choose(settings, opts)
    near = opts.near if opts.near is not None else _near(settings)
    place = None if opts.output == "-" else Path(opts.output).absolute().parent
    try:
        with tempfile.TemporaryDirectory(prefix="ubi-duplicates-", dir=place) as inner:
            collector = Collector(chosen.outs, DuplicatesStore.name, ENDING, Path(inner), bar(), latest=True)
            groups = Groups(collector, Path(inner), near)
            number = _write(groups, opts.output)
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


def _write(groups: Groups, output: str) -> int:
    """Write all groups, a line each; how many there are."""
    if output == "-":
        number = _lines(groups, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return number
    beside = Path(f"{output}.part")
    try:
        with beside.open("wb") as file:
            number = _lines(groups, file)
        os.replace(beside, output)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    return number


def _lines(groups: Groups, file: IO[bytes]) -> int:
    number = 0
    for group in groups.all():
        file.write(_line(group))
        number += 1
    return number


def _line(group: list[Copy]) -> bytes:
    digests = {copy.digest for copy in group}
    pages = [{"url": copy.url, "sha1": copy.digest} for copy in group]
    return json.dumps({"kind": "near" if len(digests) > 1 else "exact", "pages": pages}).encode() + b"\n"
