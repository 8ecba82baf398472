"""What came out of a crawl, as it lies in the agents' directories on this machine."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from scrapy.settings import BaseSettings

from scrapy_ubi.cli.commands.stopped_status import read_figures
from scrapy_ubi.cli.monitor.document import Document
from scrapy_ubi.cli.monitor.render_report import measures_of
from scrapy_ubi.errors import UbiUnavailable
from scrapy_ubi.outputs import collector
from scrapy_ubi.outputs.collector import Out
from scrapy_ubi.outputs.part_files import OPEN
from scrapy_ubi.web import agent_places
from scrapy_ubi.web.output_records import PageCounts, is_index, newest_copies

MOST_OUTPUTS = 1_000  # rows
MOST_FILES = 100_000  # looked at

COUNTS = PageCounts()  # of this process


def run(settings: BaseSettings, opts: argparse.Namespace) -> Document:
    """The stores and their sizes; what was joined as a duplicate. Raises UbiError."""
    status, _ = read_figures(settings, opts)
    found = agent_places.find_agents(settings, status)
    try:
        outs = [out for out in collector.find_outputs(found.paths) if out.crawl == status.crawl]
        COUNTS.look()
        rows = [row for out in outs for row in stores(out)]
        copies = newest_copies(out.path for out in outs)
    except OSError as error:
        raise UbiUnavailable(f"The directories in {found.looked} cannot be read ({error.strerror}).") from error
    measures = measures_of(status)
    rows.sort(key=lambda row: (row["agent"], row["run"], row["store"]))
    return {
        "crawl": status.crawl,
        "looked": found.looked,
        "missing": found.missing,
        "outputs": rows[:MOST_OUTPUTS],
        "duplicates": {
            "joined": dict(measures.joined),
            "examples": {step: list(pair) for step, pair in measures.examples.items()},
            "overlap": measures.overlap,
            "copies": copies,
        },
    }


def stores(out: Out) -> Iterator[Document]:
    """What each store of an agent has, in one run. Raises OSError."""
    for store in sorted(path for path in out.path.iterdir() if path.is_dir()):
        sizes = [*_files(store)]
        pages = [COUNTS.count_lines(store / name, size) for name, size in sizes if is_index(name)]
        yield {
            "agent": out.agent,
            "run": out.run,
            "store": store.name,
            "parts": sum(not name.endswith(OPEN) for name, _ in sizes),
            "open_parts": sum(name.endswith(OPEN) for name, _ in sizes),
            "bytes": sum(size for _, size in sizes),
            "pages": sum(pages) if None not in pages else None,
        }


def _files(store: Path) -> Iterator[tuple[str, int]]:
    """The files of a store with their sizes; those of LARM lie in a directory for each part."""
    return islice(_below(store, ""), MOST_FILES)


def _below(store: Path, inner: str) -> Iterator[tuple[str, int]]:
    with os.scandir(store / inner) as found:
        for entry in found:
            if entry.is_dir(follow_symlinks=False) and not inner:
                yield from _below(store, f"{entry.name}/")
            elif entry.is_file(follow_symlinks=False):
                with suppress(FileNotFoundError):  # sealed meanwhile: it has another name, and is seen the next time
                    yield inner + entry.name, entry.stat(follow_symlinks=False).st_size
